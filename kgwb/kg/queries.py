"""Questions that several agents ask a graph, each a single SPARQL 1.1 query, on any Graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rdflib import BNode, Literal, URIRef
from rdflib.namespace import RDF

from kgwb.errors import QueryError
from kgwb.flow import CandidateQuery, Direction, Iri, Term, Triple
from kgwb.kg.algebra import Pattern, conjunction, ground, unknowns_of
from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_SPACES, Graph
from kgwb.kg.sparql import LANGUAGE, n3, quoted, writable
from kgwb.kg.text import language_rank, local_part, normal

SAMPLE, LANGUAGES = 10_000, 8
"""Labels of each predicate looked at to learn their languages, and languages learnt at most."""
INCOMING = 1_000
"""Triples that lead to a class or predicate, read at most to see whether one of them is a fact about it."""
HELD = 40
"""Values that are read to find those that hold a name."""
SUPPORT_ROWS = 500
"""Bindings read at once to find the support of an answer; values they miss are asked for by name."""
SUPPORT_VALUES = 50
"""Values asked for by name at once."""
TRIPLES_PER_VALUE = 60
"""Supporting triples kept for one value; a value of a many-to-many chain can have thousands."""


class Description(NamedTuple):
    """What a graph says a vertex is."""

    types: tuple[str, ...] = ()
    """Names of its types, by IRI of the type."""
    description: str = ""
    """In the preferred language; empty if there is none."""


class Labelling(NamedTuple):
    """How a graph labels its vertices."""

    predicates: tuple[URIRef, ...]
    """Those of the vocabulary's label predicates that the graph has."""
    languages: tuple[str, ...]
    """The languages of its labels, "" for none: all, or the preferred and the commonest of a sample."""


def describe(kg: Graph, iris: Sequence[URIRef]) -> dict[URIRef, Description]:
    """Types and description of each vertex, in one query (and one for the names of the types)."""
    if not iris:
        return {}
    predicates = _list((*kg.vocabulary.types, *kg.vocabulary.descriptions))
    rows = kg.select(
        f"SELECT ?v ?p ?o WHERE {{ VALUES ?v {{ {_list(iris)} }} VALUES ?p {{ {predicates} }} ?v ?p ?o }}"
    ).rows
    types: dict[Term, set[URIRef]] = {}
    texts: dict[Term, list[tuple[int, int, str]]] = {}
    for vertex, predicate, value in rows:
        if vertex is None or predicate is None:
            continue
        if isinstance(value, URIRef) and predicate in kg.vocabulary.types:
            types.setdefault(vertex, set()).add(value)
        elif isinstance(value, Literal) and predicate in kg.vocabulary.descriptions:
            language = language_rank(value.language or "", kg.vocabulary.languages)
            order = kg.vocabulary.descriptions.index(URIRef(predicate))
            texts.setdefault(vertex, []).append((language, order, str(value)))
    names = kg.names(sorted(set().union(*types.values())))
    return {
        iri: Description(
            tuple(dict.fromkeys(names[kind] for kind in sorted(types.get(iri, ())))),
            min(texts[iri])[-1] if iri in texts else "",
        )
        for iri in iris
    }


def degrees(kg: Graph, iris: Sequence[URIRef], cap: int) -> dict[URIRef, int]:
    """How many triples touch each vertex, counted up to ``cap``."""
    if not iris:
        return {}
    # One bounded subquery a vertex: a vertex of millions of triples must not cost more than the cap.
    parts = " UNION ".join(
        f"{{ SELECT ({n3(iri)} AS ?v) (COUNT(*) AS ?n) WHERE {{ SELECT ?p WHERE {{"
        f" {{ {n3(iri)} ?p ?o }} UNION {{ ?s ?p {n3(iri)} }} }} LIMIT {cap} }} }}"
        for iri in dict.fromkeys(iris)
    )
    rows = kg.select(f"SELECT ?v ?n WHERE {{ {parts} }}").rows
    counts = {vertex: counted(count) for vertex, count in rows}
    return {iri: counts.get(iri, 0) for iri in iris}


def predicates(kg: Graph, *vertices: URIRef | Literal) -> tuple[tuple[URIRef, Direction], ...]:
    """The predicates of vertices but for hidden ones, by IRI, each "out" (vertex is subject) before "in"."""
    these = f"VALUES ?v {{ {_list(vertices)} }}"
    rows = kg.select(
        f'SELECT DISTINCT ?p ?d WHERE {{ {{ {these} ?v ?p ?o BIND("out" AS ?d) }}'
        f' UNION {{ {these} ?s ?p ?v BIND("in" AS ?d) }} }}'
    ).rows
    hidden = kg.vocabulary.hidden
    shown = {(p, str(d)) for p, d in rows if isinstance(p, URIRef) and p not in hidden}
    directions: tuple[Direction, ...] = ("out", "in")
    return tuple((p, d) for p in sorted({p for p, _ in shown}) for d in directions if (p, d) in shown)


