"""From executed queries to the triples that each value of an answer stands on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rdflib import BNode, Literal, URIRef
from rdflib.util import from_n3

from kgwb.flow import CandidateQuery, Term, Triple
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3, writable

SUPPORT_ROWS = 500
"""Bindings read at once to find the support of an answer; values they miss are asked for by name."""
SUPPORT_VALUES = 50
"""Values asked for by name at once."""
TRIPLES_PER_VALUE = 60
"""Supporting triples kept for one value; a value of a many-to-many chain can have thousands."""


def term_of(text: str) -> Term:
    """The RDF term of its N-Triples form."""
    if text.startswith("<"):
        return URIRef(text[1:-1])
    term: Any = from_n3(text)
    return term if isinstance(term, URIRef | Literal) else Literal(text)


def conjunction(patterns: Iterable[tuple[str, str, str]]) -> str:
    """Triple patterns as SPARQL."""
    return " ".join(f"{s} {p} {o} ." for s, p, o in patterns)


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
    triples: dict[Term, dict[Triple, None]] = {value: {} for value in values}
    body = where(query)

    def collect(bound: str) -> None:
        sparql = f"SELECT DISTINCT {' '.join(unknowns)} WHERE {{ {bound}{body} }} LIMIT {SUPPORT_ROWS}"
        _collect(kg, sparql, query, target, triples)

    collect("")
    missing = [value for value in values if not triples[value] and _nameable(value)]
    while missing:
        some = missing[:SUPPORT_VALUES]
        collect(f"VALUES {target} {{ {' '.join(map(n3, some))} }} ")
        left = [value for value in missing if not triples[value]]
        missing = left if len(left) < len(missing) else missing[SUPPORT_VALUES:]
    return {value: tuple(found) for value, found in triples.items()}


def witness(kg: Graph, query: CandidateQuery) -> tuple[Triple, ...]:
    """The triples that make an ASK of the query's patterns true: one binding's. Empty if it is false."""
    unknowns = unknowns_of(query.patterns)
    if not unknowns:
        return ground(query.patterns, {})
    rows = kg.select(f"SELECT {' '.join(unknowns)} WHERE {{ {where(query)} }} LIMIT 1")
    return ground(query.patterns, dict(zip(unknowns, rows.rows[0], strict=True))) if rows.rows else ()


def unknowns_of(patterns: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """The variables of triple patterns, in order of appearance."""
    return tuple(dict.fromkeys(end for pattern in patterns for end in pattern if end.startswith("?")))


def ground(patterns: Iterable[tuple[str, str, str]], binding: dict[str, Any]) -> tuple[Triple, ...]:
    """The patterns with their variables replaced."""

    def term(text: str) -> Any:
        return binding[text] if text in binding else term_of(text)

    return tuple((term(s), term(p), term(o)) for s, p, o in patterns)


def _nameable(value: Term) -> bool:
    return writable(value) if isinstance(value, URIRef) else not isinstance(value, BNode)


def _collect(
    kg: Graph, sparql: str, query: CandidateQuery, target: str, triples: dict[Term, dict[Triple, None]]
) -> None:
    rows = kg.select(sparql)
    unknowns = tuple("?" + name for name in rows.variables)
    place = unknowns.index(target)
    for row in rows.rows:
        found = triples.get(row[place])  # type: ignore[arg-type]
        if found is not None and len(found) < TRIPLES_PER_VALUE:
            found.update(dict.fromkeys(ground(query.patterns, dict(zip(unknowns, row, strict=True)))))
