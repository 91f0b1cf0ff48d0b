"""Questions a person asks about a result: why it is empty, where a vertex is, what a predicate holds.

They are asked of the graph itself, on demand; a run's record stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rdflib import URIRef

from kgwb import flow
from kgwb.errors import QueryError
from kgwb.kg.algebra import Pattern, conjunction, parts_of, patterns_of, unknowns_of
from kgwb.kg.base import Graph, Rows
from kgwb.kg.sparql import checked, n3, writable
from kgwb.kg.text import local_name, normal
from kgwb.run.record import Step
from kgwb.systems.chatty_kg import records

Ends = tuple[URIRef | None, URIRef | None]
"""The vertices of a fact's subject and object, None where it is not linked."""
Named = tuple[tuple[flow.Iri, str], ...]
"""What IRIs are called."""

FARTHER = 10
"""A vertex that a search does not bring is looked for among so many times more."""
UNLIKE = 0.6
"""A best predicate less similar than this is worth a word where there is no answer."""
NAMED = 60
"""Rows of a result whose IRIs are named."""
NEAR = 5
"""Vertices told of where a name is that of several, or of none."""


# --- why a query has no rows --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blocking:
    """Why a query has no rows."""

    empty: bool
    """Whether it has none at all."""
    culprits: tuple[Pattern | str, ...] = ()
    """The patterns, or the filters, each of which alone, once removed, brings rows back."""
    unmatched: tuple[Pattern, ...] = ()
    """The patterns that nothing in the graph matches, each asked for alone."""

    def __str__(self) -> str:
        told = [f"without {part_text(part)} the query has rows" for part in self.culprits]
        told += [f"nothing in the graph matches {part_text(pattern)}" for pattern in self.unmatched]
        return "; ".join(told) or "each pattern has matches, but no one of them brings rows back once removed"


def blocking(kg: Graph, patterns: Sequence[Pattern], filters: str = "") -> Blocking:
    """Which triple pattern, or the filters, of a conjunctive query brings rows back once removed.

    Asks two questions a pattern at most, each for yes or no. Raises a GraphError.
    """

    def holds(some: Sequence[Pattern], only: str = "") -> bool:
        bound = set(re.findall(r"\?\w+", only)) <= set(unknowns_of(some))  # else the filters never hold
        return kg.ask(f"ASK {{ {conjunction(some)} {only if bound else ''} }}")

    patterns = tuple(dict.fromkeys(patterns))
    if holds(patterns, filters):
        return Blocking(empty=False)
    unmatched = tuple(pattern for pattern in patterns if not holds([pattern]))
    culprits: list[Pattern | str] = []
    for pattern in patterns:
        rest = [other for other in patterns if other != pattern]
        if rest and set(unmatched) <= {pattern} and holds(rest, filters):
            culprits.append(pattern)
    if filters and not unmatched and holds(patterns):
        culprits.append(filters.strip())
    return Blocking(True, tuple(culprits), unmatched)


def why_empty(kg: Graph, sparql: str, steps: Iterable[Step]) -> Blocking:
    """Why a query has no rows: one of the run's by its own patterns, another as far as it is conjunctive."""
    made = [query for step in steps if step.done for query in _candidates(step.output)]
    known = next((query for query in made if query.sparql == sparql), None)
    patterns, filters = (known.patterns, known.filters) if known else patterns_of(sparql)
    return blocking(kg, patterns, filters)


def queries_in(output: Any) -> tuple[str, ...]:
    """The SPARQL that a record holds."""
    return tuple(getattr(query, "sparql", query) for query in getattr(output, "queries", ()))


def _candidates(output: Any) -> Iterable[flow.CandidateQuery]:
    return [query for query in getattr(output, "queries", ()) if isinstance(query, flow.CandidateQuery)]


def ends_of(fact: records.Fact, steps: Iterable[Step]) -> Ends:
    """The vertices that the ends of a fact were linked to."""
    links = [step.output for step in steps if step.done and isinstance(step.output, flow.Link)]
    vertices = {link.entity: link.vertex.iri for link in reversed(links) if link.vertex}
    return vertices.get(fact.subject), vertices.get(fact.object)


def is_empty(output: Any) -> bool:
    """Whether a record is an answer that its queries did not find."""
    return isinstance(output, flow.Answer) and not output.values and not output.ungrounded


