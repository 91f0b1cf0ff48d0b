"""The files that a class has handed in, and whose they are.

They are read as they are, or as Moodle, Canvas, ILIAS, nbgrader and otter give them out: from a
folder or a zip, in one way for both. Nothing is unpacked to the disk, and links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from itertools import takewhile
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo
from zoneinfo import ZoneInfo

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.hand_ins import MAX_FILE_BYTES, TOO_LARGE, HandIn, parse_hand_in
from kgwb.labs.tasks import Lab
from kgwb.records import frozen
from kgwb.text import look_of

MAX_MEMBERS = 5_000
"""Files of a zip that are looked at."""
MAX_NESTED_BYTES = 20_000_000
"""The greatest size of a zip within a zip."""
MIN_CLASS_NAMES = 3
"""A folder in which works have so many students' names is a class, and not a student's."""
MOODLE_FOLDER = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(file|onlinetext)_?(.*)")
"""As in "Ada Lovelace_1234_assignsubmission_file"; the id is that of the submission's student."""
CANVAS_FILE = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
"""As in "lovelaceada_LATE_1234_56789_lab1-Ada.json"."""
NBGRADER_FOLDER = re.compile(
    r"(?P<id>.+)\+[^+]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^+]*(\+.*)?"
)
"""As in "ada+ps1+2026-11-24 19:30:00.123456 UTC+random" of nbgrader's exchange."""
NBGRADER_COURSE = re.compile(r"([^/]+\.zip/)?submitted/(?P<id>[^/]+)/.+")
"""As in "submitted/ada/ps1/ps1.ipynb" of nbgrader's folder of a course."""
NBGRADER_TIME_FILE = "timestamp.txt"
"""The file beside a submission that says when nbgrader got it."""
ILIAS_FOLDER = re.compile(r"[^_]+_.*?_?(?P<id>[^_]+)_\d+")
"""As in "Lovelace_Ada_alovelace_1234"; the id is the account's name."""
OTTER_NAME_FILE = "__zip_filename__"
"""A file that otter adds to each zip."""
SKIPPED_NAMES = {"__MACOSX", "__pycache__", "node_modules", OTTER_NAME_FILE}
FILE_STEM = re.compile(r"(?P<stem>.+?)\s*(\(\d+\))?(\.json|\.tar)?(\.\w+)?")
"""A file's name; the stem is without endings, and without the number that a browser adds."""
READ_ERRORS = (
    BadZipFile,
    EOFError,
    LZMAError,
    NotImplementedError,
    OSError,
    RuntimeError,
    zlib.error,
)
"""What reading a zip or a file can raise."""


@frozen
class FoundFile:
    """A file that was handed in, or an empty folder, whose ``place`` then ends in "/"."""

    place: str
    """Its path in the folder, through zips: "class.zip/Ada_1_assignsubmission_file/lab1.json"."""
    data: bytes = b""
    hand_in: HandIn | None = None
    """What it holds; None if it is no hand-in."""
    problem: str = ""
    """Why it could not be read; empty if it was, and of a file that does not end in ".json"."""
    student_id: str = ""
    """Who handed it in, as the learning platform, the folder or the file's name says; empty if none does."""
    student_name: str = ""
    """The student's name, if the learning platform says it."""
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


def read_submissions(
    folder: Path, open_lab: Callable[[int | str], Lab], skipped: Collection[Path] = ()
) -> list[FoundFile]:
    """Read all files in a folder or a zip, and return them with what they hold and whose they are.

    They are sorted by time and then by path. Hidden files and folders and those at the paths ``skipped`` are
    passed over, and in nbgrader's folder of a course all but "submitted". Raises InputError if the
    folder cannot be read or has no files.
    """
    hint = "name the folder or zip with the students' files, which end in .json"
    files = []
    times = {}
    with disk.os_errors_as_input_error(f"cannot read {folder}", hint):
        root = folder.resolve()
        for entry in _list_path(folder):
            path = root / entry.place
            if not {path, *path.parents}.isdisjoint(skipped):
                continue
            for file in _read_entry(entry):
                if file.name == NBGRADER_TIME_FILE:
                    times[PurePosixPath(file.place).parent] = _parse_nbgrader_time(file.data)
                else:
                    files.append(_parse_file(file, open_lab))
    if not files:
        raise InputError(f"there are no hand-ins in {folder}", hint=hint)
    in_course = [file for file in files if NBGRADER_COURSE.fullmatch(file.place)]
    timed = []
    for file in in_course or files:
        time = times.get(PurePosixPath(file.place).parent)
        timed.append(replace(file, changed=time, is_time_of_platform=True) if time else file)
    first_parts = {PurePosixPath(file.place).parts[0] for file in files}
    is_one_zip = len(first_parts) == 1 and first_parts.pop().casefold().endswith(".zip")
    with_students = _add_students(timed, depth=int(is_one_zip))
    return sorted(with_students, key=lambda file: (file.changed, file.place))


