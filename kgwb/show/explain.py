"""Questions a person asks about a result: why it is empty, where a vertex is, what a predicate holds.

They are asked of the graph itself, on demand; a run's record stays as it is. What the records of a system
add is registered in its own folder: ``missing`` and ``written_by``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from rdflib import URIRef

from kgwb import flow
from kgwb.errors import QueryError
from kgwb.kg.algebra import Pattern, parts_of, patterns_of
from kgwb.kg.base import Graph, Rows
from kgwb.kg.queries import Blocking, blocking
from kgwb.kg.sparql import checked, n3, writable
from kgwb.kg.text import local_name, normal
from kgwb.run.record import Step
from kgwb.show.html import MOST_ROWS, Html, Names, aside, div, join, table, tag
from kgwb.show.tell import records_in, view
from kgwb.show.terms import Around, term, triples
from kgwb.text import pluralize, shorten

Ends = tuple[URIRef | None, URIRef | None]
"""The vertices of a fact's subject and object, None where it is not linked."""
Named = tuple[tuple[flow.Iri, str], ...]
"""What IRIs are called."""

FARTHER = 10
"""A vertex that a search does not bring is looked for among so many times more."""
NEAR, EXAMPLES = 5, 5
"""Vertices named where a name is that of several, or of none, and triples shown of a predicate."""


def why_empty(kg: Graph, sparql: str, steps: Iterable[Step]) -> Blocking:
    """Why a query has no rows: one of the run's by its own patterns, another as far as it is conjunctive."""
    for record in (record for step in steps if step.done for record in records_in(step.output)):
        if isinstance(record, flow.CandidateQuery) and record.sparql == sparql:
            return blocking(kg, record.patterns, record.filters)
    return blocking(kg, *patterns_of(sparql))


def queries_in(output: Any) -> tuple[str, ...]:
    """The SPARQL that a record holds."""
    queries: Any = getattr(output, "queries", ())
    if not isinstance(queries, tuple):  # a number of them
        return ()
    return tuple(str(getattr(each, "sparql", each)) for each in queries)


def is_empty(output: Any) -> bool:
    """Whether a record is an answer that its queries did not find."""
    return isinstance(output, flow.Answer) and not output.values and not output.ungrounded


def nearest(output: Any, steps: Sequence[Step]) -> list[str]:
    """Where a run lost its way to an empty answer: what is ``missing`` by its records."""
    if not is_empty(output):
        return []
    return list(filter(None, dict.fromkeys(missing(step.output) for step in steps if step.done)))


def why(output: Any, steps: Sequence[Step]) -> Html:
    """The same to be shown; nothing where no answer is missing."""
    lines = [div("", line) for line in nearest(output, steps)]
    return div("stack tight", tag("b", "Why is it empty?"), *lines) if lines else Html()


@singledispatch
def missing(record: Any) -> str:
    """What the graph does not have for the output of a step, and what is nearest; empty if it has it."""
    return ""


@missing.register
def _(link: flow.Link) -> str:
    if link.vertex is not None:
        return ""
    near = ", ".join(
        f"{candidate.label} ({candidate.score:.2f})" for candidate in link.candidates[:NEAR]
    )
    closest = f"nearest are {near}" if near else "the graph has no label like it"
    return f"no vertex for “{link.entity}”: {closest}"


def part_text(part: Pattern | str, names: Names) -> str:
    """ "?film — director → Denis Villeneuve": every IRI by its name; filters as they are."""
    if isinstance(part, str):
        return part
    subject, predicate, object_ = (_name(term, names) for term in part)
    return f"{subject} — {predicate} → {object_}"


def _name(term: str, names: Names) -> str:
    return (names.get(term[1:-1]) or local_name(term[1:-1])) if term.startswith("<") else term


