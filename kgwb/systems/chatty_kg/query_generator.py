"""Query generator: candidate SPARQL queries from QIR, vertices and ranked predicates (section 5.2.1)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product

from rdflib.namespace import XSD

from kgwb.flow import CandidateQuery
from kgwb.kg.algebra import unknowns_of
from kgwb.kg.queries import where
from kgwb.run import Run, agent
from kgwb.systems.chatty_kg.records import QIR, Fact, Generated, Linked, RankedPredicate
from kgwb.systems.chatty_kg.relation_linking import Ends, filter_of, pattern_of, terms_of
from kgwb.systems.chatty_kg.settings import settings_of

MOST_COMBINATIONS = 20_000
"""Combinations looked at before truncation; a QIR of many facts multiplies."""


@agent("query_generator")
def generate(qir: QIR, linked: Linked, run: Run) -> Generated:
    """Every combination of one predicate a fact, joined on shared ends, truncated to query_num.

    ``fast`` orders by score first; as published, the order is that of the combinations, and a fact without
    any predicate is left out.
    """
    settings = settings_of(run)
    terms = terms_of(qir, linked.links)
    relations = [linked_relation for linked_relation in linked.relations if linked_relation.predicates]
    lost = len(relations) < len(linked.relations) or any(link.vertex is None for link in linked.links)
    if not relations or (settings.fast and lost):  # a query for part of the question answers another one
        return Generated((), 0)
    facts = [relation.fact for relation in relations]
    choices = [relation.predicates for relation in relations]
    total = math.prod(len(choice) for choice in choices)
    combinations: Iterable[tuple[RankedPredicate, ...]] = islice(product(*choices), MOST_COMBINATIONS)
    if settings.fast:
        combinations = heapq.nsmallest(settings.query_num, combinations, key=_order)
    kept: dict[str, CandidateQuery] = {}
    for combination in combinations:
        query = _query(qir, facts, combination, terms, run)
        kept.setdefault(query.sparql, query)
        if len(kept) == settings.query_num:
            break
    if total > len(kept):
        run.note(f"{total} candidate queries, {len(kept)} kept (query_num {settings.query_num})")
    return Generated(tuple(kept.values()), total)


def _order(combination: Sequence[RankedPredicate]) -> tuple[float, tuple[str, ...], tuple[bool, ...]]:
    return (
        -score_of(combination),
        tuple(str(predicate.iri) for predicate in combination),
        tuple(predicate.direction == "in" for predicate in combination),
    )


def score_of(combination: Sequence[RankedPredicate]) -> float:
    """Geometric mean of the similarities, negative ones taken as nearly none."""
    return math.prod(max(predicate.similarity, 1e-3) for predicate in combination) ** (1 / len(combination))


def _query(
    qir: QIR, facts: Sequence[Fact], combination: Sequence[RankedPredicate], terms: Ends, run: Run
) -> CandidateQuery:
    pairs = list(zip(facts, combination, strict=True))
    patterns = tuple(dict.fromkeys(pattern_of(fact, predicate, terms) for fact, predicate in pairs))
    names = tuple(predicate.name for predicate in combination)
    boolean = qir.kind == "boolean"
    filters = "".join(dict.fromkeys(filter_of(fact, predicate, terms) for fact, predicate in pairs))
    if run.settings.fast:
        filters += _untrue(patterns) if boolean else _exclusions(qir, terms)
    head = "ASK" if boolean else f"SELECT DISTINCT {qir.target} WHERE"
    query = CandidateQuery("", patterns, names, round(score_of(combination), 4), filters)
    return replace(query, sparql=f"{head} {{ {where(query)} }}")


def _exclusions(qir: QIR, terms: Ends) -> str:
    """What was asked about is no answer of a chain that leads back to it: who shares a director with X."""
    if len(qir.facts) < 2:
        return ""
    named = (terms[entity] for entity in qir.entities if entity not in qir.kinds)
    vertices = dict.fromkeys(term for term in named if term.startswith("<"))
    return "".join(f"FILTER({qir.target} != {vertex}) " for vertex in vertices)


def _untrue(patterns: Iterable[tuple[str, str, str]]) -> str:
    """A stored false is no yes: "is it a hybrid" of a car whose ``hybrid`` is false."""
    false = f'str({{0}}) NOT IN ("false", "0") || datatype({{0}}) != <{XSD.boolean}>'
    return "".join(f"FILTER(!isLiteral({x}) || {false.format(x)}) " for x in unknowns_of(patterns))
