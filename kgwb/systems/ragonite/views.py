"""The pictures of RAGonite's records: the schema as a diagram, sources, the answer with its sources lit."""

from __future__ import annotations

from rdflib import URIRef

from kgwb.show.html import (
    Html,
    aside,
    count,
    div,
    fold,
    join,
    note,
    scored,
    short,
    span,
    state_sign,
    table,
    tag,
)
from kgwb.show.picture import svg
from kgwb.show.subgraph import Edge, Node, Role, Subgraph
from kgwb.show.tell import because, view
from kgwb.show.terms import Around, triples
from kgwb.systems.ragonite import records

DRAWN = 14
"""Tables in the diagram: the largest."""


@view.register
def _(value: records.Schema, around: Around) -> Html:
    drawn = value.tables[:DRAWN]
    iris = {each.name: URIRef(f"urn:kgwb:table:{each.name}") for each in drawn}
    nodes = tuple(Node(iris[t.name], f"{t.name} ({t.rows:,})", (Role("support"),)) for t in drawn)
    links = [(t.name, c) for t in drawn for c in t.columns if c.references in iris]
    edges = tuple(Edge((iris[t], URIRef(f"urn:kgwb:{c.name}"), iris[c.references]), c.name) for t, c in links)
    left = (div("soft", f"{count(n, 'triple')} only in passages: {why}") for why, n in value.only_passages)
    created = (
        fold(
            join(tag("b", t.name), aside(count(t.rows, "row"))), tag("pre", str(t), class_="src"), key=t.name
        )
        for t in value.tables
    )
    return div("body stack", div("b", str(value)), svg(Subgraph(nodes, edges)), *left, *created)


@view.register
def _(value: records.Source, around: Around) -> Html:
    query = tag("pre", value.title, class_="src")
    standing = fold(
        aside(count(len(value.triples), "triple")), triples(value.triples, around), key=value.title[:60]
    )
    after = standing if value.triples else ""
    if value.error:
        return div("body stack", query, note(value.error, kind="bad"))
    if value.tool == "passages":
        head = div("row", tag("b", short(value.title)), scored(value.score))
        return div("body stack", head, tag("bdi", value.text), after)
    more = aside("there are more") if value.cut else ""
    return div(
        "body stack", query, div("b", value.outcome, " ", more), table(value.columns, value.rows), after
    )


@view.register
def _(value: records.Cited, around: Around) -> Html:
    cited = []
    for number, source in enumerate(value.sources, 1):
        lit = state_sign("ok", "cited") if number in value.lit else span("soft", "not cited")
        head = join(tag("b", f"[{number}] "), source.tool, " ", short(source.title, 80), " ", lit)
        cited.append(fold(head, view(source, around), key=f"source {number}", unfolded=False))
    values = [(each.value, ", ".join(f"[{n}]" for n in each.sources)) for each in value.values]
    listed = table(("value", "sources"), values) if values else ""
    return div("body stack", div("b", value.text), because(value.reason), listed, *cited)
