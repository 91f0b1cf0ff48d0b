"""The views of RAGonite's records: schema with diagram, source, answer with its sources."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import URIRef

from kgwb.records import Role
from kgwb.run.agents import View
from kgwb.show import html
from kgwb.show.fields import render_explanation
from kgwb.show.html import Html, collapsible, div, join, span, tag
from kgwb.show.records import render
from kgwb.show.subgraph import Edge, Node, Subgraph
from kgwb.show.subgraph_html import render_svg
from kgwb.show.terms import RenderContext, render_triples
from kgwb.systems.ragonite import records
from kgwb.text import pluralize, shorten

MAX_DRAWN_TABLES = 14
"""Tables in the diagram of a schema: the largest."""


def render_schema(value: records.Schema, context: RenderContext) -> Html:
    """Render a schema as numbers, a diagram, the triples in no table, and each table's SQL.

    The SQL is collapsed.
    """
    parts = [div("b", str(value)), render_svg(_draw_tables(value))]
    for reason, number in value.only_passages:
        triples = pluralize(number, "triple")
        parts.append(div("soft", f"{triples} only in passages: {reason}"))
    for table in value.tables:
        row_count = html.muted_text(pluralize(table.rows, "row"))
        head = join(tag("b", table.name), row_count)
        statement = tag("pre", str(table), class_="src")
        parts.append(collapsible(head, statement, key=table.name))
    return div("body stack", *parts)


def _draw_tables(schema: records.Schema) -> Subgraph:
    """Return the MAX_DRAWN_TABLES largest tables of classes as nodes, and their links as edges.

    A table that only holds values of a predicate is not a node: its link starts at the table that
    its first column references.
    """
    tables = [table for table in schema.tables if not table.columns[0].references]
    iris: dict[str, URIRef] = {}
    nodes = []
    for table in tables[:MAX_DRAWN_TABLES]:
        iri = URIRef(f"urn:kgwb:table:{table.name}")
        iris[table.name] = iri
        label = f"{table.name} ({table.rows:,})"
        nodes.append(Node(iri, label, (Role("support"),)))
    edges = []
    for table in schema.tables:
        start = table.name if table.name in iris else table.columns[0].references
        for column in table.columns[1:]:
            if start in iris and column.references in iris:
                predicate = URIRef(f"urn:kgwb:{column.name}")
                triple = (iris[start], predicate, iris[column.references])
                edges.append(Edge(triple, column.name))
    return Subgraph(tuple(nodes), tuple(edges))


def render_source(value: records.Source, context: RenderContext) -> Html:
    """Render a passage with its score, or a query with its rows or error; then the support.

    The support is collapsed, and left out if there is none.
    """
    if value.tool == "passages":
        title = tag("b", shorten(value.title))
        head = div("row", title, html.score_bar(value.score))
        parts = [head, tag("bdi", value.text)]
    else:
        parts = [tag("pre", value.title, class_="src")]
        if value.error:
            parts.append(html.note(value.error, level="bad"))
        else:
            row_count = f"{value} and more" if value.cut else str(value)
            parts += [div("b", row_count), html.table(value.columns, value.rows)]
    if value.triples:
        head = html.muted_text(pluralize(len(value.triples), "triple"))
        triples = render_triples(value.triples, context)
        parts.append(collapsible(head, triples, key=value.title[:60]))
    return div("body stack", *parts)


def render_cited_answer(value: records.CitedAnswer, context: RenderContext) -> Html:
    """Render the answer, its reason, its values with citations, and each source, cited or not.

    The sources are numbered from 1 and collapsed; a badge says whether a value cites one.
    """
    rows = []
    for cited in value.values:
        citations = ", ".join(f"[{number}]" for number in cited.sources)
        rows.append((cited.value, citations))
    parts = [
        div("b", value.text),
        render_explanation(value.reason),
        html.table(("value", "sources"), rows),
    ]
    for number, source in enumerate(value.sources, 1):
        badge = span("soft", "not cited")
        if number in value.cited_numbers:
            badge = html.state_badge("kept", "cited")
        title = shorten(source.title, 80)
        head = join(tag("b", f"[{number}] "), source.tool, " ", title, " ", badge)
        details = render(source, context)
        parts.append(collapsible(head, details, key=f"source {number}"))
    return div("body stack", *parts)


VIEWS: Mapping[type, View] = {
    records.CitedAnswer: render_cited_answer,
    records.Schema: render_schema,
    records.Source: render_source,
}
