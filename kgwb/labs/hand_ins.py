"""What a student did in a lab, as it is kept on disk and handed in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from kgwb import disk
from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.labs.answers import StoredAnswer
from kgwb.labs.tasks import MAX_HINTS, MAX_NAME_CHARS
from kgwb.records import describe_validation_error

MAX_STORED_ANSWERS = 20
"""Answers that are kept of a task, the latest ones."""
MAX_ANSWER_CHARS = 2_000
"""Characters that are kept of an answer or a remark."""
MAX_STUDENT_CHARS = 200
"""Characters of a student's name; those in the name of the file are fewer."""
CUT_MARK_CHARS = 100
"""Characters that a file may have in addition, for the mark that a text was cut."""
MAX_FILE_BYTES = 1_000_000
VERSION_IN_FILE = re.compile(r'"kgwb_version": ?"([\d.]{1,40})"')
"""The version that wrote a file, found also in a file that cannot be read."""
MIN_STUCK_TRIES = 3
"""After so many tries, a student who has not solved a task counts as stuck."""
StoredText = Annotated[str, Field(max_length=MAX_ANSWER_CHARS + CUT_MARK_CHARS)]
ShortText = Annotated[str, Field(max_length=40)]
"""A time, a version or an identity."""
Name = Annotated[str, Field(max_length=MAX_STUDENT_CHARS)]


class TaskProgress(BaseModel, extra="forbid"):
    """What a student did in a task."""

    state: Literal["open", "tried", "solved"] = "open"
    tries: Annotated[int, Field(ge=0)] = 0
    hints: Annotated[int, Field(ge=0, le=MAX_HINTS)] = 0
    """How many hints were taken."""
    answers: Annotated[list[StoredText], Field(max_length=MAX_STORED_ANSWERS)] = []
    """The latest answers as texts, oldest first."""
    times: Annotated[list[ShortText], Field(max_length=MAX_STORED_ANSWERS)] = []
    """When each of these answers was given, in UTC, to the millisecond. Earlier versions wrote none."""
    remark: StoredText = ""
    """The feedback on the latest answer; empty if it was right."""
    data: StoredAnswer | None = None
    """The answer that counts, as data: the latest right one, else the latest one."""
    first_agent: Name = ""
    """The agent that the first answer, a run, had edited; empty for other answers."""

    discussion: StoredText = ""
    """What the student thinks about the question that the task leaves open."""

    @property
    def is_stuck(self) -> bool:
        """Whether the task is not solved after MIN_STUCK_TRIES tries, or after a hint."""
        return self.state != "solved" and (self.tries >= MIN_STUCK_TRIES or self.hints > 0)


class HandIn(BaseModel, extra="forbid"):
    """A student's work in one lab."""

    kgwb_lab: int | Annotated[str, Field(max_length=MAX_NAME_CHARS)]
    """The number of the lab, or the name of a lab of one's own."""
    work_id: ShortText = ""
    """The identity of the work: two students can have one name. Earlier versions wrote none."""
    student: Name = ""
    """The name of the student; empty until the work is handed in."""
    kgwb_version: ShortText = ""
    """The version that wrote the file. Versions before 0.2.0 wrote none, and no answers as data."""
    written: ShortText = ""
    """When the file was written, in UTC, to the millisecond; empty if it is not known."""
    tasks: Annotated[
        dict[Annotated[str, Field(max_length=MAX_NAME_CHARS + 10)], TaskProgress],
        Field(max_length=50),
    ] = {}

    def progress(self, task: str) -> TaskProgress:
        """Return what the student did in a task; an open task if that is nothing."""
        return self.tasks.get(task, TaskProgress())


def write_file(path: Path, text: str) -> Path:
    """Write a hand-in or a page, as a whole or not at all, and return the path.

    Raises InputError if the file cannot be written.
    """
    with disk.os_errors_as_input_error(f"cannot write {path}", "name another file or folder"):
        disk.write_atomically(path, [text], "replace")
    return path


def read_hand_in(path: Path) -> HandIn:
    """Read and validate a hand-in from a file. Nothing in it is executed.

    Raises InputError if the file cannot be read, has more than MAX_FILE_BYTES bytes, or is not a
    hand-in.
    """
    with (
        disk.os_errors_as_input_error(f"cannot read the hand-in {path}", "check the path"),
        disk.check_regular_file(path).open("rb") as file,
    ):
        data = file.read(MAX_FILE_BYTES + 1)
    return parse_hand_in(path.name, data)


def parse_hand_in(name: str, data: bytes) -> HandIn:
    """Return the hand-in that the bytes of a JSON file describe. Nothing in it is executed.

    They may be in UTF-8, UTF-16 or UTF-32, as editors on Windows write them. ``name`` is the
    file's, for the error. Raises InputError for more than MAX_FILE_BYTES bytes, and for data that
    are no hand-in, with the reason.
    """
    if len(data) > MAX_FILE_BYTES:
        raise _not_a_hand_in(name, f"it is too large: more than {MAX_FILE_BYTES:,} bytes")
    text = data.decode(json.detect_encoding(data), "replace")
    try:
        return HandIn.model_validate_json(text)
    except ValidationError as exc:
        version = VERSION_IN_FILE.search(text)
        reason = describe_validation_error(exc)
        if version and version[1] != __version__:
            reason = f"it was written by kgwb {version[1]}, this is {__version__} ({reason})"
        raise _not_a_hand_in(name, reason) from exc


def _not_a_hand_in(name: str, reason: str) -> InputError:
    """Return the error for a file that is not a hand-in."""
    hint = 'name a file that lab.hand_in("NAME") has written, and that was not edited'
    return InputError(f"{name} is not a hand-in: {reason}", hint=hint)