def _parse_file(file: FoundFile, open_lab: Callable[[int | str], Lab]) -> FoundFile:
    """Return a file with the hand-in that its data describe, or with the reason why they describe none.

    The data are removed. A hand-in must be for a known lab, and have no tasks that its lab lacks.
    """
    if not file.data:
        return file
    try:
        hand_in = parse_hand_in(file.name, file.data)
        known = open_lab(hand_in.kgwb_lab).tasks
        for name in hand_in.tasks:
            if name not in known:
                raise InputError(f"lab {hand_in.kgwb_lab} has no task {name!r}", hint="")
    except InputError as exc:
        problem = exc.message.removeprefix(f"{file.name} is ")
        return replace(file, data=b"", problem=problem)
    return replace(file, data=b"", hand_in=hand_in)


# Reading files


class _Entry(NamedTuple):
    """A file or an empty folder, on the disk or in a zip."""

    place: str
    changed: str = ""
    open: Callable[[], Any] | None = None
    """Opens the file; None for an empty folder, and for what must not be opened."""
    problem: str = ""


def _list_path(root: Path) -> Iterator[_Entry]:
    """Yield the file at a path; of a folder, the files in it and its subfolders, and the empty folders.

    They are sorted by name within each folder. Links to folders are yielded as files. Raises
    OSError for what cannot be listed.
    """
    if not root.is_dir():
        yield _entry_of_path(root, root.name)
        return
    for parent, folder_names, file_names in os.walk(root, onerror=_raise):
        folder = Path(parent)
        names = [*filter(_is_shown, file_names)]
        kept: list[str] = []
        for name in sorted(filter(_is_shown, folder_names)):
            target = names if (folder / name).is_symlink() else kept
            target.append(name)
        folder_names[:] = kept
        for name in sorted(names):
            path = folder / name
            yield _entry_of_path(path, path.relative_to(root).as_posix())
        if not names and not kept and folder != root:
            yield _Entry(f"{folder.relative_to(root).as_posix()}/")


def _raise(error: OSError) -> None:
    raise error


def _is_shown(name: str) -> bool:
    """Return whether a file or folder of this name is looked at."""
    return not name.startswith(".") and name not in SKIPPED_NAMES


def _entry_of_path(path: Path, place: str) -> _Entry:
    """Return the entry of a file on the disk. What is no regular file is not opened."""
    status = path.lstat()
    changed = _format_time(datetime.fromtimestamp(status.st_mtime, UTC))
    if stat.S_ISLNK(status.st_mode):
        return _Entry(place, changed, problem="it is a link, which is not followed")
    if not stat.S_ISREG(status.st_mode):
        return _Entry(place, changed, problem="it is no regular file")
    return _Entry(place, changed, partial(open, path, "rb"))


def _list_zip(archive: ZipFile, place: str) -> Iterator[_Entry]:
    """Yield the first MAX_MEMBERS files in a zip, and its folders without files, also the zip as a whole.

    A zip can have several files of one name: a number is added to the names of the later ones.
    """
    folders = {PurePosixPath()}
    filled: set[PurePosixPath] = set()
    files: set[PurePosixPath] = set()
    for member in archive.infolist()[:MAX_MEMBERS]:
        path = PurePosixPath(member.filename.lstrip("/"))
        shown = PurePosixPath(*takewhile(_is_shown, path.parts))
        filled.update(shown.parents)
        if not shown.name or shown != path or member.is_dir():
            folders.add(shown)
            continue
        while path in files:
            path = path.with_stem(f"{path.stem} (2)")
        files.add(path)
        opener = partial(archive.open, member)
        yield _Entry(f"{place}/{path}", _time_of_member(member), opener)
    for folder in sorted(folders - filled):
        yield _Entry(f"{PurePosixPath(place) / folder}/")


def _read_entry(entry: _Entry, zips: int = 0) -> Iterator[FoundFile]:
    """Yield the file of an entry, with its data if it ends in ".json"; of a zip, the files in it.

    ``zips`` is the number of zips that the entry is in. A zip in a zip is unpacked in memory, but
    none in that. A file that is too large or cannot be read is yielded with that problem. A zip
    itself is yielded only with a problem.
    """
    found = FoundFile(entry.place, changed=entry.changed, problem=entry.problem)
    suffix = PurePosixPath(entry.place).suffix.casefold()
    is_zip = suffix == ".zip"
    if is_zip and zips > 1:
        yield replace(found, problem="it is a zip in a zip in a zip")
        return
    is_read = is_zip or suffix == ".json" or found.name == NBGRADER_TIME_FILE
    if entry.open is None or not is_read:
        yield found
        return
    max_bytes = MAX_NESTED_BYTES if is_zip else MAX_FILE_BYTES
    try:
        with entry.open() as file:
            if is_zip and not zips:
                yield from _read_zip(file, found, zips)
                return
            data = file.read(max_bytes + 1)  # what a zip says of its sizes may be false
    except READ_ERRORS as exc:
        yield replace(found, problem=f"it cannot be read: {exc}")
        return
    if len(data) > max_bytes:
        yield replace(found, problem=TOO_LARGE)
    elif is_zip:
        yield from _read_zip(BytesIO(data), found, zips)
    elif data:
        yield replace(found, data=data)
    else:
        yield replace(found, problem="it is empty")


