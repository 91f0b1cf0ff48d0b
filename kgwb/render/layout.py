"""Where the nodes of a subgraph stand, so that neither they nor what is written on edges overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from unicodedata import east_asian_width

import networkx as nx

from kgwb.subgraph import Node, Subgraph

ROWS = 24
"""Nodes in one column; a layer of more stands in several."""
APART, BESIDE, LINE, MARGIN = 20.0, 26.0, 16.0, 18.0
"""Pixels: between rows, between columns of one layer, a line of text, around it all."""
NODE_CHARS, EDGE_CHARS = 28, 26

Ends = list[tuple[int, int]]
Layer = list[list[int]]
"""Columns of nodes at the same distance from the first linked vertex."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: its centre and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a subgraph's nodes and the bends of its edges, in their order."""

    places: tuple[Place, ...]
    bends: tuple[float, ...]
    """How far the middle of each edge leaves the straight line, to the left of its direction."""
    width: float
    height: float


def layout(subgraph: Subgraph) -> Layout:
    """Layers by distance from the first linked vertex: a question reads from left to right."""
    number = {node.term: place for place, node in enumerate(subgraph.nodes)}
    ends = [(number[edge.subject], number[edge.object]) for edge in subgraph.edges]
    boxes = [_size(node) for node in subgraph.nodes]
    centres: dict[int, tuple[float, float]] = {}
    right, bottom = 0.0, MARGIN
    for layers in _blocks(ends, subgraph):
        height = max(_height(column, boxes) for layer in layers for column in layer)
        x = MARGIN
        for place, layer in enumerate(layers):
            x += _gap(layers[place - 1], layer, ends, subgraph) if place else 0
            for column in layer:
                width = max(boxes[node][0] for node in column)
                y = bottom + (height - _height(column, boxes)) / 2
                for node in column:
                    centres[node] = (x + width / 2, y + (boxes[node][1] + APART) / 2)
                    y += boxes[node][1] + APART
                x += width + BESIDE
            x -= BESIDE
        right, bottom = max(right, x), bottom + height
    places = tuple(Place(*centres[node], *boxes[node]) for node in range(len(boxes)))
    return Layout(places, _bends(ends, places), right + MARGIN, bottom + MARGIN)


def second_line(node: Node) -> str:
    """What stands under a node's label: its roles as far as they are a matter of words."""
    told = [f"“{role.detail}”" for role in node.roles if role.kind == "linked"]
    told += [role.detail for role in node.roles if role.kind == "unknown"]
    told += ["answer" for role in node.roles if role.kind == "answer"]
    return shorten(", ".join(told), NODE_CHARS)


def shorten(text: str, most: int) -> str:
    """A text of at most ``most`` characters; wide ones count twice."""
    kept, room = "", most
    for char in text:
        room -= 2 if _wide(char) else 1
        if room < 0:
            return kept[:-1].rstrip() + "…"
        kept += char
    return kept


def text_width(text: str, size: float) -> float:
    """About how many pixels a text takes in a sans-serif font."""
    return sum(1.0 if _wide(char) else 0.74 if char.isupper() else 0.57 for char in text) * size


def _blocks(ends: Ends, subgraph: Subgraph) -> Iterator[list[Layer]]:
    """The layers of each connected part; single nodes stand together, four in a row."""
    graph: nx.Graph[int] = nx.Graph(ends)
    graph.add_nodes_from(range(len(subgraph.nodes)))
    singles: list[int] = []
    for part in sorted(nx.connected_components(graph), key=min):
        if len(part) == 1:
            singles += part
        else:
            yield list(_layers(graph, part, subgraph))
    if singles:
        yield [[singles[start::4]] for start in range(min(4, len(singles)))]


def _layers(graph: nx.Graph[int], part: set[int], subgraph: Subgraph) -> Iterator[Layer]:
    def last(node: int) -> tuple[bool, int, int]:
        linked = any(role.kind == "linked" for role in subgraph.nodes[node].roles)
        return not linked, 0 if linked else -graph.degree(node), node

    rows: dict[int, float] = {}
    for nodes in nx.bfs_layers(graph, min(part, key=last)):
        above = {node: fmean([rows[one] for one in graph[node] if one in rows] or [0.0]) for node in nodes}
        order = sorted(nodes, key=lambda node: (above[node], node))
        rows = {node: place / len(order) for place, node in enumerate(order)}
        size = math.ceil(len(order) / math.ceil(len(order) / ROWS))
        yield [order[start : start + size] for start in range(0, len(order), size)]


def _gap(before: Layer, layer: Layer, ends: Ends, subgraph: Subgraph) -> float:
    """Room for what is written on the edges between two layers."""
    one, other = ({node for column in part for node in column} for part in (before, layer))
    labels = [
        edge.label
        for edge, (start, end) in zip(subgraph.edges, ends, strict=True)
        if (start in one and end in other) or (start in other and end in one)
    ]
    return max([BESIDE, *(text_width(shorten(label, EDGE_CHARS), 11) + 92 for label in labels)])


def _bends(ends: Ends, places: tuple[Place, ...]) -> tuple[float, ...]:
    """Edges between the same nodes part from each other; one within a column goes round what is between."""
    alike: dict[tuple[int, int], list[int]] = {}
    for number, (one, other) in enumerate(ends):
        alike.setdefault((min(one, other), max(one, other)), []).append(number)
    bends = [0.0] * len(ends)
    for (one, other), numbers in alike.items():
        apart = places[other].y - places[one].y
        round_ = -math.copysign(40 + abs(apart) / 8, apart) if places[one].x == places[other].x else 0
        for place, number in enumerate(numbers):
            bend = (place - (len(numbers) - 1) / 2) * 30 + round_
            bends[number] = bend if ends[number][0] <= ends[number][1] else -bend
    return tuple(bends)


def _height(column: list[int], boxes: list[tuple[float, float]]) -> float:
    return sum(boxes[node][1] + APART for node in column)


def _size(node: Node) -> tuple[float, float]:
    second = second_line(node)
    width = max(text_width(shorten(node.label, NODE_CHARS), 13), text_width(second, 11)) + 24
    height = LINE * (2 if second else 1) + 10
    return (max(width * 1.2, 56), height + 8) if node.shape == "unknown" else (max(width, 56), height)


def _wide(char: str) -> bool:
    return east_asian_width(char) in "WF"
