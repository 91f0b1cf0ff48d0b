"""The picture of a template with its slots filled by each choice."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgwb.run.agents import View
from kgwb.show.html import MAX_ROWS, Html, collapsible, div, join, muted_text, span, table, tag
from kgwb.show.terms import RenderContext, lay_out
from kgwb.systems.triad.records import Filled, Queries
from kgwb.text import pluralize, shorten


def render_filled_templates(value: Queries, context: RenderContext) -> Html:
    parts = re.split(r"(<[^<>]+>)", lay_out(value.template))
    template = tag(
        "pre", *(span("ent", p[1:-1]) if n % 2 else p for n, p in enumerate(parts)), class_="src"
    )
    empty = collapsible(
        muted_text(f"{pluralize(len(value.empty), 'query')} without a result"),
        _render_query_table(value, value.empty),
    )
    return div(
        "body stack", template, _render_query_table(value, value.kept), empty if value.empty else ""
    )


def _render_query_table(value: Queries, filled: tuple[Filled, ...]) -> Html:
    """A row for each query: what stands in each slot, and what it gives."""
    heads = [span("ent", shorten(head)) for head in value.heads]
    rows = [
        (str(number), *map(shorten, each.slots), str(each.rows), shorten(", ".join(each.results)))
        for number, each in enumerate(filled[:MAX_ROWS], 1)
    ]
    return table(["", *heads, "rows", "the first"], rows, total=len(filled)) if rows else join()


VIEWS: Mapping[type, View] = {
    Queries: render_filled_templates,
}
