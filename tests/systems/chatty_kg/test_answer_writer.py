"""The answer writer: a sentence that has every value."""

import pytest
from small import (
    alone,
    iri,
)

from kgwb import profile
from kgwb.run.answers import Answer, Value
from kgwb.systems.chatty_kg import chat

DENIS = Answer("list", (Value(iri("denis"), "Denis Villeneuve"),))


def test_a_sentence_has_every_value() -> None:
    sentence = "Arrival was directed by denis villeneuve."
    sentences = [{"sentence": "He directed it."}, {"sentence": f"{sentence} "}]
    reworded, run, _ = alone(
        lambda run: chat.write_answer(DENIS, "Who directed it?", run), {"answer_writer": sentences}
    )
    assert (reworded.text, reworded.values) == (sentence, DENIS.values)
    [problem] = run["answer_writer"].attempts[0].problems
    assert "Denis Villeneuve" in problem.problem


@pytest.mark.parametrize(
    ("asked_for", "values", "rewordable"),
    [(True, 1, True), (True, 5, True), (True, 6, False), (True, 0, False), (False, 1, False)],
)
def test_only_short_answers_are_reworded_and_only_if_asked_for(
    asked_for: bool, values: int, rewordable: bool
) -> None:
    answer = Answer("list", DENIS.values * values)
    settings = profile("fast", reword_answer=asked_for)
    assert alone(lambda run: chat.can_be_reworded(answer, run), settings=settings)[0] is rewordable
