"""The files that a class has handed in, and whose they are.

They are read as they are, or as Moodle, Canvas, ILIAS, nbgrader and otter give them out: from a
folder or a zip, in one way for both. Nothing is unpacked to the disk, and links are not followed.
"""

from __future__ import annotations

import re
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from itertools import takewhile
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo
from zoneinfo import ZoneInfo

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.hand_ins import MAX_FILE_BYTES, parse_hand_in
from kgwb.labs.rows import Submission, group
from kgwb.labs.tasks import LabOpener
from kgwb.text import look_of

MAX_ZIP_FILES = 5_000
"""Files that are looked at of a zip beside or within another one, such as a student's."""
MAX_CLASS_FILES = 100_000
"""Files that are looked at of the only zip of a class."""
MAX_NESTED_BYTES = 20_000_000
"""The greatest size of a zip within a zip."""
MIN_CLASS_NAMES = 3
"""A folder in which works have so many students' names is a class, and not a student's."""
NBGRADER_COURSE = re.compile(r"^([^/]+\.zip/)?submitted/(?P<id>[^/]+)/.")
"""As in "submitted/ada/ps1/ps1.ipynb" of nbgrader's folder of a course."""
NBGRADER_TIME_FILE = "timestamp.txt"
"""The file beside a submission that says when nbgrader got it."""
PLATFORM_PLACES = (
    # Moodle: "Ada Lovelace_1234_assignsubmission_file"; the id is that of the submission's student.
    re.compile(r"(^|/)(?P<name>[^/]+)_(?P<id>\d+)_assignsubmission_(file|onlinetext)"),
    # nbgrader's exchange: "ada+ps1+2026-11-24 19:30:00.123456 UTC+random".
    re.compile(r"(^|/)(?P<id>[^/]+)\+[^+/]+\+(?P<time>\d{4}-\d\d-\d\d \d\d:[^+/]+)(\+[^/]*)?(/|$)"),
    # Canvas: "lovelaceada_LATE_1234_56789_lab1-Ada.json".
    re.compile(r"(^|/)[^_/]+(?P<late>_LATE)?_(?P<id>\d+)_\d+_[^/]+$"),
    NBGRADER_COURSE,
)
"""What platforms name the files and folders of a student, in the order in which they are tried."""
ILIAS_FOLDER = re.compile(r"[^_]+_.*?_?(?P<id>[^_]+)_\d+")
"""As in "Lovelace_Ada_alovelace_1234"; the id is the account's name."""
OTTER_NAME_FILE = "__zip_filename__"
"""A file that otter adds to each zip."""
SKIPPED_NAMES = {"__MACOSX", "__pycache__", "node_modules", OTTER_NAME_FILE}
FILE_ENDING = re.compile(r"\s{0,9}(\(\d+\))?(\.json|\.tar)?(\.\w+)?$")
"""The endings of a file's name, with the number that a browser adds."""
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


def read_submissions(
    folder: Path,
    open_lab: LabOpener,
    skipped: Collection[Path] = (),
) -> list[Submission]:
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
        paths = _list_paths(root)
        max_files = MAX_CLASS_FILES if len(paths) == 1 else MAX_ZIP_FILES
        for path in paths:
            if not {path, *path.parents}.isdisjoint(skipped):
                continue
            for file in _read_path(path, root, max_files):
                if file.file_name == NBGRADER_TIME_FILE:
                    times[file.folder] = file.data.decode(errors="replace")
                else:
                    files.append(_parse_file(file, open_lab))
    if not files:
        raise InputError(f"there are no hand-ins in {folder}", hint=hint)
    in_course = [file for file in files if NBGRADER_COURSE.search(file.place)]
    timed = []
    for file in in_course or files:
        time = times.get(file.folder, "")
        timed.append(_set_time(file, time))
    first_parts = {file.place.partition("/")[0].casefold() for file in files}
    is_one_zip = len(first_parts) == 1 and first_parts.pop().endswith(".zip")
    with_students = _add_students(timed, int(is_one_zip))
    return sorted(with_students, key=lambda file: (file.changed, file.place))


