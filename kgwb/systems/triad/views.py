"""The pictures of Triad's records: a template, and its slots filled by each choice."""

from __future__ import annotations

from kgwb.show.html import Html, aside, div, fold, preformatted, short, table
from kgwb.show.tell import view
from kgwb.show.terms import Around
from kgwb.systems.triad import records


@view.register
def _(value: records.Queries, around: Around) -> Html:
    heads = ["", *map(short, value.heads), "rows", "first of them"]

    def rows(filled: tuple[records.Filled, ...]) -> Html:
        cells = (
            (str(n), *map(short, each.slots), str(each.rows), short(", ".join(each.results)))
            for n, each in enumerate(filled, 1)
        )
        return table(heads, cells)

    empty = fold(aside(f"{len(value.empty)} without a result"), rows(value.empty), key="empty")
    return div(
        "body stack",
        preformatted(value.template),
        rows(value.kept),
        empty if value.empty else "",
    )
