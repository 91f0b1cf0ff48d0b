"""A subgraph as a picture in SVG, lit along what an answer stands on: boxes, arrows and their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple
from unicodedata import east_asian_width

import networkx as nx
from rdflib import Literal, URIRef

from kgwb.flow import Value
from kgwb.show.html import Html, aside, count, div, join, span, static, table, tag
from kgwb.show.subgraph import Edge, Node, Role, Subgraph
from kgwb.show.terms import Around, term

ROWS = 24
"""Boxes in one column; where more are at the same distance, they stand in several."""
APART, BESIDE, LINE, MARGIN = 20.0, 26.0, 16.0, 14.0
"""Pixels: between rows, between columns without arrows, a line of text, around it all."""
BOX_CHARS, ARROW_CHARS = 34, 24
DESCRIBED = 20
"""Arrows described to who cannot see the picture; the table has them all."""
ANSWERS = 5
"""Answers named in one row of the table."""
NOTHING = div("body", "No vertex is linked yet: run on until an entity of the question has its vertex.")
CLASSES = {"linked": "linked", "unknown": "via", "answer": "ans"}
BELOW = {"linked": "“{}”", "unknown": "{}", "reached": "{}", "answer": "the answer"}
"""What stands under a node's label: its roles as far as they are a matter of words."""


class Place(NamedTuple):
    """Where a node stands: the centre of its box and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """The places of the nodes, the ends of the edges by the numbers of nodes, and how each edge bends."""

    places: tuple[Place, ...]
    ends: tuple[tuple[int, int], ...]
    bends: tuple[float, ...]
    """How far the middle of each edge leaves the straight line, to the left of its direction."""
    width: float
    height: float


def layout(subgraph: Subgraph) -> Layout:
    """Columns by distance from what is linked: a question reads from left to right."""
    numbers = {node.term: number for number, node in enumerate(subgraph.nodes)}
    ends = tuple((numbers[edge.triple[0]], numbers[edge.triple[2]]) for edge in subgraph.edges)
    sizes = []
    for node in subgraph.nodes:
        widths = [text_width(line, 11 if below else 13) for below, line in enumerate(box_lines(node))]
        sizes.append((max(*widths, 30.0) + 26, LINE * len(widths) + (14 if _round(node) else 10)))
    columns = list(_columns(subgraph.nodes, ends))
    row = max((height for _, height in sizes), default=0) + APART
    height = row * max(map(len, columns), default=0) + 2 * MARGIN - APART
    labels = (text_width(shorten(edge.label, ARROW_CHARS), 11) for edge in subgraph.edges)
    gap = max([BESIDE, *(width + 56 for width in labels)])
    placed: dict[int, Place] = {}
    x = MARGIN
    for column in columns:
        width = max(sizes[number][0] for number in column)
        for at, number in enumerate(column):
            y = height / 2 + (at - (len(column) - 1) / 2) * row
            placed[number] = Place(x + width / 2, y, *sizes[number])
        x += width + gap
    places = tuple(placed[number] for number in range(len(sizes)))
    beside = any(places[start].x == places[end].x for start, end in ends)  # they bend to the right
    # Edges between the same nodes part from each other; one within a column goes round what is between
    bends = []
    for number, pair in enumerate(ends):
        alike = [at for at, other in enumerate(ends) if {*other} == {*pair}]
        bend = (alike.index(number) - (len(alike) - 1) / 2) * (30 if pair[0] <= pair[1] else -30)
        first, last = places[pair[0]], places[pair[1]]
        if first.x == last.x:
            bend -= math.copysign(40 + abs(last.y - first.y) / 8, last.y - first.y)
        bends.append(bend)
    return Layout(places, ends, tuple(bends), x + MARGIN - (0 if beside else gap), height)


def shorten(text: str, most: int) -> str:
    """A text of at most ``most`` characters; wide ones count twice."""
    room = most
    for place, char in enumerate(text):
        room -= 2 if _wide(char) else 1
        if room < 0:
            return text[: place - 1].rstrip() + "…"
    return text


def text_width(text: str, size: float) -> float:
    """About how many pixels a text takes in a sans-serif font."""
    return sum(1.0 if _wide(char) else 0.74 if char.isupper() else 0.57 for char in text) * size


def _wide(char: str) -> bool:
    return east_asian_width(char) in "WF"


def _columns(nodes: Sequence[Node], ends: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Each node in the column of its distance from the first of its part, near the nodes it hangs on."""
    graph: nx.Graph[int] = nx.Graph(ends)
    graph.add_nodes_from(range(len(nodes)))

    def rank(node: int) -> tuple[bool, int, int]:
        linked = nodes[node].shape == "linked"
        return not linked, 0 if linked else -graph.degree(node), node

    rows: dict[int, float] = {}
    firsts = [min(part, key=rank) for part in nx.connected_components(graph)]
    for layer in nx.bfs_layers(graph, sorted(firsts)):
        above = {
            node: fmean([rows[other] for other in graph[node] if other in rows] or [0]) for node in layer
        }
        order = sorted(layer, key=lambda node: (above[node], node))
        rows = {node: row / len(order) for row, node in enumerate(order)}
        size = math.ceil(len(order) / math.ceil(len(order) / ROWS))
        yield from (order[start : start + size] for start in range(0, len(order), size))


