"""The part of a graph that a run stands on: linked vertices, what unknowns were bound to, answers, support.

Read from the records of any system's run, so that a replay shows it too; ``expand`` asks the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Literal

from rdflib import BNode, URIRef
from rdflib import Literal as RdfLiteral

from kgwb.errors import SettingError
from kgwb.flow import (
    Answer,
    CandidateQuery,
    Generated,
    Link,
    Linked,
    LinkedRelation,
    Selection,
    Term,
    Triple,
    Value,
)
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3
from kgwb.provenance import term_of
from kgwb.record import Step
from kgwb.render.words import clean, count, names_in, term_text

if TYPE_CHECKING:
    from kgwb.run import Run

MOST = 60
"""Nodes shown of a run; more are cut, and the subgraph says so."""
MOST_BINDINGS = 500
"""Bindings read off the support of one value for one query."""
LOOK = 500
"""Triples of a vertex looked at in each direction: one of millions must not cost a full count."""
MOST_CHARS = 2_000
"""Kept of a label; a literal can be a book."""

RoleKind = Literal["linked", "unknown", "answer", "support", "relation", "neighbour"]
Shape = Literal["linked", "unknown", "answer", "support", "literal", "neighbour"]
WORDS: dict[RoleKind, str] = {
    "linked": "linked to “{}”",
    "unknown": "bound to {}",
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
    """The entity of the QIR that is linked, the unknown that is bound, the relation that is meant."""

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
        """What it is drawn as: the most telling of its roles."""
        kinds = {role.kind for role in self.roles}
        shapes: tuple[Shape, ...] = ("answer", "linked", "unknown")
        for shape in shapes:
            if shape in kinds:
                return shape
        if isinstance(self.term, RdfLiteral):
            return "literal"
        return "support" if "support" in kinds else "neighbour"


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple of the graph; ``label`` is the predicate's name."""

    subject: Term
    predicate: URIRef
    label: str
    object: Term
    roles: tuple[Role, ...] = ()

    @property
    def triple(self) -> Triple:
        return self.subject, self.predicate, self.object


@dataclass(frozen=True, slots=True)
class Supported:
    """An answer value and the shown triples it stands on."""

    term: Term
    label: str
    triples: tuple[Triple, ...]
    left: int = 0
    """Supporting triples that are not shown."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Nodes and edges, and the answers whose support is among them."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    answers: tuple[Supported, ...] = ()
    cut: str = ""
    """What was left out, with its number; empty if nothing was."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not shown, a sentence each."""
        expanded = (f"{node.label}: {node.more}" for node in self.nodes if node.more)
        return tuple(filter(None, (self.cut, *expanded)))


def subgraph(run: Run, *, most: int = MOST) -> Subgraph:
    """What a run stands on, as far as it went: at most ``most`` nodes, supports kept whole.

    Asks nobody but a local graph, and that for names only; may raise its GraphError.
    """
    steps = tuple(run.steps)
    reached = [step.output for step in steps if step.done and isinstance(step.output, Answer)]
    answer = run.answer or (reached[-1] if reached else Answer("list"))
    linked = {link.vertex.iri: link for link in _links(steps) if link.vertex}
    nodes, answers, cut = _cut(list(linked), answer, most)
    roles = _Roles()
    for link in _links(steps):
        if link.vertex:
            roles.add(link.vertex.iri, Role("linked", link.entity))
    for query, facts in _executed(steps, answer):
        for one in answers:
            roles.bind(query, facts, one.triples)
    for one in answers:
        roles.add(one.term, Role("answer"))
        for triple in one.triples:
            for part in (triple, triple[0], triple[2]):
                roles.add(part, Role("support"))
    triples = dict.fromkeys(triple for one in answers for triple in one.triples)
    names = _names(run, steps, answer, [*nodes, *(triple[1] for triple in triples)])
    names.update({str(value.term): value.label for value in answer.values})
    return Subgraph(
        tuple(Node(term, _label(term, names), roles.of(term)) for term in nodes),
        tuple(_edge(triple, names, roles.of(triple)) for triple in triples),
        answers,
        cut,
    )


