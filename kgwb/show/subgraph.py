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

from kgwb import flow
from kgwb.errors import SettingError
from kgwb.flow import Answer, Link, Term, Triple, Value
from kgwb.kg.algebra import ground, term_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3
from kgwb.show.html import clean, count, short
from kgwb.show.picture import Shape
from kgwb.show.terms import names_in, term_text
from kgwb.systems.chatty_kg import records
from kgwb.systems.chatty_kg.records import Linked
from kgwb.systems.dog.records import Filled

if TYPE_CHECKING:
    from kgwb.run import Run

MOST = 60
"""Nodes shown of a run; more are cut, and the subgraph says so."""
MOST_BINDINGS = 500
"""Bindings read off the support of one value for one query."""
LOOK = 500
"""Triples of a vertex looked at in each direction: one of millions must not cost a full count."""

Pattern = tuple[str, str, str]
RoleKind = Literal["linked", "unknown", "reached", "answer", "support", "relation", "neighbour"]
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
        kinds: set[str] = {role.kind for role in self.roles}
        kinds |= {"unknown"} if "reached" in kinds else set()
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


def subgraph(run: Run, *, most: int = MOST) -> Subgraph:
    """What a run stands on, as far as it went: at most ``most`` nodes, supports kept whole.

    Asks nobody but a local graph, and that for names only; may raise its GraphError.
    """
    outputs = [step.output for step in tuple(run.steps) if step.done]
    reached = [output for output in outputs if isinstance(output, Answer) and not output.ungrounded]
    given = run.answer if run.answer and not run.answer.ungrounded else None
    so_far = (one for one in reversed(reached) if one or not isinstance(one, Filled))
    answer = given or next(so_far, Answer("list"))
    links = {link.vertex.iri: link.entity for link in _links(outputs) if link.vertex}
    nodes, answers, cut = _cut(list(links), answer, most)
    roles: dict[Term | Triple, dict[Role, None]] = {}
    for part, role in _roles(outputs, answer, answers):
        roles.setdefault(part, {})[role] = None
    triples = dict.fromkeys(triple for one in answers for triple in one.support)
    names = _names(run, answer, [*nodes, *(triple[1] for triple in triples)])
    names.update((str(one.term), one.label) for one in answers)
    return Subgraph(
        tuple(Node(term, _label(term, names), _sorted(roles.get(term, ()))) for term in nodes),
        tuple(Edge(triple, _label(triple[1], names), _sorted(roles.get(triple, ()))) for triple in triples),
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
    there = {one.term for one in subgraph.nodes}
    new = dict.fromkeys(end for triple in chosen for end in triple[::2] if end not in there)
    names = _asked(kg, chain.from_iterable(chosen))
    said = _said(len(chosen), len(further), whole)
    role = (Role("neighbour"),)
    return replace(
        subgraph,
        nodes=(
            *(replace(one, more=said) if one.term == node else one for one in subgraph.nodes),
            *(Node(term, _label(term, names), role) for term in new),
        ),
        edges=(*subgraph.edges, *(Edge(triple, _label(triple[1], names), role) for triple in chosen)),
    )


# --- what the record says


def _links(outputs: Sequence[object]) -> tuple[Link, ...]:
    """The links as they were handed on; those made so far if they were not yet."""
    handed_on = [output.links for output in outputs if isinstance(output, Linked)]
    return handed_on[-1] if handed_on else tuple(output for output in outputs if isinstance(output, Link))


def _cut(vertices: list[URIRef], answer: Answer, most: int) -> tuple[list[Term], tuple[Value, ...], str]:
    """The terms shown, the answers among them, and what is said of the rest."""
    shown: dict[Term, None] = dict.fromkeys(vertices[:most])
    every: dict[Term, None] = dict.fromkeys(vertices)
    kept: list[Value] = []
    for value in answer.values:
        ends = _ends(value.support, value, answer)
        every.update(ends)
        triples = value.support if kept else value.support[: (most - 1) // 2]  # each has two ends
        ends = _ends(triples, value, answer)
        if kept and len(shown.keys() | ends.keys()) > most:
            continue
        shown.update(ends)
        kept.append(Value(value.term, clean(short(value.label)), triples))
    cut = f"{len(shown):,} of {len(every):,} nodes shown" if len(every) > len(shown) else ""
    if len(kept) < len(answer.values):
        cut += f", with {len(kept):,} of {len(answer.values):,} answers"
    if kept and (left := len(answer.values[0].support) - len(kept[0].support)):
        cut = f"{cut}; {count(left, 'triple')} of {kept[0].label} left out".removeprefix("; ")
    return list(shown), tuple(kept), cut


def _ends(triples: Sequence[Triple], value: Value, answer: Answer) -> dict[Term, None]:
    """The terms of a value: a count or a yes is no node unless the graph holds it."""
    ends = dict.fromkeys(end for triple in triples for end in triple[::2])
    return ends if answer.kind != "list" else {**ends, value.term: None}


def _roles(
    outputs: Sequence[object], answer: Answer, answers: Sequence[Value]
) -> Iterator[tuple[Term | Triple, Role]]:
    """Terms and triples with what they are in the run, as often as they are that."""
    for link in _links(outputs):
        if link.vertex:
            yield link.vertex.iri, Role("linked", link.entity)
    linked = [output.relations for output in outputs if isinstance(output, Linked)]
    meant = [relation.fact.relation for relation in (linked or [()])[-1] if relation.predicates]
    generated = [output for output in outputs if isinstance(output, records.Generated | records.Selection)]
    for query in {query.sparql: query for output in generated for query in output.queries}.values():
        for one in answers if query.sparql in answer.queries else ():
            yield from _matched(query, meant if len(meant) == len(query.patterns) else [], one.support)
    for filled in (output for output in outputs if isinstance(output, Filled)):
        yield from ((value.term, Role("reached", str(filled.relation))) for value in filled.values)
    for one in answers:
        if not isinstance(answer, Filled):  # a walk that has not come to its end
            yield one.term, Role("answer")
        for triple in one.support:
            yield from ((part, Role("support")) for part in (triple, triple[0], triple[2]))


def _sorted(roles: Iterable[Role]) -> tuple[Role, ...]:
    order = list(WORDS)
    return tuple(sorted(roles, key=lambda role: (order.index(role.kind), role.detail)))


def _matched(
    query: flow.CandidateQuery, meant: Sequence[str], triples: Sequence[Triple]
) -> Iterator[tuple[Term | Triple, Role]]:
    """What the query's patterns match among the triples of one value."""
    texts = {text for pattern in query.patterns for text in pattern}
    given = {text: term_of(text) for text in texts if not text.startswith("?")}
    for binding in islice(_bindings(query.patterns, triples, given), MOST_BINDINGS):
        for unknown in texts - given.keys():
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


# --- names


def _names(run: Run, answer: Answer, shown: Iterable[Term]) -> dict[str, str]:
    """Display names from the record, and for what has none there from a local graph."""
    own = {str(iri): name for iri, name in answer.names}
    names = {**own, **names_in(tuple(run.steps), dict(run.calls))}
    if run.graph is not None and not run.graph.remote:
        names.update(_asked(run.graph, (term for term in shown if str(term) not in names)))
    return names


def _asked(kg: Graph, terms: Iterable[Term]) -> dict[str, str]:
    """What a graph calls the IRIs among terms."""
    iris = sorted({term for term in terms if isinstance(term, URIRef)})
    return {str(iri): name for iri, name in (kg.names(iris) if iris else {}).items()}


def _label(term: Term, names: dict[str, str]) -> str:
    if isinstance(term, BNode):
        return "blank node"
    return clean(term_text(term, names)) or clean(short(term)) or "empty text"


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
    in_turn = zip_longest(*(sorted(ways[way], key=str) for way in sorted(ways)))
    outward = sum(row[0] is None for row in rows.rows)
    whole = not rows.cut and max(outward, len(rows.rows) - outward) < LOOK
    return [triple for triple in chain.from_iterable(in_turn) if triple is not None], whole


def _said(shown: int, there: int, whole: bool) -> str:
    if whole and shown == there:
        return f"all {count(there, 'more triple')} shown" if there else "no more triples"
    least = f"{there:,}" if whole else f"at least {max(there, shown + 1):,}"
    return f"{shown:,} of {least} more triples shown"
