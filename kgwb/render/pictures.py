"""Still pictures as SVG: boxes and arrows, a QIR as such a graph, bars; and the words two texts differ in."""

from __future__ import annotations

import cmath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kgwb.flow import QIR, is_unknown
from kgwb.render.alignment import aligned
from kgwb.render.html import Html, join, safe, tag
from kgwb.render.layout import ARROW_CHARS, LINE, Arrow, Box, Place, Shape, layout, shorten

MOST_FACTS = 12
"""Facts of a QIR that are drawn; the table beside the picture has them all."""
DESCRIBED = 20
"""Arrows told to who cannot see the picture; the table beside it has them all."""
# The picture brings its own ground, so that it reads on a page of any colour, with a theme or without.
COLOURS: Mapping[str, tuple[str, str]] = {
    "ground": ("--jp-layout-color1", "#ffffff"),
    "text": ("--jp-ui-font-color1", "#212121"),
    "aside": ("--jp-ui-font-color2", "#616161"),
    "linked": ("--jp-brand-color1", "#1565c0"),
    "unknown": ("--jp-warn-color1", "#b25d00"),
    "answer": ("--jp-success-color1", "#2e7d32"),
}
Points = tuple[complex, complex, complex, complex]
"""A curve: where it begins, what draws it aside twice, where it ends; x + yj in pixels."""


class Lit(NamedTuple):
    """The numbers of the boxes and of the arrows that stand out."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


def changes(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, the words of the one that the other has not struck out, those it gained underlined."""
    old, new = (re.findall(r"\w+|\W", text) for text in (before, after))
    told: tuple[list[Html], list[Html]] = ([], [])
    for part in aligned(old, new):
        for side, mark, words in ((0, "del", old[part.first]), (1, "ins", new[part.second])):
            text = "".join(words)
            told[side].append(safe(text) if part.same or not text else tag(mark, text))
    return join(*told[0]), join(*told[1])


