"""Labs and their tasks: a task is a function that checks an answer."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from kgwb.errors import InputError
from kgwb.kg import Graph, open_kg
from kgwb.run import Run

LAB_MODULES = ("one", "two", "three")
MAX_HINTS = 3
MAX_SHOWN_CHARS = 200
"""Characters of an answer that are repeated after it was right."""
Stage = Literal["understand", "link", "query", "answer"]
STAGES: tuple[Stage, ...] = get_args(Stage)
AnswerCheck = Callable[[Any], str]
"""Returns what is wrong with an answer, without giving the right one away; "" if it is right."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a lab."""

    name: str
    """Number of the lab and position in it: "1.3"."""
    title: str
    check: AnswerCheck
    answer_type: Any
    """The type of an answer. Answers of another type are wrong, and are not given to the check."""
    hints: tuple[str, ...]
    """At most MAX_HINTS, each of which says more than the one before."""
    stage: Stage = "answer"
    """The stage of question answering that the task is about."""
    is_free: bool = False
    """Whether students write the answer in words of their own, so that equal ones are remarkable."""
    open_run: Callable[[], Run] | None = None
    """Opens the run that the task is about, as students get it; None if it is about none."""
    lesson: Mapping[str, str] = field(default_factory=dict)
    """What is shown after a right answer: "found", "lesson" and "question". Each may be missing."""

    def describe_lesson(self, answer: str) -> str:
        """Return what is shown after a right answer; "right" if the task has no lesson.

        The answer, as a text, stands for "{answer}".
        """
        parts = ["right"]
        if "found" in self.lesson:
            parts.append(self.lesson["found"].replace("{answer}", shorten(answer)))
        if "lesson" in self.lesson:
            parts.append(self.lesson["lesson"])
        if "question" in self.lesson:
            parts.append(f"To discuss: {self.lesson['question']}")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab of about 90 minutes. Its tasks are added by ``task``."""

    number: int
    title: str
    tasks: dict[str, Task] = field(default_factory=dict)
    """The tasks by name, in their order."""
    prepare: Callable[[], object] | None = None
    """Makes what takes long and several checks need, so that it is made once for a whole class."""

    @property
    def source(self) -> int | str:
        """What ``load_lab`` opens the lab by."""
        return self.number

    def task(
        self,
        title: str,
        *hints: str,
        stage: Stage = "answer",
        is_free: bool = False,
        open_run: Callable[[], Run] | None = None,
    ) -> Callable[[AnswerCheck], AnswerCheck]:
        """Make the decorated function the check of the next task, and return it as it is.

        The annotation of its parameter is the type of an answer. Tasks are named "NUMBER OF THE
        LAB.1", ".2" and so on. At most MAX_HINTS hints are kept. The other arguments are described
        in Task.
        """

        def add_task(check: AnswerCheck) -> AnswerCheck:
            """Add a task with this check and the next number to the lab. Return the check."""
            name = f"{self.number}.{len(self.tasks) + 1}"
            answer_type, *_ = get_type_hints(check).values()
            self.tasks[name] = Task(
                name,
                title,
                check,
                answer_type,
                hints[:MAX_HINTS],
                stage,
                is_free,
                open_run,
                load_lessons().get(name, {}),
            )
            return check

        return add_task


@cache
def load_lessons() -> dict[str, dict[str, str]]:
    """Return what students read after a right answer, by task, from lessons.toml."""
    text = Path(__file__).with_name("lessons.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def shorten(answer: str) -> str:
    """Return an answer in one line, at most MAX_SHOWN_CHARS characters, without brackets."""
    text = " ".join(answer.split())
    if len(text) > MAX_SHOWN_CHARS:
        return text[:MAX_SHOWN_CHARS] + "…"
    return text.strip("[]").replace('"', "")


def load_lab(number: int | str) -> Lab:
    """Return a lab with its tasks. Raises InputError if there is no lab of this number."""
    if not isinstance(number, int) or number not in range(1, len(LAB_MODULES) + 1):
        raise InputError(f"there is no lab {number!r}", hint="the labs are 1, 2 and 3")
    module = importlib.import_module(f"kgwb.labs.{LAB_MODULES[number - 1]}")
    loaded: Lab = module.LAB
    return loaded


# What several checks need


def open_samples() -> None:
    """Open the sample graphs of the labs, so that the checks after it need not."""
    for name in ("films", "scholars"):
        open_sample(name)


@cache
def open_sample(name: str) -> Graph:
    """Open a sample graph. It is opened once for all checks."""
    return open_kg(name)


def compare_choices(
    chosen: Collection[Any],
    right: Collection[Any],
    options: Collection[Any],
    *,
    unknown: str,
    wrong: str,
    missing: str,
) -> str:
    """Return what is wrong with the options that a student chose; "" if they are the right ones.

    The three texts are the feedback if a choice is not an option, if an option is wrongly chosen,
    and if a right one is missing; the first of these counts. "{}" in a text stands for the smallest
    such choice. Order and repetitions of the choices do not count.
    """
    unknown_choices = set(chosen).difference(options)
    if unknown_choices:
        return unknown.format(min(unknown_choices))
    wrong_choices = set(chosen).difference(right)
    if wrong_choices:
        return wrong.format(min(wrong_choices))
    return missing if set(right).difference(chosen) else ""