def expand(kg: Graph, subgraph: Subgraph, node: Term, most: int = 20) -> Subgraph:
    """The subgraph with at most ``most`` more triples of a vertex, in both directions, noise left out.

    Of every predicate some; the vertex says how many more there are. One query, and one for names. Raises
    SettingError for what has no triples of its own, and a GraphError.
    """
    if not isinstance(node, URIRef):
        kind = "blank node" if isinstance(node, BNode) else "literal"
        raise SettingError(f"a {kind} cannot be expanded", hint="choose a vertex that has an IRI")
    found, whole = _around(kg, node)
    shown = {edge.triple for edge in subgraph.edges}
    further = [triple for triple in found if triple not in shown]
    chosen = further[:most]
    terms = dict.fromkeys(end for triple in chosen for end in triple[::2])
    there = {one.term for one in subgraph.nodes}
    new = [term for term in terms if term not in there]
    iris = {part for triple in chosen for part in triple if isinstance(part, URIRef)}
    names = {str(iri): name for iri, name in kg.names(sorted(iris)).items()}
    said = _said(len(chosen), len(further), whole)
    role = (Role("neighbour"),)
    return replace(
        subgraph,
        nodes=(
            *(replace(one, more=said) if one.term == node else one for one in subgraph.nodes),
            *(Node(term, _label(term, names), role) for term in new),
        ),
        edges=(*subgraph.edges, *(_edge(triple, names, role) for triple in chosen)),
    )


# --- what the record says


def _links(steps: Sequence[Step]) -> tuple[Link, ...]:
    """The links as they were handed on; those made so far if they were not yet."""
    outputs = [step.output for step in steps if step.done]
    handed_on = [output.links for output in outputs if isinstance(output, Linked)]
    return handed_on[-1] if handed_on else tuple(output for output in outputs if isinstance(output, Link))


def _executed(
    steps: Sequence[Step], answer: Answer
) -> Iterator[tuple[CandidateQuery, tuple[LinkedRelation, ...]]]:
    """The candidate queries that the answer came from, and the relation of each of their patterns."""
    outputs = [step.output for step in steps if step.done]
    relations: tuple[LinkedRelation, ...] = ()
    queries: dict[str, CandidateQuery] = {}
    for output in outputs:
        if isinstance(output, Linked):
            relations = tuple(relation for relation in output.relations if relation.predicates)
        elif isinstance(output, Generated | Selection):
            queries.update({query.sparql: query for query in output.queries})
    for sparql in answer.queries:
        if sparql in queries:
            same = len(relations) == len(queries[sparql].patterns)
            yield queries[sparql], relations if same else ()


def _cut(vertices: list[URIRef], answer: Answer, most: int) -> tuple[list[Term], tuple[Supported, ...], str]:
    """The terms shown, the answers among them, and what is said of the rest."""
    shown: dict[Term, None] = dict.fromkeys(vertices[:most])
    every: dict[Term, None] = dict.fromkeys(vertices)
    kept: list[Supported] = []
    for value in answer.values:
        ends = _ends(value, answer)
        every.update(ends)
        triples = value.support
        if len(shown.keys() | ends.keys()) > most:
            if kept:
                continue
            triples = _first(triples, shown, most)  # the first of all does not fit whole
            ends = {term: None for term in ends if any(term in triple for triple in triples)}
            if not triples:
                continue
        shown.update(ends)
        kept.append(Supported(value.term, value.label, triples, len(value.support) - len(triples)))
    cut = f"{len(shown):,} of {len(every):,} nodes shown" if len(every) > len(shown) else ""
    if len(kept) < len(answer.values):
        cut += f", with {len(kept):,} of {len(answer.values):,} answers"
    return list(shown), tuple(kept), cut


def _ends(value: Value, answer: Answer) -> dict[Term, None]:
    """The terms of a value: a count or a yes is no node unless the graph holds it."""
    ends = dict.fromkeys(end for triple in value.support for end in triple[::2])
    return ends if answer.kind != "list" else {**ends, value.term: None}


def _first(triples: Iterable[Triple], shown: Iterable[Term], most: int) -> tuple[Triple, ...]:
    terms, kept = set(shown), []
    for triple in triples:
        ends = terms | {triple[0], triple[2]}
        if len(ends) <= most:
            terms = ends
            kept.append(triple)
    return tuple(kept)


