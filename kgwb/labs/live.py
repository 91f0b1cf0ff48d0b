"""Trying tasks of labs 2 and 3 with a model that is named: what their checks cannot see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kgwb.errors import KgwbError
from kgwb.labs.changed_graphs import RIGHT_ANSWERS, answer_labels
from kgwb.labs.recorded import load_questions
from kgwb.labs.tasks import open_sample
from kgwb.labs.three import MUTED_RUN_NAME
from kgwb.labs.two import MUSIC_QUESTION
from kgwb.llm import ChatModel
from kgwb.llm import model as open_model
from kgwb.records import frozen
from kgwb.run import Run
from kgwb.terms import Triple
from kgwb.workbench import Workbench, recording

TRIED_QUESTIONS = (0, 1, 3, 6)
"""Places of questions over films that stand alone: a date, a look-up, a join, one without an answer."""
PROMPT_NAME = "chatty_kg/qir"


@frozen
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
    """Ask a model TRIED_QUESTIONS with a prompt file for the QIR agent, and return what came of each.

    ``text`` is the text of the file. Each question is asked alone over the graph films; the other
    agents use the model ``rules``. Raises PromptError for an invalid prompt, and what opening the
    model raises.
    """
    questions = load_questions("films")
    rows = [questions[place] for place in TRIED_QUESTIONS]
    return [_try_question(text, model, row["question"], row["answer_labels"]) for row in rows]


def try_misleading_prompt(text: str, model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 2.5 with a prompt that should lead it to a wrong answer.

    Raises what ``try_prompt`` raises.
    """
    right = RIGHT_ANSWERS[MUSIC_QUESTION]
    return [_try_question(text, model, right.question, right.labels)]


def try_muted_triples(triples: Sequence[Triple], model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 3.5 over the graph films without some triples; return one result.

    All agents of Chatty-KG that ask a model ask this one. The answer is right if it equals that of
    ``rules`` without these triples. Raises what opening the model raises.
    """
    films = open_sample("films")
    recorded = recording(MUTED_RUN_NAME, kg=films, model="rules")
    expected = answer_labels(recorded.mute(*triples).go())
    run = Workbench(films, open_model(model)).begin(recorded.question)
    return [_execute_and_judge(run.mute(*triples), expected)]


LIVE: dict[str, Callable[[Any, ChatModel | str], list[TriedQuestion]]] = {
    "2.1": try_prompt,
    "2.5": try_misleading_prompt,
    "3.5": try_muted_triples,
}
"""How a task is tried with a model. The other tasks need none."""


def _try_question(
    text: str,
    model: ChatModel | str,
    question: str,
    right_labels: Iterable[str],
) -> TriedQuestion:
    """Ask a question with the student's prompt for the QIR agent, and judge the answer.

    The QIR agent asks ``model``; all others use ``rules``. Raises PromptError if ``text`` is not a valid
    prompt file.
    """
    workbench = Workbench(open_sample("films"), "rules", models={"qir": open_model(model)})
    run = workbench.begin(question).edit_prompt(PROMPT_NAME, text)
    return _execute_and_judge(run, set(right_labels))


def _execute_and_judge(run: Run, right_labels: set[str]) -> TriedQuestion:
    """Execute a run, and return its answer, the attempts of the QIR agent, and whether the labels are right.

    A run that fails with a KgwbError has the error's message as its answer, 0 attempts, and is
    wrong.
    """
    try:
        run.go()
    except KgwbError as exc:
        return TriedQuestion(run.question, 0, exc.message, is_right=False)
    attempts = len(run["qir"].attempts)
    is_right = answer_labels(run) == right_labels
    return TriedQuestion(run.question, attempts, str(run.answer), is_right)
