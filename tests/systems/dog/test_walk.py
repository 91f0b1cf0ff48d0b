"""The walk: from the topic entities hop by hop to an answer, or to why there is none."""

from typing import Any

import pytest
from debate import (
    MARKED,
    QUESTION,
    filtering,
    two_hops,
)
from small import answer_of, dog, iri

from kgwb.errors import OverrideError
from kgwb.run.answers import Dialogue, Turn, Value, was_graph_asked
from kgwb.systems.dog.hop import (
    find_answer_values,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    Head,
    TriedAnswer,
)
from kgwb.terms import Triple


def test_dog_reads_each_question_alone() -> None:
    earlier = Dialogue((Turn("Who directed Sicario?", ("Denis Villeneuve",)),))
    model = two_hops()
    run = dog(QUESTION, model, dialogue=earlier).go()
    assert str(run.answer) == "Gentilly"
    assert not any("Sicario" in str(request.messages) for request in model.requests)
    vertices = tuple(map(iri, ("arrival", "denis", "gentilly")))
    assert run.turn == Turn(
        QUESTION, ("Gentilly",), entities=("Arrival",), linked=vertices[:1], vertices=vertices
    )


def test_a_walk_that_ends_after_a_hop_that_found_something_gave_up() -> None:
    model = two_hops(relation_filtering=[filtering("director"), filtering("")])
    run = dog(QUESTION, model).go()
    assert not run.answer
    assert not was_graph_asked(answer_of(run).reason)


@pytest.mark.parametrize(
    ("step", "value", "problem"),
    [
        ("topic_entity", {"question": QUESTION, "entities": ["Arrival"]}, "is not in the question"),
        ("topic_entity", {"question": MARKED, "entities": []}, "no topic entity"),
        (
            "simplifying",
            {"question": " ", "original": MARKED, "debate": []},
            "the question is empty",
        ),
        ("critic", {"role": "critic", "words": "no", "question": ""}, "the question is empty"),
        ("critic", "no", "Remark"),
    ],
)
def test_an_override_is_checked(step: str, value: Any, problem: str) -> None:
    run = dog(QUESTION, two_hops()).go()
    with pytest.raises(OverrideError, match=problem):
        run.override(step, value)
    assert run.overrides == {}


AMY, FILM = iri("amy"), iri("arrival")


PLAYS = (FILM, iri("starring"), AMY)


def amy(*support: Triple) -> FilledTriples:
    return FilledTriples("list", (Value(AMY, "Amy Adams", support),))


YES = TriedAnswer("yes", "", ("Amy Adams",))


def test_of_vertices_with_one_label_the_answer_is_the_one_that_most_entities_lead_to() -> None:
    homonyms = FilledTriples(
        "list", (Value(AMY, "Amy Adams"), Value(iri("other_amy"), "Amy Adams"))
    )
    assert [value.term for value in find_answer_values(YES, [homonyms, amy()], ())] == [AMY]
    assert len(find_answer_values(YES, [homonyms], ())) == 2


def test_a_head_can_be_the_answer() -> None:
    heads = (Head("Arrival and Dune", (Value(FILM, "Arrival"), Value(iri("dune"), "Dune"))),)
    named = find_answer_values(TriedAnswer("yes", "", ("arrival",)), [amy(PLAYS)], heads)
    assert named == (Value(FILM, "Arrival", (PLAYS,)),)
