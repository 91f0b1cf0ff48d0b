"""The translator: when it is asked, and what its replies become."""

import pytest
from small import alone

from kgwb import profile
from kgwb.run.answers import Question
from kgwb.systems.chatty_kg import chat


@pytest.mark.parametrize(
    ("question", "translate", "is_asked"),
    [
        ("Arrival director", "by_words", False),
        ("Wrote Stephen King It?", "by_words", False),
        ("What does Das Boot mean?", "by_words", False),
        ("1984", "by_words", False),
        ("Wer ist das?", "never", False),
        ("Wer hat Arrival gedreht?", "by_words", True),
        ("Qui est le réalisateur de Arrival ?", "by_words", True),
        ("アライバルの監督は誰ですか", "by_words", True),
        ("अराइवल का निर्देशन किसने किया", "by_words", True),
    ],
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
