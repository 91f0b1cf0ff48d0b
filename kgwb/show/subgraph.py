"""The part of a graph that a run stands on: linked vertices, what unknowns were bound to, answers, support.

Read from the records of any system's run, so that a replay shows it too; ``expand`` asks the graph. What the
records of one system add to it is registered in its own folder: ``roles`` and ``relation_words``. ``svg`` is
its picture, lit along what an answer stands on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from statistics import fmean
from typing import NamedTuple
from unicodedata import east_asian_width

import networkx as nx
from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.errors import SettingError
from kgwb.flow import Answer, CandidateQuery, Link, Value
from kgwb.kg.algebra import instantiate_patterns, term_from_text
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3
from kgwb.records import ROLE_TEXTS, Record, Role, nested_records
from kgwb.run import Run
from kgwb.show.html import Html, div, join, muted_text, span, table, tag
from kgwb.show.terms import RenderContext, render_term
from kgwb.terms import Term, Triple, format_term
from kgwb.text import pluralize, shorten, single_line

MAX_NODES = 60
"""Nodes shown of a run; more are cut, as the subgraph shows."""
MOST_BINDINGS = 500
"""Bindings read off the support of one value for one query."""
MAX_TRIPLES_PER_DIRECTION = 500
"""Triples of a vertex looked at in each direction: one of millions must not cost a full count."""
MAX_COLUMN_ROWS = 24
"""Boxes in one column; where more are at the same distance, they stand in several."""
ROW_GAP, COLUMN_GAP, LINE_HEIGHT, MARGIN = 20.0, 26.0, 16.0, 14.0
"""Pixels: between rows, between columns without arrows, a line of text, around it all."""
MAX_NODE_LABEL_CHARS, MAX_EDGE_LABEL_CHARS = 34, 24
MAX_DESCRIBED_EDGES = 20
"""Arrows described to who cannot see the picture; the table has them all."""
MAX_ROW_ANSWERS = 5
"""Answers named in one row of the table."""
EMPTY_MESSAGE = div(
    "body", "No vertex is linked yet: run on until an entity of the question has its vertex."
)
CLASSES_BY_SHAPE = {"linked": "linked", "unknown": "via", "answer": "ans"}
ROLE_CAPTIONS = {"linked": "“{}”", "unknown": "{}", "reached": "{}", "answer": "the answer"}
"""What stands under a node's label: its roles as far as they are a matter of words."""

TriplePattern = tuple[str, str, str]
VisibleParts = tuple[list[Term], tuple[Value, ...], str]
"""The nodes, the answers among them, and what was left out."""


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex or a literal."""

    term: Term
    label: str
    roles: tuple[Role, ...] = ()
    expansion_note: str = ""
    """What expanding it showed: "20 of at least 812 more triples shown"."""

    @property
    def shape(self) -> str:
        """What it is in a picture: the most telling of its roles, "literal", or "neighbour"."""
        kinds: set[str] = {
            "unknown" if role.kind == "reached" else role.kind for role in self.roles
        }
        kinds |= {"literal"} if isinstance(self.term, RdfLiteral) else set()
        shapes = ("answer", "linked", "unknown", "literal", "support")
        return next((shape for shape in shapes if shape in kinds), "neighbour")


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple of the graph; ``label`` is the predicate's name."""

    triple: Triple
    label: str
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes and edges, and the answer's values whose support is among them, as far as it is."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    answers: tuple[Value, ...] = ()
    omission_note: str = ""
    """What was left out, with its number; empty if nothing was."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not shown, a sentence each."""
        expanded = (
            f"{node.label}: {node.expansion_note}" for node in self.nodes if node.expansion_note
        )
        return tuple(filter(None, (self.omission_note, *expanded)))


TermOrTriple = Term | Triple
RoleAssignments = Iterator[tuple[TermOrTriple, Role]]
"""Terms and triples with what they are, as often as they are that."""