class _Roles:
    """Roles of terms and triples, each once and in the order of ``WORDS``."""

    def __init__(self) -> None:
        self._roles: dict[Term | Triple, set[Role]] = {}

    def add(self, part: Term | Triple, role: Role) -> None:
        self._roles.setdefault(part, set()).add(role)

    def of(self, part: Term | Triple) -> tuple[Role, ...]:
        order = list(WORDS)
        found = self._roles.get(part, ())
        return tuple(sorted(found, key=lambda role: (order.index(role.kind), role.detail)))

    def bind(
        self, query: CandidateQuery, relations: tuple[LinkedRelation, ...], triples: Sequence[Triple]
    ) -> None:
        """The roles of what the query's patterns match among the triples of one value."""
        patterns = [_Pattern(*pattern) for pattern in query.patterns]
        for binding in islice(_bindings(patterns, triples, {}), MOST_BINDINGS):
            for unknown, term in binding.items():
                self.add(term, Role("unknown", unknown))
            for pattern, relation in zip(patterns, relations, strict=False):
                self.add(pattern.grounded(binding), Role("relation", relation.fact.relation))


class _Pattern:
    """A triple pattern: at each place an unknown's name or a term."""

    def __init__(self, *texts: str) -> None:
        self.unknowns = tuple(text if text.startswith("?") else "" for text in texts)
        self.terms = tuple(None if text.startswith("?") else term_of(text) for text in texts)

    def free(self, binding: dict[str, Term]) -> int:
        return sum(bool(name) and name not in binding for name in self.unknowns)

    def grounded(self, binding: dict[str, Term]) -> Triple:
        subject, predicate, object_ = (
            binding[name] if name else term for name, term in zip(self.unknowns, self.terms, strict=True)
        )
        return subject, predicate, object_  # type: ignore[return-value]

    def bound(self, triple: Triple, binding: dict[str, Term]) -> dict[str, Term] | None:
        """The binding that makes this the triple too; None if there is none."""
        more = dict(binding)
        for name, term, part in zip(self.unknowns, self.terms, triple, strict=True):
            if (more.setdefault(name, part) if name else term) != part:
                return None
        return more


def _bindings(
    patterns: list[_Pattern], triples: Sequence[Triple], binding: dict[str, Term]
) -> Iterator[dict[str, Term]]:
    """The bindings under which every pattern is among the triples; the most bound pattern comes first."""
    if not patterns:
        yield binding
        return
    first = min(patterns, key=lambda pattern: pattern.free(binding))
    rest = [pattern for pattern in patterns if pattern is not first]
    for triple in triples:
        bound = first.bound(triple, binding)
        if bound is not None:
            yield from _bindings(rest, triples, bound)


# --- names


def _names(run: Run, steps: Sequence[Step], answer: Answer, shown: Iterable[Term]) -> dict[str, str]:
    """Display names from the record, and for what has none there from a local graph."""
    names = {str(iri): name for iri, name in answer.names}
    names.update(names_in(steps, dict(run.calls)))
    missing = sorted({term for term in shown if isinstance(term, URIRef) and str(term) not in names})
    if missing and run.graph is not None and not run.graph.remote:
        names.update({str(iri): name for iri, name in run.graph.names(missing).items()})
    return names


def _label(term: Term, names: dict[str, str]) -> str:
    if isinstance(term, BNode):
        return "blank node"
    text = clean(term_text(term, names)[:MOST_CHARS]) or clean(str(term)[:MOST_CHARS])
    return text or "empty text"


def _edge(triple: Triple, names: dict[str, str], roles: tuple[Role, ...]) -> Edge:
    subject, predicate, object_ = triple
    return Edge(subject, URIRef(predicate), _label(predicate, names), object_, roles)


# --- the neighbourhood


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
    in_turn = zip_longest(*(sorted(ways[way], key=_text) for way in sorted(ways)))
    outward = sum(row[0] is None for row in rows.rows)
    whole = not rows.cut and max(outward, len(rows.rows) - outward) < LOOK
    return [triple for triple in chain.from_iterable(in_turn) if triple is not None], whole


def _text(triple: Triple) -> tuple[str, ...]:
    return tuple(map(str, triple))


def _said(shown: int, there: int, whole: bool) -> str:
    if whole and shown == there:
        return f"all {count(there, 'more triple')} shown" if there else "no more triples"
    return (
        f"{shown:,} of {'' if whole else 'at least '}{max(there, shown + (not whole)):,} more triples shown"
    )
