"""Candidates, vertex selection and the vertex validator."""

from __future__ import annotations

from typing import Any

import pytest
from small import DIRECTED, FILMS, PAPER, alone, chatty, films, iri, vertex

from kgwb.errors import InvalidReplyError, OverrideError
from kgwb.flow import Candidate, Context, Link, Retrieved, Turn
from kgwb.llm import Scripted
from kgwb.settings import Settings
from kgwb.systems.linking import link_entity, retrieve, select

DUNES = (
    Candidate(iri("dune"), "Dune", 1.0, ("film",)),
    Candidate(iri("lynchs_dune"), "Dune", 1.0, ("film",), "of 1984", ("director",)),
)
NEAR = (Candidate(iri("story"), "Story of Your Life", 0.6),)


def selected(
    candidates: tuple[Candidate, ...],
    *replies: Any,
    name: str = "vertex_selection",
    question: str = "Who directed Dune?",
    said: tuple[Turn, ...] = (),
    **others: Any,
) -> Any:
    retrieved = Retrieved("Dune", candidates)
    return alone(lambda run: select(retrieved, question, Context(said), run), {name: list(replies)}, **others)


def test_an_exact_unique_label_costs_no_model_call() -> None:
    link, _, model = selected(DUNES[:1])
    assert (link.vertex, model.calls()) == (DUNES[0], 0)


@pytest.mark.parametrize("candidates", [DUNES, NEAR])
def test_homonyms_and_near_labels_are_the_models_choice(candidates: tuple[Candidate, ...]) -> None:
    link, _, model = selected(
        candidates, vertex(len(candidates), candidates[-1].label.upper() + " ", "by the year")
    )
    assert (link.vertex, link.reason, model.calls()) == (candidates[-1], "by the year", 1)


def test_the_model_sees_what_tells_homonyms_apart() -> None:
    _, _, model = selected(DUNES, vertex(1, "Dune"))
    assert model.requests[0].variables["candidates"] == [
        {"number": 1, "label": "Dune", "type": "film", "description": ""},
        {"number": 2, "label": "Dune", "type": "film", "description": "of 1984", "relations": ["director"]},
    ]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (vertex(3, "Dune"), "there is no candidate 3; they go from 1 to 2"),
        (vertex(-1, "Dune"), "there is no candidate -1"),
        (vertex(1, "Dune (1984)"), "candidate 1 is 'Dune', not 'Dune (1984)'"),
        (vertex(0, "Dune"), "number 0 means none, but a label is given"),
        ({"reason": "", "number": "one", "label": "Dune"}, "number: Input should be a valid integer"),
    ],
)
def test_the_vertex_validator_turns_away_what_is_not_in_the_list(reply: Any, problem: str) -> None:
    link, run, _ = selected(DUNES, reply, vertex(2, "Dune"))
    assert link.vertex == DUNES[1]
    assert problem in run["vertex_selection"].attempts[0].checks[-1].problem
    with pytest.raises(InvalidReplyError):
        selected(DUNES, reply, reply, reply)


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_no_candidate_is_no_vertex(settings: Settings) -> None:
    link, _, model = selected((), settings=settings)
    assert (link.vertex, link.reason, model.calls()) == (None, "no label in the graph holds these words", 0)


def test_number_zero_means_none_of_them() -> None:
    link, _, _ = selected(DUNES, vertex(0, "", "it asks for a sand dune"))
    assert (link.vertex, link.reason, link.candidates) == (None, "it asks for a sand dune", DUNES)


# --- as published


def test_as_published_a_single_hit_is_taken_however_far() -> None:
    link, _, model = selected(NEAR, settings=PAPER)
    assert (link.vertex, model.calls()) == (NEAR[0], 0)


def test_as_published_labels_are_chosen_and_checked() -> None:
    replies = [{"label": "Dunes"}, {"label": "story of your life"}]
    link, run, model = selected((*DUNES, *NEAR), *replies, name="vertex_selection_labels", settings=PAPER)
    assert link.vertex == NEAR[0]
    assert model.requests[0].variables == {"entity": "Dune", "labels": ["Dune", "Story of Your Life"]}
    assert model.requests[0].messages == model.requests[1].messages  # asked afresh
    assert run["vertex_selection"].attempts[0].checks[-1].problem == "'Dunes' is not in the list"


def test_as_published_homonyms_cost_a_second_call_over_local_names() -> None:
    replies = {
        "vertex_selection_labels": {"label": "Dune"},
        "vertex_selection_names": [{"name": "Dune"}, {"name": "lynchs_dune"}],
    }
    retrieved = Retrieved("Dune", DUNES)
    link, _, model = alone(lambda run: select(retrieved, "Who?", Context(), run), replies, settings=PAPER)
    assert (link.vertex, model.calls()) == (DUNES[1], 3)


