"""What a lab is: tasks with their checks, what a student did in them, and the file that is handed in."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgwb import disk
from kgwb.errors import InputError
from kgwb.kg import Graph, open_kg

LAB_MODULES = ("one", "two", "three")
MAX_HINTS = 3
MAX_STORED_ANSWERS, MAX_ANSWER_CHARS = 20, 2_000
"""Answers kept of a task, and letters of each."""
MAX_FILE_BYTES = 1_000_000
"""Bytes of a hand-in."""
AnswerCheck = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a lab."""

    name: str
    """ "1.3": the lab and the place in it."""
    title: str
    check: AnswerCheck
    """What is wrong with an answer, in words that do not give the right one away; empty if it is right."""
    answer_type: Any
    """The type of an answer."""
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab of some 90 minutes; its tasks are functions that ``task`` adds."""

    number: int
    title: str
    tasks: dict[str, Task] = field(default_factory=dict)

    def task(self, title: str, *hints: str) -> Callable[[AnswerCheck], AnswerCheck]:
        """Makes a function the check of the next task; the type of its argument is the form of an answer."""

        def add(check: AnswerCheck) -> AnswerCheck:
            name = f"{self.number}.{len(self.tasks) + 1}"
            form = next(iter(get_type_hints(check).values()))
            self.tasks[name] = Task(name, title, check, form, hints[:MAX_HINTS])
            return check

        return add


class TaskProgress(BaseModel):
    """What a student did in a task."""

    model_config = ConfigDict(extra="forbid")
    state: Literal["open", "tried", "solved"] = "open"
    tries: Annotated[int, Field(ge=0)] = 0
    hints: Annotated[int, Field(ge=0, le=MAX_HINTS)] = 0
    answers: Annotated[
        list[Annotated[str, Field(max_length=MAX_ANSWER_CHARS + 100)]],
        Field(max_length=MAX_STORED_ANSWERS),
    ] = []
    """The latest answers as texts, oldest first."""
    remark: Annotated[str, Field(max_length=MAX_ANSWER_CHARS + 100)] = ""
    """What the latest check said."""


class HandIn(BaseModel):
    """A student's work in one lab, as it is kept on disk and handed in."""

    model_config = ConfigDict(extra="forbid")
    kgwb_lab: int
    student: Annotated[str, Field(max_length=200)] = ""
    tasks: Annotated[
        dict[Annotated[str, Field(max_length=10)], TaskProgress], Field(max_length=50)
    ] = {}


@cache
def open_sample(name: str) -> Graph:
    """A sample graph, opened once for all checks."""
    return open_kg(name)


def load_lab(number: int) -> Lab:
    """A lab with its tasks. Raises InputError."""
    if number not in range(1, len(LAB_MODULES) + 1):
        raise InputError(f"there is no lab {number!r}", hint="the labs are 1, 2 and 3")
    loaded: Lab = importlib.import_module(f"kgwb.labs.{LAB_MODULES[number - 1]}").LAB
    return loaded


def write_file(path: Path, text: str) -> Path:
    """Write a hand-in or a page, whole or not at all. Raises InputError."""
    with disk.os_errors_as_input_error(
        f"cannot write {path}", "give another file, or go to another folder"
    ):
        disk.write_atomically(path, [text], "replace")
    return path


def read_hand_in(path: Path) -> HandIn:
    """A hand-in from a file; nothing in it is executed. Raises InputError for anything else."""
    hint = "ask for it again: lab.hand_in(...) writes it"
    try:
        if disk.check_regular_file(path).stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path.name} is no hand-in: it is too large", hint=hint)
        return HandIn.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise InputError(
            f"cannot read {path}: {exc.strerror or exc}", hint="check the path"
        ) from exc
    except ValidationError as exc:
        problem = exc.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise InputError(
            f"{path.name} is no hand-in: {where} {problem['msg']}".strip(), hint=hint
        ) from exc
