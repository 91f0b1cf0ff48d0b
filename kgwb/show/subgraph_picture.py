"""The subgraph of a run as a picture: where its nodes and edges are drawn, its SVG, its legend, and tables."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import NamedTuple

import networkx as nx
from rdflib import Literal as RdfLiteral
from rdflib import URIRef

from kgwb.records import Role
from kgwb.run.answers import Value
from kgwb.show.html import Html, div, join, render_template, table
from kgwb.show.run_state import ANSWER_STATE_ICONS, GIVEN
from kgwb.show.subgraph import MAX_NODE_LABEL_CHARS, Edge, Node, Subgraph, end_terms
from kgwb.show.terms import RenderContext, render_term
from kgwb.text import fit_width, is_wide, list_first, pluralize

MAX_COLUMN_ROWS = 24
"""Boxes in one column. If more are at the same distance, they stand in several columns."""
ROW_GAP = 20.0
COLUMN_GAP = 26.0
"""The smallest gap between two columns; there is more where the label of an edge needs it."""
MARGIN = 14.0
LINE_HEIGHT = 16.0
FIRST_LINE_SIZE = 13
"""The size of the font of a node's label."""
SMALL_SIZE = 11
"""The size of the font of a node's other lines, and of the labels of edges."""
MIN_TEXT_WIDTH = 30.0
LABEL_PARTS = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8)
"""The parts of its curve at which a label may stand, the best first."""
PARALLEL_GAP = 30
"""The distance between the middles of edges that have the same ends."""
CURVE_SAMPLES = 8
MAX_EDGE_LABEL_CHARS = 24
MAX_DISTINCTION_CHARS = 22
"""Characters of what tells a node apart that are drawn: the last ones, in which IRIs differ most."""
ROLE_CAPTIONS = {
    "linked": "“{}”",
    "unknown": "{}",
    "reached": "{}",
    "answer": "the answer",
}
"""The text below a node's label, by the kind of its role; other roles have none."""

Endpoints = tuple[int, int]
"""The positions of an edge's subject and object among the nodes."""


class NodeBox(NamedTuple):
    """The place of a node: the centre of its box, and the size of the box."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """The places of all nodes and edges of a subgraph, in their order."""

    boxes: tuple[NodeBox, ...]
    endpoints: tuple[Endpoints, ...]
    curvatures: tuple[float, ...]
    """How far the middle of each edge is from the straight line, to the left of its direction."""
    width: float
    height: float


class Curve(NamedTuple):
    """A cubic Bézier curve. Its points are complex numbers."""

    start: complex
    first_control: complex
    second_control: complex
    end: complex

    @property
    def middle(self) -> complex:
        return self.point(0.5)

    def point(self, part: float) -> complex:
        """Return the point at a part of the way: 0 is the start, and 1 the end."""
        rest = 1 - part
        from_start = rest**3 * self.start
        from_first = 3 * rest**2 * part * self.first_control
        from_second = 3 * rest * part**2 * self.second_control
        from_end = part**3 * self.end
        return (from_start + from_first) + (from_second + from_end)

    @property
    def path(self) -> str:
        """The curve as the path of SVG."""
        start, *others = map(_format_point, self)
        return f"M{start} C{' '.join(others)}"

    @property
    def arrow_head(self) -> str:
        """The corners of the triangle at its end, 8 pixels long, in the direction of the curve."""
        direction = self.second_control - self.end
        distance = abs(direction) or 1
        back = direction * (8 / distance)
        tip = self.end - back * 0.8
        left = self.end + back * (0.2 + 0.5j)
        right = self.end + back * (0.2 - 0.5j)
        return " ".join(map(_format_point, (tip, left, right)))


def compute_layout(subgraph: Subgraph) -> Layout:
    """Return where the nodes and edges of a subgraph are drawn.

    Nodes stand in columns by their distance from the linked vertices, so that the subgraph of a
    question reads from left to right. A column is as wide as its widest box and centred vertically.
    All rows have the same height, and all columns the same gap between them.
    """
    nodes = subgraph.nodes
    endpoints = _endpoints(subgraph)
    widths = [_box_width(node) for node in nodes]
    heights = [_box_height(node) for node in nodes]
    columns = list(_arrange_columns(nodes, endpoints))

    row_height = max(heights, default=0) + ROW_GAP
    number_of_rows = max(map(len, columns), default=0)
    height = row_height * number_of_rows + 2 * MARGIN - ROW_GAP
    gap = _column_gap(subgraph.edges)
    boxes: dict[int, NodeBox] = {}
    left = MARGIN
    for column in columns:
        column_width = max(widths[position] for position in column)
        x = left + column_width / 2
        middle_row = (len(column) - 1) / 2
        for row, position in enumerate(column):
            below_middle = (row - middle_row) * row_height
            boxes[position] = NodeBox(
                x,
                y=height / 2 + below_middle,
                width=widths[position],
                height=heights[position],
            )
        left += column_width + gap

    width = left + MARGIN - gap
    for start, end in endpoints:
        if boxes[start].x == boxes[end].x:
            # An edge within a column bends to the right: the last one may need the gap after it.
            width = left + MARGIN
    in_order = [boxes[position] for position in range(len(nodes))]
    layout = Layout(
        boxes=tuple(in_order),
        endpoints=endpoints,
        curvatures=_curvatures(endpoints, boxes),
        width=width,
        height=height,
    )
    for edge in range(len(endpoints)):
        width = max(width, _rightmost(layout, edge) + MARGIN)
    return layout._replace(width=width)


def _endpoints(subgraph: Subgraph) -> tuple[Endpoints, ...]:
    """Return the ends of each edge, by the positions of the nodes.

    Each is a pair: subject, then object. Raises KeyError for an end that is no node.
    """
    positions = {node.term: position for position, node in enumerate(subgraph.nodes)}
    endpoints = []
    for edge in subgraph.edges:
        subject, _, object_ = edge.triple
        endpoints.append((positions[subject], positions[object_]))
    return tuple(endpoints)


def _box_width(node: Node) -> float:
    """Return the width of a node's box in pixels: that of its longest line, and a padding.

    The second line has smaller letters. A box has room for MIN_TEXT_WIDTH at least.
    """
    first, *others = box_lines(node)
    width = max(MIN_TEXT_WIDTH, text_width(first, FIRST_LINE_SIZE))
    for line in others:
        width = max(width, text_width(line, SMALL_SIZE))
    return width + 26


def _box_height(node: Node) -> float:
    """Return the height of a node's box: that of its lines, and a padding."""
    padding = 14 if has_round_box(node) else 10
    return LINE_HEIGHT * len(box_lines(node)) + padding


