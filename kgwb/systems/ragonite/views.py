"""The pictures of RAGonite's records: the schema as a diagram, sources, the answer with its sources lit."""

from __future__ import annotations

from rdflib import URIRef

from kgwb.show import html
from kgwb.show.html import Html, div, fold, join, span, tag
from kgwb.show.subgraph import Edge, Node, Role, Subgraph, svg
from kgwb.show.tell import because, view
from kgwb.show.terms import Around, triples
from kgwb.systems.ragonite import records
from kgwb.text import pluralize, shorten

DRAWN = 14
"""Tables in the diagram: the largest."""


@view.register
def _(value: records.Schema, around: Around) -> Html:
    things = [table for table in value.tables if table.columns[0].name == "id"][:DRAWN]
    iris = {table.name: URIRef(f"urn:kgwb:table:{table.name}") for table in things}
    nodes = tuple(Node(iris[t.name], f"{t.name} ({t.rows:,})", (Role("support"),)) for t in things)
    links = [
        (t.name if t in things else t.columns[0].references, c)
        for t in value.tables
        for c in t.columns[1:]
    ]
    drawn = [(of, c) for of, c in links if of in iris and c.references in iris]
    edges = tuple(
        Edge((iris[of], URIRef(f"urn:kgwb:{c.name}"), iris[c.references]), c.name)
        for of, c in drawn
    )
    parts = [div("b", str(value)), svg(Subgraph(nodes, edges))]
    parts += (
        div("soft", f"{pluralize(n, 'triple')} only in passages: {why}")
        for why, n in value.only_passages
    )
    for table in value.tables:
        head = join(tag("b", table.name), html.aside(pluralize(table.rows, "row")))
        parts.append(fold(head, tag("pre", str(table), class_="src"), key=table.name))
    return div("body stack", *parts)


@view.register
def _(value: records.Source, around: Around) -> Html:
    if value.tool == "passages":
        head = div("row", tag("b", shorten(value.title)), html.scored(value.score))
        parts = [head, tag("bdi", value.text)]
    else:
        parts = [tag("pre", value.title, class_="src")]
        outcome = div("b", value.outcome + " and more" * value.cut)
        rows = html.table(value.columns, value.rows)
        parts += [html.note(value.error, kind="bad")] if value.error else [outcome, rows]
    if value.triples:
        head = html.aside(pluralize(len(value.triples), "triple"))
        parts.append(fold(head, triples(value.triples, around), key=value.title[:60]))
    return div("body stack", *parts)


@view.register
def _(value: records.Cited, around: Around) -> Html:
    values = [(each.value, ", ".join(f"[{n}]" for n in each.sources)) for each in value.values]
    parts = [div("b", value.text), because(value.reason), html.table(("value", "sources"), values)]
    for number, source in enumerate(value.sources, 1):
        lit = html.state_sign("ok", "cited") if number in value.lit else span("soft", "not cited")
        head = join(tag("b", f"[{number}] "), source.tool, " ", shorten(source.title, 80), " ", lit)
        parts.append(fold(head, view(source, around), key=f"source {number}"))
    return div("body stack", *parts)
