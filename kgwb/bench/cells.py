"""The answers and the gold of a question as HTML, for the tables of a report."""

from __future__ import annotations

from kgwb.bench.results import VERDICT_STATES, BenchRow, get_label, get_verdict, is_lost
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import and_more, shorten

MAX_SHOWN_VALUES = 5
"""Values, or rows of a table, that are shown of an answer."""


def render_verdict(row: BenchRow) -> Html:
    """Render the verdict on a row's answer as a state badge."""
    verdict = get_verdict(row)
    return h.state_badge(VERDICT_STATES[verdict], verdict)


def render_answers(row: BenchRow) -> Html:
    """Render the verdict, and below it the answers or the error.

    A lost answer that should be a table also has the F1 of each gold column.
    """
    if row["error"]:
        answers = h.note(shorten(row["error"]), level="bad")
    else:
        answers = render_values(row, "answers")
    scores = row.get("by_column", {})
    column_scores = ""
    if scores and is_lost(row):
        texts = [f"{name} {score:.2f}" for name, score in scores.items()]
        column_scores = h.div("soft", "by column: ", ", ".join(texts))
    return h.join(h.div("", render_verdict(row)), answers, column_scores)


def render_values(row: BenchRow, name: str) -> Html:
    """Render the "answers" or the "gold" of a row.

    Vertices are shown by their labels, a table with several columns as a table. Of more than
    MAX_SHOWN_VALUES values or rows, the first are shown.
    """
    values = row[name]
    if values is None:
        return h.muted_text("not known")
    if not values:
        return h.muted_text("none")
    table = row.get("table" if name == "answers" else "gold_table")
    if not table:
        table = [[value] for value in values]
    rendered_rows = []
    for cells in table[:MAX_SHOWN_VALUES]:
        rendered_rows.append([_render_value(row, cell or "") for cell in cells])
    if len(table[0]) > 1:
        rendered = h.table((), rendered_rows)
    else:
        rendered = h.join(*(h.div("", *cells) for cells in rendered_rows))
    return h.join(rendered, and_more(len(table) - MAX_SHOWN_VALUES))


def _render_value(row: BenchRow, value: str) -> Html | str:
    """Render an IRI as a link with its label. Return any other value as text, shortened."""
    if "://" in value:
        return h.iri_link(value, get_label(row, value))
    return shorten(value)
