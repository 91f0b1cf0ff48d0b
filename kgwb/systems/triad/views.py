"""Triad's choices and queries as HTML: the options, the template, and what fills its slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kgwb.build import (
    MAX_ROWS,
    Candidate,
    Html,
    RenderContext,
    RetrievedCandidates,
    View,
    collapsible,
    div,
    join,
    lay_out,
    muted_text,
    note,
    pluralize,
    preformatted,
    render_candidate,
    render_curie,
    render_explanation,
    render_query,
    score_bar,
    shorten,
    span,
    state_badge,
    table,
    tag,
)
from kgwb.systems.triad.records import Choice, Filled, Queries, Relation


def render_filled_templates(queries: Queries, context: RenderContext) -> Html:
    """Render a template with its slots highlighted, and its queries as two tables.

    The first has the queries with a result. The table of those without one is collapsed below their
    number, and left out if there are none.
    """
    template = lay_out(queries.template)
    parts: list[object] = list(re.split(r"<([^<>]+)>", template))
    names = parts[1::2]
    parts[1::2] = [span("ent", name) for name in names]
    without_result = ""
    if queries.empty:
        count = pluralize(len(queries.empty), "query")
        summary = muted_text(f"{count} without a result")
        without_result = collapsible(summary, _render_query_table(queries, queries.empty))
    answered = _render_query_table(queries, queries.kept)
    return div("body stack", preformatted(*parts), answered, without_result)


def _render_query_table(queries: Queries, filled: Sequence[Filled]) -> Html:
    """Render a table with a row for each query: its options, the number of its values, and the first values.

    At most MAX_ROWS rows are rendered. The headings are the mentions and triplets that the options
    are for.
    """
    rows = []
    for number, query in enumerate(filled[:MAX_ROWS], 1):
        slots = map(shorten, query.slots)
        first_values = ", ".join(query.results)
        rows.append((number, *slots, query.rows, shorten(first_values)))
    headings: list[object] = [""]
    for head in queries.heads:
        headings.append(span("ent", shorten(head)))
    headings += ["rows", "first values"]
    return table(headings, rows, total=len(filled))


Option = Candidate | Relation | Filled
"""What the decision-maker chooses from: vertices, relations, or queries."""


def render_choice(choice: Choice, context: RenderContext) -> Html:
    """Render all options of a choice, those that were taken marked, and the reason.

    The options are those that the step was given; where these are not known, only what was taken is
    shown. At most MAX_ROWS options are shown, with the number of all. Without any options, the
    choice is shown as text.
    """
    options: list[Option] = list(_options_of(context))
    for option in choice.chosen:
        if option not in options:
            options.append(option)
    headings: Sequence[object] = ()
    rows = []
    for option in options[:MAX_ROWS]:
        mark: object = ""
        if option in choice.chosen:
            mark = state_badge("kept", "taken")
        headings, cells = _option_cells(option, context)
        rows.append((mark, *cells))
    title = div("b", shorten(choice.of))
    shown = note(str(choice))
    if options:
        options_table = table(("", *headings), rows, total=len(options))
        shown = div("across", options_table)
    reason = render_explanation(choice.reason)
    return div("body stack", title, shown, reason)


def _options_of(context: RenderContext) -> Sequence[Option]:
    """Return the options that the step of a choice was given: candidates, queries with a result, or relations.

    They are found by their type among the step's inputs. Empty if these are not known.
    """
    for value in context.inputs:
        if isinstance(value, RetrievedCandidates):
            return value.candidates
        if isinstance(value, Queries):
            return value.kept
        if isinstance(value, tuple) and value and isinstance(value[0], Relation):
            return value
    return ()


def _option_cells(
    option: Option, context: RenderContext
) -> tuple[Sequence[object], Sequence[object]]:
    """Return the headings for options of this kind, and the cells of this option, for a table's row."""
    if isinstance(option, Candidate):
        headings: Sequence[object] = ("vertex", "score")
        vertex = render_candidate(option, context)
        return headings, (vertex, score_bar(option.score))
    if isinstance(option, Relation):
        headings = ("relation", "similarity", "example")
        curie = render_curie(option.iri, context)
        name = join(tag("b", str(option)), " ", curie)
        bar = score_bar(option.similarity)
        return headings, (name, bar, shorten(option.example))
    headings = ("query", "rows", "first values")
    query = render_query(option.query.sparql, context)
    values = shorten(", ".join(option.results))
    return headings, (query, option.rows, values)


VIEWS: Mapping[type, View] = {
    Choice: render_choice,
    Queries: render_filled_templates,
}
"""The view of each record of Triad that has one of its own."""
