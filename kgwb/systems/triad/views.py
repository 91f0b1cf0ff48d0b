"""The picture of a template with its slots filled by each choice."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kgwb.run.agents import View
from kgwb.show.html import MOST_ROWS, Html, aside, div, fold, join, span, table, tag
from kgwb.show.terms import RenderContext, lay_out
from kgwb.systems.triad.records import Filled, Queries
from kgwb.text import pluralize, shorten


def render_queries(value: Queries, context: RenderContext) -> Html:
    parts = re.split(r"(<[^<>]+>)", lay_out(value.template))
    template = tag(
        "pre", *(span("ent", p[1:-1]) if n % 2 else p for n, p in enumerate(parts)), class_="src"
    )
    empty = fold(
        aside(f"{pluralize(len(value.empty), 'query')} without a result"), _rows(value, value.empty)
    )
    return div("body stack", template, _rows(value, value.kept), empty if value.empty else "")


def _rows(value: Queries, filled: tuple[Filled, ...]) -> Html:
    """A row for each query: what stands in each slot, and what it gives."""
    heads = [span("ent", shorten(head)) for head in value.heads]
    rows = [
        (str(number), *map(shorten, each.slots), str(each.rows), shorten(", ".join(each.results)))
        for number, each in enumerate(filled[:MOST_ROWS], 1)
    ]
    return table(["", *heads, "rows", "the first"], rows, of=len(filled)) if rows else join()


VIEWS: Mapping[type, View] = {
    Queries: render_queries,
}
