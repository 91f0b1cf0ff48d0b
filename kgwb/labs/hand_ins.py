"""What students did in a lab, as it is kept on disk, handed in, and collected from a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.tasks import MAX_HINTS, load_lab
from kgwb.records import describe_validation_error
from kgwb.text import look_of, pluralize, single_line

MAX_STORED_ANSWERS = 20
"""Answers that are kept of a task, the latest ones."""
MAX_ANSWER_CHARS = 2_000
"""Characters that are kept of an answer or a remark."""
MAX_STUDENT_CHARS = 200
"""Characters of a student's name; those in the name of the file are fewer."""
CUT_MARK_CHARS = 100
"""Characters that a file may have in addition, for the mark that a text was cut."""
MAX_FILE_BYTES = 1_000_000
MIN_STUCK_TRIES = 3
"""After so many tries, a student who has not solved a task counts as stuck."""
StoredText = Annotated[str, Field(max_length=MAX_ANSWER_CHARS + CUT_MARK_CHARS)]


class TaskProgress(BaseModel):
    """What a student did in a task."""

    model_config = ConfigDict(extra="forbid")
    state: Literal["open", "tried", "solved"] = "open"
    tries: Annotated[int, Field(ge=0)] = 0
    hints: Annotated[int, Field(ge=0, le=MAX_HINTS)] = 0
    """How many hints were taken."""
    answers: Annotated[list[StoredText], Field(max_length=MAX_STORED_ANSWERS)] = []
    """The latest answers as texts, oldest first."""
    remark: StoredText = ""
    """The feedback on the latest answer; empty if it was right."""

    @property
    def is_stuck(self) -> bool:
        """Whether the task is not solved after MIN_STUCK_TRIES tries, or after a hint."""
        return self.state != "solved" and (self.tries >= MIN_STUCK_TRIES or self.hints > 0)


class HandIn(BaseModel):
    """A student's work in one lab."""

    model_config = ConfigDict(extra="forbid")
    kgwb_lab: int
    """The number of the lab."""
    work_id: Annotated[str, Field(max_length=40)] = ""
    """The identity of the work: two students can have one name. Earlier versions wrote none."""
    student: Annotated[str, Field(max_length=MAX_STUDENT_CHARS)] = ""
    """The name of the student; empty until the work is handed in."""
    tasks: Annotated[
        dict[Annotated[str, Field(max_length=10)], TaskProgress], Field(max_length=50)
    ] = {}

    def progress(self, task: str) -> TaskProgress:
        """Return what the student did in a task; an open task if that is nothing."""
        return self.tasks.get(task, TaskProgress())


def write_file(path: Path, text: str) -> Path:
    """Write a hand-in or a page, as a whole or not at all, and return the path.

    Raises InputError if the file cannot be written.
    """
    with disk.os_errors_as_input_error(f"cannot write {path}", "choose another file or folder"):
        disk.write_atomically(path, [text], "replace")
    return path


def read_hand_in(path: Path) -> HandIn:
    """Read a hand-in from a file. Nothing in it is executed.

    Raises InputError if the file cannot be read, is too large, or is not a hand-in.
    """
    hint = 'lab.hand_in("NAME") writes a valid file'
    try:
        if disk.check_regular_file(path).stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path.name} is not a hand-in: it is too large", hint=hint)
        return HandIn.model_validate_json(path.read_bytes())
    except OSError as exc:
        reason = exc.strerror or exc
        raise InputError(f"cannot read {path}: {reason}", hint="check the path") from exc
    except ValidationError as exc:
        reason = describe_validation_error(exc)
        raise InputError(f"{path.name} is not a hand-in: {reason}", hint=hint) from exc


@dataclass(frozen=True, slots=True)
class CollectedHandIns:
    """The hand-ins of a class in one lab."""

    lab: int
    """The number of the lab."""
    hand_ins: tuple[HandIn, ...]
    """One hand-in of each work. Of students with one name, the name is followed by the file."""
    rejected_files: Mapping[str, str]
    """Why a file in the folder is not a hand-in, by the name of the file."""
    remarks: tuple[str, ...] = ()
    """What is to be known about names that occur more than once, and about files not counted."""

    def stuck_students(self, task: str) -> list[str]:
        """Return the names of the students who are stuck at a task; see TaskProgress.is_stuck."""
        return [work.student for work in self.hand_ins if work.progress(task).is_stuck]

    def with_answers(self, task: str) -> list[HandIn]:
        """Return the hand-ins that have an answer to a task."""
        return [work for work in self.hand_ins if work.progress(task).answers]

    def count_solved(self, task: str) -> int:
        """Return how many students have solved a task."""
        return sum(work.progress(task).state == "solved" for work in self.hand_ins)

    def __str__(self) -> str:
        """Return the number of hand-ins, and a line for each task, remark and rejected file."""
        number = len(self.hand_ins)
        lines = [f"lab {self.lab}: {pluralize(number, 'hand-in')}"]
        for name, task in load_lab(self.lab).tasks.items():
            solved = f"{self.count_solved(name)} of {number} solved"
            stuck = ", ".join(self.stuck_students(name))
            if stuck:
                solved += f", stuck: {single_line(stuck)}"
            lines.append(f"  {name:<5} {task.title:<60.60} {solved}")
        for remark in self.remarks:
            lines.append(f"  {single_line(remark)}")
        for name, reason in self.rejected_files.items():
            lines.append(f"  not read: {single_line(name)}: {single_line(reason)}")
        return "\n".join(lines)


