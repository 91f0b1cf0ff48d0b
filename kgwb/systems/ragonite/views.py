"""The pictures of RAGonite's records: the schema as a diagram, sources, the answer with its sources lit."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import URIRef

from kgwb.records import Role
from kgwb.run.agents import View
from kgwb.show import html
from kgwb.show.html import Html, collapsible, div, join, span, tag
from kgwb.show.records import render, render_explanation
from kgwb.show.subgraph import Edge, Node, Subgraph
from kgwb.show.subgraph_html import render_svg
from kgwb.show.terms import RenderContext, render_triples
from kgwb.systems.ragonite import records
from kgwb.text import pluralize, shorten

MAX_DRAWN_TABLES = 14
"""Tables in the diagram: the largest."""


def render_schema(value: records.Schema, context: RenderContext) -> Html:
    things = [table for table in value.tables if table.columns[0].name == "id"][:MAX_DRAWN_TABLES]
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
    parts = [div("b", str(value)), render_svg(Subgraph(nodes, edges))]
    parts += (
        div("soft", f"{pluralize(n, 'triple')} only in passages: {why}")
        for why, n in value.only_passages
    )
    for table in value.tables:
        head = join(tag("b", table.name), html.muted_text(pluralize(table.rows, "row")))
        parts.append(collapsible(head, tag("pre", str(table), class_="src"), key=table.name))
    return div("body stack", *parts)


def render_source(value: records.Source, context: RenderContext) -> Html:
    if value.tool == "passages":
        head = div("row", tag("b", shorten(value.title)), html.score_bar(value.score))
        parts = [head, tag("bdi", value.text)]
    else:
        parts = [tag("pre", value.title, class_="src")]
        outcome = div("b", str(value) + " and more" * value.cut)
        rows = html.table(value.columns, value.rows)
        parts += [html.note(value.error, level="bad")] if value.error else [outcome, rows]
    if value.triples:
        head = html.muted_text(pluralize(len(value.triples), "triple"))
        parts.append(
            collapsible(head, render_triples(value.triples, context), key=value.title[:60])
        )
    return div("body stack", *parts)


def render_cited_answer(value: records.CitedAnswer, context: RenderContext) -> Html:
    values = [(each.value, ", ".join(f"[{n}]" for n in each.sources)) for each in value.values]
    parts = [
        div("b", value.text),
        render_explanation(value.reason),
        html.table(("value", "sources"), values),
    ]
    for number, source in enumerate(value.sources, 1):
        lit = (
            html.state_badge("ok", "cited")
            if number in value.cited_numbers
            else span("soft", "not cited")
        )
        head = join(tag("b", f"[{number}] "), source.tool, " ", shorten(source.title, 80), " ", lit)
        parts.append(collapsible(head, render(source, context), key=f"source {number}"))
    return div("body stack", *parts)


VIEWS: Mapping[type, View] = {
    records.CitedAnswer: render_cited_answer,
    records.Schema: render_schema,
    records.Source: render_source,
}