def _column_gap(edges: Sequence[Edge]) -> float:
    """Return the gap between columns, in which the longest label of an edge has room.

    It is at least COLUMN_GAP.
    """
    gap = COLUMN_GAP
    for edge in edges:
        label_width = text_width(edge_label(edge), SMALL_SIZE)
        gap = max(gap, label_width + 56)
    return gap


def _curvatures(endpoints: Sequence[Endpoints], boxes: Mapping[int, NodeBox]) -> tuple[float, ...]:
    """Return how far each edge bends away from the straight line, in pixels.

    Edges between the same two nodes spread evenly, PARALLEL_GAP apart. An edge between two nodes of
    a column bends further, the longer it is, so that it goes round the boxes between them.
    """
    parallel: defaultdict[frozenset[int], list[int]] = defaultdict(list)
    for number, ends in enumerate(endpoints):
        parallel[frozenset(ends)].append(number)

    curvatures = []
    for number, (start, end) in enumerate(endpoints):
        siblings = parallel[frozenset([start, end])]
        middle = (len(siblings) - 1) / 2
        place = siblings.index(number) - middle
        curvature = place * PARALLEL_GAP
        if start > end:
            # Left and right of an edge are swapped if it goes the other way.
            curvature = -curvature
        if boxes[start].x == boxes[end].x:
            distance = boxes[end].y - boxes[start].y
            detour = 40 + abs(distance) / 8 + _overhang(boxes, start, end)
            curvature += math.copysign(detour, distance)
        curvatures.append(curvature)
    return tuple(curvatures)


def _overhang(boxes: Mapping[int, NodeBox], start: int, end: int) -> float:
    """Return how far boxes between two others of a column stand out beyond the narrower of these.

    It is in pixels, on one side; 0 if none does.
    """
    first, second = boxes[start], boxes[end]
    top, bottom = sorted((first.y, second.y))
    narrow = min(first.width, second.width)
    widest = narrow
    for box in boxes.values():
        if box.x == first.x and top <= box.y <= bottom:
            widest = max(widest, box.width)
    return (widest - narrow) / 2


