"""The part of a graph that a run stands on: linked vertices, what unknowns were bound to, answers, support.

Read from the records of any system's run, so that a replay shows it too; ``expand`` asks the graph. What the
records of one system add to it is registered in its own folder: ``roles`` and ``relation_words``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import chain, islice, zip_longest
from typing import Any, Literal

from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.errors import SettingError
from kgwb.flow import Answer, CandidateQuery, Link, Term, Triple, Value
from kgwb.kg.algebra import ground, term_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3
from kgwb.run import Run
from kgwb.show.html import clean, count, short
from kgwb.show.tell import records_in
from kgwb.show.terms import names_of, term_text

MOST = 60
"""Nodes shown of a run; more are cut, as the subgraph shows."""
MOST_BINDINGS = 500
"""Bindings read off the support of one value for one query."""
LOOK = 500
"""Triples of a vertex looked at in each direction: one of millions must not cost a full count."""

Pattern = tuple[str, str, str]
Shown = tuple[list[Term], tuple[Value, ...], str]
"""The nodes, the answers among them, and what was left out."""
RoleKind = Literal["linked", "unknown", "reached", "answer", "support", "relation", "neighbour"]
Shape = Literal["linked", "unknown", "answer", "support", "literal", "neighbour"]
"""What a node stands for in a picture."""
WORDS: dict[RoleKind, str] = {
    "linked": "linked to “{}”",
    "unknown": "bound to {}",
    "reached": "reached by “{}”",
    "answer": "answer",
    "support": "support",
    "relation": "stands for “{}”",
    "neighbour": "found by expanding",
}


@dataclass(frozen=True, slots=True)
class Role:
    """What a node or an edge is in the run."""

    kind: RoleKind
    detail: str = ""
    """The entity that is linked, the unknown that is bound, the relation that is meant."""

    def __str__(self) -> str:
        return WORDS[self.kind].format(self.detail)


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex or a literal."""

    term: Term
    label: str
    roles: tuple[Role, ...] = ()
    more: str = ""
    """What expanding it showed: "20 of at least 812 more triples shown"."""

    @property
    def shape(self) -> Shape:
        """The most telling of its roles."""
        kinds: set[str] = {"unknown" if role.kind == "reached" else role.kind for role in self.roles}
        kinds |= {"literal"} if isinstance(self.term, RdfLiteral) else set()
        shapes: tuple[Shape, ...] = ("answer", "linked", "unknown", "literal", "support")
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
    cut: str = ""
    """What was left out, with its number; empty if nothing was."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not shown, a sentence each."""
        expanded = (f"{node.label}: {node.more}" for node in self.nodes if node.more)
        return tuple(filter(None, (self.cut, *expanded)))


Part = Term | Triple
Parts = Iterator[tuple[Part, Role]]
"""Terms and triples with what they are, as often as they are that."""


@singledispatch
def roles(record: Any) -> Parts:
    """Terms and triples with what they are by a record."""
    return iter(())


@roles.register
def _(link: Link) -> Parts:
    if link.vertex:
        yield link.vertex.iri, Role("linked", link.entity)


@singledispatch
def relation_words(record: Any) -> tuple[str, ...]:
    """The words of the question that the patterns of its queries stand for, in their order."""
    return ()


def subgraph(run: Run, *, most: int = MOST) -> Subgraph:
    """What a run stands on, as far as it went: at most ``most`` nodes, supports kept whole.

    A subclass of Answer answers a part of the question: it stands for the run's answer until there is one.
    Asks nobody but a local graph, and that for names only; may raise its GraphError.
    """
    records = [record for step in tuple(run.steps) if step.done for record in records_in(step.output)]
    reached = [record for record in reversed(records) if isinstance(record, Answer) and not record.ungrounded]
    so_far = (partial for partial in reached if partial or type(partial) is Answer)
    answer = run.answer if run.answer and not run.answer.ungrounded else next(so_far, Answer("list"))
    linked = [record.vertex.iri for record in records if isinstance(record, Link) and record.vertex]
    shown = _cut(list(dict.fromkeys(linked)), answer, most)
    answers, known, order = shown[1], dict[Part, dict[Role, None]](), list(WORDS)
    parts = [each for record in records for each in roles(record)]
    meant = next((words for record in reversed(records) if (words := relation_words(record))), ())
    queries = {record.sparql: record for record in records if isinstance(record, CandidateQuery)}
    for query in (queries[sparql] for sparql in answer.queries if sparql in queries):
        for value in answers:
            parts += _matched(query, meant if len(meant) == len(query.patterns) else (), value.support)
    parts += [(value.term, Role("answer")) for value in answers if type(answer) is Answer]
    for triple in (triple for value in answers for triple in value.support):
        parts += [(part, Role("support")) for part in (triple, triple[0], triple[2])]
    for part, role in parts:
        known.setdefault(part, {})[role] = None

    def roles_of(part: Part) -> tuple[Role, ...]:
        return tuple(sorted(known.get(part, ()), key=lambda role: (order.index(role.kind), role.detail)))

    names = {str(iri): name for iri, name in answer.names} | names_of(run)
    names |= {str(value.term): value.label for value in answers}
    return _labelled(shown, names, roles_of)


def drawn(answer: Answer) -> Subgraph:
    """What one answer stands on, by itself."""
    names, support = {str(iri): name for iri, name in answer.names}, (Role("support"),)
    return _labelled(_cut([], answer, MOST), names, lambda part: support)


def _labelled(shown: Shown, names: dict[str, str], roles_of: Callable[[Part], tuple[Role, ...]]) -> Subgraph:
    nodes, answers, cut = shown
    triples = dict.fromkeys(triple for value in answers for triple in value.support)
    return Subgraph(
        tuple(Node(term, _label(term, names), roles_of(term)) for term in nodes),
        tuple(Edge(triple, _label(triple[1], names), roles_of(triple)) for triple in triples),
        answers,
        cut,
    )


