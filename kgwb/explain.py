"""Questions a person asks about a result: why it is empty, where a vertex is, what a predicate holds.

They are asked of the graph itself, on demand; a run's record stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyparsing import ParseBaseException
from rdflib import BNode, URIRef, Variable
from rdflib.paths import Path
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError

from kgwb.errors import QueryError
from kgwb.flow import (
    CandidateQuery,
    Direction,
    Generated,
    Iri,
    Link,
    Linked,
    LinkedRelation,
    Retrieved,
    Selection,
    Triple,
)
from kgwb.kg.base import Graph, Hit, Rows
from kgwb.kg.sparql import checked, n3, writable
from kgwb.kg.text import local_name, normal
from kgwb.provenance import conjunction, unknowns_of
from kgwb.record import Step

Pattern = tuple[str, str, str]
"""A triple pattern: terms in N-Triples form, variables as "?x"."""

FARTHER = 10
"""A vertex that a search does not bring is looked for among so many times more."""
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
        if not self.empty:
            return "the query has rows"
        told = [f"without {part_text(part)} the query has rows" for part in self.culprits]
        told += [f"nothing in the graph matches {part_text(pattern)}" for pattern in self.unmatched]
        if not told:
            told = ["each pattern has matches, but no one of them brings rows back once removed"]
        return "; ".join(told)


def blocking(kg: Graph, patterns: Sequence[Pattern], filters: str = "") -> Blocking:
    """Which triple pattern, or the filters, of a conjunctive query brings rows back once removed.

    Asks two questions a pattern at most, each for yes or no. Raises a GraphError.
    """

    def holds(some: Sequence[Pattern], only: str) -> bool:
        return kg.ask(f"ASK {{ {conjunction(some)} {_about(only, some)} }}")

    patterns = tuple(dict.fromkeys(patterns))
    if holds(patterns, filters):
        return Blocking(empty=False)
    unmatched = tuple(pattern for pattern in patterns if not holds([pattern], ""))
    culprits: list[Pattern | str] = []
    for pattern in patterns:
        rest = [other for other in patterns if other != pattern]
        if rest and set(unmatched) <= {pattern} and holds(rest, filters):
            culprits.append(pattern)
    if filters and not unmatched and holds(patterns, ""):
        culprits.append(filters.strip())
    return Blocking(True, tuple(culprits), unmatched)


def part_text(part: Pattern | str, names: Mapping[str, str] | None = None) -> str:
    """ "?film — director → Denis Villeneuve": every IRI by its name; filters as they are."""
    if isinstance(part, str):
        return part
    subject, predicate, object_ = (_name(term, names or {}) for term in part)
    return f"{subject} — {predicate} → {object_}"


def _name(term: str, names: Mapping[str, str]) -> str:
    return (names.get(term[1:-1]) or local_name(term[1:-1])) if term.startswith("<") else term


def _about(filters: str, patterns: Sequence[Pattern]) -> str:
    """The filters, unless they speak of a variable that no pattern binds: those would never hold."""
    spoken = set(re.findall(r"\?\w+", filters))
    return filters if spoken <= set(unknowns_of(patterns)) else ""


@dataclass(frozen=True, slots=True)
class Author:
    """The step that put a part into a query."""

    what: Literal["predicate", "vertex", "filters"]
    term: str
    """As it stands in the query."""
    step: str
    """The step's key."""

    def told(self, names: Mapping[str, str]) -> str:
        """ "relation_linking[...] wrote the predicate director", by the names of IRIs."""
        what = "the filters" if self.what == "filters" else f"the {self.what} {_name(self.term, names)}"
        return f"{self.step} wrote {what}"

    def __str__(self) -> str:
        return self.told({})


def author(steps: Iterable[Step], part: Pattern | str) -> tuple[Author, ...]:
    """The steps that chose the vertices and the predicate of a pattern, or that wrote the filters.

    Of each, the first whose output has it, those before their supervisors; known by the record's type.
    """
    done = [step for step in steps if step.done]
    parents = {step.key: step.parent for step in done}
    innermost = sorted(done, key=lambda step: -_depth(step.key, parents))
    if isinstance(part, str):
        wrote = [step.key for step in innermost if part in _filters(step.output)]
        return tuple(Author("filters", part, key) for key in wrote[:1])
    return tuple(_authors(innermost, part))


