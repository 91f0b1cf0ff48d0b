"""Queries of Chatty-KG, generated from facts and their predicates."""

from typing import Any

from small import alone, iri

from kgwb.kg.base import Direction
from kgwb.run.answers import Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.query_planning import generate_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)


def predicate(name: str, similarity: float = 1.0, direction: Direction = "out") -> RankedPredicate:
    return RankedPredicate(iri(name.replace(" ", "_")), name, direction, similarity)


def generated(
    facts: list[tuple[str, str, str, list[RankedPredicate]]],
    *,
    target: str = "?x",
    kind: Any = "list",
    unlinked: frozenset[str] = frozenset(),
    settings: Settings | None = None,
) -> GeneratedQueries:
    """Queries of facts with their predicates; the entity "dune" is linked to :dune, unless ``unlinked``."""
    relations = tuple(LinkedRelation(Fact(s, r, o), tuple(ranked)) for s, r, o, ranked in facts)
    qir = QIR(tuple(relation.fact for relation in relations), target, kind)
    vertices = {
        name: None if name in unlinked else Candidate(iri(name), name) for name in qir.entities
    }
    linked = LinkingResult(
        tuple(Link(name, vertex) for name, vertex in vertices.items()), relations
    )
    result: GeneratedQueries = alone(
        lambda run: generate_queries(qir, linked, run), settings=settings
    )[0]
    return result
