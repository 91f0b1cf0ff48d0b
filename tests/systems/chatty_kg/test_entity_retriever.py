"""The entity retriever: classes for kinds of things, and what tells homonyms apart."""

import pytest
from small import (
    BOATS,
    boats_asked,
    qir,
    vertex,
)

PHONE = qir("Sam | phone | ?number")


@pytest.mark.parametrize("place", ["Marketing", "HR"])
def test_what_the_question_names_comes_before_other_values(place: str) -> None:
    more = "".join(f':sam2 :memberOf :club{n} . :club{n} rdfs:label "Club {n}" .' for n in range(9))
    more += ':sam2 :memberOf :hr . :hr rdfs:label "HR" .'
    question = f"What is the phone number of Sam from {place}?"
    _, model = boats_asked(
        question, PHONE, BOATS + more, linking__vertex_selection=vertex(2, "Sam")
    )
    assert model.requests[1].variables["candidates"][1]["relations"][0] == f"member of: {place}"
