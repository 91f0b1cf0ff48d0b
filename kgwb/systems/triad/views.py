"""Triad's queries as HTML: the template, and a table with what fills its slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kgwb.build import View
from kgwb.build.text import pluralize, shorten
from kgwb.build.views import (
    MAX_ROWS,
    Html,
    RenderContext,
    collapsible,
    div,
    lay_out,
    muted_text,
    preformatted,
    span,
    table,
)
from kgwb.systems.triad.records import Filled, Queries


def render_filled_templates(queries: Queries, context: RenderContext) -> Html:
    """Render a template with its slots highlighted, and its queries as two tables.

    The first has the queries with a result; the table of those without one is collapsed below their
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
    """Render a row for each query: its options, the number of its values, and the first values.

    At most MAX_ROWS rows are rendered. Returns nothing if there are no queries. The headings are
    the mentions and triplets that the options are for.
    """
    rows = []
    for number, query in enumerate(filled[:MAX_ROWS], 1):
        slots = map(shorten, query.slots)
        first_values = shorten(", ".join(query.results))
        rows.append((number, *slots, query.rows, first_values))
    slot_headings = [span("ent", shorten(head)) for head in queries.heads]
    headings = ["", *slot_headings, "rows", "first values"]
    return table(headings, rows, total=len(filled))


VIEWS: Mapping[type, View] = {
    Queries: render_filled_templates,
}
"""The view of each record of Triad that has one of its own."""