def build_subgraph(run: Run, *, max_nodes: int = MAX_NODES) -> Subgraph:
    """What a run stands on, as far as it went: at most ``most`` nodes, supports kept whole.

    A subclass of Answer answers a part of the question: it stands for the run's answer until there is one.
    Asks nobody but a local graph, and that for names only; may raise its GraphError.
    """
    records = [
        record for step in tuple(run.steps) if step.done for record in nested_records(step.output)
    ]
    reached = [
        record
        for record in reversed(records)
        if isinstance(record, Answer) and not record.ungrounded
    ]
    so_far = (partial for partial in reached if partial or type(partial) is Answer)
    answer = (
        run.answer if run.answer and not run.answer.ungrounded else next(so_far, Answer("list"))
    )
    linked = [record.vertex.iri for record in records if isinstance(record, Link) and record.vertex]
    shown = _limit_nodes(list(dict.fromkeys(linked)), answer, max_nodes)
    answers, known, order = shown[1], dict[TermOrTriple, dict[Role, None]](), list(ROLE_TEXTS)
    parts = [role for record in records if isinstance(record, Record) for role in record.roles()]
    phrases = (r.relation_phrases() for r in reversed(records) if isinstance(r, Record))
    meant = next(filter(None, phrases), ())
    queries = {record.sparql: record for record in records if isinstance(record, CandidateQuery)}
    for query in (queries[sparql] for sparql in answer.queries if sparql in queries):
        for value in answers:
            parts += _match_query(
                query, meant if len(meant) == len(query.patterns) else (), value.support
            )
    parts += [(value.term, Role("answer")) for value in answers if type(answer) is Answer]
    for triple in (triple for value in answers for triple in value.support):
        parts += [(part, Role("support")) for part in (triple, triple[0], triple[2])]
    for part, role in parts:
        known.setdefault(part, {})[role] = None

    def roles_of(part: TermOrTriple) -> tuple[Role, ...]:
        return tuple(
            sorted(known.get(part, ()), key=lambda role: (order.index(role.kind), role.detail))
        )

    names = {str(iri): name for iri, name in answer.names} | run.display_names()
    names |= {str(value.term): value.label for value in answers}
    return _with_labels(shown, names, roles_of)


def subgraph_of_answer(answer: Answer) -> Subgraph:
    """What one answer stands on, by itself."""
    names, support = {str(iri): name for iri, name in answer.names}, (Role("support"),)
    return _with_labels(_limit_nodes([], answer, MAX_NODES), names, lambda part: support)


def _with_labels(
    shown: VisibleParts, names: dict[str, str], roles_of: Callable[[TermOrTriple], tuple[Role, ...]]
) -> Subgraph:
    nodes, answers, cut = shown
    triples = dict.fromkeys(triple for value in answers for triple in value.support)
    return Subgraph(
        tuple(
            Node(render_term, _label(render_term, names), roles_of(render_term))
            for render_term in nodes
        ),
        tuple(Edge(triple, _label(triple[1], names), roles_of(triple)) for triple in triples),
        answers,
        cut,
    )


