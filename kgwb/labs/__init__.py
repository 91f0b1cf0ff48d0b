"""Teaching labs: tasks whose answers are checked, hints one by one, and a file to hand in.

A lab is a value: its tasks with their checks. What a student does in it is a ``LabWork``, which is kept
in a file beside the notebook. ``LabWork.hand_in`` writes the same file under the student's name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.labs.answers import (
    CheckFailedError,
    StoredAnswer,
    check_answer,
    find_first_agent,
    store_answer,
)
from kgwb.labs.hand_ins import (
    MAX_ANSWER_CHARS,
    MAX_STORED_ANSWERS,
    MAX_STUDENT_CHARS,
    HandIn,
    TaskProgress,
    read_hand_in,
    write_file,
)
from kgwb.labs.pages import Feedback, render_lab_page
from kgwb.labs.tasks import Lab, Task, TriedQuestion, load_lab
from kgwb.llm import ChatModel
from kgwb.run import Run
from kgwb.run.steps import utc_now
from kgwb.text import remove_controls, single_line

MAX_FILE_NAME_CHARS = 80
"""Characters of a student's name in the name of a file."""
WORK_ID_BYTES = 4
"""Bytes of a work's identity: in a class of 1,000, two are equal once in 8,000 classes."""


class LabWork:
    """A student's work in a lab."""

    def __init__(self, lab: Lab, path: Path | None = None) -> None:
        """Continue the work in a file, or begin anew if the file is missing or of another lab.

        The work is written to the file after each step; with None it is not kept. Raises InputError
        if the file is not a hand-in.
        """
        self.lab = lab
        self.path = path
        self.submission = HandIn(kgwb_lab=lab.number)
        if path and path.exists():
            kept = read_hand_in(path)
            if kept.kgwb_lab == lab.number:
                self.submission = kept
        if not self.submission.work_id:
            self.submission.work_id = secrets.token_hex(WORK_ID_BYTES)

    def check(self, task: str, answer: object = None) -> Feedback:
        """Check an answer to a task, count it as a try, and write it to the file of the work.

        The feedback says that the answer is right, with the lesson, or what is wrong with it. A
        task that was solved once stays solved, and keeps the data of its latest right answer. The
        last MAX_STORED_ANSWERS answers are kept as texts. An empty answer (None, ``...`` or "") and
        one whose check fails in itself are wrong, but neither counted nor kept. Raises InputError
        if there is no such task, or if the file cannot be written.
        """
        asked, progress = self._open(task)
        is_empty = isinstance(answer, str) and not answer
        if answer is None or answer is ... or is_empty:  # the cell of the notebook as it came
            return Feedback(asked, "wrong", asked.texts.get("feedback.no-answer"))
        answer = _to_muted_triples(asked, answer)
        if isinstance(answer, Iterator):  # it can be read once, but is checked and stored
            answer = list(answer)
        try:
            problem = check_answer(asked, answer)
        except CheckFailedError as exc:
            return Feedback(asked, "wrong", str(exc))
        stored = store_answer(answer)
        if problem and isinstance(answer, Run) and answer.answer is None:
            stored = None  # it would be executed to its end where it is checked again
        if not progress.tries and isinstance(answer, Run):
            progress.first_agent = find_first_agent(answer, answer.overrides)
        if not problem or progress.state != "solved":
            progress.data = stored
            progress.state = "tried" if problem else "solved"
        progress.tries += 1
        progress.answers.append(_answer_to_text(answer, stored))
        progress.times.append(utc_now())
        for kept in (progress.answers, progress.times):
            del kept[:-MAX_STORED_ANSWERS]
        progress.remark = _truncate(problem)
        self._write(self.path)
        if problem:
            return Feedback(asked, "wrong", problem)
        return Feedback(asked, "right", asked.describe_lesson(progress.answers[-1]))

    def discuss(self, task: str, text: str) -> Feedback:
        """Keep a student's text about the question that a task leaves open, and confirm it.

        It is not checked. It replaces an earlier text, is cut at MAX_ANSWER_CHARS characters, and
        is written to the file of the work. Raises InputError if there is no such task, or if the
        file cannot be written.
        """
        asked, progress = self._open(task)
        progress.discussion = _truncate(str(text))
        self._write(self.path)
        return Feedback(asked, "hint", asked.texts.get("feedback.kept"))

    def try_live(
        self,
        task: str,
        answer: Any,
        model: ChatModel | str,
    ) -> list[TriedQuestion]:
        """Try an answer to a task, such as 2.1, 2.5 or 3.5, with a model, and return what came of each question.

        It is neither checked nor kept. ``model`` is a model, or its specification, such as
        "ollama:MODEL". Raises InputError for a task that cannot be tried, and what asking the model raises.
        """
        asked = self.lab.find_task(task)
        if asked.try_live is None:
            raise InputError(
                f"task {task!r} cannot be tried with a model",
                hint="of the labs of kgwb, the tasks 2.1, 2.5 and 3.5 can be tried",
            )
        return asked.try_live(_to_muted_triples(asked, answer), model)

    def hint(self, task: str) -> Feedback:
        """Return the next hint for a task, count it, and write the count to the file of the work.

        After all hints were shown, the last one is returned again. Of a task without hints that is
        said. Raises InputError if there is no such task, or if the file cannot be written.
        """
        asked, progress = self._open(task)
        total = len(asked.hints)
        text = asked.texts.get("feedback.no-hints")
        if total:
            number = min(progress.hints + 1, total)
            progress.hints = number
            hint = asked.hints[number - 1]
            text = asked.texts.get("feedback.hint", number=number, total=total, hint=hint)
        self._write(self.path)
        return Feedback(asked, "hint", text)

    def text(self, key: str) -> str:
        """Return a text that the lab shows, by its key in the catalogue: "claims.A"."""
        return self.lab.texts.get(key)

    def hand_in(self, student: str, folder: str | Path = ".") -> Path:
        """Write the work to LAB-STUDENT-WORK_ID.json in a folder, and return the path.

        The identity of the work keeps students apart whose names are equal, or equal in a file's
        name. The name is cut at MAX_STUDENT_CHARS characters, and is kept in the file of the work,
        too, which is written again. Raises InputError if the name is empty or a file cannot be
        written.
        """
        name = single_line(student)[:MAX_STUDENT_CHARS]
        texts = self.lab.texts
        if not name:
            hint = texts.get("hand-in.no-name.hint")
            raise InputError(texts.get("hand-in.no-name"), hint=hint)
        self.submission.student = name
        plain_name = re.sub(r"\W+", "-", name)
        plain_name = plain_name[:MAX_FILE_NAME_CHARS].strip("-") or "student"
        file_name = f"{self.lab.file_stem}-{plain_name}-{self.submission.work_id}.json"
        path = Path(folder) / file_name
        self._write(self.path)
        self._write(path)
        return path

    def _open(self, task: str) -> tuple[Task, TaskProgress]:
        """Return a task, and what was done in it, to be changed. Raises InputError if there is no such task."""
        found = self.lab.find_task(task)
        return found, self.submission.tasks.setdefault(task, TaskProgress())

    def _write(self, path: Path | None) -> None:
        """Write the work to a file, with the version of kgwb and the present time; do nothing without a path.

        Raises InputError if the file cannot be written.
        """
        if path:
            self.submission.kgwb_version = __version__
            self.submission.written = utc_now()
            text = self.submission.model_dump_json(indent=1)
            write_file(path, f"{text}\n")

    def __repr__(self) -> str:
        """Return the lab's title and how many of its tasks are solved, in the language of the lab."""
        states = [progress.state for progress in self.submission.tasks.values()]
        return self.lab.texts.get(
            "lab.solved",
            number=self.lab.number,
            title=self.lab.title,
            solved=states.count("solved"),
            total=len(self.lab.tasks),
        )

    def _repr_html_(self) -> str:
        return render_lab_page(self.lab, self.submission)