def authors(steps: Iterable[Step], part: Pattern | str, names: Names) -> list[str]:
    """Who put a part into a query: "relation_linking[...] wrote the predicate director"."""
    # A supervisor comes before the steps it supervises, so that the last one of a part is its author.
    outputs = (
        (step.key, record) for step in steps if step.done for record in records_in(step.output)
    )
    wrote = {written: key for key, record in outputs for written in written_by(record)}
    filters = [("filters", part)] if isinstance(part, str) else []
    parts = filters or [("predicate", part[1]), ("vertex", part[0]), ("vertex", part[2])]
    return [
        f"{wrote[what, text]} wrote the {what}{f' {_name(text, names)}' if not filters else ''}"
        for what, text in parts
        if (what, text) in wrote
    ]


@singledispatch
def written_by(record: Any) -> Iterator[tuple[str, str]]:
    """The parts of queries that a record chose: "vertex", "predicate" or "filters", and its text."""
    return iter(())


@written_by.register
def _(link: flow.Link) -> Iterator[tuple[str, str]]:
    if link.vertex:
        yield "vertex", f"<{link.vertex.iri}>"


@view.register
def _(value: Blocking, around: Around) -> Html:
    """Why a query has no rows, and by its part, which steps wrote it."""
    if not value.empty:
        return div("", "This query has rows, or is true.")
    shown = []
    for part in dict.fromkeys((*value.culprits, *value.unmatched)):
        reasons = ["without it the query has rows"] if part in value.culprits else []
        reasons += ["nothing in the graph matches it"] if part in value.unmatched else []
        wrote = (
            "; ".join(authors(around.steps, part, around.names)) or "no step of this run wrote it"
        )
        head = tag("b", shorten(part_text(part, around.names)))
        shown.append(div("", head, f": {', and '.join(reasons)}. ", aside(f"{wrote}.")))
    nothing = "Each pattern has matches, but no one of them brings rows back once removed."
    return join(*shown) or div("", nothing)


def whereabouts(kg: Graph, name: str, asked: flow.Retrieved | flow.Link, limit: int) -> list[str]:
    """Where the vertices of a name, or the vertex of an IRI, stand among the candidates of a mention.

    A line for each vertex; ``limit`` is the v_limit that the candidates were searched with. Raises a
    GraphError.
    """
    name = name.strip()
    bare = name.removeprefix("<").removesuffix(">")
    is_iri = writable(bare) and (bare != name or "://" in bare or bare.startswith("urn:"))
    if is_iri:
        there = kg.ask(f"ASK {{ {{ <{bare}> ?p ?o }} UNION {{ ?s ?q <{bare}> }} }}")
        vertices = [URIRef(bare)] if there else []
    else:
        same = [
            candidate.iri
            for candidate in asked.candidates
            if normal(candidate.label) == normal(name)
        ]
        vertices = list(dict.fromkeys([*same, *kg.exact([name]).get(name, ())]))[:NEAR]
    if not vertices:
        near = ", ".join(hit.label for hit in kg.search(name, NEAR).hits) if name else ""
        words = f"the graph has no vertex called {name!r}"
        return [f"{words}; nearest are {near}" if near else words]
    names = kg.names(vertices)
    places = {
        candidate.iri: (place, candidate) for place, candidate in enumerate(asked.candidates, 1)
    }
    hits = kg.search(asked.entity, FARTHER * limit).hits if set(vertices) - places.keys() else ()
    ranks = {hit.iri: rank for rank, hit in enumerate(hits, 1)}
    lines = []
    for iri in vertices:
        if iri in places:
            place, candidate = places[iri]
            by_name = is_iri or normal(candidate.label) == normal(name)
            where = f"is candidate {place}" + (
                "" if by_name else f", found by its label {candidate.label!r}"
            )
        elif iri not in ranks:
            where = f"is in the graph, but no label of it is found by the words of {asked.entity!r}"
        elif ranks[iri] > limit:
            where = f"is found at rank {ranks[iri]:,}, beyond the v_limit of {limit:,}"
        else:
            best = f"only the best {len(asked.candidates):,} became candidates"
            where = f"is found at rank {ranks[iri]:,}, but {best}"
        lines.append(f"{names[iri]} <{iri}> {where}")
    return lines


