"""The entity retriever: classes for kinds of things, and what tells homonyms apart."""

from __future__ import annotations

from typing import Any

import pytest
from small import (
    BOATS,
    DOG,
    PAPER,
    alone,
    answer_of,
    boats_asked,
    chatty,
    films,
    iri,
    published,
    qir,
    vertex,
)

from kgwb.llm import Scripted
from kgwb.run.linking import retrieve_candidates


def test_a_class_is_chosen_by_the_model_where_none_is_called_so() -> None:
    def choose(request: Any) -> Any:
        if request.task == "chatty_kg/qir":
            return qir("?vessel | type | vessel", kind="count")
        number = next(c["number"] for c in request.variables["candidates"] if c["label"] == "Boat")
        return vertex(number, "Boat", "it floats")

    model = Scripted(choose)
    run = chatty("How many vessels are there?", model, films(BOATS)).go()
    assert answer_of(run).labels == ("3",)
    candidates = model.requests[1].variables["candidates"]
    boat = next(candidate for candidate in candidates if candidate["label"] == "Boat")
    assert boat["type"] == "class"
    assert "floats" in boat["description"]
    assert {c["label"] for c in candidates} >= {"Ferry", "Tug", "River tug", "Pilot"}


def test_as_published_a_class_is_found_by_its_label_like_any_vertex() -> None:
    script = {
        "chatty_kg/classifier": {"reason": "", "label": "self-contained"},
        "linking/vertex_selection_labels": {"label": "Boat"},
        "chatty_kg/predicate_selection_published": {"reasoning": "", "predicates": ["type"]},
        "chatty_kg/qir_published": published(qir("?boat | type | boat")),
    }
    settings = PAPER.with_changes(question_language="en")
    run = chatty("Which boats are there?", Scripted(script), films(BOATS), settings=settings).go()
    assert run["vertex_selection"].output.vertex.iri == iri("Boat")
    assert "type" in [predicate.name for predicate in run.output("relation_linking").predicates]


PHONE = qir("Sam | phone | ?number")


def test_homonyms_are_shown_with_what_the_question_may_name_near_them() -> None:
    question = "What is the phone number of Sam from Marketing?"
    run, model = boats_asked(question, PHONE, linking__vertex_selection=vertex(2, "Sam"))
    assert answer_of(run).labels == ("2",)
    for candidate, place, number in zip(
        model.requests[1].variables["candidates"], ("Sales", "Marketing"), "12", strict=True
    ):
        assert candidate["relations"] == [f"member of: {place}", f"phone: {number}"]


@pytest.mark.parametrize("place", ["Marketing", "HR"])
def test_what_the_question_names_comes_before_other_values(place: str) -> None:
    more = "".join(f':sam2 :memberOf :club{n} . :club{n} rdfs:label "Club {n}" .' for n in range(9))
    more += ':sam2 :memberOf :hr . :hr rdfs:label "HR" .'
    question = f"What is the phone number of Sam from {place}?"
    _, model = boats_asked(
        question, PHONE, BOATS + more, linking__vertex_selection=vertex(2, "Sam")
    )
    assert model.requests[1].variables["candidates"][1]["relations"][0] == f"member of: {place}"


def test_another_system_sees_candidates_as_before() -> None:
    retrieved, _, _ = alone(lambda run: retrieve_candidates("Sam", run), kg=films(BOATS), of=DOG)
    assert {candidate.relations for candidate in retrieved.candidates} == {("member of", "phone")}
