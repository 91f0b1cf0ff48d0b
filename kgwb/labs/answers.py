"""Answers: how one is checked, kept as data, and checked again from its data."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from kgwb.errors import InputError, KgwbError
from kgwb.labs.forms import EXAMPLES, fit_form
from kgwb.labs.tasks import Task
from kgwb.labs.texts import say
from kgwb.records import to_data
from kgwb.run import Run
from kgwb.run.agents import agent_of_key

MAX_CHECKED_CHARS = 20_000
"""An answer with more characters is not checked."""
MAX_DATA_CHARS = 40_000
"""Characters of an answer's data as JSON. An answer with more is not kept as data."""


class CheckFailedError(Exception):
    """A check has failed in itself. The cause is for the lecturer; the text is for the student."""

    def __init__(self, task: Task, cause: Exception) -> None:
        error = type(cause).__name__
        super().__init__(task.texts.get("answer.check-failed", task=task.name, error=error))


class StoredRun(BaseModel):
    """A run as its edits: the values that were put in by hand, by the key of the step."""

    model_config = ConfigDict(extra="forbid")
    question: str
    overrides: dict[str, JsonValue] = {}


class StoredAnswer(BaseModel):
    """An answer as data: a value, or the edits of a run."""

    model_config = ConfigDict(extra="forbid")
    value: JsonValue = None
    run: StoredRun | None = None


def _check_size(stored: StoredAnswer | None) -> StoredAnswer | None:
    """Return the answer. Raises ValueError if its JSON has more than MAX_DATA_CHARS characters."""
    if stored and len(stored.model_dump_json()) > MAX_DATA_CHARS:
        raise ValueError(f"an answer has more than {MAX_DATA_CHARS:,} characters")
    return stored


KeptAnswer = Annotated[StoredAnswer | None, AfterValidator(_check_size)]
"""An answer that is kept in a file, or None if there is none, or none that has a form as data."""


def check_answer(task: Task, answer: object) -> str:
    """Check an answer of any type, and return what is wrong with it, as a text for the student; "" if it is right.

    A text of more than MAX_CHECKED_CHARS characters, and a value of another type than the task's,
    are wrong without a check. The task's own check gets the value that ``read_value`` reads, or the
    run itself. A KgwbError that it raises, as for an invalid query, is what is wrong. Raises
    CheckFailedError for any other error.
    """
    texts = task.texts
    if isinstance(answer, str) and len(answer) > MAX_CHECKED_CHARS:
        return texts.get("answer.too-long", number=len(answer), most=MAX_CHECKED_CHARS)
    if task.answer_type is Run:
        if not isinstance(answer, Run):
            return texts.get("answer.no-run", type=type(answer).__name__)
        typed_answer: Any = answer
    else:
        try:
            typed_answer = read_value(task, answer)
        except ValueError:
            example = say(EXAMPLES.get(task.answer_type, "example.other"))
            return texts.get("answer.unread", type=type(answer).__name__, example=example)
    try:
        return texts.render(task.check(typed_answer))
    except KgwbError as exc:
        return texts.get("answer.error", error=exc)
    except Exception as exc:
        raise CheckFailedError(task, exc) from exc


def read_value(task: Task, answer: object) -> Any:
    """Convert an answer to the task's type, by way of its JSON form, and return it.

    So a list, a tuple and a set are the same, and an IRI of a graph is a text. ``fit_form`` says
    which other forms are read, such as a text with numbers for a list of them. Raises ValueError
    for an answer that has no JSON form, or is of another type.
    """
    adapter = TypeAdapter(task.answer_type)
    conjunctions = task.texts.get("form.conjunctions").split()
    data = fit_form(_to_json_data(answer), task.answer_type, conjunctions)
    return adapter.validate_json(json.dumps(data), strict=True)


def _to_json_data(answer: object) -> Any:
    """Return the JSON data of a value. Raises ValueError for one that has no JSON form."""
    try:
        return to_jsonable_python(answer)
    except (PydanticSerializationError, RecursionError) as exc:
        raise ValueError("the value has no JSON form") from exc


def store_answer(answer: object) -> StoredAnswer | None:
    """Return an answer as data that can be checked again later; None if it has no such form.

    A run is stored as its question and overrides, any other value as JSON. None is returned for a
    value without a JSON form, for more than MAX_DATA_CHARS characters, and for a run whose edits
    were not executed: what it shows is not what they lead to.
    """
    try:
        if isinstance(answer, Run):
            if answer.has_pending_edits:
                return None
            stored = StoredAnswer(run=_store_run(answer))
        else:
            stored = StoredAnswer(value=_to_json_data(answer))
        return _check_size(stored)
    except ValueError:
        return None


def _store_run(run: Run) -> StoredRun:
    """Return a run's question, and its overrides as JSON data by step key.

    Raises ValueError for an override that has no JSON form.
    """
    overrides = {}
    for key, value in run.overrides.items():
        output_type = run.system.agent_spec(key).output_type
        overrides[key] = _to_json_data(to_data(value, output_type))
    return StoredRun(question=run.question, overrides=overrides)


def check_stored_answer(task: Task, stored: StoredAnswer) -> str:
    """Check an answer that was kept as data, and return what is wrong with it; "" if it is right.

    A value is checked like a new answer. For a run, the task's run is opened anew, gets the stored
    overrides, and is executed; a KgwbError on the way is what is wrong. Raises CheckFailedError if
    the check fails in itself.
    """
    if stored.run is None:
        return check_answer(task, stored.value)
    if task.open_run is None:
        return task.texts.get("stored.run")
    run = task.open_run()
    if stored.run.question != run.question:
        return task.texts.get("stored.other-question")
    try:
        for step, value in stored.run.overrides.items():
            run.override(step, value)
        run.go()
    except KgwbError as exc:
        return task.texts.get("stored.error", error=exc)
    return check_answer(task, run)


def find_edited_agent(answer: object) -> str:
    """Return the first agent, in the order of the system, that a run has an override for.

    Return "" for a run without overrides, and for an answer that is no run.
    """
    if not isinstance(answer, Run):
        return ""
    edited_agents = set(map(agent_of_key, answer.overrides))
    for spec in answer.system.agents:
        if spec.name in edited_agents:
            return spec.name
    return ""


def require_task(tasks: dict[str, Task], name: str, lab: object) -> Task:
    """Return a task by its name. Raises InputError, which lists the names, if there is no such task."""
    if name in tasks:
        return tasks[name]
    known = ", ".join(tasks)
    shown_name = str(name)[:40]
    raise InputError(
        f"lab {lab} has no task {shown_name!r}", hint=f"choose one of its tasks: {known}"
    )