@dataclass(frozen=True, slots=True)
class Examples:
    """Some triples of a predicate."""

    triples: tuple[flow.Triple, ...]
    anywhere: bool
    """Whether none was found at the linked vertices, so that these are from elsewhere in the graph."""
    names: Named = ()


def examples(
    kg: Graph,
    ends: tuple[str, str],
    predicate: URIRef,
    direction: flow.Direction,
    steps: Iterable[Step],
) -> Examples:
    """Some triples of a predicate at the vertices that the ends of its fact were linked to, or from anywhere.

    Raises a GraphError.
    """
    links = [step.output for step in steps if step.done and isinstance(step.output, flow.Link)]
    vertices = {link.entity: n3(link.vertex.iri) for link in reversed(links) if link.vertex}
    subject, object_ = map(vertices.get, ends if direction == "out" else ends[::-1])
    near = [f"{subject} {n3(predicate)} ?o"] if subject else []
    near += [f"?s {n3(predicate)} {object_}"] if object_ else []
    for pattern in (*near, f"?s {n3(predicate)} ?o"):
        triples = kg.construct(f"CONSTRUCT WHERE {{ {pattern} }} LIMIT {EXAMPLES}")
        if triples:
            break
    return Examples(triples, pattern not in near, _named(kg, triples))


def _named(kg: Graph, rows: Iterable[Iterable[Any]]) -> Named:
    """The names of the IRIs in rows of terms."""
    iris = {term for row in rows for term in row if isinstance(term, URIRef)}
    return tuple(sorted(kg.names(sorted(iris)).items()))


@view.register
def _(value: Examples, around: Around) -> Html:
    if not value.triples:
        return div("", "no triple in the graph has this predicate")
    where = "from anywhere in the graph: the linked vertices have none" if value.anywhere else ""
    return join(triples(value.triples, around.named(value.names)), aside(where) if where else "")


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
    return Executed(rows, None, _named(kg, rows.rows[:MOST_ROWS]))


@view.register
def _(value: Executed, around: Around) -> Html:
    if value.truth is not None:
        return div("", tag("b", str(value.truth).lower()), aside(" (ASK)"))
    around, result = around.named(value.names), value.rows
    rows = [
        ["" if cell is None else term(cell, around) for cell in row]
        for row in result.rows[:MOST_ROWS]
    ]
    cut = "; the result was cut there by the row limit" if result.cut else ""
    heads = [f"?{variable}" for variable in result.variables]
    number = tag("b", pluralize(len(result.rows), "row"))
    return join(div("", number, cut), table(heads, rows, of=len(result.rows)))


def edited(query: flow.CandidateQuery, sparql: str) -> flow.CandidateQuery:
    """A candidate query with the SPARQL that a person typed.

    Raises QueryRefusedError for an update; QueryError if it is not conjunctive, or asks for something else.
    """
    patterns, filters = patterns_of(sparql)
    asked, wanted = _asked(sparql), _asked(query.sparql)
    if asked != wanted:
        hint = "keep what the query asks for, as the answer is made of it"
        raise QueryError(f"the query is {asked} where {wanted} is expected", hint=hint)
    known = {
        pattern[1]: name for pattern, name in zip(query.patterns, query.predicates, strict=False)
    }
    predicates = tuple(known.get(predicate) or _name(predicate, {}) for _, predicate, _ in patterns)
    return replace(query, sparql=sparql, patterns=patterns, predicates=predicates, filters=filters)


def _asked(sparql: str) -> str:
    parts = parts_of(sparql)
    return f"a SELECT of {parts.asked[0]}" if parts.asked else "an ASK"
