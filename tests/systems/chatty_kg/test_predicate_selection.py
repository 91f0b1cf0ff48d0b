"""Predicate selection and the query validator."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from rdflib import URIRef
from small import PAPER, alone, predicates

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.flow import CandidateQuery
from kgwb.systems.chatty_kg.queries import select_queries
from kgwb.systems.chatty_kg.records import Fact, Generated, Linked, LinkedRelation, RankedPredicate, Selection


def query(*names: str) -> CandidateQuery:
    return CandidateQuery(f"SELECT {names}", (), names, 1.0)


ONE = Generated((query("director"), query("writer"), query("director of photography")), 3)
TWO = Generated(
    (query("director", "birth place"), query("director", "birth date"), query("writer", "birth place")), 3
)
FACTS = (Fact("Dune", "directed by", "?p"), Fact("?p", "born in", "?x"))


def selected(generated: Generated, *replies: Any, close: float = 0.5, **options: Any) -> Any:
    """The selection among queries whose predicates are all as ``close`` to their relation."""
    offered = zip(FACTS, zip(*(query.predicates for query in generated.queries), strict=True), strict=False)
    relations = [
        LinkedRelation(fact, tuple(ranked(name, close) for name in dict.fromkeys(names)))
        for fact, names in offered
    ]
    linked = Linked((), tuple(relations))
    name = "predicate_selection_published" if options else "predicate_selection"
    return alone(lambda run: select_queries(generated, "Who?", linked, run), {name: list(replies)}, **options)


def ranked(name: str, similarity: float) -> RankedPredicate:
    return RankedPredicate(URIRef(f"http://e/{name.replace(' ', '_')}"), name, "out", similarity)


def names(selection: Selection) -> list[tuple[str, ...]]:
    return [query.predicates for query in selection.queries]


def pooled(*names: str) -> dict[str, Any]:
    return {"reasoning": "", "predicates": list(names)}


def test_without_queries_nobody_is_asked() -> None:
    for options in ({}, {"settings": PAPER}):
        selection, _, model = selected(Generated((), 0), **options)
        assert (selection, model.calls()) == (Selection((), ()), 0)


# --- fast: right in every triple


def test_each_triple_is_shown_with_its_own_predicates() -> None:
    _, _, model = selected(TWO, predicates(["director"], ["birth place"]))
    assert model.requests[0].variables["relations"] == [
        {"triple": ["Dune", "directed by", "?p"], "predicates": ["director", "writer"]},
        {"triple": ["?p", "born in", "?x"], "predicates": ["birth place", "birth date"]},
    ]


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (predicates(["director"], ["birth place"]), [("director", "birth place")]),
        (
            predicates(["director", "writer"], ["birth place"]),
            [("director", "birth place"), ("writer", "birth place")],
        ),
        (predicates(["director", "made up"], ["birth date"]), [("director", "birth date")]),
        (predicates(["writer"], ["birth date"]), []),
        (predicates([], ["birth place"]), []),
        (predicates([], []), []),
    ],
)
def test_a_query_must_be_right_in_every_triple(reply: Any, kept: list[tuple[str, ...]]) -> None:
    selection, _, model = selected(TWO, reply)
    assert (names(selection), model.calls()) == (kept, 1)
    assert "made up" not in selection.predicates


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (predicates(["director"]), "1 lists for 2 triples"),
        (predicates(["made up"], ["birth place"]), "none of triple 1's predicates is in its list: 'made up'"),
        (predicates(["birth place"], ["director"]), "none of triple 1's predicates is in its list"),
        (pooled("director"), "predicates.0: Input should be a valid list"),
    ],
)
def test_a_reply_outside_the_lists_is_turned_away(reply: Any, problem: str) -> None:
    selection, run, _ = selected(TWO, reply, predicates(["director"], ["birth place"]))
    assert len(selection.queries) == 1
    assert problem in run["predicate_selection"].attempts[0].checks[-1].problem
    with pytest.raises(InvalidReplyError):
        selected(TWO, reply, reply, reply)


@pytest.mark.parametrize(
    ("name", "similarities", "calls"),
    [
        ("Directed by", (0.5, 0.5), 0),  # the relation's very name
        ("director", (0.8, 0.5), 0),  # by far the nearest
        ("director", (0.8, 0.6), 1),
        ("director", (0.6, 0.1), 1),
    ],
)
def test_what_is_beyond_doubt_needs_no_model(
    name: str, similarities: tuple[float, float], calls: int
) -> None:
    relation = LinkedRelation(FACTS[0], tuple(map(ranked, (name, "writer"), similarities)))
    generated, linked = Generated((query(name), query("writer")), 2), Linked((), (relation,))
    replies = {"predicate_selection": predicates([name])}
    selection, run, model = alone(lambda run: select_queries(generated, "Who?", linked, run), replies)
    assert (names(selection), model.calls()) == ([(name,)], calls)
    note = "for every relation one predicate is beyond doubt: no model was asked"
    assert run["predicate_selection"].notes == ([] if calls else [note])


# --- as published: one relevant predicate is enough


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (pooled("director"), TWO.queries[:2]),
        (pooled("birth place"), (TWO.queries[0], TWO.queries[2])),
        (pooled("writer", "birth date"), TWO.queries[1:]),
        (pooled("made up", "writer"), TWO.queries[2:]),
    ],
)
def test_as_published_one_relevant_predicate_is_enough(reply: Any, kept: tuple[CandidateQuery, ...]) -> None:
    selection, _, model = selected(TWO, reply, settings=PAPER)
    assert selection.queries == kept
    assert "made up" not in selection.predicates
    assert model.requests[0].variables["predicates"] == ["director", "birth place", "birth date", "writer"]


@pytest.mark.parametrize("reply", [pooled(), pooled("made up"), "none of them"])
def test_as_published_nothing_relevant_is_asked_again_and_at_last_nothing_is_selected(reply: Any) -> None:
    selection, _, model = selected(TWO, reply, pooled("director"), settings=PAPER)
    assert (len(selection.queries), model.calls()) == (2, 2)
    with pytest.raises(InvalidReplyError) if isinstance(reply, str) else nullcontext():
        selection, _, model = selected(TWO, reply, reply, reply, settings=PAPER)
        assert (selection.queries, selection.predicates, model.calls()) == ((), (), 3)


# --- by hand


def test_by_hand_only_candidate_queries_can_be_selected() -> None:
    _, run, _ = selected(ONE, predicates(["director"]))
    with pytest.raises(OverrideError, match="not a candidate query"):
        run.replace("predicate_selection", Selection((query("other"),), ("other",)))
    run.replace("predicate_selection", Selection(ONE.queries[1:2], ("writer",)))
