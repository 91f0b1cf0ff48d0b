"""A subgraph as a picture (SVG) and as tables: both stand alone, without a kernel and without a theme."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib import Literal, URIRef

from kgwb.flow import Value
from kgwb.render.html import Html, aside, join, page, table, tag
from kgwb.render.layout import Arrow, Box, Shape
from kgwb.render.pictures import Lit, picture
from kgwb.render.records import term
from kgwb.render.words import count, some
from kgwb.show.subgraph import Node, Role, RoleKind, Subgraph

ANSWERS = 5
"""Answers named in one row of the table."""
NOTHING = tag("div", "No vertex is linked yet: run on until an entity of the question has its vertex.")
LEGEND: Mapping[Shape, str] = {
    "linked": "round box: linked vertex, under it the words it is linked to",
    "unknown": "ellipse: bound to the unknown under it, or reached by the relation under it",
    "answer": "double frame: answer",
    "support": "plain box: also in the support",
    "literal": "no frame: a literal",
    "neighbour": "dashed: found by expanding",
}
"""What each shape means, in words."""
BELOW: Mapping[RoleKind, str] = {"linked": "“{}”", "unknown": "{}", "reached": "{}", "answer": "answer"}
"""What stands under a node's label: its roles as far as they are a matter of words."""


def subgraph_html(subgraph: Subgraph) -> str:
    """Picture and tables as static HTML that stands alone."""
    return page(svg(subgraph), legend(subgraph), tables(subgraph))


def svg(subgraph: Subgraph, lit: Value | None = None) -> Html:
    """The picture; what supports the answer ``lit`` stands out."""
    title = f"Subgraph: {count(len(subgraph.nodes), 'node')}, {count(len(subgraph.edges), 'triple')}"
    return picture(*diagram(subgraph), title, lit_parts(subgraph, lit)) if subgraph.nodes else NOTHING


def legend(subgraph: Subgraph) -> Html:
    """What is not shown, and what the shapes of a picture mean."""
    there = {node.shape for node in subgraph.nodes}
    shapes = "; ".join(meaning for shape, meaning in LEGEND.items() if shape in there)
    notes = (tag("div", remark, class_="kgwb-note") for remark in subgraph.remarks)
    return join(*notes, tag("div", aside(f"Shapes: {shapes}.")) if shapes else "")


def tables(subgraph: Subgraph) -> Html:
    """The triples with what they are and support, and the vertices with their roles."""
    label = {node.term: node.label for node in subgraph.nodes}
    triples = [
        (
            term(subject, label[subject]),
            term(predicate, edge.label),
            term(object_, label[object_]),
            in_words(edge.roles),
            ", ".join(some([one.label for one in subgraph.answers if edge.triple in one.support], ANSWERS)),
        )
        for edge in subgraph.edges
        for subject, predicate, object_ in (edge.triple,)
    ]
    nodes = [(term(node.term, node.label), in_words(node.roles)) for node in subgraph.nodes]
    return join(
        table(("subject", "predicate", "object", "what it is", "supports"), triples),
        table(("node", "what it is"), nodes),
    )


def in_words(roles: tuple[Role, ...]) -> str:
    """Roles of a node or an edge: "linked to “Arrival”, support"."""
    return ", ".join(map(str, roles))


def diagram(subgraph: Subgraph) -> tuple[list[Box], list[Arrow]]:
    """Nodes and edges as the boxes and arrows of a picture, in their order."""
    number = {node.term: place for place, node in enumerate(subgraph.nodes)}
    return [_box(node) for node in subgraph.nodes], [
        Arrow(
            number[edge.triple[0]],
            number[edge.triple[2]],
            edge.label,
            "\n".join(filter(None, (edge.label, in_words(edge.roles), str(edge.triple[1])))),
            dashed=all(role.kind == "neighbour" for role in edge.roles),
        )
        for edge in subgraph.edges
    ]


def _box(node: Node) -> Box:
    below = ", ".join(BELOW[role.kind].format(role.detail) for role in node.roles if role.kind in BELOW)
    kind = (
        f"literal, {node.term.language or node.term.datatype or 'text'}"
        if isinstance(node.term, Literal)
        else ""
    )
    what = str(node.term) if isinstance(node.term, URIRef) else kind
    return Box(
        node.label, below, node.shape, "\n".join(filter(None, (node.label, in_words(node.roles), what)))
    )


def lit_parts(subgraph: Subgraph, lit: Value | None) -> Lit | None:
    """The numbers of an answer's node and of all that supports it."""
    if lit is None:
        return None
    terms = {lit.term, *(end for triple in lit.support for end in triple[::2])}
    return Lit(
        tuple(number for number, node in enumerate(subgraph.nodes) if node.term in terms),
        tuple(number for number, edge in enumerate(subgraph.edges) if edge.triple in lit.support),
    )
