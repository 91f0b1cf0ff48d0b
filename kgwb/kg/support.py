"""From executed queries to the triples that each value of an answer stands on."""

from __future__ import annotations

from collections.abc import Sequence

from rdflib import BNode, URIRef

from kgwb.flow import CandidateQuery, Term, Triple
from kgwb.kg.algebra import conjunction, ground, unknowns_of
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3, writable

SUPPORT_ROWS = 500
"""Bindings read at once to find the support of an answer; values they miss are asked for by name."""
SUPPORT_VALUES = 50
"""Values asked for by name at once."""
TRIPLES_PER_VALUE = 60
"""Supporting triples kept for one value; a value of a many-to-many chain can have thousands."""


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
    missing = [value for value in values if not triples[value] and _nameable(value)]
    while missing:
        collect(f"VALUES {target} {{ {' '.join(map(n3, missing[:SUPPORT_VALUES]))} }} ")
        left = [value for value in missing if not triples[value]]
        missing = left if len(left) < len(missing) else missing[SUPPORT_VALUES:]
    return {value: tuple(triples[value]) for value in values}


def _nameable(value: Term) -> bool:
    return writable(value) if isinstance(value, URIRef) else not isinstance(value, BNode)


def witness(kg: Graph, query: CandidateQuery) -> tuple[Triple, ...]:
    """The triples that make an ASK of the query's patterns true: one binding's. Empty if it is false."""
    unknowns = unknowns_of(query.patterns)
    if not unknowns:
        return ground(query.patterns, {})
    rows = kg.select(f"SELECT {' '.join(unknowns)} WHERE {{ {where(query)} }} LIMIT 1").rows
    return ground(query.patterns, dict(zip(unknowns, rows[0], strict=True))) if rows else ()
