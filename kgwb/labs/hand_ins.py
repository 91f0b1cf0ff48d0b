"""What a student did in a lab, as it is kept on disk and handed in, and the files that a class has handed in.

These files are found as they are, or as Moodle, Canvas, ILIAS and nbgrader give them out. Nothing is
unpacked to the disk, and links are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal
from zipfile import BadZipFile, ZipFile, ZipInfo

from pydantic import BaseModel, Field, ValidationError

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.answers import KeptAnswer
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
TOO_LARGE = f"it is too large: more than {MAX_FILE_BYTES:,} bytes"
MIN_STUCK_TRIES = 3
"""After so many tries, a student who has not solved a task counts as stuck."""
StoredText = Annotated[str, Field(max_length=MAX_ANSWER_CHARS + CUT_MARK_CHARS)]


class TaskProgress(BaseModel, extra="forbid"):
    """What a student did in a task."""

    state: Literal["open", "tried", "solved"] = "open"
    tries: Annotated[int, Field(ge=0)] = 0
    hints: Annotated[int, Field(ge=0, le=MAX_HINTS)] = 0
    """How many hints were taken."""
    answers: Annotated[list[StoredText], Field(max_length=MAX_STORED_ANSWERS)] = []
    """The latest answers as texts, oldest first."""
    remark: StoredText = ""
    """The feedback on the latest answer; empty if it was right."""
    data: KeptAnswer = None
    """The answer that counts, as data: the latest right one, else the latest one."""
    first_agent: Annotated[str, Field(max_length=MAX_STUDENT_CHARS)] = ""
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
    work_id: Annotated[str, Field(max_length=40)] = ""
    """The identity of the work: two students can have one name. Earlier versions wrote none."""
    student: Annotated[str, Field(max_length=MAX_STUDENT_CHARS)] = ""
    """The name of the student; empty until the work is handed in."""
    kgwb_version: Annotated[str, Field(max_length=40)] = ""
    """The version that wrote the file. Versions before 0.2.0 wrote none, and no answers as data."""
    written: Annotated[str, Field(max_length=40)] = ""
    """When the file was written, in UTC, as in "2026-11-24T19:30:00Z"; empty if it is not known."""
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
    try:
        size = disk.check_regular_file(path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise _not_a_hand_in(path.name, TOO_LARGE)
        data = path.read_bytes()
    except OSError as exc:
        reason = exc.strerror or exc
        raise InputError(
            f"cannot read the hand-in {path}: {reason}", hint="check the path"
        ) from exc
    return parse_hand_in(path.name, data)


def parse_hand_in(name: str, data: bytes) -> HandIn:
    """Return the hand-in that the bytes of a JSON file describe. Nothing in it is executed.

    ``name`` is the file's, for the error. Raises InputError for more than MAX_FILE_BYTES bytes, and
    for data that are no hand-in, with the reason.
    """
    if len(data) > MAX_FILE_BYTES:
        raise _not_a_hand_in(name, TOO_LARGE)
    try:
        return HandIn.model_validate_json(data)
    except ValidationError as exc:
        raise _not_a_hand_in(name, describe_validation_error(exc)) from exc


def _not_a_hand_in(name: str, reason: str) -> InputError:
    """Return the error for a file that is not a hand-in."""
    hint = 'name a file that lab.hand_in("NAME") has written, and that was not edited'
    return InputError(f"{name} is not a hand-in: {reason}", hint=hint)


MAX_MEMBERS = 5_000
"""Files of a zip that are looked at."""
MAX_NESTED_BYTES = 20_000_000
"""The greatest size of a zip within a zip."""
MOODLE_FOLDER = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(file|onlinetext)_?(.*)")
"""As in "Ada Lovelace_1234_assignsubmission_file"; the id is that of the submission's student."""
CANVAS_FILE = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
"""As in "lovelaceada_LATE_1234_56789_lab1-Ada.json"."""
NBGRADER_FOLDER = re.compile(
    r"(?P<id>[^+]+)\+[^+]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^+]*(\+.*)?"
)
"""As in "ada+ps1+2026-11-24 19:30:00.123456 UTC+random" of nbgrader's exchange."""
ILIAS_FOLDER = re.compile(r"[^_]+_.*?_?(?P<id>[^_]+)_\d+")
"""As in "Lovelace_Ada_alovelace_1234"; the id is the account's name."""
SKIPPED_FOLDERS = {"__MACOSX", "__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be a hand-in."""

    place: str
    """Its path in the folder, through zips: "class.zip/Ada_1_assignsubmission_file/lab1.json"."""
    data: bytes = b""
    problem: str = ""
    """Why it was not read; empty if it was."""
    student_id: str = ""
    """Who handed it in, as the learning platform or the folder says; empty if neither does."""
    changed: str = ""
    """When it was handed in or last changed, in UTC, ISO 8601."""
    is_time_of_platform: bool = False
    """Whether the platform says when it was handed in, which a student cannot change."""
    is_late: bool = False
    """Whether the platform says that it was late."""

    @property
    def name(self) -> str:
        """The name of the file without its folders."""
        return PurePosixPath(self.place).name


def find_files(folder: Path) -> list[FoundFile]:
    """Return the files in a folder, its subfolders and its zips that end in ".json", the earliest first.

    ``folder`` may be a zip itself. They are sorted by time and then by path. Files that cannot be
    read, links, and submissions of a learning platform without such a file are in the list too,
    with ``problem`` set. Hidden files and folders are passed over. Raises InputError if the folder
    cannot be read, or if there is no such file.
    """
    hint = "name the folder or zip with the students' files, which end in .json"
    if not folder.exists():
        raise InputError(f"cannot read {folder}: there is no such folder", hint=hint)
    found: list[FoundFile] = []
    try:
        if folder.is_file():
            found += _read_path(folder, folder.name)
        else:
            for path in _list_paths(folder):
                place = path.relative_to(folder).as_posix()
                found += _read_path(path, place)
    except OSError as exc:
        reason = exc.strerror or exc
        raise InputError(f"cannot read {folder}: {reason}", hint=hint) from exc
    if not found:
        raise InputError(f"there are no hand-ins in {folder}", hint=hint)
    found += _find_empty_submissions(folder, found)
    on_platforms = map(_add_platform_details, found)
    return sorted(on_platforms, key=lambda file: (file.changed, file.place))


def _list_paths(folder: Path) -> Iterator[Path]:
    """Yield the paths of the files in a folder and its subfolders, sorted by name within each folder.

    Hidden files and folders and SKIPPED_FOLDERS are left out. A link to a folder is yielded as a
    path, and not followed. Raises OSError for a folder that cannot be read.
    """
    for parent, folders, files in os.walk(folder, onerror=_raise):
        kept = []
        for name in sorted(folders):
            if name.startswith(".") or name in SKIPPED_FOLDERS:
                continue
            if (Path(parent) / name).is_symlink():
                yield Path(parent) / name
            else:
                kept.append(name)
        folders[:] = kept
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(parent) / name


def _raise(error: OSError) -> None:
    raise error


def _read_path(path: Path, place: str) -> Iterator[FoundFile]:
    """Read the file at a path if it ends in ".json", or those in a zip, and yield them; others yield nothing.

    A link, what is no regular file, a file of more than MAX_FILE_BYTES, and one that cannot be read
    are yielded with a problem and without data. ``place`` is the path that is shown.
    """
    suffix = path.suffix.casefold()
    if path.is_symlink():
        if suffix in (".json", ".zip") or path.is_dir():
            yield FoundFile(place, problem="it is a link, which is not followed")
        return
    if suffix == ".zip":
        yield from _read_zip(path, place)
        return
    if suffix != ".json":
        return
    if not path.is_file():
        yield FoundFile(place, problem="it is no regular file")
        return
    status = path.stat()
    changed = _format_time(datetime.fromtimestamp(status.st_mtime, UTC))
    if status.st_size > MAX_FILE_BYTES:
        yield FoundFile(place, problem=TOO_LARGE, changed=changed)
        return
    try:
        yield FoundFile(place, path.read_bytes(), changed=changed)
    except OSError as exc:
        yield FoundFile(place, problem=f"it cannot be read: {exc.strerror or exc}", changed=changed)


def _read_zip(
    source: Path | BytesIO, place: str, *, is_nested: bool = False
) -> Iterator[FoundFile]:
    """Yield the files in a zip that end in ".json", and those in zips inside of it, but no deeper.

    Nothing is written to the disk. Only the first MAX_MEMBERS members are read; if there are more,
    or the zip cannot be read, a file with that problem is yielded. ``is_nested`` says that this zip
    is inside of another.
    """
    try:
        with ZipFile(source) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                yield FoundFile(place, problem=f"only its first {MAX_MEMBERS:,} files were read")
            for member in members[:MAX_MEMBERS]:
                yield from _read_member(archive, member, place, is_nested=is_nested)
    except (BadZipFile, OSError, NotImplementedError) as exc:
        yield FoundFile(place, problem=f"it is not a zip that can be read: {exc}")


def _read_member(
    archive: ZipFile, member: ZipInfo, place: str, *, is_nested: bool
) -> Iterator[FoundFile]:
    """Unpack a member of a zip in memory, and yield it if it ends in ".json", or the files of a zip in it.

    Hidden members and folders are left out. One that is too large, cannot be unpacked, or is a zip
    in an already nested zip is yielded with that problem.
    """
    path = PurePosixPath(member.filename)
    is_hidden = any(part.startswith(".") or part in SKIPPED_FOLDERS for part in path.parts)
    suffix = path.suffix.casefold()
    if member.is_dir() or is_hidden or suffix not in (".json", ".zip"):
        return
    member_place = f"{place}/{path}"
    changed = _time_of_member(member)
    max_bytes = MAX_FILE_BYTES if suffix == ".json" else MAX_NESTED_BYTES
    try:
        with archive.open(member) as file:
            data = file.read(max_bytes + 1)  # what the zip says of its size may be false
    except (BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as exc:
        yield FoundFile(member_place, problem=f"it cannot be unpacked: {exc}", changed=changed)
        return
    if len(data) > max_bytes:
        yield FoundFile(member_place, problem=TOO_LARGE, changed=changed)
    elif suffix == ".json":
        yield FoundFile(member_place, data, changed=changed)
    elif is_nested:
        yield FoundFile(member_place, problem="it is a zip in a zip in a zip", changed=changed)
    else:
        yield from _read_zip(BytesIO(data), member_place, is_nested=True)


def _find_empty_submissions(folder: Path, found: list[FoundFile]) -> Iterator[FoundFile]:
    """Yield a file with a problem for each submission's folder in which no file was found.

    Submissions are the subfolders of ``folder`` whose names have the form of Moodle's or
    nbgrader's.
    """
    if not folder.is_dir():
        return
    for submission in sorted(folder.iterdir()):
        is_submission = MOODLE_FOLDER.fullmatch(submission.name) or NBGRADER_FOLDER.fullmatch(
            submission.name
        )
        if not is_submission or not submission.is_dir():
            continue
        if not any(file.place.startswith(f"{submission.name}/") for file in found):
            yield FoundFile(submission.name, problem="no hand-in is in this submission")


def _add_platform_details(file: FoundFile) -> FoundFile:
    """Return a copy of a file with what its path says about student, time and lateness.

    The forms of Moodle, nbgrader, Canvas and ILIAS are tried in this order. A time of nbgrader
    counts as the platform's. In a folder of no known platform, the student's id is the name of the
    first folder, as in the homes of a hub. A file without a folder stays as it is.
    """
    path = PurePosixPath(file.place)
    for part in path.parts:
        moodle = MOODLE_FOLDER.fullmatch(part)
        if moodle:
            return replace(file, student_id=moodle["id"])
        nbgrader = NBGRADER_FOLDER.fullmatch(part)
        if nbgrader:
            time = datetime.fromisoformat(nbgrader["time"]).replace(tzinfo=UTC)
            return replace(
                file,
                student_id=nbgrader["id"],
                changed=_format_time(time),
                is_time_of_platform=True,
            )
    canvas = CANVAS_FILE.fullmatch(path.name)
    if canvas:
        return replace(file, student_id=canvas["id"], is_late=bool(canvas["late"]))
    for part in path.parts[:-1]:
        ilias = ILIAS_FOLDER.fullmatch(part)
        if ilias:
            return replace(file, student_id=ilias["id"])
    folders = [part for part in path.parts[:-1] if not part.casefold().endswith(".zip")]
    if folders:
        return replace(file, student_id=folders[0])
    return file


def _format_time(time: datetime) -> str:
    """Return a time in UTC in ISO 8601 with microseconds."""
    return time.isoformat(timespec="microseconds")


def _time_of_member(member: ZipInfo) -> str:
    """Return when a member of a zip was changed, taken as UTC, in ISO 8601; "" if it has no valid time."""
    try:
        return _format_time(datetime(*member.date_time, tzinfo=UTC))
    except ValueError:
        return ""
