"""The translator: when it is asked, and what its replies become."""

from pathlib import Path

import pytest
from small import alone
from tables import read_table

from kgwb import profile
from kgwb.run.answers import Question
from kgwb.systems.chatty_kg import chat


@pytest.mark.parametrize(
    ("question", "translate", "is_asked"),
    read_table(Path(__file__).with_name("translated_questions.jsonl")),
)
def test_the_words_of_a_question_say_whether_it_is_translated(
    question: str, translate: str, is_asked: bool
) -> None:
    reply = {"translator": {"question": "Who directed Arrival? "}}
    translated, _, _ = alone(
        lambda run: chat.translate_question(Question(question), run),
        reply,
        settings=profile("fast", translate=translate),
    )
    english = Question("Who directed Arrival?", original=question)
    assert translated == (english if is_asked else Question(question))