def labelling(kg: Graph) -> Labelling:
    """How the graph labels its vertices, in two bounded queries."""
    labels, languages = kg.vocabulary.labels, kg.vocabulary.languages
    there = kg.select(
        f"SELECT ?p WHERE {{ VALUES ?p {{ {_list(labels)} }} FILTER EXISTS {{ ?v ?p ?label }} }}"
    ).rows
    predicates = tuple(predicate for predicate in labels if (predicate,) in there)
    if not predicates:
        return Labelling((), ())
    parts = " UNION ".join(
        f"{{ SELECT ?label WHERE {{ ?v {n3(predicate)} ?label }} LIMIT {SAMPLE} }}"
        for predicate in predicates
    )
    rows = kg.select(
        f"SELECT ?tag (COUNT(*) AS ?n) WHERE {{ {parts} BIND(LANG(?label) AS ?tag) }}"
        f" GROUP BY ?tag ORDER BY DESC(?n) ?tag LIMIT {LANGUAGES}"
    ).rows
    tags = [str(tag) for tag, _ in rows if tag is not None]
    tags = [tag for tag in tags if not tag or LANGUAGE.fullmatch(tag)]
    whole = len(rows) < LANGUAGES and sum(counted(count) for _, count in rows) < SAMPLE
    return Labelling(predicates, tuple(dict.fromkeys(tags if whole else (*languages, *tags))))


def schema(kg: Graph, iris: Sequence[URIRef]) -> frozenset[URIRef]:
    """Those that are only predicates or classes: no fact is about them as it is about other vertices."""
    if not iris:
        return frozenset()
    silent = ", ".join(map(n3, sorted(kg.vocabulary.hidden)))
    spaces = "".join(f" && !STRSTARTS(STR(?p), {quoted(space)})" for space in SCHEMA_SPACES)
    fact = f"FILTER(?p NOT IN ({silent}){spaces})"
    rows = kg.select(
        f"SELECT ?v WHERE {{ VALUES ?v {{ {_list(iris)} }} FILTER(EXISTS {{ ?s ?v ?o }}"
        f" || EXISTS {{ VALUES ?t {{ {_list(kg.vocabulary.types)} }} ?s ?t ?v }}"
        f" || EXISTS {{ VALUES ?c {{ {_list(SCHEMA_CLASSES)} }} ?v {n3(RDF.type)} ?c }})"
        f" FILTER NOT EXISTS {{ ?v ?p ?o {fact} }} }}"
    ).rows
    suspects = sorted({vertex for (vertex,) in rows if isinstance(vertex, URIRef)})
    # One bounded subquery each, as in ``degrees``: a class can have millions of instances.
    parts = " UNION ".join(
        f"{{ SELECT ({n3(iri)} AS ?v) ?p WHERE {{ ?s ?p {n3(iri)} }} LIMIT {INCOMING} }}" for iri in suspects
    )
    described = kg.select(f"SELECT DISTINCT ?v WHERE {{ {parts} {fact} }}").rows if suspects else ()
    return frozenset(suspects) - {vertex for (vertex,) in described}


def counted(number: Term | None) -> int:
    """The number that a graph counted. Raises QueryError if it is none."""
    try:
        return int(str(number))
    except ValueError as error:
        raise QueryError(f"the graph counted {number!r}", hint="ask again, or try another graph") from error


def triples_at(
    kg: Graph, subjects: Sequence[Term], predicates: Sequence[Term], objects: Sequence[Term], most: int
) -> tuple[list[Triple], bool]:
    """Triples with one of each of these, or with any where there are none; and whether these are all.

    In order; without blank nodes and, where no predicate is given, without noise, labels and descriptions.
    """
    given = zip("spo", (subjects, predicates, objects), strict=True)
    values = "".join(f"VALUES ?{n} {{ {' '.join(map(n3, terms))} }} " for n, terms in given if terms)
    rows = kg.select(f"SELECT DISTINCT ?s ?p ?o WHERE {{ {values}?s ?p ?o }} LIMIT {most}").rows
    hidden = set() if predicates else {*kg.vocabulary.hidden} - {*kg.vocabulary.types}
    triples = [
        (s, p, o) for s, p, o in rows if s and isinstance(p, URIRef) and p not in hidden and o is not None
    ]
    return sorted((t for t in triples if not any(isinstance(end, BNode) for end in t)), key=str), len(
        rows
    ) < most


def _list(iris: Sequence[URIRef | Literal]) -> str:
    return " ".join(map(n3, dict.fromkeys(iris)))


