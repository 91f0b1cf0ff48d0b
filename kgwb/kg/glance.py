"""A graph at a glance: its size, its classes and what describes them, its labels, what it may be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.flow import Term
from kgwb.kg.base import SCHEMA_CLASSES, Graph
from kgwb.kg.queries import counted
from kgwb.kg.sparql import n3

LARGE, SAMPLE = 5_000_000, 10_000
"""Of a graph of more triples, or of one that does not count them, only a sample is looked at."""
MOST_CLASSES, MOST_PREDICATES = 200, 15
TRIED_CLASSES, TRIED_PREDICATES = 5, 6
"""Classes, and predicates of each, that questions are made from."""


class Kind(NamedTuple):
    """A class; without an IRI, what has none."""

    iri: URIRef | None
    name: str
    size: int


class Share(NamedTuple):
    """What part of a class's instances has a predicate, and one of its values."""

    predicate: URIRef
    name: str
    share: float
    example: str


@dataclass(frozen=True, slots=True)
class Glance:
    """A graph in numbers; None is what it did not count."""

    triples: int | None
    things: int | None
    predicates: int | None
    kinds: tuple[Kind, ...]
    """The classes, the largest first, then what has none."""
    unlabelled: int | None
    """Things without a label."""
    languages: tuple[tuple[str, int], ...]
    """How many things have a label in each language; "" is none."""
    sampled: bool = False


class Try(NamedTuple):
    """A question that the graph may answer, with an answer that would be right, if one is known."""

    question: str
    answer: Term | None


