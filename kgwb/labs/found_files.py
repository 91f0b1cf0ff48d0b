"""The students' files in a folder: as they are, or as Moodle, Canvas, ILIAS and nbgrader give them out.

Nothing is unpacked to the disk, and links are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from kgwb.errors import InputError
from kgwb.labs.hand_ins import MAX_FILE_BYTES, TOO_LARGE

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