class _HandInFile(NamedTuple):
    """A hand-in, and the name of its file."""

    file_name: str
    hand_in: HandIn


def collect_hand_ins(folder: str | Path) -> list[CollectedHandIns]:
    """Return the hand-ins in a folder, by the number of the lab and the name of the student.

    Of several files of one work under one name, the latest counts. Files of different works are all
    listed, also if their students have the same name; files of earlier versions, which do not name
    their work, are each taken for one. A hand-in without a name is listed by the name of its file.
    Files that are not hand-ins are listed with the first lab. Raises InputError if the folder cannot
    be read or has no file that ends in ".json".
    """
    rejected: dict[str, str] = {}
    labs: dict[int, list[_HandInFile]] = {}
    for file in _json_files_by_age(Path(folder)):
        try:
            hand_in = read_hand_in(file)
            _check_task_names(hand_in)
        except InputError as exc:
            rejected[file.name] = exc.message.removeprefix(f"{file.name} is ")
            continue
        labs.setdefault(hand_in.kgwb_lab, []).append(_HandInFile(file.name, hand_in))

    collected: list[CollectedHandIns] = []
    for number, files in sorted(labs.items()):
        latest, remarks = _keep_latest(files)
        remarks += _remark_on_names(latest)
        hand_ins = _with_distinct_names(latest)
        listed_here = {} if collected else rejected
        collected.append(CollectedHandIns(number, hand_ins, listed_here, tuple(remarks)))
    return collected or [CollectedHandIns(1, (), rejected)]


def _keep_latest(files: Sequence[_HandInFile]) -> tuple[list[_HandInFile], list[str]]:
    """Return the latest file of each work under each name, and a remark on each earlier one.

    The oldest file must come first. Names are compared by their looks (``_look_of_name``). A file without a work's
    identity is never replaced.
    """
    latest: dict[tuple[str, str], _HandInFile] = {}
    remarks = []
    for each in files:
        key = (each.hand_in.work_id, _look_of_name(each.hand_in.student))
        if not each.hand_in.work_id:
            key = ("", each.file_name)
        if key in latest:
            earlier = latest[key].file_name
            remarks.append(f"not counted: {earlier}, an earlier state of {each.file_name}")
        latest[key] = each
    return list(latest.values()), remarks


def _remark_on_names(files: Sequence[_HandInFile]) -> list[str]:
    """Return remarks on the names that several works have, and on works under several names.

    They name the files. Empty if there is nothing to remark.
    """
    remarks = []
    for same_name in _group_by_name(files).values():
        if len(same_name) > 1:
            file_names = ", ".join(each.file_name for each in same_name)
            student = same_name[0].hand_in.student
            remarks.append(f"{len(same_name)} hand-ins have the name {student}: {file_names}")
    by_work: dict[str, list[_HandInFile]] = {}
    for each in files:
        by_work.setdefault(each.hand_in.work_id, []).append(each)
    for work_id, same_work in by_work.items():
        if work_id and len(same_work) > 1:
            shown = ", ".join(f"{each.hand_in.student!r} ({each.file_name})" for each in same_work)
            remarks.append(f"one work was handed in under {len(same_work)} names: {shown}")
    return remarks


def _with_distinct_names(files: Sequence[_HandInFile]) -> tuple[HandIn, ...]:
    """Return the hand-ins sorted by name; several of one name have their file after it.

    A hand-in without a name gets that of its file.
    """
    named = []
    for same_name in _group_by_name(files).values():
        for file_name, hand_in in same_name:
            name = hand_in.student
            if not look_of(name):
                name = file_name
            elif len(same_name) > 1:
                name = f"{name} ({file_name})"
            named.append(hand_in.model_copy(update={"student": name}))
    return tuple(sorted(named, key=lambda hand_in: (hand_in.student.casefold(), hand_in.student)))


def _look_of_name(student: str) -> str:
    """Return a form of a name that is equal for names that look the same but for letter case."""
    return look_of(student).casefold()


def _group_by_name(files: Sequence[_HandInFile]) -> dict[tuple[str, str], list[_HandInFile]]:
    """Return the files by the look of the student's name. Each without a name is alone.

    The order of the files stays.
    """
    groups: dict[tuple[str, str], list[_HandInFile]] = {}
    for each in files:
        name = _look_of_name(each.hand_in.student)
        key = (name, "") if name else ("", each.file_name)
        groups.setdefault(key, []).append(each)
    return groups


def _json_files_by_age(folder: Path) -> list[Path]:
    """Return the files in a folder that end in ".json", the oldest first.

    Files of the same age come by name. Subfolders are not searched.

    Raises InputError if the folder cannot be read, or if there is no such file.
    """
    try:
        ages = {file: (file.stat().st_mtime_ns, file.name) for file in folder.glob("*.json")}
    except OSError as exc:
        reason = exc.strerror or exc
        hint = "name the folder with the students' files"
        raise InputError(f"cannot read {folder}: {reason}", hint=hint) from exc
    if not ages:
        hint = "name the folder with the students' files"
        raise InputError(f"there are no hand-ins in {folder}", hint=hint)
    return sorted(ages, key=ages.__getitem__)


def _check_task_names(hand_in: HandIn) -> None:
    """Raise InputError if the hand-in is for an unknown lab, or has a task that its lab lacks."""
    known = load_lab(hand_in.kgwb_lab).tasks
    for name in hand_in.tasks:
        if name not in known:
            raise InputError(f"lab {hand_in.kgwb_lab} has no task {name!r}", hint="")
