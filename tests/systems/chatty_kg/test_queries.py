"""Candidate queries: joins that lose no triple, and their selection by predicates."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from rdflib import URIRef
from small import EX, PAPER, REFERENCE, alone, films, iri, predicates

from kgwb import profile
from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.kg.base import Direction
from kgwb.kg.queries import CandidateQuery
from kgwb.run.links import Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.query_planning import (
    best_combinations,
    generate_queries,
    score_combination,
    select_predicates,
)
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
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


def test_a_relation_without_predicate_gives_no_query_but_is_left_out_in_the_published_code() -> (
    None
):
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "?y", [])]
    for settings in (Settings(), PAPER):
        assert generated(facts, settings=settings) == GeneratedQueries((), 0)
    [query] = generated(facts, settings=REFERENCE).queries
    assert query.patterns == ((iri("dune").n3(), iri("director").n3(), "?x"),)


@pytest.mark.parametrize("settings", [Settings(), PAPER, REFERENCE])
def test_with_an_entity_that_has_no_vertex_there_is_no_query(settings: Settings) -> None:
    facts = [("dune", "a", "?x", DIRECTOR), ("?x", "b", "xyzzy", PLACE)]
    nothing = generated(facts, unlinked=frozenset({"xyzzy"}), settings=settings)
    assert nothing == GeneratedQueries((), 0)


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


# --- predicate selection


def of_names(*names: str) -> CandidateQuery:
    return CandidateQuery(f"SELECT {names}", (), names, 1.0)


OFFERED = (
    of_names("director", "birth place"),
    of_names("director", "birth date"),
    of_names("writer", "birth place"),
)
FACTS = (Fact("Dune", "directed by", "?p"), Fact("?p", "born in", "?x"))


def selected(
    *replies: Any, offered: tuple[CandidateQuery, ...] = OFFERED, settings: Settings | None = None
) -> Any:
    """The selection among queries whose predicates are all as near to their relation."""
    by_fact = zip(*(query.predicates for query in offered), strict=True)
    relations = tuple(
        LinkedRelation(fact, tuple(predicate(name, 0.5) for name in dict.fromkeys(names)))
        for fact, names in zip(FACTS, by_fact, strict=False)
    )
    linked, generated = LinkingResult((), relations), GeneratedQueries(offered, len(offered))
    prompt = "predicate_selection_published" if settings is PAPER else "predicate_selection"
    work = lambda run: select_predicates(generated, "Who?", linked, run)  # noqa: E731
    return alone(work, {prompt: list(replies)}, settings=settings)


def pooled(*names: str) -> dict[str, Any]:
    return {"reasoning": "", "predicates": list(names)}


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_without_queries_no_model_is_asked(settings: Settings) -> None:
    selection, _, model = selected(offered=(), settings=settings)
    assert (selection, model.call_count()) == (QuerySelection((), ()), 0)


def test_each_triple_is_shown_with_its_own_predicates_and_as_published_they_are_one_list() -> None:
    _, _, model = selected(predicates(["director"], ["birth place"]))
    assert model.requests[0].variables["relations"] == [
        {
            "triple": ["Dune", "directed by", "?p"],
            "predicates": [{"name": "director"}, {"name": "writer"}],
        },
        {
            "triple": ["?p", "born in", "?x"],
            "predicates": [{"name": "birth place"}, {"name": "birth date"}],
        },
    ]
    _, _, model = selected(pooled("director"), settings=PAPER)
    assert model.requests[0].variables["predicates"] == [
        "director",
        "birth place",
        "birth date",
        "writer",
    ]


@pytest.mark.parametrize(
    ("settings", "reply", "kept"),
    [
        (Settings(), predicates(["director"], ["birth place"]), [0]),
        (Settings(), predicates(["director", "writer"], ["birth place"]), [0, 2]),
        (Settings(), predicates(["director", "made up"], ["birth date"]), [1]),
        (Settings(), predicates(["writer"], ["birth date"]), []),
        (Settings(), predicates([], ["birth place"]), []),
        (Settings(), predicates([], []), []),
        (PAPER, pooled("director"), [0, 1]),
        (PAPER, pooled("birth place"), [0, 2]),
        (PAPER, pooled("writer", "birth date"), [1, 2]),
        (PAPER, pooled("made up", "writer"), [2]),
    ],
)
def test_a_query_must_be_right_in_every_triple_and_as_published_in_one(
    settings: Settings, reply: Any, kept: list[int]
) -> None:
    selection, _, model = selected(reply, settings=settings)
    assert (selection.queries, model.call_count()) == (tuple(OFFERED[number] for number in kept), 1)
    assert "made up" not in selection.predicates


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (predicates(["director"]), "1 lists for 2 triples"),
        (
            predicates(["made up"], ["birth place"]),
            "none of triple 1's predicates is in its list: 'made up'",
        ),
        (predicates(["birth place"], ["director"]), "none of triple 1's predicates is in its list"),
        (pooled("director"), "predicates.0: Input should be a valid list"),
    ],
)
def test_a_reply_outside_the_lists_is_invalid(reply: Any, problem: str) -> None:
    selection, run, _ = selected(reply, predicates(["director"], ["birth place"]))
    assert len(selection.queries) == 1
    assert problem in run["predicate_selection"].attempts[0].checks[-1].problem
    with pytest.raises(InvalidReplyError):
        selected(reply, reply, reply)


@pytest.mark.parametrize(
    ("name", "similarities", "calls"),
    [
        ("Directed by", (0.5, 0.5), 0),  # the relation's very name
        ("director", (0.8, 0.5), 0),  # by far the nearest
        ("director", (0.8, 0.6), 1),
        ("director", (0.6, 0.1), 1),
    ],
)
def test_no_model_is_asked_if_one_predicate_is_certain(
    name: str, similarities: tuple[float, float], calls: int
) -> None:
    relation = LinkedRelation(FACTS[0], tuple(map(predicate, (name, "writer"), similarities)))
    generated, linked = (
        GeneratedQueries((of_names(name), of_names("writer")), 2),
        LinkingResult((), (relation,)),
    )
    replies = {"predicate_selection": predicates([name])}
    selection, run, model = alone(
        lambda run: select_predicates(generated, "Who?", linked, run), replies
    )
    assert ([query.predicates for query in selection.queries], model.call_count()) == (
        [(name,)],
        calls,
    )
    assert len(run["predicate_selection"].notes) == 1 - calls


@pytest.mark.parametrize("reply", [pooled(), pooled("made up"), "none of them"])
def test_as_published_nothing_relevant_is_asked_again_and_at_last_nothing_is_selected(
    reply: Any,
) -> None:
    selection, _, model = selected(reply, pooled("director"), settings=PAPER)
    assert (len(selection.queries), model.call_count()) == (2, 2)
    selection, _, model = selected(reply, reply, reply, settings=PAPER)
    assert (selection.queries, selection.predicates, model.call_count()) == ((), (), 3)


def test_by_hand_only_candidate_queries_can_be_selected() -> None:
    _, run, _ = selected(predicates(["director"], ["birth place"]))
    with pytest.raises(OverrideError):
        run.override("predicate_selection", QuerySelection((of_names("other"),), ("other",)))
    run.override("predicate_selection", QuerySelection(OFFERED[1:2], ("birth date",)))
