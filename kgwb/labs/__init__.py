"""Teaching labs: tasks that are checked, hints that come one by one, and a file to hand in.

A lab is a value: its tasks with their checks. What a student did in it is a ``Work``, which is kept in a file
beside the notebook as it goes, and is what ``hand_in`` writes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kgwb.errors import InputError, KgwbError
from kgwb.labs.pages import Feedback, render_lab_page
from kgwb.labs.tasks import (
    MAX_ANSWER_CHARS,
    MAX_STORED_ANSWERS,
    HandIn,
    Lab,
    Task,
    TaskProgress,
    load_lab,
    read_hand_in,
    write_file,
)
from kgwb.run import Run
from kgwb.text import remove_controls

MAX_CHECKED_CHARS = 20_000
"""Letters of a text that is checked."""


class LabWork:
    """A student's work in a lab. ``path`` keeps it, so that it survives the kernel; None does not."""

    def __init__(self, lab: Lab, path: Path | None = None) -> None:
        self.lab, self.path = lab, path
        self.submission = HandIn(kgwb_lab=lab.number)
        if path and path.exists():
            kept = read_hand_in(path)
            if kept.kgwb_lab == lab.number:
                self.submission = kept

    def check(self, task: str, answer: object = None) -> Feedback:
        """Check an answer; says that it is right, or what is wrong with it. Raises InputError for no task."""
        asked, tried = self._find_task(task)
        if answer is None or answer is ... or answer == "":  # the cell as it came is no try
            return Feedback(asked, "wrong", "there is no answer yet")
        wrong = _check_answer(asked, answer)
        tried.tries += 1
        tried.state = "tried" if wrong and tried.state != "solved" else "solved"
        tried.answers = [*tried.answers, _answer_to_text(answer)][-MAX_STORED_ANSWERS:]
        tried.remark = _truncate(wrong)
        self._write(self.path)
        return Feedback(asked, "wrong" if wrong else "right", wrong or "right")

    def hint(self, task: str) -> Feedback:
        """The next hint, at most three; the last one again when there are no more."""
        asked, tried = self._find_task(task)
        tried.hints = min(tried.hints + 1, len(asked.hints))
        self._write(self.path)
        number = f"hint {tried.hints} of {len(asked.hints)}: "
        return Feedback(
            asked, "hint", number + asked.hints[tried.hints - 1] if asked.hints else "no hints"
        )

    def hand_in(self, student: str, folder: str | Path = ".") -> Path:
        """Write the file to hand in, named after the student. Raises InputError."""
        name = remove_controls(" ".join(student.split()))[:200]
        if not name:
            raise InputError(
                "a hand-in needs your name", hint='give it: lab.hand_in("Ada Lovelace")'
            )
        self.submission.student = name
        safe = re.sub(r"\W+", "-", name)[:80].strip("-") or "student"
        path = Path(folder) / f"lab{self.lab.number}-{safe}.json"
        self._write(path)
        return path

    def _find_task(self, name: str) -> tuple[Task, TaskProgress]:
        if name not in self.lab.tasks:
            hint = f"the tasks are {', '.join(self.lab.tasks)}"
            raise InputError(f"lab {self.lab.number} has no task {str(name)[:40]!r}", hint=hint)
        return self.lab.tasks[name], self.submission.tasks.setdefault(name, TaskProgress())

    def _write(self, path: Path | None) -> None:
        if path:
            write_file(path, self.submission.model_dump_json(indent=1) + "\n")

    def __repr__(self) -> str:
        solved = sum(tried.state == "solved" for tried in self.submission.tasks.values())
        return f"Lab {self.lab.number}, {self.lab.title}: {solved} of {len(self.lab.tasks)} tasks solved"

    def _repr_html_(self) -> str:
        return render_lab_page(self.lab, self.submission)


def lab(number: int, path: str | Path | None = "") -> LabWork:
    """A lab to work in, by its number, 1 to 3.

    What was done is kept in ``path``, by default "labN.json" in the current folder. Raises InputError.
    """
    return LabWork(
        load_lab(number), Path(path or f"lab{number}.json") if path is not None else None
    )


def _check_answer(task: Task, answer: object) -> str:
    """What is wrong with an answer, of whatever type it is."""
    if isinstance(answer, str) and len(answer) > MAX_CHECKED_CHARS:
        return f"it has {len(answer):,} letters; {MAX_CHECKED_CHARS:,} are the most"
    if task.answer_type is Run:
        if not isinstance(answer, Run):
            return f"give a run, not {_describe_type(answer)}"
    else:
        try:
            answer = TypeAdapter(task.answer_type).validate_python(answer, strict=True)
        except ValidationError as exc:
            where = "".join(f"[{place!r}]" for place in exc.errors()[0]["loc"])
            problem = exc.errors()[0]["msg"].replace("Input", f"answer{where}", 1)
            return f"the comment beside `answer = ...` shows another form than {_describe_type(answer)}: {problem}"
    try:
        return task.check(answer)
    except KgwbError as exc:
        return f"it does not work: {exc}"


def _describe_type(value: object) -> str:
    return f"a {type(value).__name__}"


def _answer_to_text(answer: object) -> str:
    """An answer as it is kept: texts as they are, a run by its question, edits and answer."""
    if isinstance(answer, Run):
        edits = [f"{step}: {value!r}" for step, value in answer.overrides.items()]
        return _truncate("\n".join([answer.question, *edits, f"→ {answer.answer}"]))
    try:
        return _truncate(
            answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        )
    except (TypeError, ValueError, RecursionError):
        return _describe_type(answer)


def _truncate(text: str) -> str:
    text = remove_controls(text)
    return text if len(text) <= MAX_ANSWER_CHARS else text[:MAX_ANSWER_CHARS] + "…"
