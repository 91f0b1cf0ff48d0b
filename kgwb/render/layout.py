"""Where boxes and arrows of a picture stand, so that neither boxes nor what is written on arrows overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal
from unicodedata import east_asian_width

import networkx as nx

ROWS = 24
"""Boxes in one column; where more are at the same distance, they stand in several."""
APART, BESIDE, LINE, MARGIN = 20.0, 26.0, 16.0, 18.0
"""Pixels: between rows, between columns without arrows, a line of text, around it all."""
BOX_CHARS, ARROW_CHARS = 24, 24

Shape = Literal["linked", "unknown", "answer", "support", "literal", "neighbour"]
"""What a box stands for; it tells the form of its frame."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a picture: its label, a line below that, and what shows under the pointer."""

    label: str
    below: str = ""
    shape: Shape = "support"
    title: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is written into it."""
        return tuple(shorten(text, BOX_CHARS) for text in (self.label, *filter(None, [self.below])))


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge of a picture between two boxes, named by their numbers."""

    start: int
    end: int
    label: str
    title: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a box stands: its centre and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a picture's boxes and the bends of its arrows, in their order."""

    places: tuple[Place, ...]
    bends: tuple[float, ...]
    """How far the middle of each arrow leaves the straight line, to the left of its direction."""
    width: float
    height: float


def layout(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> Layout:
    """Columns by distance from what is linked: a question reads from left to right."""
    sizes = [_size(box) for box in boxes]
    columns = list(_columns(boxes, arrows))
    row = max((height for _, height in sizes), default=0) + APART
    height = row * max(map(len, columns), default=0) + 2 * MARGIN - APART
    gap = max([BESIDE, *(text_width(shorten(arrow.label, ARROW_CHARS), 11) + 56 for arrow in arrows)])
    placed: dict[int, Place] = {}
    x = MARGIN
    for column in columns:
        width = max(sizes[box][0] for box in column)
        for number, box in enumerate(column):
            y = height / 2 + (number - (len(column) - 1) / 2) * row
            placed[box] = Place(x + width / 2, y, *sizes[box])
        x += width + gap
    places = tuple(placed[box] for box in range(len(boxes)))
    beside = any(places[arrow.start].x == places[arrow.end].x for arrow in arrows)  # they bend to the right
    return Layout(places, _bends(arrows, places), x + MARGIN - (0 if beside else gap), height)


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


def _wide(char: str) -> bool:
    return east_asian_width(char) in "WF"


def _size(box: Box) -> tuple[float, float]:
    width = max(text_width(line, 11 if below else 13) for below, line in enumerate(box.lines)) + 24
    round_ = box.shape == "unknown"
    return max(width * (1.2 if round_ else 1), 56), LINE * len(box.lines) + (18 if round_ else 10)


def _columns(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> Iterator[list[int]]:
    """Each box in the column of its distance from the first of its part, near the boxes it hangs on."""
    graph: nx.Graph[int] = nx.Graph((arrow.start, arrow.end) for arrow in arrows)
    graph.add_nodes_from(range(len(boxes)))

    def rank(box: int) -> tuple[bool, int, int]:
        linked = boxes[box].shape == "linked"
        return not linked, 0 if linked else -graph.degree(box), box

    rows: dict[int, float] = {}
    firsts = [min(part, key=rank) for part in nx.connected_components(graph)]
    for layer in nx.bfs_layers(graph, sorted(firsts)):
        above = {box: fmean([rows[one] for one in graph[box] if one in rows] or [0.0]) for box in layer}
        order = sorted(layer, key=lambda box: (above[box], box))
        rows = {box: row / len(order) for row, box in enumerate(order)}
        size = math.ceil(len(order) / math.ceil(len(order) / ROWS))
        yield from (order[start : start + size] for start in range(0, len(order), size))


def _bends(arrows: Sequence[Arrow], places: Sequence[Place]) -> tuple[float, ...]:
    """Arrows between the same boxes part from each other; one within a column goes round what is between."""
    bends = []
    for number, arrow in enumerate(arrows):
        alike = [at for at, one in enumerate(arrows) if {one.start, one.end} == {arrow.start, arrow.end}]
        bend = (alike.index(number) - (len(alike) - 1) / 2) * (30 if arrow.start <= arrow.end else -30)
        start, end = places[arrow.start], places[arrow.end]
        if start.x == end.x:
            bend -= math.copysign(40 + abs(end.y - start.y) / 8, end.y - start.y)
        bends.append(bend)
    return tuple(bends)