def _arrange_columns(nodes: Sequence[Node], endpoints: Sequence[Endpoints]) -> Iterator[list[int]]:
    """Yield the nodes of each column by their positions, from top to bottom.

    Each connected component begins in the first column with a linked vertex, or else with the node
    that has most edges. Other nodes follow by their distance from it (breadth-first search). In a
    column, nodes are ordered by the mean height of their neighbours in the column before. More than
    MAX_COLUMN_ROWS nodes at one distance are divided evenly into several columns.
    """
    graph: nx.Graph[int] = nx.Graph(endpoints)
    graph.add_nodes_from(range(len(nodes)))

    def start_key(node: int) -> tuple[bool, int, int]:
        """Return a key by which nodes are sorted; the node with the least begins its component.

        Linked nodes come before all others, the first by position first. Of the others the one
        with most edges comes first, then the first by position.
        """
        if nodes[node].shape == "linked":
            return False, 0, node
        degree = graph.degree(node)
        return True, -degree, node

    heights: dict[int, float] = {}

    def mean_height(node: int) -> float:
        """Return the mean height of the neighbours in the layer before, from 0 to 1."""
        neighbours = heights.keys() & graph[node].keys()
        if not neighbours:
            return 0.0
        return fmean(heights[other] for other in neighbours)

    components = nx.connected_components(graph)
    starts = [min(component, key=start_key) for component in components]
    for layer in nx.bfs_layers(graph, sorted(starts)):
        by_position = sorted(layer)
        column = sorted(by_position, key=mean_height)
        size = len(column)
        heights = {node: row / size for row, node in enumerate(column)}
        number_of_columns = math.ceil(size / MAX_COLUMN_ROWS)
        rows = math.ceil(size / number_of_columns)
        for start in range(0, size, rows):
            yield column[start : start + rows]


def edge_curve(layout: Layout, number: int) -> Curve:
    """Return the curve of an edge by the number of the edge.

    It goes from the side of one box to the facing side of the other, so that it crosses no box of
    their columns. An edge within a column begins and ends at the right sides. An edge from a node
    to itself is a loop at the right. The end keeps a distance for the arrow head.
    """
    start_node, end_node = layout.endpoints[number]
    start = layout.boxes[start_node]
    end = layout.boxes[end_node]
    curvature = layout.curvatures[number]
    # 2 pixels from the box, and 8 where the arrow head is.
    first = _point_beside(start, end, 2)
    last = _point_beside(end, start, 8)

    if start is end:
        above = first + 45 - 50j
        beside = first + 45 - 5j
        return Curve(first - 6j, above, beside, first)
    chord = last - first
    if start.x != end.x and not curvature:
        half_way = chord.real / 2
        return Curve(first, first + half_way, last - half_way, last)
    # With its control points 4/3 away from the chord, a Bézier curve is 1 away in the middle.
    length = abs(chord) or 1
    leftward = -1j * chord / length
    bend = leftward * curvature * 4 / 3
    first_control = first + 0.3 * chord + bend
    second_control = first + 0.7 * chord + bend
    return Curve(first, first_control, second_control, last)


def _rightmost(layout: Layout, number: int) -> float:
    """Return the largest x of an edge's curve, at CURVE_SAMPLES points of it."""
    curve = edge_curve(layout, number)
    points = [curve.point(step / CURVE_SAMPLES) for step in range(CURVE_SAMPLES + 1)]
    return max(point.real for point in points)


def _point_beside(box: NodeBox, other: NodeBox, distance: float) -> complex:
    """Return the point so many pixels from a box, on the side that faces the other box.

    It is on the right side if both boxes are in the same column.
    """
    offset = box.width / 2 + distance
    if other.x < box.x:
        return complex(box.x - offset, box.y)
    return complex(box.x + offset, box.y)


def place_labels(curves: Sequence[Curve], labels: Sequence[str]) -> list[complex]:
    """Return the middle of each curve's label, chosen so that labels do not lie on one another.

    A label is in the middle of its curve, or else at the first of LABEL_PARTS where it has room
    beside the labels before it. If it has room nowhere, it is where it is furthest from the others.
    An empty label takes no room.
    """
    taken: list[LabelBox] = []
    places = []
    for curve, label in zip(curves, labels, strict=True):
        half_width = text_width(label, SMALL_SIZE) / 2 + 3
        boxes = [LabelBox(curve.point(part), half_width) for part in LABEL_PARTS]
        chosen = max(boxes, key=partial(_clearance, taken))  # the first of those that are level
        places.append(chosen.middle)
        if label:
            taken.append(chosen)
    return places


def _clearance(taken: Sequence[LabelBox], box: LabelBox) -> float:
    """Return how far, vertically, a label is from the nearest of those that it would lie on.

    LINE_HEIGHT if it lies on none.
    """
    overlapped = [other for other in taken if box.overlaps(other)]
    distances = [abs(box.middle.imag - other.middle.imag) for other in overlapped]
    return min(distances, default=LINE_HEIGHT)