class Lit(NamedTuple):
    """The numbers of the boxes and of the arrows that stand out."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


def lit_parts(subgraph: Subgraph, lit: Value | None) -> Lit | None:
    """The numbers of an answer's node and of all that supports it."""
    if lit is None:
        return None
    terms = {lit.term, *(end for triple in lit.support for end in triple[::2])}
    return Lit(
        tuple(number for number, node in enumerate(subgraph.nodes) if node.term in terms),
        tuple(number for number, edge in enumerate(subgraph.edges) if edge.triple in lit.support),
    )


def svg(subgraph: Subgraph, lit: Value | None = None, do: str = "") -> Html:
    """The picture; what supports the answer ``lit`` stands out. A click on a box sends ``do``."""
    if not subgraph.nodes:
        return NOTHING
    drawn, shown = layout(subgraph), lit_parts(subgraph, lit)
    lines, labels, nodes, facts = [], [], [], []
    for number, (edge, (start, end)) in enumerate(zip(subgraph.edges, drawn.ends, strict=True)):
        class_ = "" if shown is None else " lit" if number in shown.edges else " dim"
        points = _curve(drawn.places[start], drawn.places[end], drawn.bends[number])
        path = "M{} C{} {} {}".format(*map(_at, points))
        dashes = "5 4" if is_pale(edge) else None
        lines.append(tag("path", d=path, class_=f"ed{class_}", stroke_dasharray=dashes))
        tip, back = points[3], points[2] - points[3]
        back *= 8 / (abs(back) or 1)
        head = (tip - back * 0.8, tip + back * (0.2 + 0.5j), tip + back * (0.2 - 0.5j))
        lines.append(tag("polygon", points=" ".join(map(_at, head)), class_=f"hd{class_}"))
        middle = (points[0] + 3 * points[1] + 3 * points[2] + points[3]) / 8
        words = join("✓ " if class_ == " lit" else "", shorten(edge.label, ARROW_CHARS))
        at = {"x": middle.real, "y": middle.imag + 4, "text_anchor": "middle"}
        labels.append(tag("text", words, tag("title", about(edge)), **at, class_=f"el{class_}"))
        facts.append(f"{subgraph.nodes[start].label} — {edge.label} → {subgraph.nodes[end].label}")
    for number, (node, place) in enumerate(zip(subgraph.nodes, drawn.places, strict=True)):
        class_ = CLASSES.get(node.shape, node.shape)
        class_ += "" if shown is None else " lit" if number in shown.nodes else " dim"
        sent = {"data_do": do, "data_arg": number, "id": f"node-{number}"} if do else {}
        role = {"tabindex": "0", "role": "button"} if do else {}
        nodes.append(tag("g", tag("title", about(node)), *_box(node, place), class_=class_, **sent, **role))
    title = f"Subgraph: {count(len(nodes), 'node')}, {count(len(labels), 'triple')}"
    return tag(
        "svg",
        tag("title", title),
        tag("desc", ". ".join(facts[:DESCRIBED])),
        *(*lines, *labels, *nodes),  # lines first, so that none crosses a label
        class_="graph",
        role="img",
        viewBox=f"0 0 {drawn.width:.0f} {drawn.height:.0f}",
        style=f"max-width:{drawn.width * 1.05:.0f}px",
    )


