"""Questions that several agents ask a graph, each a single SPARQL 1.1 query, on any Graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rdflib import Literal, URIRef
from rdflib.namespace import RDF

from kgwb.errors import QueryError
from kgwb.flow import Direction, Term
from kgwb.kg.base import SCHEMA_CLASSES, SCHEMA_SPACES, Graph, Vocabulary
from kgwb.kg.sparql import LANGUAGE, n3, quoted
from kgwb.kg.text import language_rank

SAMPLE, LANGUAGES = 10_000, 8
"""Labels of each predicate looked at to learn their languages, and languages learnt at most."""
INCOMING = 1_000
"""Triples that lead to a class or predicate, read at most to tell whether one of them is a fact about it."""


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
    told = (*kg.vocabulary.types, *kg.vocabulary.descriptions)
    rows = kg.select(
        f"SELECT ?v ?p ?o WHERE {{ VALUES ?v {{ {_list(iris)} }} VALUES ?p {{ {_list(told)} }} ?v ?p ?o }}"
    ).rows
    types: dict[Term, set[URIRef]] = {}
    texts: dict[Term, list[tuple[int, int, str]]] = {}
    for vertex, predicate, value in rows:
        if vertex is None or predicate is None:
            continue
        if isinstance(value, URIRef) and predicate in kg.vocabulary.types:
            types.setdefault(vertex, set()).add(value)
        elif isinstance(value, Literal) and predicate in kg.vocabulary.descriptions:
            texts.setdefault(vertex, []).append(_rank(predicate, value, kg.vocabulary))
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
    some = f"VALUES ?v {{ {' '.join(map(n3, dict.fromkeys(vertices)))} }}"
    rows = kg.select(
        f'SELECT DISTINCT ?p ?d WHERE {{ {{ {some} ?v ?p ?o BIND("out" AS ?d) }}'
        f' UNION {{ {some} ?s ?p ?v BIND("in" AS ?d) }} }}'
    ).rows
    found = {(p, str(d)) for p, d in rows if isinstance(p, URIRef) and p not in kg.vocabulary.hidden}
    directions: tuple[Direction, ...] = ("out", "in")
    return tuple((p, d) for p in sorted({p for p, _ in found}) for d in directions if (p, d) in found)


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
    found = tuple(str(tag) for tag, _ in rows if tag is not None and _is_tag(str(tag)))
    whole = len(rows) < LANGUAGES and sum(counted(count) for _, count in rows) < SAMPLE
    return Labelling(predicates, found if whole else tuple(dict.fromkeys((*languages, *found))))


def schema(kg: Graph, iris: Sequence[URIRef]) -> frozenset[URIRef]:
    """Those that are only predicates or classes: no fact is told about them as of any other vertex."""
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
    told = kg.select(f"SELECT DISTINCT ?v WHERE {{ {parts} {fact} }}").rows if suspects else ()
    return frozenset(suspects) - {vertex for (vertex,) in told}


def _is_tag(text: str) -> bool:
    return not text or bool(LANGUAGE.fullmatch(text))


def counted(number: Term | None) -> int:
    """The number that a graph counted. Raises QueryError if it is none."""
    try:
        return int(str(number))
    except ValueError as error:
        raise QueryError(f"the graph counted {number!r}", hint="ask again, or try another graph") from error


def _rank(predicate: Term, text: Literal, vocabulary: Vocabulary) -> tuple[int, int, str]:
    order = vocabulary.descriptions.index(URIRef(predicate))
    return language_rank(text.language or "", vocabulary.languages), order, str(text)


def _list(iris: Sequence[URIRef]) -> str:
    return " ".join(map(n3, dict.fromkeys(iris)))
