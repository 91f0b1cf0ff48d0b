"""The entity retriever: classes for kinds of things, and what tells homonyms apart."""

from typing import Any

import pytest
from small import (
    BOATS,
    answer_of,
    boats_asked,
    chatty,
    films,
    qir,
    vertex,
)

from kgwb.llm import Scripted


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