class LabelBox(NamedTuple):
    """The place of a label."""

    middle: complex
    half_width: float

    def overlaps(self, other: LabelBox) -> bool:
        """Return whether a part of one label would lie on the other."""
        apart = self.middle - other.middle
        if abs(apart.real) >= self.half_width + other.half_width:
            return False
        return abs(apart.imag) < LINE_HEIGHT - 2


# Texts and their width


def has_round_box(node: Node) -> bool:
    """Return whether the box of a node has rounded ends: linked vertices and unknowns."""
    return node.shape in ("linked", "unknown")


def box_lines(node: Node) -> list[str]:
    """Return the one or two lines in the box of a node, cut at MAX_NODE_LABEL_CHARS.

    The first is its label. The second has what tells the node apart from others, and the captions
    of its roles that are in ROLE_CAPTIONS, with commas between them. It is left out if it is empty.
    """
    captions = []
    if len(node.distinction) > MAX_DISTINCTION_CHARS:
        captions.append(f"…{node.distinction[1 - MAX_DISTINCTION_CHARS :]}")
    elif node.distinction:
        captions.append(node.distinction)
    for role in node.roles:
        if role.kind in ROLE_CAPTIONS:
            captions.append(ROLE_CAPTIONS[role.kind].format(role.detail))
    lines = [fit_width(node.label, MAX_NODE_LABEL_CHARS)]
    if captions:
        lines.append(fit_width(", ".join(captions), MAX_NODE_LABEL_CHARS))
    return lines


def edge_label(edge: Edge) -> str:
    """Return the label of an edge as it is drawn."""
    return fit_width(edge.label, MAX_EDGE_LABEL_CHARS)


def text_width(text: str, size: float) -> float:
    """Return about how many pixels a text takes in a sans-serif font of the given size."""
    return sum(_char_width(char) for char in text) * size


def _char_width(char: str) -> float:
    """Return the width of a character as a part of the size of the font, by measured means.

    A wide character has 1, a capital 0.74, and any other 0.57.
    """
    if is_wide(char):
        return 1.0
    if char.isupper():
        return 0.74
    return 0.57


MAX_DESCRIBED_EDGES = 20
"""Edges that screen readers read out with the picture; the table has all of them."""
MAX_ROW_ANSWERS = 5
"""Answers named in one row of the table."""
MIN_SCALE = 0.86
"""The least scale of a picture: its smallest letters are 9 pixels high then. A larger picture scrolls."""
MAX_HEIGHT = 720
"""Pixels of a picture that need not be larger for its letters."""
EMPTY_MESSAGE = div(
    "body",
    "No vertex is linked yet. Continue the run until an entity of the question has its vertex.",
)
CLASSES_BY_SHAPE = {"linked": "linked", "unknown": "via", "answer": "ans"}
"""The CSS class of a node by its shape, where these differ or the shape has a style."""


# The picture


def render_svg(
    subgraph: Subgraph,
    highlighted: Value | None = None,
    event: str = "",
    *,
    chosen: int | None = None,
    answer_icon: str = ANSWER_STATE_ICONS[GIVEN],
) -> Html:
    """Render the picture of a subgraph as SVG; EMPTY_MESSAGE if it has no nodes.

    If an answer is ``highlighted``, its node and its support stand out, and the rest is pale. A
    click on a node sends the ``event`` with the number of the node, and so do Enter and Space;
    without an event, nodes cannot be clicked. The node with the number ``chosen`` was clicked last.
    ``answer_icon`` is the icon of the answer's state, which decides the colour of the answer and its
    support. A picture that is wider than its place scrolls sideways. For screen readers it has a
    title, and the first edges as sentences.
    """
    if not subgraph.nodes:
        return EMPTY_MESSAGE
    layout = compute_layout(subgraph)
    curves = [edge_curve(layout, number) for number in range(len(subgraph.edges))]
    labels = list(map(edge_label, subgraph.edges))
    node_count = pluralize(len(subgraph.nodes), "node")
    triple_count = pluralize(len(labels), "triple")
    limits = [
        f"max-width:{layout.width * 1.05:.0f}px",
        f"min-width:{layout.width * MIN_SCALE:.0f}px",
        f"max-height:{max(MAX_HEIGHT, layout.height * MIN_SCALE):.0f}px",
    ]
    svg = render_template(
        "show/templates/picture.html",
        picture=sys.modules[__name__],
        title=f"Subgraph: {node_count}, {triple_count}",
        description=_describe_edges(subgraph),
        edges=list(zip(subgraph.edges, curves, labels, place_labels(curves, labels), strict=True)),
        nodes=list(zip(subgraph.nodes, layout.boxes, strict=True)),
        highlight=highlighted_parts(subgraph, highlighted),
        event=event,
        chosen=chosen,
        answer_icon=answer_icon,
        view_box=f"0 0 {layout.width:.0f} {layout.height:.0f}",
        style=";".join(limits),
    )
    return div("across", svg)


