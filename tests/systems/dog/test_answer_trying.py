"""Answer trying: yes or no alone, answers copied from the triples, and the triples they stand on."""

from __future__ import annotations

from typing import Any

import pytest
from debate import trying
from small import DOG, alone, iri

from kgwb.errors import InvalidReplyError
from kgwb.flow import Value
from kgwb.systems.dog.answering import try_answer, values_of
from kgwb.systems.dog.records import Filled, Head, Tried

TRIPLES = (("Arrival", "starring", "Amy Adams"), ("Arrival", "starring", "…", "as", "Louise Banks"))
FILLED = Filled("list", head="Arrival", triples=TRIPLES, note="all triples")


def tried(*replies: Any, filled: tuple[Filled, ...] = (FILLED,)) -> tuple[Tried, Any]:
    script = {"answer_trying": list(replies)}
    decision, _, model = alone(lambda run: try_answer("who?", filled, run), script, of=DOG)
    return decision, model


def test_answers_are_names_of_the_triples_letter_case_and_spaces_aside() -> None:
    nothing = Filled("list", reason="nothing further", head="Roma", note="no triple for Roma")
    decision, model = tried(trying("amy  adams", "Louise Banks", "Arrival"), filled=(FILLED, nothing))
    assert (decision.sufficient, len(decision.answers)) == ("yes", 3)
    assert model.requests[0].variables["found"] == [
        {"entity": "Arrival", "triples": [list(triple) for triple in TRIPLES], "note": "all triples"},
        {"entity": "Roma", "triples": [], "note": "no triple for Roma; nothing further"},
    ]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (trying("Jeremy Renner"), "'Jeremy Renner' is not in the triples"),
        (trying("starring"), "'starring' is not in the triples"),
        ({"sufficient": "yes", "reason": "", "answers": []}, "the reply is yes, but gives no answer"),
        ({"sufficient": "no", "reason": "", "answers": ["Amy Adams"]}, "the reply is no, with answers"),
        (
            {"sufficient": "No, yes is too early", "reason": "", "answers": []},
            "Input should be 'yes' or 'no'",
        ),
        ("Yes, and here is why not.", "no JSON"),
    ],
)
def test_a_yes_somewhere_in_a_sentence_or_an_answer_from_elsewhere_is_sent_back(
    reply: Any, problem: str
) -> None:
    assert tried(reply, trying())[0].sufficient == "no"
    with pytest.raises(InvalidReplyError, match=problem):
        tried(reply, reply, reply)


AMY, FILM = iri("amy"), iri("arrival")
PLAYS = (FILM, iri("starring"), AMY)


def test_an_answer_stands_on_all_triples_that_lead_to_it() -> None:
    sicario = (iri("sicario"), iri("starring"), AMY)
    both = [Filled("list", (Value(AMY, "Amy Adams", (triple,)),)) for triple in (PLAYS, sicario)]
    assert values_of(Tried("yes", "", ("Amy Adams",)), both, ()) == (
        Value(AMY, "Amy Adams", (PLAYS, sicario)),
    )


def test_of_vertices_with_one_label_those_count_that_all_entities_lead_to() -> None:
    homonym = Value(iri("other_amy"), "Amy Adams")
    both = [Filled("list", (Value(AMY, "Amy Adams"), homonym)), Filled("list", (Value(AMY, "Amy Adams"),))]
    assert [value.term for value in values_of(Tried("yes", "", ("Amy Adams",)), both, ())] == [AMY]
    assert len(values_of(Tried("yes", "", ("Amy Adams",)), both[:1], ())) == 2


def test_a_head_can_be_the_answer() -> None:
    walked = Filled("list", (Value(AMY, "Amy Adams", (PLAYS,)),))
    heads = (Head("Arrival and Dune", (Value(FILM, "Arrival"), Value(iri("dune"), "Dune"))),)
    assert values_of(Tried("yes", "", ("arrival",)), [walked], heads) == (Value(FILM, "Arrival", (PLAYS,)),)
