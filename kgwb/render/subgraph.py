"""A subgraph as a picture (SVG) and as tables: both stand alone, without a kernel and without a theme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rdflib import Literal, URIRef

from kgwb.flow import Term
from kgwb.render.html import Html, join, page, table, tag
from kgwb.render.layout import (
    EDGE_CHARS,
    LINE,
    MARGIN,
    NODE_CHARS,
    Place,
    layout,
    second_line,
    shorten,
    text_width,
)
from kgwb.render.records import term
from kgwb.render.words import count, some
from kgwb.subgraph import Edge, Node, Shape, Subgraph, Supported

Point = tuple[float, float]
Points = tuple[Point, Point, Point, Point]
SHARES = (0.5, 0.38, 0.62, 0.26, 0.74)
"""Where on an edge its label may stand: the first that is free."""
ANSWERS = 5
"""Answers named in one row of the table."""
NOTHING = "No vertex is linked yet: run on until an entity of the question has its vertex."

LEGEND: Mapping[Shape, str] = {
    "linked": "round box: linked vertex, under it the words it is linked to",
    "unknown": "ellipse: bound to the unknown under it",
    "answer": "double frame: answer",
    "support": "plain box: also in the support",
    "literal": "no frame: a literal",
    "neighbour": "dashed: found by expanding",
}
"""What each shape means, in words."""
COLOURS: Mapping[Shape, str] = {
    "linked": "var(--jp-brand-color1, #1565c0)",
    "unknown": "var(--jp-warn-color1, #b25d00)",
    "answer": "var(--jp-success-color1, #2e7d32)",
    "support": "var(--jp-ui-font-color2, #616161)",
    "literal": "none",
    "neighbour": "var(--jp-ui-font-color2, #616161)",
}
# The picture brings its own ground, so that it reads on a page of any colour, with a theme or without.
GROUND, TEXT, ASIDE, RULE = (
    f"var(--jp-{name}, {fallback})"
    for name, fallback in (
        ("layout-color1", "#ffffff"),
        ("ui-font-color1", "#212121"),
        ("ui-font-color2", "#616161"),
        ("border-color1", "#bdbdbd"),
    )
)


def subgraph_html(subgraph: Subgraph) -> str:
    """Picture and tables as static HTML that stands alone."""
    return page(svg(subgraph), tables(subgraph))


def svg(subgraph: Subgraph, lit: Supported | None = None) -> Html:
    """The picture, with its legend; what supports the answer ``lit`` stands out."""
    if not subgraph.nodes:
        return tag("div", NOTHING)
    drawn = _Drawing(subgraph, lit)
    legend, bottom = _legend(subgraph, drawn.layout.height)
    width = max(drawn.layout.width, 520)
    size = {"width": f"{width:.0f}", "height": f"{bottom:.0f}", "viewBox": f"0 0 {width:.0f} {bottom:.0f}"}
    return _tag(
        "svg",
        _tag(
            "title", f"Subgraph: {count(len(subgraph.nodes), 'node')}, {count(len(subgraph.edges), 'triple')}"
        ),
        _tag("desc", ". ".join(_sentence(edge, subgraph) for edge in subgraph.edges[:20])),
        _tag("rect", width="100%", height="100%", rx="4", **_paint("fill", GROUND)),
        drawn.edges(),
        drawn.nodes(),
        legend,
        **size,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        font_family="system-ui, sans-serif",
        font_size="13",
        style="max-width: 100%; height: auto; display: block",
    )


def tables(subgraph: Subgraph) -> Html:
    """The triples with what they are and support, and the vertices with their roles."""
    if not subgraph.nodes:
        return Html()
    node = {one.term: one for one in subgraph.nodes}
    triples = [
        (
            term(edge.subject, node[edge.subject].label),
            term(edge.predicate, edge.label),
            term(edge.object, node[edge.object].label),
            in_words(edge),
            ", ".join(some([one.label for one in supported_by(edge, subgraph)], ANSWERS)),
        )
        for edge in subgraph.edges
    ]
    nodes = [(term(one.term, one.label), in_words(one)) for one in subgraph.nodes]
    return join(
        *(tag("div", remark, class_="kgwb-note") for remark in subgraph.remarks),
        table(("subject", "predicate", "object", "what it is", "supports"), triples),
        table(("node", "what it is"), nodes),
    )


def in_words(part: Node | Edge) -> str:
    """The roles of a node or an edge: "linked to “Arrival”, support"."""
    return ", ".join(map(str, part.roles))


def supported_by(edge: Edge, subgraph: Subgraph) -> list[Supported]:
    """The answers that stand on an edge."""
    return [one for one in subgraph.answers if edge.triple in one.triples]


def lit_terms(lit: Supported | None) -> set[Term]:
    """An answer and all that its support touches."""
    return {lit.term, *(end for triple in lit.triples for end in triple[::2])} if lit else set()


def told(node: Node) -> str:
    """All there is to say of a node: label, roles, IRI or kind of literal."""
    value = node.term
    kind = f"literal, {value.language or value.datatype or 'text'}" if isinstance(value, Literal) else ""
    return "\n".join(
        filter(None, (node.label, in_words(node), str(value) if isinstance(value, URIRef) else kind))
    )


# --- how they are drawn


class _Drawing:
    def __init__(self, subgraph: Subgraph, lit: Supported | None) -> None:
        self.subgraph, self.layout, self.lit = subgraph, layout(subgraph), lit
        self.place = dict(zip((node.term for node in subgraph.nodes), self.layout.places, strict=True))
        self.lit_terms = lit_terms(lit)
        self.labels: list[Place] = []

    def nodes(self) -> Html:
        return join(*(self._node(node) for node in self.subgraph.nodes))

    def edges(self) -> Html:
        """All lines first, so that no line crosses a label."""
        drawn = [self._edge(*pair) for pair in zip(self.subgraph.edges, self.layout.bends, strict=True)]
        return join(*(line for line, _ in drawn), *(label for _, label in drawn))

    def _node(self, node: Node) -> Html:
        place, second = self.place[node.term], second_line(node)
        y = place.y - (LINE / 2 if second else 0)
        lit = node.term in self.lit_terms
        return _tag(
            "g",
            tag("title", told(node)),
            *frame(node.shape, place, wide=lit),
            _text(shorten(node.label, NODE_CHARS), place.x, y),
            _text(second, place.x, y + LINE, size=11, colour=ASIDE) if second else "",
            opacity=self._opacity(lit),
        )

    def _edge(self, edge: Edge, bend: float) -> tuple[Html, Html]:
        """The line with its arrow head, and the label."""
        lit = self.lit is not None and edge.triple in self.lit.triples
        points = _curve(self.place[edge.subject], self.place[edge.object], bend)
        found = all(role.kind == "neighbour" for role in edge.roles)
        colour = COLOURS["answer"] if lit else ASIDE
        path = "M{} {} C{} {} {} {} {} {}".format(*(f"{part:.1f}" for point in points for part in point))
        stroke = {"stroke_width": "3.5" if lit else "1.4", "stroke_dasharray": "5 4" if found else "none"}
        title = tag("title", _sentence(edge, self.subgraph))
        line = _tag("path", d=path, fill="none", **stroke, **_paint("stroke", colour))
        arrow = _arrow(points[2], points[3], colour, 10 if lit else 7)
        label = self._label(("✓ " if lit else "") + shorten(edge.label, EDGE_CHARS), points, lit)
        opacity = self._opacity(lit)
        return _tag("g", title, line, arrow, opacity=opacity), _tag("g", title, *label, opacity=opacity)

    def _label(self, text: str, points: Points, lit: bool) -> list[Html]:
        width = text_width(text, 11) + 6
        tried = [Place(*_at(points, share), width, 15) for share in SHARES]
        place = next(
            (one for one in tried if not any(_overlap(one, other) for other in self.labels)), tried[0]
        )
        self.labels.append(place)
        size = {"width": f"{width:.1f}", "height": "15", "rx": "3"}
        plate = {"x": f"{place.x - width / 2:.1f}", "y": f"{place.y - 7.5:.1f}", **size}
        words = _text(text, place.x, place.y, size=11, weight="700" if lit else "400")
        return [_tag("rect", **plate, **_paint("fill", GROUND)), words]

    def _opacity(self, lit: bool) -> str:
        return "0.3" if self.lit is not None and not lit else "1"


def frame(shape: Shape, place: Place, *, wide: bool = False) -> list[Html]:
    """The outline that tells what a node is."""
    stroke = 2.6 if wide else 1.6
    if shape == "unknown":
        size = {"cx": place.x, "cy": place.y, "rx": place.width / 2, "ry": place.height / 2}
        outline = {key: f"{value:.1f}" for key, value in size.items()}
        return [_tag("ellipse", **outline, **_outline(shape, stroke))]
    if shape == "answer":
        return [_box(place, 3, 2, shape, stroke), _box(place, 0, 1, shape, 1.2)]
    radius = {"linked": place.height / 2.6}.get(shape, 2)
    return [_box(place, 0, radius, shape, stroke)]


def _box(place: Place, grown: float, radius: float, shape: Shape, stroke: float) -> Html:
    return _tag(
        "rect",
        x=f"{place.x - place.width / 2 - grown:.1f}",
        y=f"{place.y - place.height / 2 - grown:.1f}",
        width=f"{place.width + 2 * grown:.1f}",
        height=f"{place.height + 2 * grown:.1f}",
        rx=f"{radius:.1f}",
        **_outline(shape, stroke),
    )


def _outline(shape: Shape, stroke: float) -> dict[str, str]:
    """Paint of ground and frame; attributes are for programs that know no variables."""
    ground, line = _paint("fill", GROUND), _paint("stroke", COLOURS[shape])
    dashes = {"stroke_dasharray": "5 3"} if shape == "neighbour" else {}
    style = f"{ground.pop('style')}; {line.pop('style')}"
    return {**ground, **line, **dashes, "stroke_width": f"{stroke}", "style": style}


def _paint(attribute: str, colour: str) -> dict[str, str]:
    plain = colour.removesuffix(")").rpartition(", ")[2]
    return {attribute: plain, "style": f"{attribute}: {colour}"}


def _text(
    text: str,
    x: float,
    y: float,
    *,
    size: float = 13,
    colour: str = TEXT,
    weight: str = "400",
    anchor: str = "middle",
) -> Html:
    return _tag(
        "text",
        text,
        x=f"{x:.1f}",
        y=f"{y + size * 0.35:.1f}",
        font_size=f"{size}",
        font_weight=weight,
        text_anchor=anchor,
        **_paint("fill", colour),
    )


def _arrow(origin: tuple[float, float], tip: tuple[float, float], colour: str, size: float) -> Html:
    angle = math.atan2(tip[1] - origin[1], tip[0] - origin[0])
    back = [
        (tip[0] - size * math.cos(angle + turn), tip[1] - size * math.sin(angle + turn))
        for turn in (0.45, -0.45)
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, *back))
    return _tag("polygon", points=points, **_paint("fill", colour))


def _curve(start: Place, end: Place, bend: float) -> Points:
    """An edge from side to side of its nodes, so that it crosses no node of their columns."""
    way = (end.x > start.x) - (end.x < start.x)  # within a column: 0, from right side to right side
    first = (start.x + (start.width / 2 + 3) * (way or 1), start.y)
    last = (end.x - (end.width / 2 + 4) * (way or -1), end.y)
    if start is end:  # a loop
        return (first[0], first[1] - 6), (first[0] + 40, first[1] - 45), (first[0] + 40, last[1] + 45), last
    across, down = last[0] - first[0], last[1] - first[1]
    length = math.hypot(across, down) or 1
    aside = (down / length * bend * 4 / 3, -across / length * bend * 4 / 3)
    one, other = ((first[0] + across * share, first[1] + down * share) for share in (0.3, 0.7))
    return first, (one[0] + aside[0], one[1] + aside[1]), (other[0] + aside[0], other[1] + aside[1]), last


def _at(points: Points, share: float) -> tuple[float, float]:
    left = 1 - share
    parts = (left**3, 3 * left**2 * share, 3 * left * share**2, share**3)
    x, y = (sum(part * point[axis] for part, point in zip(parts, points, strict=True)) for axis in (0, 1))
    return x, y


def _overlap(one: Place, other: Place) -> bool:
    across, down = abs(one.x - other.x), abs(one.y - other.y)
    return across < (one.width + other.width) / 2 and down < (one.height + other.height) / 2


def _legend(subgraph: Subgraph, top: float) -> tuple[Html, float]:
    """What the shapes mean, and what was cut; where it ends."""
    y = top + 4
    drawn: list[Html] = [_tag("path", d=f"M{MARGIN} {top - 8:.0f} H 502", **_paint("stroke", RULE))]
    for shape in shapes_of(subgraph):
        drawn += frame(shape, Place(MARGIN + 14, y, 26, 12))
        drawn.append(_text(LEGEND[shape], MARGIN + 38, y, size=11, colour=ASIDE, anchor="start"))
        y += 20
    for remark in subgraph.remarks:
        drawn.append(_text(shorten(remark, 80), MARGIN, y, size=11, weight="700", anchor="start"))
        y += 20
    return join(*drawn), y


def shapes_of(subgraph: Subgraph) -> Iterable[Shape]:
    """The shapes in a subgraph, in the legend's order."""
    there = {node.shape for node in subgraph.nodes}
    return [shape for shape in LEGEND if shape in there]


def _sentence(edge: Edge, subgraph: Subgraph) -> str:
    label = {node.term: node.label for node in subgraph.nodes}
    return f"{label[edge.subject]} — {edge.label} → {label[edge.object]}"


def _tag(name: str, *contents: object, **attributes: str) -> Html:
    """An element of SVG, whose attributes have hyphens."""
    return tag(name, *contents, **{key.replace("_", "-"): value for key, value in attributes.items()})
