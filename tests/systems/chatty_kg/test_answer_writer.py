"""The answer writer: a sentence that has every value."""

from small import (
    alone,
    iri,
)

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
