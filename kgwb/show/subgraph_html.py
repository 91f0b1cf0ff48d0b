"""The subgraph of a run as HTML: a picture, its legend, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rdflib import Literal as RdfLiteral
from rdflib import URIRef

from kgwb.records import Role
from kgwb.run.answers import Value
from kgwb.show.html import Html, div, join, muted_text, span, table, tag
from kgwb.show.run_state import ANSWER_STATE_ICONS, GIVEN
from kgwb.show.subgraph import Edge, Node, Subgraph, end_terms
from kgwb.show.subgraph_layout import (
    Curve,
    NodeBox,
    box_lines,
    compute_layout,
    edge_curve,
    edge_label,
    has_round_box,
    place_labels,
)
from kgwb.show.terms import RenderContext, render_term
from kgwb.text import list_first, pluralize

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
    highlight = highlighted_parts(subgraph, highlighted) or {}
    lines = []
    labels = []
    edge_count = len(subgraph.edges)
    curves = [edge_curve(layout, number) for number in range(edge_count)]
    label_places = place_labels(curves, [edge_label(edge) for edge in subgraph.edges])
    for number, edge in enumerate(subgraph.edges):
        curve = curves[number]
        mark = _highlight_class(number, highlight.get("edges"))
        lines.append(_render_line(edge, curve, mark))
        lines.append(_render_arrow_head(curve, mark))
        labels.append(_render_edge_label(edge, label_places[number], mark))
    nodes = []
    for number, node in enumerate(subgraph.nodes):
        mark = _highlight_class(number, highlight.get("nodes"))
        attributes = _node_attributes(number, event, is_chosen=number == chosen)
        box = layout.boxes[number]
        nodes.append(_render_node(node, box, mark, attributes))

    node_count = pluralize(len(nodes), "node")
    triple_count = pluralize(len(labels), "triple")
    limits = [
        f"max-width:{layout.width * 1.05:.0f}px",
        f"min-width:{layout.width * MIN_SCALE:.0f}px",
        f"max-height:{max(MAX_HEIGHT, layout.height * MIN_SCALE):.0f}px",
    ]
    title = f"Subgraph: {node_count}, {triple_count}"
    svg = tag(
        "svg",
        tag("title", title),
        tag("desc", _describe_edges(subgraph)),
        *lines,  # before labels and nodes, so that no line crosses them
        *labels,
        *nodes,
        class_=f"graph {answer_icon}",
        role="group" if event else "img",
        aria_label=title if event else None,
        viewBox=f"0 0 {layout.width:.0f} {layout.height:.0f}",
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


def _highlight_class(number: int, highlighted: Sequence[int] | None) -> str:
    """Return the CSS class of the part with this number: " lit" if it is highlighted, else " dim".

    "" if there is no highlight at all.
    """
    if highlighted is None:
        return ""
    if number in highlighted:
        return " lit"
    return " dim"


def _render_line(edge: Edge, curve: Curve, mark: str) -> Html:
    """Render the line of an edge; it is dashed if the edge was found by expanding only."""
    start, *others = map(_format_point, curve)
    controls_and_end = " ".join(others)
    path = f"M{start} C{controls_and_end}"
    dashes = None
    if is_only_expanded(edge):
        dashes = "5 4"
    return tag("path", d=path, class_=f"ed{mark}", stroke_dasharray=dashes)


def _render_arrow_head(curve: Curve, mark: str) -> Html:
    """Render the triangle at the end of an edge, 8 pixels long, in the direction of the curve.

    ``mark`` is the highlight class.
    """
    end = curve.end
    direction = curve.second_control - end
    distance = abs(direction) or 1
    back = direction * (8 / distance)
    tip = end - back * 0.8
    left = end + back * (0.2 + 0.5j)
    right = end + back * (0.2 - 0.5j)
    corners = map(_format_point, (tip, left, right))
    points = " ".join(corners)
    return tag("polygon", points=points, class_=f"hd{mark}")


def _render_edge_label(edge: Edge, middle: complex, mark: str) -> Html:
    """Render the label of an edge around a point, with its tooltip.

    ``mark`` is its highlight class; a highlighted label begins with "✓", so that colour is not all.
    """
    label = edge_label(edge)
    if mark == " lit":
        label = f"✓ {label}"
    baseline = middle.imag + 4
    tooltip = tag("title", tooltip_text(edge))
    return _centred_text(middle.real, baseline, f"el{mark}", label, tooltip)


def _centred_text(x: float, y: float, class_: str | None, *contents: object) -> Html:
    """Render a line of text whose middle is at x and whose baseline is at y."""
    return tag("text", *contents, x=x, y=y, text_anchor="middle", class_=class_)


def _node_attributes(number: int, event: str, *, is_chosen: bool) -> dict[str, object]:
    """Return the attributes of a node that can be selected with the keyboard and pressed.

    It then sends the event with its number. Empty without an event.
    """
    if not event:
        return {}
    return {
        "data_do": event,
        "data_arg": number,
        "id": f"node-{number}",
        "tabindex": "0",
        "role": "button",
        "aria_pressed": str(is_chosen).lower(),
    }


def _render_node(node: Node, box: NodeBox, mark: str, attributes: dict[str, object]) -> Html:
    """Render the box of a node with its lines of text and its tooltip, as a group in SVG.

    The box is centred at its place, with rounded ends for linked vertices and unknowns. The first
    line is the label; a second one is smaller. ``mark`` is the highlight class, and ``attributes``
    are those of ``_node_attributes``.
    """
    css_class = CLASSES_BY_SHAPE.get(node.shape, node.shape)
    corner_radius: float = 5
    if has_round_box(node):
        corner_radius = box.height / 2
    rectangle = tag(
        "rect",
        class_="nd",
        width=box.width,
        height=box.height,
        x=box.x - box.width / 2,
        y=box.y - box.height / 2,
        rx=corner_radius,
    )
    first, *others = box_lines(node)
    baseline = box.y + 4
    if others:
        baseline = box.y - 1
    tooltip = tag("title", tooltip_text(node))
    first_line = _centred_text(box.x, baseline, None, first)
    parts = [tooltip, rectangle, first_line]
    for line in others:
        below = _centred_text(box.x, box.y + 13, "sub", line)
        parts.append(below)
    return tag("g", *parts, class_=css_class + mark, **attributes)


def _format_point(point: complex) -> str:
    """Return a point as "x,y" with one decimal."""
    x = point.real
    y = point.imag
    return f"{x:.1f},{y:.1f}"


# Roles as text


def is_only_expanded(edge: Edge) -> bool:
    """Return whether an edge has no other role than to be found by expanding a node."""
    return all(role.kind == "neighbour" for role in edge.roles)


def _describe_edges(subgraph: Subgraph) -> str:
    """Return the first edges as sentences: "Arrival — director → Denis Villeneuve".

    At most MAX_DESCRIBED_EDGES are described, in the order of the subgraph.
    """
    labels = {node.term: node.label for node in subgraph.nodes}
    sentences = []
    for edge in subgraph.edges[:MAX_DESCRIBED_EDGES]:
        subject, _, object_ = edge.triple
        sentence = f"{labels[subject]} — {edge.label} → {labels[object_]}"
        sentences.append(sentence)
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
    names = map(str, roles)
    return ", ".join(names)


# Legend and tables


def render_legend(subgraph: Subgraph, highlighted: Value | None) -> Html:
    """Render what the shapes of the picture mean, and below it the notes of the subgraph.

    What pale parts mean is explained if an answer is ``highlighted``. The notes are joined by "; ".
    """
    signs = [
        span("ent small", "linked"),
        span("unk small", "on the way"),
        span("unk asked plain small", "answer"),
    ]
    if highlighted is not None:
        signs.append(muted_text("pale: not used for this answer"))
    parts = [div("row", *signs)]
    if subgraph.notes:
        parts.append(div("soft small", "; ".join(subgraph.notes)))
    return div("stack tight", *parts)


def render_tables(subgraph: Subgraph, context: RenderContext) -> Html:
    """Render a table of the triples, with their roles and the answers that they support.

    A second table has the nodes with their roles. Both are in the order of the subgraph, of which
    they show MAX_ROWS rows.
    """
    names = []
    for edge in subgraph.edges:
        _, predicate, _ = edge.triple
        names.append((predicate, edge.label))
    for node in subgraph.nodes:
        if isinstance(node.term, URIRef):
            names.append((node.term, node.label))
    context = context.with_names(names)

    triple_rows = []
    for edge in subgraph.edges:
        terms = [render_term(term, context) for term in edge.triple]
        roles = describe_roles(edge.roles)
        supported = _supported_answers(edge, subgraph.answers)
        triple_rows.append((*terms, roles, supported))
    node_rows = []
    for node in subgraph.nodes:
        term = render_term(node.term, context)
        roles = describe_roles(node.roles)
        node_rows.append((term, roles))
    headings = ("subject", "predicate", "object", "roles", "supports")
    triples = table(headings, triple_rows)
    nodes = table(("node", "roles"), node_rows)
    return join(triples, nodes)


def _supported_answers(edge: Edge, answers: Iterable[Value]) -> str:
    """Return the labels of the answers that a triple supports, in one line.

    From the sixth on (MAX_ROW_ANSWERS), only their number is given.
    """
    labels = []
    for answer in answers:
        if edge.triple in answer.support:
            labels.append(answer.label)
    return list_first(labels, MAX_ROW_ANSWERS)