def _authors(steps: Sequence[Step], pattern: Pattern) -> Iterator[Author]:
    subject, predicate, object_ = pattern
    for term in (predicate, subject, object_):
        what: Literal["predicate", "vertex"] = "predicate" if term is predicate else "vertex"
        known = _predicates if term is predicate else _vertices
        step = next((step for step in steps if term in known(step.output)), None)
        if step is not None:
            yield Author(what, term, step.key)


def _depth(key: str, parents: Mapping[str, str]) -> int:
    depth = 0
    while key := parents.get(key, ""):
        depth += 1
    return depth


def _predicates(output: Any) -> set[str]:
    relations = output.relations if isinstance(output, Linked) else (output,)
    linked = [relation for relation in relations if isinstance(relation, LinkedRelation)]
    return {f"<{predicate.iri}>" for relation in linked for predicate in relation.predicates}


def _vertices(output: Any) -> set[str]:
    links = output.links if isinstance(output, Linked) else (output,)
    return {f"<{link.vertex.iri}>" for link in links if isinstance(link, Link) and link.vertex}


def _filters(output: Any) -> set[str]:
    queries = output.queries if isinstance(output, Generated | Selection) else ()
    return {query.filters.strip() for query in queries}


# --- where a vertex is --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where one vertex stands among the candidates of a mention."""

    iri: Iri
    label: str
    told: str


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Why what a person looks for is, or is not, among the candidates of a mention."""

    name: str
    places: tuple[Place, ...] = ()
    """The vertices of that name, at most NEAR; empty if the graph has none."""
    near: tuple[Hit, ...] = ()
    """If it has none: the vertices that a search for the name finds."""

    def __str__(self) -> str:
        if self.places:
            return "\n".join(f"{place.label} <{place.iri}> {place.told}" for place in self.places)
        told = f"the graph has no vertex called {self.name!r}"
        return f"{told}; nearest are {', '.join(hit.label for hit in self.near)}" if self.near else told


def whereabouts(kg: Graph, name: str, retrieved: Retrieved | Link, limit: int) -> Whereabouts:
    """Where the vertices of a name, or the vertex of an IRI, stand among the candidates of a mention.

    ``limit`` is the v_limit that the candidates were searched with. Raises a GraphError.
    """
    name = name.strip()
    vertices = _meant(kg, name, retrieved)
    if not vertices:
        return Whereabouts(name, near=kg.search(name, NEAR).hits if name else ())
    names = kg.names(vertices)
    absent = set(vertices) - {candidate.iri for candidate in retrieved.candidates}
    hits = kg.search(retrieved.entity, FARTHER * limit).hits if absent else ()
    ranks = {hit.iri: rank for rank, hit in enumerate(hits, 1)}
    return Whereabouts(
        name, tuple(Place(iri, names[iri], _told(iri, name, retrieved, ranks, limit)) for iri in vertices)
    )


def _meant(kg: Graph, name: str, retrieved: Retrieved | Link) -> list[URIRef]:
    if (iri := _as_iri(name)) is not None:
        return [iri] if kg.ask(f"ASK {{ {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?q {n3(iri)} }} }}") else []
    same = [c.iri for c in retrieved.candidates if normal(c.label) == normal(name)]
    return list(dict.fromkeys([*same, *kg.exact([name]).get(name, ())]))[:NEAR]


def _as_iri(name: str) -> URIRef | None:
    bare = name.removeprefix("<").removesuffix(">")
    is_iri = writable(bare) and (bare != name or "://" in bare or bare.startswith("urn:"))
    return URIRef(bare) if is_iri else None


def _told(
    iri: URIRef, name: str, retrieved: Retrieved | Link, ranks: Mapping[URIRef, int], limit: int
) -> str:
    for rank, candidate in enumerate(retrieved.candidates, 1):
        if candidate.iri == iri:
            same = normal(candidate.label) == normal(name) or _as_iri(name) is not None
            return f"is candidate {rank}" + ("" if same else f", found by its label {candidate.label!r}")
    rank = ranks.get(iri, 0)
    if not rank:
        return f"is in the graph, but no label of it is found by the words of {retrieved.entity!r}"
    if rank > limit:
        return f"is found at rank {rank:,}, beyond the v_limit of {limit:,}"
    return f"is found at rank {rank:,}, but only the best {len(retrieved.candidates):,} became candidates"


# --- what a predicate holds ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examples:
    """Some triples of a predicate."""

    triples: tuple[Triple, ...]
    anywhere: bool
    """Whether none was found at the linked vertices, so that these are from elsewhere in the graph."""
    names: tuple[tuple[Iri, str], ...] = ()


def examples(
    kg: Graph,
    ends: tuple[URIRef | None, URIRef | None],
    predicate: URIRef,
    direction: Direction,
    most: int = 5,
) -> Examples:
    """At most ``most`` triples of a predicate at the linked ends of a fact; if none, from anywhere.

    ``ends`` are the vertices of the fact's subject and object, None if not linked; ``direction`` is that of
    RankedPredicate. Raises a GraphError.
    """
    subject, object_ = ends if direction == "out" else ends[::-1]
    wanted: list[tuple[URIRef | None, URIRef | None]] = [(subject, None)] if subject else []
    wanted += [(None, object_)] if object_ else []
    for start, end in (*wanted, (None, None)):
        if triples := _triples(kg, start, predicate, end, most):
            break
    iris = {term for triple in triples for term in triple if isinstance(term, URIRef)}
    return Examples(triples, start is end is None, tuple(sorted(kg.names(sorted(iris)).items())))


def _triples(
    kg: Graph, subject: URIRef | None, predicate: URIRef, object_: URIRef | None, most: int
) -> tuple[Triple, ...]:
    s, o = n3(subject) if subject else "?s", n3(object_) if object_ else "?o"
    rows = kg.select(f"SELECT * WHERE {{ {s} {n3(predicate)} {o} }} LIMIT {most}")
    bound = [dict(zip(rows.variables, row, strict=True)) for row in rows.rows]
    return tuple((subject or row["s"], predicate, object_ or row["o"]) for row in bound)  # type: ignore[misc]


# --- a query that a person typed ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Executed:
    """What a query yields."""

    rows: Rows
    """No variable and no row for an ASK."""
    truth: bool | None = None
    """Of an ASK."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Of the IRIs in the rows that are shown."""

    @property
    def empty(self) -> bool:
        return not (self.rows.rows or self.truth)