def glance(kg: Graph) -> Glance:
    """What there is, in a handful of queries; one that the graph refuses leaves its number out."""
    triples = _number(kg, "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
    large = triples is None or triples > LARGE
    limit = f" LIMIT {SAMPLE}" if large else ""
    types, labels = _listed(kg.vocabulary.types), _listed(kg.vocabulary.labels)
    things = f"{{ SELECT DISTINCT ?v WHERE {{ {_of(kg, None, large)} }}{limit} }}"
    named = f"VALUES ?by {{ {labels} }} ?v ?by ?label"
    typed = f"{{ SELECT ?v ?c WHERE {{ VALUES ?t {{ {types} }} ?v ?t ?c FILTER(isIRI(?v)) }}{limit} }}"
    classes = _rows(
        kg,
        f"SELECT ?c (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {typed} }} GROUP BY ?c ORDER BY DESC(?n) ?c"
        f" LIMIT {MOST_CLASSES}",
    )
    sizes = {c: counted(n) for c, n in classes if isinstance(c, URIRef) and c not in SCHEMA_CLASSES}
    names = kg.names(list(sizes)) if sizes else {}
    kinds = [Kind(iri, names[iri], size) for iri, size in sizes.items()]
    count = "SELECT (COUNT(DISTINCT ?v) AS ?n) WHERE"
    if not large and (bare := _number(kg, f"{count} {{ {_of(kg, Kind(None, '', 0))} }}")):
        kinds.append(Kind(None, "without a class", bare))
    tags = _rows(
        kg,
        f"SELECT ?tag (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {things} {named} BIND(LANG(?label) AS ?tag) }}"
        " GROUP BY ?tag ORDER BY DESC(?n) ?tag LIMIT 12",
    )
    return Glance(
        triples=triples,
        things=_number(kg, f"{count} {{ {things} }}"),
        predicates=_number(kg, f"{count} {{ {{ SELECT (?p AS ?v) WHERE {{ ?s ?p ?o }}{limit} }} }}"),
        kinds=tuple(kinds),
        unlabelled=_number(kg, f"{count} {{ {things} FILTER NOT EXISTS {{ {named} }} }}"),
        languages=tuple((str(tag or ""), counted(number)) for tag, number in tags),
        sampled=large,
    )


def said_of(kg: Graph, kind: Kind, *, sampled: bool = False) -> tuple[Share, ...]:
    """The predicates of a class's instances, the commonest first. Raises GraphError."""
    of = f"{{ SELECT DISTINCT ?v WHERE {{ {_of(kg, kind)} }} LIMIT {SAMPLE} }}"
    rows = kg.select(
        f"SELECT ?p (COUNT(DISTINCT ?v) AS ?n) (SAMPLE(?o) AS ?one) WHERE {{ {of} ?v ?p ?o }}"
        f" GROUP BY ?p ORDER BY DESC(?n) ?p LIMIT {MOST_PREDICATES}"
    ).rows
    whole = min(kind.size, SAMPLE) if not sampled else max((counted(n) for _, n, _ in rows), default=1)
    rows = tuple(row for row in rows if isinstance(row[0], URIRef) and row[0] not in kg.vocabulary.types)
    iris = [term for p, _, value in rows for term in (p, value) if isinstance(term, URIRef)]
    names = kg.names(iris) if iris else {}
    return tuple(
        Share(p, names[p], min(1.0, counted(n) / whole), names.get(value) or str(value))  # type: ignore[arg-type, index]
        for p, n, value in rows
    )


def tries(kg: Graph, seen: Glance) -> Iterator[Try]:
    """Questions about well described things of the largest classes; to be run before they are offered."""
    for place in range(TRIED_PREDICATES):
        for kind in seen.kinds[:TRIED_CLASSES]:
            with suppress(GraphError):
                yield from _tries(kg, kind, place)


def _tries(kg: Graph, kind: Kind, place: int) -> Iterator[Try]:
    """A question about an instance of a class, by the class's predicate at a place, if there is one."""
    facts = [share for share in said_of(kg, kind) if share.predicate not in kg.vocabulary.hidden]
    if place >= len(facts):
        return
    asked = facts[place]
    rows = kg.select(
        f"SELECT ?v (COUNT(?any) AS ?n) (SAMPLE(?one) AS ?o) WHERE {{ {{ SELECT DISTINCT ?v ?one WHERE"
        f" {{ {_of(kg, kind)} ?v {n3(asked.predicate)} ?one }} LIMIT 200 }} ?v ?any ?value }}"
        f" GROUP BY ?v ORDER BY DESC(?n) ?v LIMIT {TRIED_PREDICATES * 2}"
    ).rows
    things = [(v, o) for v, _, o in rows if isinstance(v, URIRef) and o is not None]
    names = kg.names([v for v, _ in things]) if things else {}
    alone = kg.exact([names[v] for v, _ in things]) if things else {}
    for thing, value in (*things[place:], *things[:place]):
        if len(alone.get(names[thing], ())) == 1:
            yield Try(f"What is the {asked.name} of {names[thing]}?", value)
            return


def _of(kg: Graph, kind: Kind | None, typed: bool = False) -> str:
    """The pattern of a class's instances, or of all things; ``typed``, of those with a class alone."""
    types = f"VALUES ?t {{ {_listed(kg.vocabulary.types)} }}"
    if kind is not None and kind.iri is not None:
        return f"{types} ?v ?t {n3(kind.iri)} FILTER(isIRI(?v))"
    if typed:
        return f"{types} ?v ?t ?class FILTER(isIRI(?v))"
    schema = f"{{ VALUES ?schema {{ {_listed(SCHEMA_CLASSES)} }} ?v ?t ?schema }}"
    not_one = f"{{ {types} {{ ?instance ?t ?v }} UNION {schema} }}"
    bare = f" FILTER NOT EXISTS {{ {types} ?v ?t ?class }}" if kind is not None else ""
    return (
        f"?v ?any ?value FILTER(isIRI(?v)) FILTER NOT EXISTS {not_one} FILTER NOT EXISTS {{ ?a ?v ?b }}{bare}"
    )


def _listed(iris: Sequence[URIRef]) -> str:
    return " ".join(map(n3, iris))


def _rows(kg: Graph, query: str) -> tuple[tuple[Term | None, ...], ...]:
    with suppress(GraphError):
        return kg.select(query).rows
    return ()


def _number(kg: Graph, query: str) -> int | None:
    rows = _rows(kg, query)
    return counted(rows[0][0]) if rows else None