def nearest(output: Any, steps: Sequence[Step]) -> list[str]:
    """Where a run lost its way to an answer: no vertex, no predicate, or none that is like the relation."""
    if not is_empty(output):
        return []
    found = [step.output for step in steps if step.done]
    lost = []
    for link in dict.fromkeys(one for one in found if isinstance(one, flow.Link) and one.vertex is None):
        near = ", ".join(f"{one.label} ({one.score:.2f})" for one in link.candidates[:NEAR])
        told = f"nearest are {near}" if near else "the graph has no label like it"
        lost.append(f"no vertex for “{link.entity}”: {told}")
    for one in dict.fromkeys(one for one in found if isinstance(one, records.LinkedRelation)):
        near = ", ".join(f"{best.name} ({best.similarity:.2f})" for best in one.predicates[:3])
        if not one.predicates:
            lost.append(f"no predicate for “{one.fact.relation}”: nothing that was linked touches one")
        elif one.predicates[0].similarity < UNLIKE:
            lost.append(f"no predicate is like “{one.fact.relation}”: nearest are {near}")
    return lost


def part_text(part: Pattern | str, names: Mapping[str, str] | None = None) -> str:
    """ "?film — director → Denis Villeneuve": every IRI by its name; filters as they are."""
    if isinstance(part, str):
        return part
    subject, predicate, object_ = (_name(term, names or {}) for term in part)
    return f"{subject} — {predicate} → {object_}"


def _name(term: str, names: Mapping[str, str]) -> str:
    return (names.get(term[1:-1]) or local_name(term[1:-1])) if term.startswith("<") else term


@dataclass(frozen=True, slots=True)
class Author:
    """The step that put a part into a query."""

    what: str
    """ "predicate", "vertex" or "filters"."""
    term: str
    """As it stands in the query."""
    step: str
    """The step's key."""

    def told(self, names: Mapping[str, str]) -> str:
        """ "relation_linking[...] wrote the predicate director", by the names of IRIs."""
        what = "the filters" if self.what == "filters" else f"the {self.what} {_name(self.term, names)}"
        return f"{self.step} wrote {what}"


def author(steps: Iterable[Step], part: Pattern | str) -> tuple[Author, ...]:
    """The steps, in flow order, that chose a pattern's predicate and vertices, or that wrote the filters."""
    # A supervisor comes before the steps it supervises, so that the last one of a part is its author.
    authors = {wrote: step.key for step in steps if step.done for wrote in _written_by(step.output)}
    if isinstance(part, str):
        parts = [("filters", part)]
    else:
        parts = [("predicate", part[1]), ("vertex", part[0]), ("vertex", part[2])]
    return tuple(Author(*one, authors[one]) for one in parts if one in authors)


def _written_by(output: Any) -> Iterator[tuple[str, str]]:
    """What of a query stands in a step's output."""
    if isinstance(output, flow.Link) and output.vertex:
        yield "vertex", f"<{output.vertex.iri}>"
    elif isinstance(output, records.LinkedRelation):
        yield from (("predicate", f"<{predicate.iri}>") for predicate in output.predicates)
    elif isinstance(output, records.Generated):
        yield from (("filters", query.filters.strip()) for query in output.queries)
    elif isinstance(output, records.Linked):
        for part in (*output.links, *output.relations):
            yield from _written_by(part)


# --- where a vertex is --------------------------------------------------------------------------------------


class Whereabouts(str):
    """Why what is looked for is, or is not, among the candidates of a mention: a line for each vertex."""

    __slots__ = ()


def whereabouts(kg: Graph, name: str, retrieved: flow.Retrieved | flow.Link, limit: int) -> Whereabouts:
    """Where the vertices of a name, or the vertex of an IRI, stand among the candidates of a mention.

    ``limit`` is the v_limit that the candidates were searched with. Raises a GraphError.
    """
    name = name.strip()
    vertices = _meant(kg, name, retrieved)
    if not vertices:
        near = ", ".join(hit.label for hit in kg.search(name, NEAR).hits) if name else ""
        told = f"the graph has no vertex called {name!r}"
        return Whereabouts(f"{told}; nearest are {near}" if near else told)
    names = kg.names(vertices)
    absent = set(vertices) - {candidate.iri for candidate in retrieved.candidates}
    hits = kg.search(retrieved.entity, FARTHER * limit).hits if absent else ()
    ranks = {hit.iri: rank for rank, hit in enumerate(hits, 1)}
    places = (_place(iri, name, retrieved, ranks.get(iri, 0), limit) for iri in vertices)
    told = "\n".join(f"{names[iri]} <{iri}> {place}" for iri, place in zip(vertices, places, strict=True))
    return Whereabouts(told)