def _box(node: Node, place: Place) -> Iterator[Html]:
    corner = {"x": place.x - place.width / 2, "y": place.y - place.height / 2}
    rounded = place.height / 2 if _round(node) else 5
    yield tag("rect", class_="nd", width=place.width, height=place.height, **corner, rx=rounded)
    first, *below = box_lines(node)
    yield tag("text", first, x=place.x, y=place.y + (-1 if below else 4), text_anchor="middle")
    for line in below:
        yield tag("text", line, x=place.x, y=place.y + 13, text_anchor="middle", class_="sub")


def _curve(start: Place, end: Place, bend: float) -> tuple[complex, complex, complex, complex]:
    """An arrow from side to side of its boxes, so that it crosses no box of their columns."""
    way = (end.x > start.x) - (end.x < start.x)  # within a column: 0, from right side to right side
    first = complex(start.x + (start.width / 2 + 2) * (way or 1), start.y)
    last = complex(end.x - (end.width / 2 + 8) * (way or -1), end.y)
    if start is end:  # a loop
        return first - 6j, first + 45 - 50j, first + 45 - 5j, first
    if way and not bend:
        half = complex((last.real - first.real) / 2, 0)
        return first, first + half, last - half, last
    along = last - first
    aside = -1j * along / (abs(along) or 1) * bend * 4 / 3
    return first, first + 0.3 * along + aside, first + 0.7 * along + aside, last


def _at(point: complex) -> str:
    return f"{point.real:.1f},{point.imag:.1f}"


def _round(node: Node) -> bool:
    return node.shape in ("linked", "unknown")


def is_pale(edge: Edge) -> bool:
    """Whether an edge was found by expanding, and by nothing else."""
    return all(role.kind == "neighbour" for role in edge.roles)


def box_lines(node: Node) -> list[str]:
    """What is written into the box of a node: its label, and what it is."""
    below = ", ".join(BELOW[role.kind].format(role.detail) for role in node.roles if role.kind in BELOW)
    return [shorten(text, BOX_CHARS) for text in (node.label, *filter(None, [below]))]


def about(part: Node | Edge) -> str:
    """What shows under the pointer: the label, the roles, and the IRI or the kind of literal."""
    what: object = part.triple[1] if isinstance(part, Edge) else part.term
    if isinstance(what, Literal):
        what = f"literal, {what.language or what.datatype or 'text'}"
    elif not isinstance(what, URIRef):
        what = ""
    return "\n".join(filter(None, (part.label, in_words(part.roles), str(what))))


def in_words(roles: Iterable[Role]) -> str:
    """Roles of a node or an edge: "linked to “Arrival”, support"."""
    return ", ".join(map(str, roles))


def legend(subgraph: Subgraph, lit: Value | None) -> Html:
    """What the shapes mean, and what is not shown."""
    signs = [
        span("ent small", "linked"),
        span("unk small", "on the way"),
        span("unk asked plain small", "answer"),
        aside("pale: around it, not used") if lit is not None else "",
    ]
    left_out = div("soft small", "; ".join(subgraph.remarks)) if subgraph.remarks else ""
    return div("stack tight", div("row", *signs), left_out)


def tables(subgraph: Subgraph, around: Around) -> Html:
    """The triples with what they are and support, and the vertices with their roles."""
    labels = [(node.term, node.label) for node in subgraph.nodes if isinstance(node.term, URIRef)]
    around = around.named([*((edge.triple[1], edge.label) for edge in subgraph.edges), *labels])
    triples = []
    for edge in subgraph.edges:
        supported = [answer.label for answer in subgraph.answers if edge.triple in answer.support]
        more = f", and {len(supported) - ANSWERS:,} more" if len(supported) > ANSWERS else ""
        terms = [term(part, around) for part in edge.triple]
        triples.append((*terms, in_words(edge.roles), ", ".join(supported[:ANSWERS]) + more))
    nodes = [(term(node.term, around), in_words(node.roles)) for node in subgraph.nodes]
    heads = ("subject", "predicate", "object", "what it is", "supports")
    return join(table(heads, triples), table(("node", "what it is"), nodes))


def subgraph_html(subgraph: Subgraph) -> str:
    """Picture and tables as static HTML that stands alone; the first answer is lit."""
    lit = next(iter(subgraph.answers), None)
    parts = (legend(subgraph, lit), svg(subgraph, lit), tables(subgraph, Around()))
    return static(div("body stack", *(parts if subgraph.nodes else [NOTHING])))
