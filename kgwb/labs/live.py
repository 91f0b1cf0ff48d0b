"""Trying tasks of labs 2 and 3 with a model that is named: what their checks cannot see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kgwb.errors import InputError, KgwbError
from kgwb.labs.recorded import load_questions
from kgwb.labs.tasks import open_sample
from kgwb.labs.three import MUTED_RUN_NAME
from kgwb.labs.two import GOLD_ANSWERS, MUSIC_QUESTION
from kgwb.llm import ChatModel
from kgwb.llm import model as open_model
from kgwb.run import Run
from kgwb.terms import Triple
from kgwb.workbench import Workbench, recording

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
    """Whether the labels of the answer are those that are right."""


def try_prompt(text: str, model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model some questions with a prompt file for the QIR agent, and return what came of them.

    The other agents ask no model: they are ``rules``. Raises PromptError for an invalid prompt, and
    what opening the model raises.
    """
    opened = open_model(model)
    questions = load_questions("films")
    tried = []
    for place in TRIED_QUESTIONS:
        row = questions[place]
        expected = set(row["answer_labels"])
        tried.append(_try_question(opened, text, row["question"], expected))
    return tried


def try_misleading_prompt(text: str, model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 2.5 with a prompt that should lead it to a wrong answer.

    Raises what ``try_prompt`` raises.
    """
    gold = GOLD_ANSWERS[MUSIC_QUESTION]
    return [_try_question(open_model(model), text, MUSIC_QUESTION, gold)]


def try_muted_triples(triples: Sequence[Triple], model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 3.5 over the graph without some triples.

    All agents of Chatty-KG that ask a model ask this one. Right is what the graph still says: the
    answer of ``rules`` without these triples. Raises what opening the model raises.
    """
    films = open_sample("films")
    recorded = recording(MUTED_RUN_NAME, kg=films, model="rules")
    remaining = recorded.mute(*triples)
    answer = remaining.go().answer
    expected: set[str] = set()
    if answer:
        expected.update(answer.labels)
    workbench = Workbench(films, open_model(model))
    run = workbench.begin(recorded.question)
    return [_finish(run.mute(*triples), expected)]


LIVE: dict[str, Callable[[Any, ChatModel | str], list[TriedQuestion]]] = {
    "2.1": try_prompt,
    "2.5": try_misleading_prompt,
    "3.5": try_muted_triples,
}
"""How a task is tried with a model. The other tasks need none."""


def try_task(task: str, answer: Any, model: ChatModel | str) -> list[TriedQuestion]:
    """Try an answer to a task with a model, and return what came of each question.

    Raises InputError for a task that has no live variant, and what the variant raises.
    """
    if task not in LIVE:
        hint = f"the tasks that can be tried with a model are {', '.join(LIVE)}"
        raise InputError(f"task {task[:40]!r} is not tried with a model", hint=hint)
    return LIVE[task](answer, model)


def _try_question(
    model: ChatModel, text: str, question: str, right_labels: set[str]
) -> TriedQuestion:
    """Ask a question with a student's prompt, as a dialogue of its own."""
    workbench = Workbench(open_sample("films"), "rules", models={"qir": model})
    run = workbench.begin(question).edit_prompt(PROMPT_NAME, text)
    return _finish(run, right_labels)


def _finish(run: Run, right_labels: set[str]) -> TriedQuestion:
    """Execute a run, and return what came of it."""
    try:
        run.go()
    except KgwbError as exc:
        return TriedQuestion(run.question, 0, exc.message, is_right=False)
    labels = set(run.answer.labels) if run.answer else set()
    attempts = len(run["qir"].attempts)
    return TriedQuestion(run.question, attempts, str(run.answer), labels == right_labels)