def _read_zip(source: IO[bytes], found: FoundFile, zips: int) -> Iterator[FoundFile]:
    """Yield the files in a zip. If not all can be read, ``found``, the zip, is yielded with that problem."""
    try:
        with ZipFile(source) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                problem = f"only its first {MAX_MEMBERS:,} files were read"
                yield replace(found, problem=problem)
            for entry in _list_zip(archive, found.place):
                yield from _read_entry(entry, zips + 1)
    except READ_ERRORS as exc:
        yield replace(found, problem=f"it is not a zip that can be read: {exc}")


def _format_time(time: datetime) -> str:
    """Return a time in UTC in ISO 8601 with microseconds."""
    return time.isoformat(timespec="microseconds")


def _time_of_member(member: ZipInfo) -> str:
    """Return when a member of a zip was changed, taken as UTC, in ISO 8601; "" if it has no valid time."""
    try:
        return _format_time(datetime(*member.date_time, tzinfo=UTC))
    except ValueError:
        return ""


def _parse_nbgrader_time(data: bytes) -> str:
    """Return the time that nbgrader's file has, as in "2026-11-24 19:30:00.123456 UTC"; "" if it has none."""
    words = data.decode(errors="replace").split()
    try:
        zone = ZoneInfo(words[2]) if len(words) > 2 else UTC
        time = datetime.fromisoformat(" ".join(words[:2]))
        return _format_time(time.replace(tzinfo=time.tzinfo or zone).astimezone(UTC))
    except (ValueError, KeyError, OverflowError):
        return ""


# Whose a file is


def _add_students(files: Iterable[FoundFile], *, depth: int) -> list[FoundFile]:
    """Return copies of the files with what their paths say about student, time and lateness.

    ``depth`` is the number of folders and zips around the students' own. A folder in which works
    have MIN_CLASS_NAMES names or more is such a one, too.
    """
    by_student: dict[str, list[FoundFile]] = {}
    for file in files:
        with_student = _add_student(file, depth)
        by_student.setdefault(with_student.student_id, []).append(with_student)
    result = []
    for group in by_student.values():
        names = {look_of(file.hand_in.student).casefold() for file in group if file.hand_in}
        has_folders = any(file.place.count("/") > depth for file in group)
        if has_folders and len(names - {""}) >= MIN_CLASS_NAMES:
            result += _add_students(group, depth=depth + 1)
        else:
            result += group
    return result


def _add_student(file: FoundFile, depth: int) -> FoundFile:
    """Return a copy of a file with what its path says about student, time and lateness.

    The forms of Moodle, nbgrader, Canvas and ILIAS are tried in this order. A time of nbgrader
    counts as the platform's. In a folder of no known platform, the student's id is the name of the
    folder or zip at ``depth``, as in the homes of a hub, or of a file without one, the stem of the
    file's name. The names that kgwb gives to files say nothing about who handed them in.
    """
    path = PurePosixPath(file.place)
    for part in path.parts:
        moodle = MOODLE_FOLDER.fullmatch(part)
        if moodle:
            return replace(file, student_id=moodle["id"], student_name=moodle["name"])
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
    folders = path.parts if file.place.endswith("/") else path.parts[:-1]
    return replace(file, student_id=_student_of_folder(file, folders, depth))


def _student_of_folder(file: FoundFile, folders: Sequence[str], depth: int) -> str:
    """Return the student's id that the folders of a file say, else that of the file's name.

    nbgrader and ILIAS name folders in ways of their own. Of another folder or zip, it is the name.
    """
    course = NBGRADER_COURSE.fullmatch(file.place)
    if course:
        return course["id"]
    own_folders = folders[depth:]
    for folder in own_folders:
        ilias = ILIAS_FOLDER.fullmatch(folder)
        if ilias:
            return ilias["id"]
    if own_folders:
        return re.sub(r"(?i)\.zip$", "", own_folders[0])
    return _student_of_stem(file)


def _student_of_stem(file: FoundFile) -> str:
    """Return the stem of a file's name, or "" if it is a name that kgwb gives: "lab1", or one with the work's id."""
    name = FILE_STEM.fullmatch(file.name)
    stem = name["stem"] if name else file.name
    hand_in = file.hand_in
    if hand_in:
        lab = hand_in.kgwb_lab
        if stem in (lab, f"lab{lab}") or stem.endswith(hand_in.work_id):
            return ""
    return stem
