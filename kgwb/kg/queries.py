"""Questions that several agents ask a graph, each a single SPARQL 1.1 query, on any Graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rdflib import Literal, URIRef

from kgwb.flow import Direction, Term
from kgwb.kg.base import Graph, Vocabulary
from kgwb.kg.naming import language_rank
from kgwb.kg.sparql import n3


class Description(NamedTuple):
    """What a graph says a vertex is."""

    types: tuple[str, ...] = ()
    """Names of its types, by IRI of the type."""
    description: str = ""
    """In the preferred language; empty if there is none."""


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
    counts = {vertex: int(str(count)) for vertex, count in rows}
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


def _rank(predicate: Term, text: Literal, vocabulary: Vocabulary) -> tuple[int, int, str]:
    order = vocabulary.descriptions.index(URIRef(predicate))
    return language_rank(text.language or "", vocabulary.languages), order, str(text)


def _list(iris: Sequence[URIRef]) -> str:
    return " ".join(map(n3, dict.fromkeys(iris)))
