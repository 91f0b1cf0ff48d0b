"""Small still pictures: a QIR as a graph, and the words that two texts differ in."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import NamedTuple

from kgwb.flow import QIR, Fact, is_unknown
from kgwb.render.html import Html, join, safe, tag

MOST_FACTS = 12
"""Facts of a QIR that are drawn; the table beside the picture has them all."""
MOST_LETTERS = 28
HEIGHT, ROW, GAP, LETTER = 30.0, 74.0, 46.0, 7.2
"""Of a box, of a row of boxes; between columns; of a letter's width. In pixels."""


def changes(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, the words of the one that the other has not struck out, those it gained underlined."""
    old, new = (re.findall(r"\w+|\W", text) for text in (before, after))
    told: tuple[list[Html], list[Html]] = ([], [])
    for what, start, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, mark, words in ((0, "del", old[start:end]), (1, "ins", new[begin:stop])):
            text = "".join(words)
            told[side].append(safe(text) if what == "equal" or not text else tag(mark, text))
    return join(*told[0]), join(*told[1])


def marked(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    if not wanted:
        return safe(text)
    parts = re.split(rf"(?<!\w)({wanted})(?!\w)", text, flags=re.IGNORECASE)
    return join(*(tag("mark", part) if number % 2 else safe(part) for number, part in enumerate(parts)))


class _Node(NamedTuple):
    x: float
    y: float
    width: float

    def border(self, x: float, y: float, round_: bool) -> tuple[float, float]:
        """Where a line from the middle to a point crosses the border."""
        across, down = (x - self.x) / (self.width / 2), (y - self.y) / (HEIGHT / 2)
        far = math.hypot(across, down) if round_ else max(abs(across), abs(down))
        return self.x + (x - self.x) / max(far, 1e-9), self.y + (y - self.y) / max(far, 1e-9)


def qir_picture(qir: QIR) -> Html:
    """The facts of a QIR as a graph: boxes are entities, ellipses are unknowns, arrows are relations."""
    facts = qir.facts[:MOST_FACTS]
    if not facts:
        return Html()
    nodes = _placed(facts)
    width = max(node.x + node.width / 2 for node in nodes.values()) + 12
    height = max(node.y for node in nodes.values()) + HEIGHT / 2 + 22
    pairs = [frozenset(fact.ends) for fact in facts]
    arrows = [
        _arrow(fact, nodes, pairs[:number].count(pair) - (pairs.count(pair) - 1) / 2)
        for number, (fact, pair) in enumerate(zip(facts, pairs, strict=True))
    ]
    told = f"graph of {', '.join(map(str, facts))}" + (f", asked for {qir.target}" if qir.target else "")
    shown = [_node(name, node, name == qir.target) for name, node in nodes.items()]
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}", "viewBox": f"0 0 {width:.0f} {height:.0f}"}
    font = {"font-size": "13", "font-family": "sans-serif", "fill": "currentColor"}
    svg = tag(
        "svg", *arrows, *shown, class_="kgwb-picture", role="img", **size, **font, **{"aria-label": told}
    )
    return tag("div", svg)


def _placed(facts: Iterable[Fact]) -> dict[str, _Node]:
    """Each end of the facts, in columns by its distance from the first entity."""
    facts = list(facts)
    ends = list(dict.fromkeys(end for fact in facts for end in fact.ends))
    columns: list[list[str]] = []
    seen: set[str] = set()
    for start in sorted(ends, key=is_unknown):
        layer, depth = [start] if start not in seen else [], 0
        while layer:
            seen.update(layer)
            columns += [[]] * (depth == len(columns))
            columns[depth] = columns[depth] + layer
            near = [end for fact in facts if set(fact.ends) & set(layer) for end in fact.ends]
            layer, depth = [end for end in dict.fromkeys(near) if end not in seen], depth + 1
    apart = max(_length(fact.relation) for fact in facts) * LETTER + GAP
    nodes, left = {}, 12.0
    for column in columns:
        wide = max(max(_length(name) * LETTER + 24, 56) for name in column)
        for row, name in enumerate(column):
            nodes[name] = _Node(left + wide / 2, 30 + row * ROW, max(_length(name) * LETTER + 24, 56))
        left += wide + apart
    return nodes


def _node(name: str, node: _Node, asked: bool) -> Html:
    line = {"fill": "none", "stroke": "currentColor", "stroke-width": "2.5" if asked else "1.2"}
    if is_unknown(name):
        ends = {"rx": f"{node.width / 2:.1f}", "ry": f"{HEIGHT / 2:.1f}"}
        shape = tag("ellipse", cx=f"{node.x:.1f}", cy=f"{node.y:.1f}", **ends, **line)
    else:
        corner = {"x": f"{node.x - node.width / 2:.1f}", "y": f"{node.y - HEIGHT / 2:.1f}", "rx": "3"}
        shape = tag("rect", width=f"{node.width:.1f}", height=f"{HEIGHT:.0f}", **corner, **line)
    told = [_text(name, node.x, node.y + 4.5, "kgwb-node")]
    if asked:
        told.append(_text("asked for", node.x, node.y + HEIGHT / 2 + 15, "kgwb-asked"))
    return tag("g", tag("title", f"{'unknown' if is_unknown(name) else 'entity'} {name}"), shape, *told)


def _arrow(fact: Fact, nodes: Mapping[str, _Node], aside: float) -> Html:
    """An arrow from subject to object; several between the same ends stand ``aside`` of each other."""
    start, end = nodes[fact.subject], nodes[fact.object]
    if start == end:
        return _text(f"↺ {fact.relation}", start.x, start.y - HEIGHT / 2 - 2, "kgwb-relation")
    shift = aside * (13 if start.x != end.x else 0)
    x1, y1 = start.border(end.x, end.y, is_unknown(fact.subject))
    x2, y2 = end.border(start.x, start.y, is_unknown(fact.object))
    y1, y2 = y1 + shift, y2 + shift
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    tips = ((x2, y2), *((x2 - 9 * ux - 4 * side * uy, y2 - 9 * uy + 4 * side * ux) for side in (1, -1)))
    line = {"stroke": "currentColor", "stroke-width": "1.2"}
    ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2 - 6 * ux:.1f}", "y2": f"{y2 - 6 * uy:.1f}"}
    return tag(
        "g",
        tag("title", str(fact)),
        tag("line", **ends, **line),
        tag("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in tips)),
        _text(fact.relation, (x1 + x2) / 2, (y1 + y2) / 2 + (13 if shift > 0 else -5), "kgwb-relation"),
    )


def _text(text: str, x: float, y: float, class_: str) -> Html:
    small = {} if class_ == "kgwb-node" else {"font-size": "12"}
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": "middle"}
    return tag("text", _short(text), class_=class_, **place, **small)


def _short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def _length(text: str) -> int:
    """The width of a text, as it is shown, in letters."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in _short(text))
