"""Trying a prompt of lab 2 with a model: what the check of its form cannot see."""

from __future__ import annotations

from dataclasses import dataclass

from kgwb.errors import KgwbError
from kgwb.labs.recorded import load_questions
from kgwb.labs.tasks import open_sample
from kgwb.llm import ChatModel
from kgwb.llm import model as open_model
from kgwb.workbench import Workbench

TRIED_QUESTIONS = (0, 1, 3, 6)
"""Places of questions over films that stand alone: a date, a look-up, a join, one without an answer."""
PROMPT_NAME = "chatty_kg/qir"


@dataclass(frozen=True, slots=True)
class TriedQuestion:
    """What came of a question with a student's prompt."""

    question: str
    attempts: int
    """How many replies the model needed until one was accepted; 0 if none was."""
    answer: str
    """The answer, or the error that there was instead."""
    is_right: bool


def try_prompt(text: str, model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model some questions with a prompt file for the QIR agent, and return what came of them.

    The other agents ask no model: they are ``rules``. Raises PromptError for an invalid prompt, and
    what opening the model raises.
    """
    opened = open_model(model)
    return [_try_question(opened, text, place) for place in TRIED_QUESTIONS]


def _try_question(model: ChatModel, text: str, place: int) -> TriedQuestion:
    """Ask the question at a place of the recorded ones, as a dialogue of its own."""
    row = load_questions("films")[place]
    workbench = Workbench(open_sample("films"), "rules", models={"qir": model})
    run = workbench.begin(row["question"]).edit_prompt(PROMPT_NAME, text)
    try:
        run.go()
    except KgwbError as exc:
        return TriedQuestion(row["question"], 0, exc.message, is_right=False)
    labels = set(run.answer.labels) if run.answer else set()
    is_right = labels == set(row["answer_labels"])
    return TriedQuestion(row["question"], len(run["qir"].attempts), str(run.answer), is_right)