def executed(kg: Graph, sparql: str, *, named: int = 60) -> Executed:
    """The rows of a SELECT with the names of the IRIs in the first ``named``, or the truth of an ASK.

    Raises a GraphError: refused, rejected, too slow, unreachable.
    """
    if checked(sparql, allow_service=True).form == "ask":  # the graph has its own gate
        return Executed(Rows((), ()), kg.ask(sparql))
    rows = kg.select(sparql)
    iris = {term for row in rows.rows[:named] for term in row if isinstance(term, URIRef)}
    return Executed(rows, None, tuple(sorted(kg.names(sorted(iris)).items())))


def edited(query: CandidateQuery, sparql: str) -> CandidateQuery:
    """A candidate query with the SPARQL that a person typed.

    Raises QueryRefusedError for an update; QueryError if it is not conjunctive, or asks for something else.
    """
    patterns, filters = patterns_of(sparql)
    asked, wanted = _asked(_algebra(sparql)), _asked(_algebra(query.sparql))
    if asked != wanted:
        hint = "keep what the query asks for, as the answer is made of it"
        raise QueryError(f"the query is {asked} where {wanted} is expected", hint=hint)
    known = {pattern[1]: name for pattern, name in zip(query.patterns, query.predicates, strict=False)}
    predicates = tuple(known.get(predicate) or _name(predicate, {}) for _, predicate, _ in patterns)
    return replace(query, sparql=sparql, patterns=patterns, predicates=predicates, filters=filters)


def patterns_of(sparql: str) -> tuple[tuple[Pattern, ...], str]:
    """The triple patterns and the filters of a conjunctive SELECT or ASK, in CandidateQuery's form.

    Raises QueryRefusedError for an update, and QueryError if it does not parse or holds anything else.
    """
    algebra = _algebra(sparql)
    node, filters = algebra.p, []
    while node.name in _MODIFIERS:
        if node.name == "Filter":
            filters += _conjuncts(node.expr)
        node = node.p
    triples = list(_joined(node))
    if not triples:
        raise QueryError("the query has no triple pattern", hint="write at least one in WHERE { }")
    written = "".join(f"FILTER({_written(one)}) " for one in filters)
    return tuple(dict.fromkeys((_end(s), _end(p), _end(o)) for s, p, o in triples)), written