def _parse_file(file: Submission, open_lab: LabOpener) -> Submission:
    """Return a file with the hand-in that its data describe, or with the reason why they describe none.

    The data are removed. A hand-in must be for a known lab, and have no tasks that its lab lacks.
    """
    if not file.data:
        return file
    try:
        hand_in = parse_hand_in(file.file_name, file.data)
        lab = open_lab(hand_in.kgwb_lab)
        for name in hand_in.tasks:
            lab.find_task(name)
    except InputError as exc:
        problem = exc.message.removeprefix(f"{file.file_name} is ")
        return replace(file, data=b"", problem=problem)
    return replace(file, data=b"", hand_in=hand_in)


# Reading files


def _list_paths(path: Path) -> list[Path]:
    """Return the files at or below a path, links among them, and the folders without files.

    Raises OSError for what cannot be listed.
    """
    inside = []
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            if _is_shown(entry.name):
                inside += _list_paths(entry)
    return inside or [path]


def _is_shown(name: str) -> bool:
    """Return whether a file or folder of this name is looked at."""
    return not name.startswith(".") and name not in SKIPPED_NAMES


def _read_path(path: Path, root: Path, max_files: int) -> Iterator[Submission]:
    """Yield what is at a path on the disk, as ``_read_file`` does, and at most ``max_files`` of a zip.

    What is no regular file is not opened.
    """
    place = path.relative_to(root).as_posix()
    if path == root:
        place = root.name
    status = path.lstat()
    changed = _format_time(datetime.fromtimestamp(status.st_mtime, UTC))
    found = Submission(place, changed=changed)
    if stat.S_ISREG(status.st_mode):
        yield from _read_file(found, lambda: path.open("rb"), max_files)
    elif not stat.S_ISDIR(status.st_mode):
        yield replace(found, problem="it is a link or no regular file")
    elif path != root:
        yield Submission(f"{place}/")


def _read_file(
    found: Submission, open_file: Callable[[], IO[bytes]], max_files: int, zips: int = 0
) -> Iterator[Submission]:
    """Yield a file, with its data if it ends in ".json"; of a zip, the files in it, at most ``max_files``.

    ``zips`` is the number of zips that the file is in. A zip in a zip is unpacked in memory, but
    none in that. A file that is too large or cannot be read is yielded with that problem. A zip
    itself is yielded only with a problem.
    """
    suffix = PurePosixPath(found.place).suffix.casefold()
    is_zip = suffix == ".zip"
    if is_zip and zips > 1:
        yield replace(found, problem="it is a zip in a zip in a zip")
        return
    if not is_zip and suffix != ".json" and found.file_name != NBGRADER_TIME_FILE:
        yield found
        return
    max_bytes = MAX_NESTED_BYTES if is_zip else MAX_FILE_BYTES
    try:
        with open_file() as file:
            if is_zip and not zips:
                yield from _read_zip(file, found, max_files, zips)
                return
            data = file.read(max_bytes + 1)  # what a zip says of its sizes may be false
    except READ_ERRORS as exc:
        yield replace(found, problem=f"it cannot be read: {exc}")
        return
    if len(data) > max_bytes:
        yield replace(found, problem=f"it is too large: more than {max_bytes:,} bytes")
    elif is_zip:
        yield from _read_zip(BytesIO(data), found, max_files, zips)
    else:
        yield replace(found, data=data, problem="" if data else "it is empty")


def _read_zip(
    source: IO[bytes], found: Submission, max_files: int, zips: int
) -> Iterator[Submission]:
    """Yield the first ``max_files`` files in a zip, and its folders without files, also the zip as a whole.

    If it cannot be read, ``found``, the zip, is yielded with that problem. A zip can have several
    files of one name: a number is added to the names of the later ones.
    """
    folders = {PurePosixPath()}
    filled: set[PurePosixPath] = set()
    files: set[PurePosixPath] = set()
    try:
        with ZipFile(source) as archive:
            members = archive.infolist()
            if len(members) > max_files:
                del members[max_files:]
                yield replace(found, problem=f"only its first {max_files:,} files were read")
            for member in members:
                path = PurePosixPath(member.filename.lstrip("/"))
                shown = PurePosixPath(*takewhile(_is_shown, path.parts))
                filled.update(shown.parents)
                if not shown.name or shown != path or member.is_dir():
                    folders.add(shown)
                    continue
                while path in files:
                    path = path.with_stem(f"{path.stem} (2)")
                files.add(path)
                file = Submission(f"{found.place}/{path}", changed=_time_of_member(member))
                open_member = partial(archive.open, member)
                yield from _read_file(file, open_member, MAX_ZIP_FILES, zips + 1)
    except READ_ERRORS as exc:
        yield replace(found, problem=f"it is not a zip that can be read: {exc}")
        return
    for folder in sorted(folders - filled):
        yield Submission(f"{PurePosixPath(found.place) / folder}/")