def lab(number: int | str | Path, path: str | Path | None = "", *, language: str = "") -> LabWork:
    """Open a lab to work in, and continue what was done in it before.

    ``number`` is 1 to 3, or the path of a lab of one's own ("my_lab.py"). ``language`` is a code,
    such as "de", or the path of a catalogue, such as "fr.po"; without one, the environment variable
    KGWB_LANGUAGE names it, and it is English by default. The work is kept in the file ``path``, by
    default "labN.json" or "NAME.json" in the current folder; with None it is not kept. An existing
    file at ``path`` is read; a missing one is made at the first check. Raises InputError if there
    is no such lab or language, or if the file is not a hand-in.
    """
    opened = load_lab(number, language)
    if path is None:
        return LabWork(opened)
    file = path or f"{opened.file_stem}.json"
    return LabWork(opened, Path(file))


def _to_muted_triples(asked: Task, answer: Any) -> Any:
    """Return the muted triples of a run, where a task asks for no run; any other answer unchanged."""
    if isinstance(answer, Run) and asked.answer_type is not Run:
        return answer.kg.muted or answer
    return answer


def _answer_to_text(answer: object, stored: StoredAnswer | None) -> str:
    """Return an answer as the text that is kept, cut at MAX_ANSWER_CHARS characters.

    A text is kept as it is, a run as lines with its question, each override and the answer, and any
    other value as the JSON that is stored. Of one that is not stored, the name of the type is returned.
    """
    if isinstance(answer, Run):
        lines = [answer.question]
        for step, value in answer.overrides.items():
            lines.append(f"{step}: {value!r}")
        lines.append(f"→ {answer.answer}")
        answer = "\n".join(lines)
    if isinstance(answer, str):
        return _truncate(answer)
    if stored:
        return _truncate(stored.text)
    return f"a value of type {type(answer).__name__}"


def _truncate(text: str) -> str:
    """Return a text without control characters, cut at MAX_ANSWER_CHARS characters.

    "…" is added to a text that is cut.
    """
    text = remove_controls(text)
    if len(text) <= MAX_ANSWER_CHARS:
        return text
    return text[:MAX_ANSWER_CHARS] + "…"