def marked(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    if not wanted:
        return safe(text)
    parts = re.split(rf"(?<!\w)({wanted})(?!\w)", text, flags=re.IGNORECASE)
    return join(*(tag("mark", part) if number % 2 else safe(part) for number, part in enumerate(parts)))


def qir_picture(qir: QIR) -> Html:
    """The facts of a QIR as a graph: round boxes are entities, ellipses unknowns, arrows relations."""
    facts = qir.facts[:MOST_FACTS]
    names = dict.fromkeys(end for fact in facts for end in fact.ends)
    number = {name: place for place, name in enumerate(names)}
    boxes = []
    for name in names:
        below, unknown = "asked for" if name == qir.target else "", is_unknown(name)
        title = f"{'unknown' if unknown else 'entity'} {name}"
        boxes.append(Box(name, below, "unknown" if unknown else "linked", title))
    arrows = [Arrow(number[fact.subject], number[fact.object], fact.relation, str(fact)) for fact in facts]
    return picture(boxes, arrows, "The facts as a graph") if facts else Html()


def picture(boxes: Sequence[Box], arrows: Sequence[Arrow], title: str, lit: Lit | None = None) -> Html:
    """Boxes and arrows as SVG that stands alone; what is ``lit`` stands out, the rest recedes."""
    placed = layout(boxes, arrows)
    lines, labels = [], []
    for number, (arrow, bend) in enumerate(zip(arrows, placed.bends, strict=True)):
        on, opacity = _standing(number, lit and lit.edges)
        points = _curve(placed.places[arrow.start], placed.places[arrow.end], bend)
        told = tag("title", arrow.title)
        lines.append(tag("g", told, *_line(points, on, arrow.dashed), opacity=opacity))
        labels.append(tag("g", told, _label(arrow, points, on), opacity=opacity))
    nodes = [
        _node(box, place, *_standing(number, lit and lit.nodes))
        for number, (box, place) in enumerate(zip(boxes, placed.places, strict=True))
    ]
    facts = [f"{boxes[one.start].label} — {one.label} → {boxes[one.end].label}" for one in arrows[:DESCRIBED]]
    drawn = (*lines, *labels, *nodes)  # lines first, so that none crosses a label
    return _svg(title, placed.width, placed.height, tag("desc", ". ".join(facts)), *drawn)


def _svg(title: str, width: float, height: float, *drawn: Html) -> Html:
    """A picture that stands alone."""
    return tag(
        "svg",
        tag("title", title),
        *(tag("rect", width="100%", height="100%", rx=4, **_paint(fill="ground")), *drawn),
        class_="kgwb-picture",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        font_family="system-ui, sans-serif",
    )


class Bar(NamedTuple):
    """One figure of a chart."""

    label: str
    value: float
    said: str
    """The figure in words, at the end of the line."""
    low: float
    """A line is drawn across the bar's end from here ..."""
    high: float
    """... to here."""
    series: int = 0


SERIES = ("linked", "unknown", "answer", "aside")
"""The colours of series; the label names each bar too."""


def bars(title: str, told: Sequence[Bar], most: float = 0.0) -> Html:
    """A horizontal bar for each figure, from 0 to ``most`` or the largest of them. Nothing of none."""
    most = max([most, *(max(one.value, one.high) for one in told)]) or 1.0
    left, width, step = 220.0, 300.0, 22.0
    drawn = []
    for number, one in enumerate(told):
        y, colour = step * (number + 1), SERIES[one.series % len(SERIES)]
        low, end, high = (left + width * value / most for value in (one.low, one.value, one.high))
        drawn += [
            _text(shorten(one.label, 34), left - 8, y, 12, text_anchor="end"),
            tag("rect", x=left, y=y - 7, width=end - left, height=14.0, opacity=0.75, **_paint(fill=colour)),
            tag("path", d=f"M{low:.1f},{y} H{high:.1f}", stroke_width=2, **_paint(stroke="text")),
            _text(one.said, max(end, high) + 8, y, 12, "aside", text_anchor="start"),
        ]
    return _svg(title, left + width + 190, step * (len(told) + 1), *drawn) if told else Html()


def _standing(number: int, lit: tuple[int, ...] | None) -> tuple[bool, float]:
    """Whether a part stands out, and its opacity."""
    on = lit is not None and number in lit
    return on, 1 if lit is None or on else 0.3


def _node(box: Box, place: Place, on: bool, opacity: float) -> Html:
    top = place.y - (len(box.lines) - 1) / 2 * LINE
    first, *below = box.lines
    words = [_text(first, place.x, top), *(_text(line, place.x, top + LINE, 11, "aside") for line in below)]
    return tag("g", tag("title", box.title), *_frame(box.shape, place, on), *words, opacity=opacity)


def _frame(shape: Shape, place: Place, on: bool) -> Iterator[Html]:
    """The outline that tells what a box stands for."""
    colour = shape if shape in COLOURS else "ground" if shape == "literal" else "aside"
    look: dict[str, object] = {**_paint(fill="ground", stroke=colour), "stroke_width": 2.6 if on else 1.6}
    if shape == "neighbour":
        look["stroke_dasharray"] = "5 3"
    if shape == "unknown":
        yield tag("ellipse", cx=place.x, cy=place.y, rx=place.width / 2, ry=place.height / 2, **look)
        return
    look["rx"] = place.height / 2.6 if shape == "linked" else 2
    for grown in (3, 0) if shape == "answer" else (0,):
        corner = {"x": place.x - place.width / 2 - grown, "y": place.y - place.height / 2 - grown}
        size = {"width": place.width + 2 * grown, "height": place.height + 2 * grown}
        yield tag("rect", **corner, **size, **look)


def _line(points: Points, on: bool, dashed: bool) -> tuple[Html, Html]:
    """A curve and its arrow head."""
    colour, size = ("answer", 10) if on else ("aside", 7)
    path = "M{} C{} {} {}".format(*map(_at, points))
    dashes = {"stroke_dasharray": "5 4"} if dashed else {}
    back = points[2] - points[3]
    back *= size / (abs(back) or 1)
    head = " ".join(
        map(_at, (points[3], *(points[3] + back * cmath.rect(1, turn) for turn in (0.45, -0.45))))
    )
    line = tag(
        "path", d=path, fill="none", stroke_width=3.5 if on else 1.4, **dashes, **_paint(stroke=colour)
    )
    return line, tag("polygon", points=head, **_paint(fill=colour))


def _label(arrow: Arrow, points: Points, on: bool) -> Html:
    one, two, three, four = points
    middle = (one + 3 * two + 3 * three + four) / 8
    text = ("✓ " if on else "") + shorten(arrow.label, ARROW_CHARS)
    plate = {**_paint(fill="text", stroke="ground"), "stroke_width": 9, "paint_order": "stroke"}
    return _text(text, middle.real, middle.imag, 11, font_weight=700 if on else 400, **plate)


def _text(text: str, x: float, y: float, size: int = 13, colour: str = "text", /, **more: object) -> Html:
    told = {"font_size": size, "text_anchor": "middle", **_paint(fill=colour), **more}
    return tag("text", text, x=x, y=y + size * 0.35, **told)


def _paint(**colours: str) -> dict[str, object]:
    """Colours as style, by the theme, and as attributes for programs that know no variables."""
    style = "; ".join(f"{part}: var({', '.join(COLOURS[name])})" for part, name in colours.items())
    return {**{part: COLOURS[name][1] for part, name in colours.items()}, "style": style}


def _curve(start: Place, end: Place, bend: float) -> Points:
    """An arrow from side to side of its boxes, so that it crosses no box of their columns."""
    way = (end.x > start.x) - (end.x < start.x)  # within a column: 0, from right side to right side
    first = complex(start.x + (start.width / 2 + 3) * (way or 1), start.y)
    last = complex(end.x - (end.width / 2 + 4) * (way or -1), end.y)
    if start is end:  # a loop
        return first - 6j, first + 45 - 50j, first + 45 - 5j, first
    along = last - first
    aside = -1j * along / (abs(along) or 1) * bend * 4 / 3
    return first, first + 0.3 * along + aside, first + 0.7 * along + aside, last


def _at(point: complex) -> str:
    return f"{point.real:.1f},{point.imag:.1f}"
