"""The query generator: joins that lose no triple, and the best combinations of predicates."""

from generated import generated, predicate
from rdflib import URIRef
from small import EX

from kgwb.systems.chatty_kg.records import (
    RankedPredicate,
)


def test_queries_come_by_score_then_by_iri_then_outward() -> None:
    ranked = [predicate("b"), predicate("a", direction="in"), predicate("a"), predicate("c", 1.1)]
    queries = generated([("dune", "a", "?x", ranked)]).queries
    dune, a, b, c = (f"<{EX}{name}>" for name in ("dune", "a", "b", "c"))
    assert [query.patterns[0] for query in queries] == [
        (dune, c, "?x"), (dune, a, "?x"), ("?x", a, dune), (dune, b, "?x")
    ]  # fmt: skip


def test_same_queries_are_kept_once() -> None:
    same = RankedPredicate(URIRef(EX + "director"), "other", "out", 0.5)
    assert len(generated([("dune", "a", "?x", [predicate("director"), same])]).queries) == 1


def test_no_query_says_two_facts_in_one_triple() -> None:
    both = [predicate("standsInFor"), predicate("standsInFor", direction="in")]
    queries = generated(
        [("?a", "stands in for", "?b", both), ("?b", "stands in for", "?a", both)], target="?a"
    )
    assert len(queries.queries) == 2
    assert all(len(query.patterns) == 2 for query in queries.queries)
