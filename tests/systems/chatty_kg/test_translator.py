"""The translator: when it is asked, and what its replies become."""

from collections.abc import Callable
from typing import Any

import pytest
from small import alone

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.run import Run
from kgwb.run.answers import Context, Question, Turn
from kgwb.run.steps import CheckResult
from kgwb.settings import Settings
from kgwb.systems.chatty_kg import chat
from kgwb.systems.chatty_kg.chat import rephrase_question


@pytest.mark.parametrize(
    ("question", "settings"),
    [
        ("Who directed Arrival?", Settings()),
        ("Arrival director", Settings()),
        ("Wrote Stephen King It?", Settings()),
        ("What does Das Boot mean?", Settings()),
        ("Dune?", Settings()),
        ("1984", Settings()),
        ("Wer ist das?", profile("fast", translate="never")),
    ],
)
def test_english_is_not_translated_and_nothing_is_if_switched_off(
    question: str, settings: Settings
) -> None:
    translated, _, model = alone(
        lambda run: chat.translate_question(Question(question), run), settings=settings
    )
    assert (translated, model.call_count()) == (Question(question), 0)


@pytest.mark.parametrize(
    "question",
    [
        "Wer hat Arrival gedreht?",
        "¿Quién dirigió la película Arrival?",
        "Qui est le réalisateur de Arrival ?",
        "Кто снял фильм «Прибытие»?",
        "アライバルの監督は誰ですか",
        "अराइवल का निर्देशन किसने किया",
    ],
)
def test_a_question_in_another_language_is_translated(question: str) -> None:
    english = "Who directed Arrival?"
    reply = {"translator": {"question": f"{english} "}}
    translated, _, model = alone(
        lambda run: chat.translate_question(Question(question), run), reply
    )
    assert translated == Question(english, original=question)
    assert model.call_count() == 1


def test_a_question_that_comes_back_as_it_was_is_not_said_to_be_translated() -> None:
    question = Question("Wer hat Arrival gedreht?")
    same, run, _ = alone(
        lambda run: chat.translate_question(question, run),
        {"translator": {"question": question.text}},
    )
    assert same == question
    [note] = run["translator"].notes
    assert note.startswith("not translated")


@pytest.mark.parametrize(
    "work",
    [
        lambda run: chat.translate_question(Question("Wer ist das?"), run),
        lambda run: rephrase_question("And he?", SPOKEN, run),
    ],
)
def test_an_empty_translation_or_rephrased_question_is_invalid(work: Callable[[Run], Any]) -> None:
    empty = {"translator": {"question": " "}, "rephraser": {"question": "\n"}}
    with pytest.raises(InvalidReplyError) as caught:
        alone(work, empty)
    [problem] = caught.value.attempts[-1].problems
    assert problem == CheckResult("not empty", "the question is empty")


SPOKEN = Context(
    (
        Turn("Who directed Dune?", ("Denis Villeneuve",), entities=("Dune",)),
        Turn("Where was he born?", ("Gentilly",), standalone="Where was Denis Villeneuve born?"),
    )
)
