"""Where the nodes and edges of a subgraph are drawn, in pixels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple
from unicodedata import east_asian_width

import networkx as nx

from kgwb.show.subgraph import Edge, Node, Subgraph

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
MAX_NODE_LABEL_CHARS = 34
MAX_EDGE_LABEL_CHARS = 24
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
    edges = range(len(endpoints))
    right_ends = [_rightmost(layout, edge) for edge in edges]
    rightmost = max(right_ends, default=0)
    wide_enough = max(width, rightmost + MARGIN)
    return layout._replace(width=wide_enough)


def _endpoints(subgraph: Subgraph) -> tuple[Endpoints, ...]:
    """Return the ends of each edge, by the positions of the nodes.

    Each is a pair: subject, then object. Raises KeyError for an end that is no node.
    """
    positions = {}
    for position, node in enumerate(subgraph.nodes):
        positions[node.term] = position
    endpoints = []
    for edge in subgraph.edges:
        subject, _, object_ = edge.triple
        ends = (positions[subject], positions[object_])
        endpoints.append(ends)
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
    padding = 10
    if has_round_box(node):
        padding = 14
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
    distances = []
    for other in taken:
        if box.overlaps(other):
            apart = box.middle - other.middle
            distances.append(abs(apart.imag))
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

    The first is its label. The second has the captions of its roles, if any of them is in
    ROLE_CAPTIONS. Captions have commas between them.
    """
    captions = []
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


def fit_width(text: str, max_chars: int) -> str:
    """Return a text, cut with "…" at its end if it is wider than ``max_chars`` characters.

    Wide characters, such as Chinese ones, count twice.
    """
    room = max_chars
    for position, char in enumerate(text):
        room -= 1
        if _is_wide(char):
            room -= 1
        if room < 0:
            return text[: position - 1].rstrip() + "…"
    return text


def text_width(text: str, size: float) -> float:
    """Return about how many pixels a text takes in a sans-serif font of the given size."""
    return sum(_char_width(char) for char in text) * size


def _char_width(char: str) -> float:
    """Return the width of a character as a part of the size of the font, by measured means.

    A wide character has 1, a capital 0.74, and any other 0.57.
    """
    if _is_wide(char):
        return 1.0
    if char.isupper():
        return 0.74
    return 0.57


def _is_wide(char: str) -> bool:
    """Return whether a character takes twice the width, as Chinese ones do."""
    return east_asian_width(char) in ("W", "F")