def highlighted_parts(subgraph: Subgraph, highlighted: Value | None) -> dict[str, list[int]] | None:
    """Return the positions of the nodes and edges that stand out for an answer; None without one.

    "nodes" has the answer's own node and the ends of its support, "edges" its support.
    """
    if highlighted is None:
        return None
    terms = {highlighted.term, *end_terms(highlighted.support)}
    nodes = []
    for number, node in enumerate(subgraph.nodes):
        if node.term in terms:
            nodes.append(number)
    edges = []
    for number, edge in enumerate(subgraph.edges):
        if edge.triple in highlighted.support:
            edges.append(number)
    return {"nodes": nodes, "edges": edges}


def _format_point(point: complex) -> str:
    """Return a point as "x,y" with one decimal."""
    return f"{point.real:.1f},{point.imag:.1f}"


# Roles as text


def is_only_expanded(edge: Edge) -> bool:
    """Return whether an edge has no other role than to be found by expanding a node."""
    return all(role.kind == "neighbour" for role in edge.roles)


def _describe_edges(subgraph: Subgraph) -> str:
    """Return the first edges as sentences: "Arrival — director → Denis Villeneuve".

    At most MAX_DESCRIBED_EDGES are described, in the order of the subgraph.
    """
    names = {node.term: node.name for node in subgraph.nodes}
    sentences = []
    for edge in subgraph.edges[:MAX_DESCRIBED_EDGES]:
        subject, _, object_ = edge.triple
        sentences.append(f"{names[subject]} — {edge.label} → {names[object_]}")
    return ". ".join(sentences)


def tooltip_text(part: Node | Edge) -> str:
    """Return the tooltip of a node or an edge, of up to three lines.

    They are the label, the roles, and the IRI (for an edge, of its predicate) or the language or
    datatype of a literal.
    """
    if isinstance(part, Node):
        term = part.term
    else:
        _, term, _ = part.triple
    lines = [part.label, describe_roles(part.roles)]
    if isinstance(term, RdfLiteral):
        literal_type = term.language or term.datatype or "text"
        lines.append(f"literal, {literal_type}")
    elif isinstance(term, URIRef):
        lines.append(str(term))
    return "\n".join(filter(None, lines))


def describe_roles(roles: Iterable[Role]) -> str:
    """Return the roles of a node or an edge: "linked to “Arrival”, support"."""
    return ", ".join(map(str, roles))


# Legend and tables


def render_legend(subgraph: Subgraph, highlighted: Value | None) -> Html:
    """Render what the shapes that are in the picture mean, and below it the notes of the subgraph.

    What pale parts mean is explained if an answer is ``highlighted``. The notes are joined by "; ".
    """
    return render_template(
        "show/templates/legend.html",
        shapes={node.shape for node in subgraph.nodes},
        is_highlighted=highlighted is not None,
        notes=subgraph.notes,
    )


def render_tables(subgraph: Subgraph, context: RenderContext) -> Html:
    """Render a table of the triples, with their roles and the answers that they support.

    A second table has the nodes with their roles. Both are in the order of the subgraph, of which
    they show MAX_ROWS rows.
    """
    names = dict(context.names)
    for edge in subgraph.edges:
        _, predicate, _ = edge.triple
        names.setdefault(str(predicate), edge.label)
    for node in subgraph.nodes:
        names[str(node.term)] = node.name
    context = replace(context, names=names)

    triple_rows = []
    for edge in subgraph.edges:
        terms = [render_term(term, context) for term in edge.triple]
        roles = describe_roles(edge.roles)
        supported = _supported_answers(edge, subgraph.answers)
        triple_rows.append((*terms, roles, supported))
    node_rows = []
    for node in subgraph.nodes:
        term = render_term(node.term, context)
        node_rows.append((term, describe_roles(node.roles)))
    headings = ("subject", "predicate", "object", "roles", "supports")
    triples = table(headings, triple_rows)
    nodes = table(("node", "roles"), node_rows)
    return join(triples, nodes)


def _supported_answers(edge: Edge, answers: Iterable[Value]) -> str:
    """Return the labels of the answers that a triple supports, in one line.

    From the sixth on (MAX_ROW_ANSWERS), only their number is given.
    """
    labels = [answer.label for answer in answers if edge.triple in answer.support]
    return list_first(labels, MAX_ROW_ANSWERS)
