"""The views of RAGonite's records: schema with diagram, source, answer with its sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rdflib import URIRef

from kgwb.build import (
    Edge,
    Html,
    Node,
    RenderContext,
    Role,
    Subgraph,
    View,
    collapsible,
    div,
    join,
    muted_text,
    note,
    pluralize,
    render,
    render_explanation,
    render_svg,
    render_triples,
    score_bar,
    shorten,
    span,
    state_badge,
    table,
    tag,
)
from kgwb.systems.ragonite import records
from kgwb.systems.ragonite.schema_form import (
    render_annotation_tools,
    render_configurations,
    render_table_form,
)

MAX_DRAWN_TABLES = 12
"""Tables in the diagram of a schema. More of them are a list, since their links would cross."""
MAX_LINK_NAMES_CHARS = 24
"""Characters of the names of several links on one line; more of them are their number."""


def render_schema(value: records.Schema, context: RenderContext) -> Html:
    """Render a schema as numbers, its links, the triples in no table, and each table's SQL.

    The links between the tables of classes are a diagram, or a list if there are more than
    MAX_DRAWN_TABLES of them. The SQL is collapsed. In an interactive context a person can improve a
    table, and switch the tools.
    """
    links = _find_links(value)
    tables = [each for each in value.tables if not each.columns[0].references]
    shown_links = _list_links(links)
    if len(tables) <= MAX_DRAWN_TABLES:
        shown_links = render_svg(_draw_tables(tables, links))
    parts = [div("b", str(value)), shown_links, render_annotation_tools(value)]
    if context.is_interactive:
        parts.insert(1, render_configurations(context.settings))
    for reason, number in value.only_passages:
        triples = pluralize(number, "triple")
        parts.append(div("soft", f"{triples} only in passages: {reason}"))
    for sql_table in value.tables:
        row_count = muted_text(pluralize(sql_table.rows, "row"))
        head = join(tag("b", sql_table.name), row_count)
        statement = tag("pre", str(sql_table), class_="src")
        form = render_table_form(sql_table) if context.is_interactive else Html()
        parts.append(collapsible(head, statement, form, key=sql_table.name))
    return div("body stack", *parts)


Links = Mapping[tuple[str, str], Sequence[str]]
"""The columns by which one table refers to another, by the names of both tables."""


def _find_links(schema: records.Schema) -> Links:
    """Return the columns by which the tables of classes refer to each other, by the names of both tables.

    A table that only holds values of a predicate is not one of them: its link starts at the table
    that its first column references.
    """
    links: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for sql_table in schema.tables:
        start = sql_table.columns[0].references or sql_table.name
        for column in sql_table.columns[1:]:
            if column.references:
                links[start, column.references].append(column.name)
    return links


def _draw_tables(tables: Sequence[records.Table], links: Links) -> Subgraph:
    """Return a graph to draw: tables as nodes with their number of rows, and one edge for all links between two.

    An edge is labelled by the names of the columns, or by their number if the names have more than
    MAX_LINK_NAMES_CHARS; its tooltip names them all.
    """
    iris = {each.name: URIRef(f"urn:kgwb:table:{each.name}") for each in tables}
    nodes = []
    for sql_table in tables:
        label = f"{sql_table.name} ({sql_table.rows:,})"
        nodes.append(Node(iris[sql_table.name], label, (Role("support"),)))
    edges = []
    for (start, end), columns in links.items():
        if start in iris and end in iris:
            label = ", ".join(columns)
            if len(label) > MAX_LINK_NAMES_CHARS:
                label = pluralize(len(columns), "link")
            predicate = URIRef(f"urn:kgwb:{','.join(columns)}")
            roles = tuple(Role("relation", column) for column in columns)
            edges.append(Edge((iris[start], predicate, iris[end]), label, roles))
    return Subgraph(tuple(nodes), tuple(edges))


def _list_links(links: Links) -> Html:
    """Render a table with a row for each two tables of which one refers to the other, with the columns."""
    rows = []
    previous = ""
    for (start, end), columns in sorted(links.items()):
        name = tag("b", start) if start != previous else ""
        rows.append((name, ", ".join(columns), f"→ {end}"))
        previous = start
    return table(("table", "columns", "refers to"), rows)


def render_source(value: records.Source, context: RenderContext) -> Html:
    """Render a passage with its score, or a query with its rows or error; then the supporting triples.

    A passage of a document is marked as a text. The support is collapsed, and left out if there is
    none.
    """
    if value.file:
        mark = span("chip", "text")
        head = div("row", mark, tag("b", shorten(value.title)), score_bar(max(value.score, 0.0)))
        parts = [head, tag("bdi", value.text)]
    elif value.tool == "passages":
        title = tag("b", shorten(value.title))
        head = div("row", title, score_bar(max(value.score, 0.0)))  # a cosine may be negative
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

    The sources are numbered from 1 and collapsed; a badge says whether the text or a value cites one.
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
        kind = "text" if source.file else source.tool
        head = join(tag("b", f"[{number}] "), kind, " ", title, " ", badge)
        details = render(source, context)
        parts.append(collapsible(head, details, key=f"source {number}"))
    return div("body stack", *parts)


VIEWS: Mapping[type, View] = {
    records.CitedAnswer: render_cited_answer,
    records.Schema: render_schema,
    records.Source: render_source,
}