def _meant(kg: Graph, name: str, retrieved: flow.Retrieved | flow.Link) -> list[URIRef]:
    if (iri := _as_iri(name)) is not None:
        return [iri] if kg.ask(f"ASK {{ {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?q {n3(iri)} }} }}") else []
    same = [c.iri for c in retrieved.candidates if normal(c.label) == normal(name)]
    return list(dict.fromkeys([*same, *kg.exact([name]).get(name, ())]))[:NEAR]


def _as_iri(name: str) -> URIRef | None:
    bare = name.removeprefix("<").removesuffix(">")
    is_iri = writable(bare) and (bare != name or "://" in bare or bare.startswith("urn:"))
    return URIRef(bare) if is_iri else None


def _place(iri: URIRef, name: str, retrieved: flow.Retrieved | flow.Link, rank: int, limit: int) -> str:
    """``rank`` is that among more candidates, 0 if it is not found there."""
    for place, candidate in enumerate(retrieved.candidates, 1):
        if candidate.iri == iri:
            same = normal(candidate.label) == normal(name) or _as_iri(name) is not None
            return f"is candidate {place}" + ("" if same else f", found by its label {candidate.label!r}")
    if not rank:
        return f"is in the graph, but no label of it is found by the words of {retrieved.entity!r}"
    if rank > limit:
        return f"is found at rank {rank:,}, beyond the v_limit of {limit:,}"
    return f"is found at rank {rank:,}, but only the best {len(retrieved.candidates):,} became candidates"


# --- what a predicate holds ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examples:
    """Some triples of a predicate."""

    triples: tuple[flow.Triple, ...]
    anywhere: bool
    """Whether none was found at the linked vertices, so that these are from elsewhere in the graph."""
    names: Named = ()


def examples(kg: Graph, ends: Ends, ranked: records.RankedPredicate, most: int = 5) -> Examples:
    """At most ``most`` triples of a predicate at the linked ends of its fact; if none, from anywhere.

    Raises a GraphError.
    """
    subject, object_ = ends if ranked.direction == "out" else ends[::-1]
    predicate = n3(ranked.iri)
    near = [f"{n3(subject)} {predicate} ?o"] if subject else []
    near += [f"?s {predicate} {n3(object_)}"] if object_ else []
    triples: tuple[flow.Triple, ...] = ()
    for pattern in (*near, anywhere := f"?s {predicate} ?o"):
        triples = kg.construct(f"CONSTRUCT WHERE {{ {pattern} }} LIMIT {most}")
        if triples:
            break
    return Examples(triples, pattern == anywhere, _named(kg, triples))


def _named(kg: Graph, rows: Iterable[Iterable[Any]]) -> Named:
    """The names of the IRIs in rows of terms."""
    iris = {term for row in rows for term in row if isinstance(term, URIRef)}
    return tuple(sorted(kg.names(sorted(iris)).items()))


# --- a query that a person typed ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Executed:
    """What a query yields."""

    rows: Rows
    """No variable and no row for an ASK."""
    truth: bool | None = None
    """Of an ASK."""
    names: Named = ()
    """Of the IRIs in the rows that are shown."""

    @property
    def empty(self) -> bool:
        return not (self.rows.rows or self.truth)


def executed(kg: Graph, sparql: str) -> Executed:
    """The rows of a SELECT with the names of the IRIs in the first of them, or the truth of an ASK.

    Raises a GraphError: refused, rejected, too slow, unreachable.
    """
    if checked(sparql, allow_service=True).form == "ask":  # the graph has its own gate
        return Executed(Rows((), ()), kg.ask(sparql))
    rows = kg.select(sparql)
    return Executed(rows, None, _named(kg, rows.rows[:NAMED]))


def edited(query: flow.CandidateQuery, sparql: str) -> flow.CandidateQuery:
    """A candidate query with the SPARQL that a person typed.

    Raises QueryRefusedError for an update; QueryError if it is not conjunctive, or asks for something else.
    """
    patterns, filters = patterns_of(sparql)
    asked, wanted = _asked(sparql), _asked(query.sparql)
    if asked != wanted:
        hint = "keep what the query asks for, as the answer is made of it"
        raise QueryError(f"the query is {asked} where {wanted} is expected", hint=hint)
    known = {pattern[1]: name for pattern, name in zip(query.patterns, query.predicates, strict=False)}
    predicates = tuple(known.get(predicate) or _name(predicate, {}) for _, predicate, _ in patterns)
    return replace(query, sparql=sparql, patterns=patterns, predicates=predicates, filters=filters)


def _asked(sparql: str) -> str:
    parts = parts_of(sparql)
    return f"a SELECT of {parts.asked[0]}" if parts.asked else "an ASK"
