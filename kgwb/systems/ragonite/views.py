"""The views of RAGonite's records: schema with diagram, source, answer with its sources."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import URIRef

from kgwb.build import Role, View
from kgwb.build.subgraph import Edge, Node, Subgraph, render_svg
from kgwb.build.text import pluralize, shorten
from kgwb.build.views import (
    Html,
    RenderContext,
    collapsible,
    div,
    join,
    muted_text,
    note,
    render,
    render_explanation,
    render_triples,
    score_bar,
    span,
    state_badge,
    table,
    tag,
)
from kgwb.systems.ragonite import records

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
    for sql_table in value.tables:
        row_count = muted_text(pluralize(sql_table.rows, "row"))
        head = join(tag("b", sql_table.name), row_count)
        statement = tag("pre", str(sql_table), class_="src")
        parts.append(collapsible(head, statement, key=sql_table.name))
    return div("body stack", *parts)


def _draw_tables(schema: records.Schema) -> Subgraph:
    """Return the MAX_DRAWN_TABLES largest tables of classes as nodes, and their links as edges.

    A table that only holds values of a predicate is not a node: its link starts at the table that
    its first column references.
    """
    tables = [sql_table for sql_table in schema.tables if not sql_table.columns[0].references]
    iris: dict[str, URIRef] = {}
    nodes = []
    for sql_table in tables[:MAX_DRAWN_TABLES]:
        iri = URIRef(f"urn:kgwb:table:{sql_table.name}")
        iris[sql_table.name] = iri
        label = f"{sql_table.name} ({sql_table.rows:,})"
        nodes.append(Node(iri, label, (Role("support"),)))
    edges = []
    for sql_table in schema.tables:
        start = sql_table.name if sql_table.name in iris else sql_table.columns[0].references
        for column in sql_table.columns[1:]:
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
        head = div("row", title, score_bar(value.score))
        parts = [head, tag("bdi", value.text)]
    else:
        parts = [tag("pre", value.title, class_="src")]
        if value.error:
            parts.append(note(value.error, level="bad"))
        else:
            row_count = f"{value} and more" if value.cut else str(value)
            parts += [div("b", row_count), table(value.columns, value.rows)]
    if value.triples:
        head = muted_text(pluralize(len(value.triples), "triple"))
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
        table(("value", "sources"), rows),
    ]
    for number, source in enumerate(value.sources, 1):
        badge = span("soft", "not cited")
        if number in value.cited_numbers:
            badge = state_badge("kept", "cited")
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