def _cut(vertices: list[URIRef], answer: Answer, most: int) -> Shown:
    """The terms shown, the answers among them, and what is left out, in words."""

    def ends(triples: Sequence[Triple], value: Value) -> dict[Term, None]:
        """The terms of a value: a count or a yes is no node unless the graph holds it."""
        own = [value.term] if answer.kind == "list" else []
        return dict.fromkeys([*(end for triple in triples for end in triple[::2]), *own])

    shown: dict[Term, None] = dict.fromkeys(vertices[:most])
    every: dict[Term, None] = dict.fromkeys(vertices)
    kept: list[Value] = []
    for value in answer.values:
        every.update(ends(value.support, value))
        triples = value.support if kept else value.support[: (most - 1) // 2]  # each has two ends
        more = ends(triples, value)
        if not kept or len(shown.keys() | more.keys()) <= most:
            shown.update(more)
            kept.append(Value(value.term, clean(short(value.label)), triples))
    cut = [f"{len(shown):,} of {len(every):,} nodes shown"] if len(every) > len(shown) else []
    if len(kept) < len(answer.values):
        cut = [f"{', '.join([*cut, 'with'])} {len(kept):,} of {len(answer.values):,} answers"]
    if kept and (left := len(answer.values[0].support) - len(kept[0].support)):
        cut.append(f"{count(left, 'triple')} of {kept[0].label} left out")
    return list(shown), tuple(kept), "; ".join(cut)


def _matched(query: CandidateQuery, meant: Sequence[str], triples: Sequence[Triple]) -> Parts:
    """What the query's patterns match among the triples of one value."""
    texts = {text for pattern in query.patterns for text in pattern}
    constants = {text: term_of(text) for text in texts if not text.startswith("?")}
    for binding in islice(_bindings(query.patterns, triples, constants), MOST_BINDINGS):
        for unknown in texts - constants.keys():
            yield binding[unknown], Role("unknown", unknown)
        for triple, relation in zip(ground(query.patterns, binding), meant, strict=False):
            yield triple, Role("relation", relation)


def _bindings(
    patterns: Sequence[Pattern], triples: Sequence[Triple], binding: dict[str, Term]
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
        if all(more.setdefault(text, part) == part for text, part in zip(first, triple, strict=True)):
            yield from _bindings(rest, triples, more)


def _label(term: Term, names: dict[str, str]) -> str:
    if isinstance(term, BNode):
        return "blank node"
    return clean(term_text(term, names)) or clean(short(term)) or "empty text"


def expand(kg: Graph, subgraph: Subgraph, node: Term, most: int = 20) -> Subgraph:
    """The subgraph with at most ``most`` more triples of a vertex, in both directions, noise left out.

    Of every predicate some; the vertex shows how many more there are. One query, and one for names. Raises
    SettingError for what has no triples of its own, and a GraphError.
    """
    if not isinstance(node, URIRef):
        kind = "blank node" if isinstance(node, BNode) else "literal"
        raise SettingError(f"a {kind} cannot be expanded", hint="choose a vertex that has an IRI")
    triples, whole = _around(kg, node)
    drawn, there = {edge.triple for edge in subgraph.edges}, {other.term for other in subgraph.nodes}
    further = [triple for triple in triples if triple not in drawn]
    chosen = further[:most]
    new = dict.fromkeys(end for triple in chosen for end in triple[::2] if end not in there)
    iris = sorted({term for triple in chosen for term in triple if isinstance(term, URIRef)})
    names = {str(iri): name for iri, name in (kg.names(iris) if iris else {}).items()}
    if whole and len(chosen) == len(further):
        more = f"all {count(len(chosen), 'more triple')} shown" if chosen else "no more triples"
    else:
        least = f"{len(further):,}" if whole else f"at least {max(len(further), len(chosen) + 1):,}"
        more = f"{len(chosen):,} of {least} more triples shown"
    nodes = (replace(other, more=more) if other.term == node else other for other in subgraph.nodes)
    role = (Role("neighbour"),)
    added = (Node(term, _label(term, names), role) for term in new)
    edges = (Edge(triple, _label(triple[1], names), role) for triple in chosen)
    return replace(subgraph, nodes=(*nodes, *added), edges=(*subgraph.edges, *edges))


def _around(kg: Graph, vertex: URIRef) -> tuple[list[Triple], bool]:
    """Triples that touch a vertex but for noise, each predicate in its turn; whether these are all."""
    iri = n3(vertex)
    rows = kg.select(
        f"SELECT ?s ?p ?o WHERE {{ {{ SELECT ?p ?o WHERE {{ {iri} ?p ?o }} LIMIT {LOOK} }}"
        f" UNION {{ SELECT ?s ?p WHERE {{ ?s ?p {iri} }} LIMIT {LOOK} }} }}"
    )
    ways: dict[tuple[str, bool], set[Triple]] = {}
    for subject, predicate, object_ in rows.rows:
        if isinstance(predicate, URIRef) and predicate not in kg.vocabulary.hidden:
            triple = (subject or vertex, predicate, object_ or vertex)
            ways.setdefault((str(predicate), subject is not None and subject != vertex), set()).add(triple)
    in_turn = zip_longest(*(sorted(ways[way], key=str) for way in sorted(ways)))
    outward = sum(row[0] is None for row in rows.rows)
    whole = not rows.cut and max(outward, len(rows.rows) - outward) < LOOK
    return [triple for triple in chain.from_iterable(in_turn) if triple is not None], whole
