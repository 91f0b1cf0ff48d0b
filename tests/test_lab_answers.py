"""Right and wrong answers to all tasks of the labs, as data, given in the notebooks' own cells."""

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_labs import TASKS, read_code_cells

import kgwb
from kgwb.labs import LabWork
from kgwb.labs.answers import MAX_CHECKED_CHARS, NamedNumber, check_answer, read_value
from kgwb.labs.texts import Message, Problem, Texts

FILE = Path(__file__).with_name("lab_answers.toml")
ANSWERS = tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def run_cells(number: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the variables of a lab's notebook after its cells, and the cell of each task."""
    variables: dict[str, Any] = {}
    cells = {}
    for source in read_code_cells(number):
        task = re.search(r'lab.check\("(.*?)"', source)
        if task:
            cells[task[1]] = source
        else:
            exec(compile(source, "cell", "exec"), variables)
        if 'prefix = "' in source:
            exec(source.splitlines()[0], variables)
    return variables, cells


class Keys(Texts):
    """Texts that are their own keys, followed by the keys of the messages in them."""

    def get(self, problem: Problem, /, **values: object) -> str:
        if isinstance(problem, Message):
            return self.get(problem.key, **problem.values)
        if problem.startswith("form."):
            return super().get(problem)
        parts = [problem]
        for value in values.values():
            if isinstance(value, Message) and not value.key.startswith("example."):
                parts.append(self.get(value))
        return " ".join(filter(None, parts))


def give(number: int, task: str, answer: str) -> tuple[str, str]:
    """Return the state of a task's cell with this answer in place of the dots, and the keys of its feedback."""
    variables, cells = run_cells(number)
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
    given = scope["answer"]
    state = work.check(task, given).state
    if state == "right":
        return state, ""
    if isinstance(given, str) and not given:
        return state, "feedback.no-answer"
    keyed = replace(work.lab.tasks[task], texts=Keys("en", work.lab.texts.texts))
    return state, check_answer(keyed, given)


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (("kg2", 2), ("kg2", 2)),
        ((2, "kg2"), ("kg2", 2)),
        (("a", 1e-05), ("a", 1e-05)),
        (("0,5", "a"), ("a", 0.5)),
        ({"kg2": "2"}, ("kg2", 2)),
        ("kg2: 2", ("kg2", 2)),
        ("No Country for Old Men: 2", ("No Country for Old Men", 2)),
        (("Under the Skin", 2), ("Under the Skin", 2)),
    ],
)
def test_the_name_beside_a_number_may_have_digits_and_the_number_an_exponent(
    answer: Any, read: tuple[str, float]
) -> None:
    task = kgwb.lab(3, None).lab.tasks["3.1"]
    assert task.answer_type == NamedNumber
    assert read_value(task, answer) == read


@pytest.mark.timeout(10)
@pytest.mark.parametrize("part", ["not ", "<", " ", "one ", "8,"])
@pytest.mark.parametrize("task", ["1.1", "1.4", "3.1", "3.4", "3.6"])
def test_an_answer_of_many_marks_is_read_at_once(task: str, part: str) -> None:
    text = (part * MAX_CHECKED_CHARS)[: MAX_CHECKED_CHARS - 1] + "x"
    assert kgwb.lab(int(task[0]), None).check(task, text).state == "wrong"


@pytest.mark.long
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("number", "name"), TASKS)
def test_no_answer_is_judged_wrongly_and_each_mistake_has_its_feedback(
    number: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS", raising=False)  # as in the student's kernel
    expected = dict.fromkeys(ANSWERS[name]["right"], "")
    for key, answers in ANSWERS[name]["wrong"].items():
        expected |= dict.fromkeys(answers, key)
    judged = {answer: give(number, name, answer) for answer in expected}
    assert judged == {
        answer: ("wrong" if key else "right", key) for answer, key in expected.items()
    }
