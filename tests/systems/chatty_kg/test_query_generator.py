"""The query generator: joins that lose no triple, and the best combinations of predicates."""

import random
from itertools import product
from typing import Any

import pytest
from generated import generated, predicate
from rdflib import URIRef
from small import EX, PAPER, films, iri

from kgwb import profile
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.query_planning import (
    best_combinations,
    score_combination,
)
from kgwb.systems.chatty_kg.records import (
    GeneratedQueries,
    RankedPredicate,
)


def short(generated: GeneratedQueries) -> list[str]:
    """The queries without the namespace, for reading."""
    return [
        query.sparql.replace(f"<{EX}", "").replace(">", "").replace(" }", "}")
        for query in generated.queries
    ]


DIRECTOR, STARRING, PLACE = (
    [predicate("director")],
    [predicate("starring")],
    [predicate("birthPlace")],
)


@pytest.mark.parametrize(
    "facts",
    [
        "dune director ?x",
        "dune director ?p . ?p birthPlace ?x",
        # what the reference code loses: parallel relations, cycles, joins at an entity, branches
        "dune director ?x . dune starring ?x",
        "?x director ?y . ?y birthPlace ?z . ?z starring ?x",
        "?x director dune . dune starring ?y",
        "?x director dune . ?x starring arrival . ?x birthPlace ?y",
    ],
)
@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_triple_is_lost(facts: str, settings: Settings) -> None:
    parts = [fact.split() for fact in facts.split(" . ")]
    [query] = short(generated([(s, p, o, [predicate(p)]) for s, p, o in parts], settings=settings))
    assert query.startswith("SELECT DISTINCT ?x WHERE { ")
    assert f"{facts} ." in query


def test_a_boolean_question_is_an_ask() -> None:
    facts = [("dune", "director", "denis", [predicate("director"), predicate("director", 1, "in")])]
    patterns = ["dune director denis", "denis director dune"]
    queries = short(generated(facts, target="", kind="boolean"))
    assert queries == [f"ASK {{ {pattern} .}}" for pattern in patterns]


def test_the_best_score_comes_first_before_truncation() -> None:
    facts = [
        ("dune", "a", "?p", [predicate("a1", 0.9), predicate("a2", 0.8)]),
        ("?p", "b", "?x", [predicate("b1", 0.5), predicate("b2", 0.4), predicate("b3", 0.1)]),
    ]
    best = generated(facts, settings=profile("fast", query_num=3))
    assert [query.predicates for query in best.queries] == [
        ("a1", "b1"),
        ("a2", "b1"),
        ("a1", "b2"),
    ]
    assert [query.score for query in best.queries] == [0.6708, 0.6325, 0.6]
    assert best.before_truncation == 6
    natural = generated(facts, settings=PAPER.with_changes(query_num=3))
    assert [query.predicates for query in natural.queries] == [
        ("a1", "b1"),
        ("a1", "b2"),
        ("a1", "b3"),
    ]


def test_equal_scores_go_by_iri() -> None:
    facts = [
        ("dune", "a", "?x", [predicate("z", 0.5), predicate("b", 0.5), predicate("b", 0.5, "in")])
    ]
    assert [query.patterns[0] for query in generated(facts).queries] == [
        (iri("dune").n3(), iri("b").n3(), "?x"),
        ("?x", iri("b").n3(), iri("dune").n3()),
        (iri("dune").n3(), iri("z").n3(), "?x"),
    ]


@pytest.mark.parametrize("seed", range(20))
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


def test_a_vertex_that_the_question_names_does_not_answer_a_chain_of_facts() -> None:
    facts = [("dune", "a", "?p", DIRECTOR), ("?x", "b", "?p", DIRECTOR)]
    [query] = generated(facts).queries
    assert f"FILTER(?x != {iri('dune').n3()})" in query.sparql
    [published] = generated(facts, settings=PAPER).queries
    assert "FILTER" not in published.sparql
    kg = films()
    values = {row[0] for row in kg.select(query.sparql).rows}
    assert (iri("dune") in values, iri("arrival") in values) == (False, True)


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