# --- the whole step, and by hand


def test_each_entity_is_a_step_with_its_name() -> None:
    link, run, _ = alone(
        lambda run: link_entity("Dune", "Who?", Context(), run), {"vertex_selection": vertex(2, "Dune")}
    )
    keys = [step.key for step in run.steps]
    assert keys == [f"{name}[Dune]" for name in ("entity_linking", "entity_retriever", "vertex_selection")]
    assert link.vertex.label == "Dune"


def test_a_link_by_hand_may_be_any_vertex_but_for_its_entity() -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED), films(FILMS)).go()
    with pytest.raises(OverrideError, match="the link is for 'Dune', the step for 'Arrival'"):
        run.replace("vertex_selection", Link("Dune", DUNES[0]))
    run.replace("vertex_selection", Link("Arrival", Candidate(iri("lynchs_dune"), "Dune"))).go()
    assert str(run.answer) == "David Lynch"


EARLIER = (Turn("Is Dune long?", entities=("dune",), linked=(iri("dune"),)),)


def test_a_name_keeps_its_vertex_through_the_dialogue() -> None:
    link, _, model = selected(DUNES, said=EARLIER)
    assert (link.vertex, link.reason, model.calls()) == (DUNES[0], "linked so before in this dialogue", 0)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who directed the Dune of 1984?", EARLIER),  # it says of the other what it does not say of this one
        ("Who directed Dune?", (Turn("Who wrote Emma?", entities=("Emma",), linked=(iri("emma"),)),)),
        ("Who directed Dune?", (Turn("What is Dune?", entities=("Dune",), linked=(iri("planet"),)),)),
    ],
)
def test_a_name_that_may_mean_another_now_is_asked_about(question: str, said: tuple[Turn, ...]) -> None:
    link, _, model = selected(DUNES, vertex(2, "Dune"), question=question, said=said)
    assert (link.vertex, model.calls()) == (DUNES[1], 1)


# --- candidates

MANY_DUNES = (
    FILMS + ':dune rdfs:comment "film of 2021" . :dunes rdfs:label "Dunes of Arabia" ; :director :denis .'
)


def test_homonyms_are_told_apart_by_type_description_and_relations() -> None:
    novel = MANY_DUNES + ':novel a :Novel ; rdfs:label "Dune" ; :author :ted . :Novel rdfs:label "novel" .'
    retrieved, _, _ = alone(lambda run: retrieve("dune", run), kg=films(novel))
    shown = {candidate.iri: candidate for candidate in retrieved.candidates}
    assert set(shown) == {iri("dune"), iri("lynchs_dune"), iri("novel")}  # exact labels only
    assert shown[iri("novel")].types == ("novel",)
    assert shown[iri("novel")].relations == ("author",)
    assert "director" in shown[iri("dune")].relations
    assert shown[iri("dune")].description == "film of 2021"
    assert retrieved.found >= 3


def test_one_vertex_needs_no_description() -> None:
    retrieved, run, _ = alone(lambda run: retrieve("Arrival", run))
    [candidate] = retrieved.candidates
    assert (candidate.iri, candidate.score, candidate.types) == (iri("arrival"), 1.0, ())
    assert run.totals.queries == 0


def test_without_an_exact_label_the_best_are_shown() -> None:
    many = FILMS + "".join(f':w{n} rdfs:label "Winter film {n}" ; :director :denis .' for n in range(9))
    settings = Settings(shown_candidates=4)
    retrieved, _, _ = alone(lambda run: retrieve("winter", run), kg=films(many), settings=settings)
    assert (len(retrieved.candidates), retrieved.found) == (4, 9)


def test_v_limit_bounds_the_search_and_is_told() -> None:
    settings = Settings(v_limit=1)
    retrieved, run, _ = alone(lambda run: retrieve("Dune", run), settings=settings)
    assert retrieved.found == 1
    assert run["entity_retriever[Dune]"].notes == ["v_limit cut the search for 'Dune' at 1 vertices"]


def test_as_published_labels_alone() -> None:
    retrieved, run, _ = alone(lambda run: retrieve("Dune", run), kg=films(MANY_DUNES), settings=PAPER)
    assert {candidate.label for candidate in retrieved.candidates} <= {"Dune", "Dunes of Arabia"}
    assert all(candidate.types == () and candidate.relations == () for candidate in retrieved.candidates)
    assert run.totals.queries == 0


def test_nothing_found_is_an_answer() -> None:
    retrieved, _, _ = alone(lambda run: retrieve("Xyzzy", run))
    assert (retrieved.candidates, retrieved.found) == ((), 0)
