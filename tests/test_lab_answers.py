"""Right and wrong answers to all tasks of the labs, as data, given in the notebooks' own cells."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_labs import NUMBERS, TASKS, read_code_cells

from kgwb.labs import LabWork
from kgwb.labs.pages import Feedback
from kgwb.labs.texts import list_languages

FILE = Path(__file__).with_name("lab_answers.toml")
ANSWERS = tomllib.loads(FILE.read_text(encoding="utf-8"))
LEAST_ANSWERS = 8
"""Right ones, and as many wrong ones, that each task must have."""


@cache
def run_cells(number: int, language: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the variables of a lab's notebook after its cells, and the cell of each task."""
    variables: dict[str, Any] = {}
    cells = {}
    for source in read_code_cells(number, language):
        task = re.search(r'lab.check\("(.*?)"', source)
        if task:
            cells[task[1]] = source
        else:
            exec(compile(source, "cell", "exec"), variables)
        if 'prefix = "' in source:
            exec(source.splitlines()[0], variables)
    return variables, cells


def give(number: int, language: str, task: str, answer: str) -> Feedback:
    """Return the feedback of a task's cell with this answer in place of the dots."""
    variables, cells = run_cells(number, language)
    scope = dict(variables)
    before_answer = cells[task].partition("answer = ...")[0]
    exec(before_answer, scope)
    exec(ANSWERS[task].get("setup", ""), scope)
    work: LabWork = scope["lab"]
    work.path = None
    try:
        scope["answer"] = eval(answer, scope)
    except Exception as error:
        error.add_note(f"the answer {answer}")
        raise
    return work.check(task, scope["answer"])


def test_every_task_has_enough_right_and_wrong_answers() -> None:
    assert sorted(ANSWERS) == sorted(name for _, name in TASKS)
    for answers in ANSWERS.values():
        assert len(set(answers["right"])) >= LEAST_ANSWERS
        assert len(set(answers["wrong"])) >= LEAST_ANSWERS


@pytest.mark.long
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("language", list_languages())
@pytest.mark.parametrize(("number", "name"), TASKS)
def test_no_answer_is_judged_wrongly(
    number: int, name: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS", raising=False)  # as in the student's kernel
    misjudged = {}
    for state in ("right", "wrong"):
        for answer in ANSWERS[name][state]:
            feedback = give(number, language, name, answer)
            if feedback.state != state:
                misjudged[answer] = feedback.text
    assert not misjudged


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "language",
    [
        "en",
        *(pytest.param(name, marks=pytest.mark.long) for name in list_languages() if name != "en"),
    ],
)
@pytest.mark.parametrize("number", NUMBERS)
def test_after_a_right_answer_the_lesson_and_a_question_are_shown(
    number: int, language: str
) -> None:
    for name in [task for lab, task in TASKS if lab == number]:
        lesson = run_cells(number, language)[0]["lab"].lab.tasks[name].lesson
        assert set(lesson) == {"found", "lesson", "question"}
        sentences = re.findall(r"[.?!](?= |$)", lesson["lesson"])
        assert len(sentences) == 2 and lesson["question"].endswith("?")