def _format_time(time: datetime) -> str:
    """Return a time in UTC in ISO 8601 with microseconds."""
    return time.isoformat(timespec="microseconds")


def _time_of_member(member: ZipInfo) -> str:
    """Return when a member of a zip was changed, taken as UTC, in ISO 8601; "" if it has no valid time."""
    with suppress(ValueError):
        return _format_time(datetime(*member.date_time, tzinfo=UTC))
    return ""


def _set_time(file: Submission, text: str) -> Submission:
    """Return a copy of a file with the time that nbgrader says, as in "2026-11-24 19:30:00.123456 UTC".

    The file itself is returned if that is no time.
    """
    words = text.split()
    try:
        time = datetime.fromisoformat(" ".join(words[:2]))
        if time.tzinfo is None:
            zone = ZoneInfo(words[2]) if words[2:] not in ([], ["UTC"]) else UTC
            time = time.replace(tzinfo=zone)
        utc = _format_time(time.astimezone(UTC))
    except (ValueError, KeyError, OverflowError, OSError):  # OSError: the zone is "Europe"
        return file
    return replace(file, changed=utc, is_time_of_platform=True)


# Whose a file is


def _add_students(files: Iterable[Submission], depth: int) -> list[Submission]:
    """Return copies of the files with what their paths say about student, time and lateness.

    ``depth`` is the number of folders and zips around the students' own. A folder in which works
    have MIN_CLASS_NAMES names or more is such a one, too.
    """
    result = []
    with_students = [_add_student(file, depth) for file in files]
    for of_student in group(with_students, lambda file: file.student_id):
        names = {look_of(file.hand_in.student).casefold() for file in of_student}
        deepest = max(file.place.count("/") for file in of_student)
        if deepest > depth and len(names - {""}) >= MIN_CLASS_NAMES:
            result += _add_students(of_student, depth + 1)
        else:
            result += of_student
    return result


def _add_student(file: Submission, depth: int) -> Submission:
    """Return a copy of a file with what its path says about student, time and lateness.

    The forms of PLATFORM_PLACES come first, then the folder of ILIAS. In a folder of no known
    platform, the student's id is the name of the folder or zip at ``depth``, as in the homes of a hub,
    or of a file without one, the stem of the file's name. The names that kgwb gives to files say
    nothing about who handed them in.
    """
    for form in PLATFORM_PLACES:
        found = form.search(file.place)
        if found:
            said = found.groupdict("")
            return replace(
                _set_time(file, said.get("time", "")),
                student_id=said["id"],
                student_name=said.get("name", ""),
                is_late=bool(said.get("late")),
            )
    folders = file.place.split("/")[depth:-1]
    for folder in folders:
        ilias = ILIAS_FOLDER.fullmatch(folder)
        if ilias:
            return replace(file, student_id=ilias["id"])
    if folders:
        student_id = re.sub(r"(?i)\.zip$", "", folders[0])
    else:
        student_id = _student_of_stem(file)
    return replace(file, student_id=student_id)


def _student_of_stem(file: Submission) -> str:
    """Return the stem of a file's name, or "" if it is a name that kgwb gives: "lab1", or one with the work's id."""
    stem = FILE_ENDING.sub("", file.file_name)
    lab = file.hand_in.kgwb_lab
    is_of_kgwb = stem in (lab, f"lab{lab}") or stem.endswith(file.hand_in.work_id)
    if is_of_kgwb and not file.is_missing:
        return ""
    return stem
