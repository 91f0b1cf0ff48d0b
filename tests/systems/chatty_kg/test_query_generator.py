"""The query generator: joins that lose no triple, and the best combinations of predicates."""

import random
from itertools import product
from typing import Any

import pytest
from generated import generated, predicate
from rdflib import URIRef
from small import EX

from kgwb.systems.chatty_kg.query_planning import (
    best_combinations,
    score_combination,
)
from kgwb.systems.chatty_kg.records import (
    RankedPredicate,
)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_combinations_are_those_of_a_full_sort(seed: int) -> None:
    """Scores often tie: 0.3 * 0.2 and 0.2 * 0.3, or 0.1 * 0.6, which differs by a rounding."""
    drawn = random.Random(seed)
    choices = []
    for _ in range(drawn.randint(1, 4)):
        ranked = []
        for number in range(drawn.randint(1, 6)):
            similarity = drawn.choice((-0.2, 0.0, 0.1, 0.2, 0.3, 0.4, 0.6))
            ranked.append(predicate(f"p{number}", similarity, drawn.choice(("in", "out"))))
        choices.append(ranked)
    by_score: dict[float, list[Any]] = {}
    for combination in product(*choices):
        by_score.setdefault(score_combination(combination), []).append(combination)
    expected = []
    for score in sorted(by_score, reverse=True):
        expected += sorted(
            by_score[score],
            key=lambda each: ([str(p.iri) for p in each], [p.direction == "in" for p in each]),
        )
    for number in (1, 3, 40):
        assert best_combinations(choices, number) == expected[:number]


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