def _limit_nodes(vertices: list[URIRef], answer: Answer, max_nodes: int) -> VisibleParts:
    """The terms shown, the answers among them, and what is left out, in words."""

    def ends(triples: Sequence[Triple], value: Value) -> dict[Term, None]:
        """The terms of a value: a count or a yes is no node unless the graph holds it."""
        own = [value.term] if answer.kind == "list" else []
        return dict.fromkeys([*(end for triple in triples for end in triple[::2]), *own])

    shown: dict[Term, None] = dict.fromkeys(vertices[:max_nodes])
    every: dict[Term, None] = dict.fromkeys(vertices)
    kept: list[Value] = []
    for value in answer.values:
        every.update(ends(value.support, value))
        triples = (
            value.support if kept else value.support[: (max_nodes - 1) // 2]
        )  # each has two ends
        more = ends(triples, value)
        if not kept or len(shown.keys() | more.keys()) <= max_nodes:
            shown.update(more)
            kept.append(Value(value.term, single_line(shorten(value.label)), triples))
    cut = [f"{len(shown):,} of {len(every):,} nodes shown"] if len(every) > len(shown) else []
    if len(kept) < len(answer.values):
        cut = [f"{', '.join([*cut, 'with'])} {len(kept):,} of {len(answer.values):,} answers"]
    if kept and (left := len(answer.values[0].support) - len(kept[0].support)):
        cut.append(f"{pluralize(left, 'triple')} of {kept[0].label} left out")
    return list(shown), tuple(kept), "; ".join(cut)


def _match_query(
    query: CandidateQuery, meant: Sequence[str], triples: Sequence[Triple]
) -> RoleAssignments:
    """What the query's patterns match among the triples of one value."""
    texts = {text for pattern in query.patterns for text in pattern}
    constants = {text: term_from_text(text) for text in texts if not text.startswith("?")}
    for binding in islice(_find_bindings(query.patterns, triples, constants), MOST_BINDINGS):
        for unknown in texts - constants.keys():
            yield binding[unknown], Role("unknown", unknown)
        for triple, relation in zip(
            instantiate_patterns(query.patterns, binding), meant, strict=False
        ):
            yield triple, Role("relation", relation)


def _find_bindings(
    patterns: Sequence[TriplePattern], triples: Sequence[Triple], binding: dict[str, Term]
) -> Iterator[dict[str, Term]]:
    """The bindings under which every pattern is among the triples; the most bound pattern comes first.

    A binding has the terms of the patterns too, each by its text.
    """
    if not patterns:
        yield binding
        return
    first = min(patterns, key=lambda pattern: sum(text not in binding for text in pattern))
    rest = [pattern for pattern in patterns if pattern is not first]
    for triple in triples:
        more = dict(binding)
        if all(
            more.setdefault(text, part) == part for text, part in zip(first, triple, strict=True)
        ):
            yield from _find_bindings(rest, triples, more)


def _label(term: Term, names: dict[str, str]) -> str:
    if isinstance(term, BNode):
        return "blank node"
    return single_line(format_term(term, names)) or single_line(shorten(term)) or "empty text"


def expand_node(kg: Graph, subgraph: Subgraph, node: Term, max_triples: int = 20) -> Subgraph:
    """The subgraph with at most ``most`` more triples of a vertex, in both directions, noise left out.

    Of every predicate some; the vertex shows how many more there are. One query, and one for names. Raises
    SettingError for what has no triples of its own, and a GraphError.
    """
    if not isinstance(node, URIRef):
        kind = "blank node" if isinstance(node, BNode) else "literal"
        raise SettingError(f"a {kind} cannot be expanded", hint="choose a vertex that has an IRI")
    triples, whole = _triples_around(kg, node)
    drawn, there = (
        {edge.triple for edge in subgraph.edges},
        {other.term for other in subgraph.nodes},
    )
    further = [triple for triple in triples if triple not in drawn]
    chosen = further[:max_triples]
    new = dict.fromkeys(end for triple in chosen for end in triple[::2] if end not in there)
    iris = sorted(
        {
            render_term
            for triple in chosen
            for render_term in triple
            if isinstance(render_term, URIRef)
        }
    )
    names = {str(iri): name for iri, name in (kg.names(iris) if iris else {}).items()}
    if whole and len(chosen) == len(further):
        more = f"all {pluralize(len(chosen), 'more triple')} shown" if chosen else "no more triples"
    else:
        least = f"{len(further):,}" if whole else f"at least {max(len(further), len(chosen) + 1):,}"
        more = f"{len(chosen):,} of {least} more triples shown"
    nodes = (
        replace(other, expansion_note=more) if other.term == node else other
        for other in subgraph.nodes
    )
    role = (Role("neighbour"),)
    added = (Node(render_term, _label(render_term, names), role) for render_term in new)
    edges = (Edge(triple, _label(triple[1], names), role) for triple in chosen)
    return replace(subgraph, nodes=(*nodes, *added), edges=(*subgraph.edges, *edges))


def _triples_around(kg: Graph, vertex: URIRef) -> tuple[list[Triple], bool]:
    """Triples that touch a vertex but for noise, each predicate in its turn; whether these are all."""
    iri = n3(vertex)
    rows = kg.select(
        f"SELECT ?s ?p ?o WHERE {{ {{ SELECT ?p ?o WHERE {{ {iri} ?p ?o }} LIMIT {MAX_TRIPLES_PER_DIRECTION} }}"
        f" UNION {{ SELECT ?s ?p WHERE {{ ?s ?p {iri} }} LIMIT {MAX_TRIPLES_PER_DIRECTION} }} }}"
    )
    ways: dict[tuple[str, bool], set[Triple]] = {}
    for subject, predicate, object_ in rows.rows:
        if isinstance(predicate, URIRef) and predicate not in kg.vocabulary.excluded_predicates:
            triple = (subject or vertex, predicate, object_ or vertex)
            ways.setdefault((str(predicate), subject is not None and subject != vertex), set()).add(
                triple
            )
    in_turn = zip_longest(*(sorted(ways[way], key=str) for way in sorted(ways)))
    outward = sum(row[0] is None for row in rows.rows)
    whole = not rows.cut and max(outward, len(rows.rows) - outward) < MAX_TRIPLES_PER_DIRECTION
    return [triple for triple in chain.from_iterable(in_turn) if triple is not None], whole


class NodeBox(NamedTuple):
    """Where a node stands: the centre of its box and its size, in pixels."""

    x: float
    y: float
    width: float
    height: float


class Layout(NamedTuple):
    """The places of the nodes, the ends of the edges by the numbers of nodes, and how each edge bends."""

    boxes: tuple[NodeBox, ...]
    endpoints: tuple[tuple[int, int], ...]
    curvatures: tuple[float, ...]
    """How far the middle of each edge leaves the straight line, to the left of its direction."""
    width: float
    height: float


def compute_layout(subgraph: Subgraph) -> Layout:
    """Columns by distance from what is linked: a question reads from left to right."""
    numbers = {node.term: number for number, node in enumerate(subgraph.nodes)}
    ends = tuple((numbers[edge.triple[0]], numbers[edge.triple[2]]) for edge in subgraph.edges)
    sizes = []
    for node in subgraph.nodes:
        widths = [
            text_width(line, 11 if below else 13) for below, line in enumerate(box_lines(node))
        ]
        sizes.append(
            (
                max(*widths, 30.0) + 26,
                LINE_HEIGHT * len(widths) + (14 if _has_round_box(node) else 10),
            )
        )
    columns = list(_arrange_columns(subgraph.nodes, ends))
    row = max((height for _, height in sizes), default=0) + ROW_GAP
    height = row * max(map(len, columns), default=0) + 2 * MARGIN - ROW_GAP
    labels = (
        text_width(fit_width(edge.label, MAX_EDGE_LABEL_CHARS), 11) for edge in subgraph.edges
    )
    gap = max([COLUMN_GAP, *(width + 56 for width in labels)])
    placed: dict[int, NodeBox] = {}
    x = MARGIN
    for column in columns:
        width = max(sizes[number][0] for number in column)
        for at, number in enumerate(column):
            y = height / 2 + (at - (len(column) - 1) / 2) * row
            placed[number] = NodeBox(x + width / 2, y, *sizes[number])
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


def fit_width(text: str, max_chars: int) -> str:
    """A text of at most ``most`` characters; wide ones count twice."""
    room = max_chars
    for place, char in enumerate(text):
        room -= 2 if east_asian_width(char) in "WF" else 1
        if room < 0:
            return text[: place - 1].rstrip() + "…"
    return text


def text_width(text: str, size: float) -> float:
    """About how many pixels a text takes in a sans-serif font."""
    shares = (
        1.0 if east_asian_width(char) in "WF" else 0.74 if char.isupper() else 0.57 for char in text
    )
    return sum(shares) * size


def _arrange_columns(nodes: Sequence[Node], ends: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
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
            node: fmean([rows[other] for other in graph[node] if other in rows] or [0])
            for node in layer
        }
        order = sorted(layer, key=lambda node: (above[node], node))
        rows = {node: row / len(order) for row, node in enumerate(order)}
        size = math.ceil(len(order) / math.ceil(len(order) / MAX_COLUMN_ROWS))
        yield from (order[start : start + size] for start in range(0, len(order), size))


def highlighted_parts(subgraph: Subgraph, highlighted: Value | None) -> dict[str, list[int]] | None:
    """The numbers of an answer's node and of all that supports it: of "nodes" and of "edges"."""
    if highlighted is None:
        return None
    terms = {highlighted.term, *(end for triple in highlighted.support for end in triple[::2])}
    return {
        "nodes": [number for number, node in enumerate(subgraph.nodes) if node.term in terms],
        "edges": [
            number
            for number, edge in enumerate(subgraph.edges)
            if edge.triple in highlighted.support
        ],
    }


def render_svg(subgraph: Subgraph, highlighted: Value | None = None, event: str = "") -> Html:
    """The picture; what supports the answer ``lit`` stands out. A click on a box sends ``do``."""
    if not subgraph.nodes:
        return EMPTY_MESSAGE
    drawn, shown = compute_layout(subgraph), highlighted_parts(subgraph, highlighted)
    lines, labels, nodes, facts = [], [], [], []
    for number, (edge, (start, end)) in enumerate(
        zip(subgraph.edges, drawn.endpoints, strict=True)
    ):
        class_ = "" if shown is None else " lit" if number in shown["edges"] else " dim"
        points = _edge_curve(drawn.boxes[start], drawn.boxes[end], drawn.curvatures[number])
        path = "M{} C{} {} {}".format(*map(_format_point, points))
        dashes = "5 4" if is_only_expanded(edge) else None
        lines.append(tag("path", d=path, class_=f"ed{class_}", stroke_dasharray=dashes))
        tip, back = points[3], points[2] - points[3]
        back *= 8 / (abs(back) or 1)
        head = (tip - back * 0.8, tip + back * (0.2 + 0.5j), tip + back * (0.2 - 0.5j))
        lines.append(
            tag("polygon", points=" ".join(map(_format_point, head)), class_=f"hd{class_}")
        )
        middle = (points[0] + 3 * points[1] + 3 * points[2] + points[3]) / 8
        words = join("✓ " if class_ == " lit" else "", fit_width(edge.label, MAX_EDGE_LABEL_CHARS))
        at = {"x": middle.real, "y": middle.imag + 4, "text_anchor": "middle"}
        labels.append(
            tag("text", words, tag("title", tooltip_text(edge)), **at, class_=f"el{class_}")
        )
        facts.append(f"{subgraph.nodes[start].label} — {edge.label} → {subgraph.nodes[end].label}")
    for number, (node, place) in enumerate(zip(subgraph.nodes, drawn.boxes, strict=True)):
        class_ = CLASSES_BY_SHAPE.get(node.shape, node.shape)
        class_ += "" if shown is None else " lit" if number in shown["nodes"] else " dim"
        sent = {"data_do": event, "data_arg": number, "id": f"node-{number}"} if event else {}
        role = {"tabindex": "0", "role": "button"} if event else {}
        corner = {"x": place.x - place.width / 2, "y": place.y - place.height / 2}
        corner |= {"rx": place.height / 2 if _has_round_box(node) else 5}
        box = tag("rect", class_="nd", width=place.width, height=place.height, **corner)
        first, *below = box_lines(node)
        texts = [
            tag("text", first, x=place.x, y=place.y + (-1 if below else 4), text_anchor="middle")
        ]
        for line in below:
            texts.append(
                tag("text", line, x=place.x, y=place.y + 13, text_anchor="middle", class_="sub")
            )
        nodes.append(
            tag("g", tag("title", tooltip_text(node)), box, *texts, class_=class_, **sent, **role)
        )
    title = f"Subgraph: {pluralize(len(nodes), 'node')}, {pluralize(len(labels), 'triple')}"
    return tag(
        "svg",
        tag("title", title),
        tag("desc", ". ".join(facts[:MAX_DESCRIBED_EDGES])),
        *(*lines, *labels, *nodes),  # lines first, so that none crosses a label
        class_="graph",
        role="img",
        viewBox=f"0 0 {drawn.width:.0f} {drawn.height:.0f}",
        style=f"max-width:{drawn.width * 1.05:.0f}px",
    )


def _edge_curve(
    start: NodeBox, end: NodeBox, bend: float
) -> tuple[complex, complex, complex, complex]:
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


def _format_point(point: complex) -> str:
    return f"{point.real:.1f},{point.imag:.1f}"


def _has_round_box(node: Node) -> bool:
    return node.shape in ("linked", "unknown")


def is_only_expanded(edge: Edge) -> bool:
    """Whether an edge was found by expanding, and by nothing else."""
    return all(role.kind == "neighbour" for role in edge.roles)


def box_lines(node: Node) -> list[str]:
    """What is written into the box of a node: its label, and what it is."""
    below = ", ".join(
        ROLE_CAPTIONS[role.kind].format(role.detail)
        for role in node.roles
        if role.kind in ROLE_CAPTIONS
    )
    return [fit_width(text, MAX_NODE_LABEL_CHARS) for text in (node.label, *filter(None, [below]))]


def tooltip_text(item: Node | Edge) -> str:
    """What shows under the pointer: the label, the roles, and the IRI or the kind of literal."""
    what: object = item.triple[1] if isinstance(item, Edge) else item.term
    if isinstance(what, RdfLiteral):
        what = f"literal, {what.language or what.datatype or 'text'}"
    elif not isinstance(what, URIRef):
        what = ""
    return "\n".join(filter(None, (item.label, describe_roles(item.roles), str(what))))


def describe_roles(roles: Iterable[Role]) -> str:
    """Roles of a node or an edge: "linked to “Arrival”, support"."""
    return ", ".join(map(str, roles))


def render_legend(subgraph: Subgraph, highlighted: Value | None) -> Html:
    """What the shapes mean, and what is not shown."""
    signs = [
        span("ent small", "linked"),
        span("unk small", "on the way"),
        span("unk asked plain small", "answer"),
        muted_text("pale: around it, not used") if highlighted is not None else "",
    ]
    left_out = div("soft small", "; ".join(subgraph.notes)) if subgraph.notes else ""
    return div("stack tight", div("row", *signs), left_out)


def render_tables(subgraph: Subgraph, context: RenderContext) -> Html:
    """The triples with what they are and support, and the vertices with their roles."""
    labels = [(node.term, node.label) for node in subgraph.nodes if isinstance(node.term, URIRef)]
    context = context.with_names(
        [*((edge.triple[1], edge.label) for edge in subgraph.edges), *labels]
    )
    triples = []
    for edge in subgraph.edges:
        supported = [answer.label for answer in subgraph.answers if edge.triple in answer.support]
        more = (
            f", and {len(supported) - MAX_ROW_ANSWERS:,} more"
            if len(supported) > MAX_ROW_ANSWERS
            else ""
        )
        terms = [render_term(part, context) for part in edge.triple]
        triples.append(
            (*terms, describe_roles(edge.roles), ", ".join(supported[:MAX_ROW_ANSWERS]) + more)
        )
    nodes = [
        (render_term(node.term, context), describe_roles(node.roles)) for node in subgraph.nodes
    ]
    heads = ("subject", "predicate", "object", "what it is", "supports")
    return join(table(heads, triples), table(("node", "what it is"), nodes))