@dataclass(frozen=True, slots=True)
class Held:
    """A value of a predicate that holds the words of a name."""

    predicate: Iri
    value: Term
    triples: int


def holding(kg: Graph, predicates: Sequence[URIRef], name: str) -> tuple[Held, ...]:
    """The texts, and IRIs by their local names, that hold a name as whole words; the shortest first."""
    text = normal(name)
    if not predicates or len(text) < 2:
        return ()
    plain = "LCASE(REPLACE(STR(?o), '[_-]', ' '))"
    rows = kg.select(
        f"SELECT ?p ?o (COUNT(*) AS ?n) WHERE {{ VALUES ?p {{ {_list(predicates)} }} ?s ?p ?o"
        f" FILTER(!isBlank(?o) && CONTAINS({plain}, {quoted(name.lower())})) }}"
        f" GROUP BY ?p ?o ORDER BY STRLEN(STR(?o)) ?p LIMIT {HELD}"
    ).rows
    whole = re.compile(rf"(?<![^\W_]){re.escape(text)}(?![^\W_])")
    read = (
        (p, o, n, local_part(o) if isinstance(o, URIRef) else str(o)) for p, o, n in rows if o is not None
    )
    return tuple(
        Held(URIRef(p), o, counted(n)) for p, o, n, words in read if p and whole.search(normal(words))
    )


# --- the triples that an answer stands on


def where(query: CandidateQuery) -> str:
    """The query's triple patterns and filters as the inside of a WHERE clause."""
    return f"{conjunction(query.patterns)} {query.filters}".strip()


def support(
    kg: Graph, query: CandidateQuery, target: str, values: Sequence[Term]
) -> dict[Term, tuple[Triple, ...]]:
    """For each value of ``target`` ("?x") the triples of the patterns in at least one binding of it.

    Costs no query where the target is the only unknown. Raises a GraphError.
    """
    unknowns = unknowns_of(query.patterns)
    if unknowns == (target,):
        return {value: ground(query.patterns, {target: value}) for value in values}
    triples: dict[Term | None, dict[Triple, None]] = {value: {} for value in values}

    def collect(only: str) -> None:
        columns = " ".join(unknowns)
        rows = kg.select(f"SELECT DISTINCT {columns} WHERE {{ {only}{where(query)} }} LIMIT {SUPPORT_ROWS}")
        for row in rows.rows:
            binding = dict(zip(unknowns, row, strict=True))
            supporting = triples.get(binding[target])
            if supporting is not None and len(supporting) < TRIPLES_PER_VALUE:
                supporting.update(dict.fromkeys(ground(query.patterns, binding)))

    collect("")
    # A blank node, and an IRI that no query can hold, cannot be asked for by name
    missing = [value for value in values if not triples[value] and not isinstance(value, BNode)]
    missing = [value for value in missing if isinstance(value, Literal) or writable(value)]
    while missing:
        collect(f"VALUES {target} {{ {' '.join(map(n3, missing[:SUPPORT_VALUES]))} }} ")
        left = [value for value in missing if not triples[value]]
        missing = left if len(left) < len(missing) else missing[SUPPORT_VALUES:]
    return {value: tuple(triples[value]) for value in values}


def witness(kg: Graph, query: CandidateQuery) -> tuple[Triple, ...]:
    """The triples that make an ASK of the query's patterns true: one binding's. Empty if it is false."""
    unknowns = unknowns_of(query.patterns)
    if not unknowns:
        return ground(query.patterns, {})
    rows = kg.select(f"SELECT {' '.join(unknowns)} WHERE {{ {where(query)} }} LIMIT 1").rows
    return ground(query.patterns, dict(zip(unknowns, rows[0], strict=True))) if rows else ()


# --- why a query has no rows


@dataclass(frozen=True, slots=True)
class Blocking:
    """Why a query has no rows."""

    empty: bool
    """Whether it has none at all."""
    culprits: tuple[Pattern | str, ...] = ()
    """The patterns, or the filters, each of which alone, once removed, brings rows back."""
    unmatched: tuple[Pattern, ...] = ()
    """The patterns that nothing in the graph matches, each asked for alone."""


def blocking(kg: Graph, patterns: Sequence[Pattern], filters: str = "") -> Blocking:
    """Which triple pattern, or the filters, of a conjunctive query brings rows back once removed.

    Asks two questions a pattern at most, each for yes or no. Raises a GraphError.
    """

    def holds(patterns: Sequence[Pattern], only: str = "") -> bool:
        bound = set(re.findall(r"\?\w+", only)) <= set(unknowns_of(patterns))  # else the filters never hold
        return kg.ask(f"ASK {{ {conjunction(patterns)} {only if bound else ''} }}")

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
