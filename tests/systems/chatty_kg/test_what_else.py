"""What else: values of earlier answers are left out."""

from typing import Any

import pytest
from small import PAPER, alone, iri

from kgwb.run.answers import NOT_IN_GRAPH, Answer, Context, Turn, Value
from kgwb.settings import Settings
from kgwb.systems.chatty_kg import chat

SAID = Context(
    (Turn("Who directed Dune?", ("Denis Villeneuve",), vertices=(iri("denis"), iri("dune"))),)
)


def found(*names: str) -> Answer:
    return Answer("list", tuple(Value(iri(name), name) for name in names))


@pytest.mark.parametrize(
    ("question", "context", "settings", "others"),
    [
        ("What else did he direct?", SAID, Settings(), True),
        ("Who besides him?", SAID, Settings(), True),
        ("Which other films did he make?", SAID, Settings(), True),
        ("What did he direct?", SAID, Settings(), False),
        ("What else is there?", Context(), Settings(), False),
        ("What else did he direct?", SAID, PAPER, False),
    ],
)
def test_words_like_else_ask_for_other_values(
    question: str, context: Context, settings: Settings, others: bool
) -> None:
    assert (
        alone(lambda run: chat.asks_for_others(question, context, run), settings=settings)[0]
        is others
    )


def test_values_of_earlier_answers_are_left_out() -> None:
    left, run, _ = alone(
        lambda run: chat.answer_what_else(found("arrival", "dune", "sicario"), SAID, run)
    )
    assert left.labels == ("arrival", "sicario")
    [note] = run["what_else"].notes
    assert note.endswith(": dune")


NOTHING_FOUND = Answer("list", reason=f"{NOT_IN_GRAPH}: x")


@pytest.mark.parametrize("answer", [found("dune"), NOTHING_FOUND])
def test_an_answer_that_has_nothing_new_has_a_reason(answer: Answer) -> None:
    left: Any = alone(lambda run: chat.answer_what_else(answer, SAID, run))[0]
    assert (left.values, left.reason.startswith(NOT_IN_GRAPH)) == ((), True)
    assert (left == answer) is (answer is NOTHING_FOUND)