_MODIFIERS = frozenset(("Project", "Distinct", "Reduced", "OrderBy", "Slice", "Filter"))
_CALLED = {
    "LeftJoin": "OPTIONAL",
    "Union": "UNION",
    "Minus": "MINUS",
    "Graph": "GRAPH",
    "Extend": "BIND, AS or an aggregate",
    "AggregateJoin": "an aggregate",
    "ToMultiSet": "VALUES or a query in the query",
    "Filter": "a filter in a group of its own",
}
_JOINTS = {"ConditionalOrExpression": " || ", "ConditionalAndExpression": " && "}
_SIGNS = {"UnaryNot": "!", "UnaryMinus": "-", "UnaryPlus": "+"}


def _algebra(sparql: str) -> Any:
    found = checked(sparql)
    if found.form not in ("select", "ask"):
        raise QueryError("the query is no SELECT or ASK", hint="rows or a truth value make an answer")
    if found.undeclared:
        hint = "begin it with PREFIX lines, or write the IRIs out"
        raise QueryError(f"the query does not declare {', '.join(found.undeclared)}:", hint=hint)
    try:
        return translateQuery(parseQuery(found.text)).algebra
    except (ParseBaseException, SPARQLError, ValueError, TypeError, RecursionError) as error:
        raise QueryError(f"rdflib does not read the query: {error}", hint="write it more plainly") from error


def _asked(algebra: Any) -> str:
    return f"a SELECT of ?{algebra.PV[0]}" if algebra.name == "SelectQuery" else "an ASK"


def _joined(node: CompValue) -> Iterator[tuple[Any, Any, Any]]:
    if node.name == "BGP":
        yield from node.triples
    elif node.name == "Join":
        yield from _joined(node.p1)
        yield from _joined(node.p2)
    else:
        raise _not_conjunctive(_CALLED.get(node.name, node.name))


def _conjuncts(expression: Any) -> list[Any]:
    if getattr(expression, "name", "") != "ConditionalAndExpression":
        return [expression]
    return [one for part in (expression.expr, *expression.other) for one in _conjuncts(part)]


def _end(term: Any) -> str:
    if isinstance(term, Path):
        raise _not_conjunctive("a property path")
    if isinstance(term, Variable | BNode):  # a blank node of a query is a variable without a name
        return f"?{term}"
    return n3(term)


def _written(node: Any) -> str:
    """An expression of rdflib's algebra as SPARQL, every prefix resolved."""
    if not isinstance(node, CompValue):
        return _end(node)
    name = node.name
    if name in _JOINTS:
        return "(" + _JOINTS[name].join(map(_written, (node.expr, *node.other))) + ")"
    if name in _SIGNS:
        return f"{_SIGNS[name]}({_written(node.expr)})"
    if name == "RelationalExpression":
        others = isinstance(node.other, list)
        right = f"({', '.join(map(_written, node.other))})" if others else _written(node.other)
        return f"({_written(node.expr)} {node.op} {right})"
    if name in ("AdditiveExpression", "MultiplicativeExpression"):
        rest = (f" {op} {_written(other)}" for op, other in zip(node.op, node.other, strict=True))
        return f"({_written(node.expr)}{''.join(rest)})"
    return _call_written(node)


def _call_written(node: CompValue) -> str:
    if node.name == "Function":
        return f"{n3(node.iri)}({', '.join(map(_written, node.expr))})"
    if not node.name.startswith("Builtin_") or node.name.endswith("EXISTS"):
        raise _not_conjunctive("EXISTS" if node.name.endswith("EXISTS") else node.name)
    parts = [value for key, value in node.items() if key != "_vars"]
    given = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    return f"{node.name.removeprefix('Builtin_')}({', '.join(map(_written, given))})"


def _not_conjunctive(what: str) -> QueryError:
    hint = "use triple patterns and FILTERs only; other queries can be run, but not be taken apart"
    return QueryError(f"the query holds {what}", hint=hint)
