"""Files: where those of kgwb are, and its version; reading regular files only; and writing them so
that a full disk or a kill does no damage."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any

from kgwb.errors import InputError, KgwbError
from kgwb.network import read_body

__version__ = "0.1.0"
USER_AGENT = f"kgwb/{__version__}"
"""How kgwb names itself to endpoints."""
PACKAGE_FOLDER = Path(__file__).parent
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of the operating system that mean that no more can be written."""
JSON_ENCODING_ERRORS = "backslashreplace"
"""The ``errors`` argument for JSON: a lone surrogate is written as an escape that JSON can read."""
MAX_UNPACKED_BYTES = 200_000_000
"""The greatest size of a gzipped file when it is unpacked."""
_GZIP_CHUNK_BYTES = 1 << 16
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
"""How a file is opened to write it. O_BINARY, which only Windows has, leaves line ends as they are."""
_APPEND_FLAGS = _WRITE_FLAGS | os.O_APPEND
_NEW_FILE_MODE = 0o666
"""The mode of a new file, less the user's umask; it is that of ``open``."""


def shipped_folder(name: str) -> Path:
    """Return a folder of what comes with kgwb: "notebooks", "prompts", "recordings" or "sample_kgs".

    In a checkout it is beside the package, and otherwise in the package's folder "_data".
    """
    checkout = PACKAGE_FOLDER.parent
    is_checkout = (checkout / "pyproject.toml").is_file()
    folder = checkout / name
    if is_checkout and folder.is_dir():
        return folder
    return PACKAGE_FOLDER / "_data" / name


@cache
def read_table(place: str) -> dict[str, Any]:
    """Return the data of a TOML file of the package, by its path in the package. It is read once."""
    return tomllib.loads((PACKAGE_FOLDER / place).read_text(encoding="utf-8"))


def cache_dir() -> Path:
    """Return the folder for what kgwb can make again: KGWB_CACHE, else "kgwb" in the user's cache.

    The user's cache is XDG_CACHE_HOME or ~/.cache. The folder may not exist yet.
    """
    own_folder = os.environ.get("KGWB_CACHE")
    if own_folder:
        return Path(own_folder)
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "kgwb"


@contextmanager
def os_errors_as_input_error(
    problem: str, hint: str, error: type[KgwbError] = InputError
) -> Iterator[None]:
    """Raise ``error``, "PROBLEM: the reason", in place of an OSError or UnicodeError of the code inside."""
    try:
        yield
    except (OSError, UnicodeError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise error(f"{problem}: {reason}", hint=hint) from exc


def check_regular_file(path: Path) -> Path:
    """Return the path. Raises OSError if a device, a pipe or a socket is there.

    Reading one may never end, and it must not be replaced. A folder passes, because opening it
    raises an error of its own; so does a path where nothing is.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
    return path


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a regular file. Raises OSError or UnicodeDecodeError."""
    return check_regular_file(path).read_text(encoding=encoding)


class AppendedFile:
    """A file to which texts are added at its end. It is kept open from one text to the next.

    If it is deleted, or another file takes its place, the text goes to the file that is at the path
    then. If it is moved, the text follows it. It is not for several threads at the same time.
    """

    def __init__(self, path: Path, errors: str = "strict") -> None:
        """Do not open the file yet. ``errors`` is as for ``open``."""
        self.path = path
        self._errors = errors
        self._descriptor: int | None = None
        """The open file; None if it is closed."""

    def append(self, text: str) -> None:
        """Add text at the end of the file, which is created with its folders if it is missing.

        The system has the whole text when this returns, so that a kill does not lose it. Raises
        OSError; the file is then as it was before. If the process is killed meanwhile, a part of
        the text may be written.
        """
        data = text.encode("utf-8", self._errors)
        descriptor, size = self._open()
        try:
            while data:
                written = os.write(descriptor, data)
                data = data[written:]
        except OSError:
            with suppress(OSError):  # half a line must not stay in the middle of the file
                os.ftruncate(descriptor, size)
            raise

    def create(self, text: str) -> bool:
        """Write a new file, unless something is at the path; return whether it was written.

        The file stays open. This takes a third of the time of ``write_atomically``, which can also
        replace a file. Raises OSError; there is then no file.
        """
        try:
            self._open_at_path(_APPEND_FLAGS | os.O_EXCL)
        except FileExistsError:
            return False
        try:
            self.append(text)
        except OSError:
            self.close()
            with suppress(OSError):
                self.path.unlink()
            raise
        return True

    def close(self) -> None:
        """Close the file. The next text opens it again."""
        if self._descriptor is not None:
            descriptor = self._descriptor
            self._descriptor = None
            os.close(descriptor)

    __del__ = close

    def _open(self) -> tuple[int, int]:
        """Return the descriptor of the open file, and its size.

        The number of its names on the disk is 0 once it was deleted or replaced. Looking the path
        up anew would take four times as long.
        """
        if self._descriptor is not None:
            status = os.fstat(self._descriptor)
            if status.st_nlink:
                return self._descriptor, status.st_size
        self.close()
        check_regular_file(self.path)
        descriptor = self._open_at_path(_APPEND_FLAGS)
        return descriptor, os.fstat(descriptor).st_size

    def _open_at_path(self, flags: int) -> int:
        """Open the file at the path, whose folder is created if it is missing, and return its descriptor."""
        try:
            self._descriptor = os.open(self.path, flags, _NEW_FILE_MODE)
        except FileNotFoundError:
            make_folder(self.path.parent)
            self._descriptor = os.open(self.path, flags, _NEW_FILE_MODE)
        return self._descriptor


def append_text(path: Path, text: str, errors: str = "strict") -> None:
    """Add text at the end of a file and close it; see ``AppendedFile.append``."""
    file = AppendedFile(path, errors)
    try:
        file.append(text)
    finally:
        file.close()


def make_folder(folder: Path) -> None:
    """Create a folder, with those above it, if it is missing. Raises OSError."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)


def end_last_line(path: Path) -> None:
    """Add the line end that the last line of a file lacks, as editors leave it. Raises OSError.

    Nothing happens if the file is missing or empty.
    """
    if path.exists():
        data = check_regular_file(path).read_bytes()
        if data and not data.endswith(b"\n"):
            append_text(path, "\n")


def write_atomically(path: Path, chunks: Iterable[str], errors: str = "strict") -> None:
    """Write a file of these texts, or replace it when the new one is complete.

    The folders are created if they are missing. A link keeps its place, and its target is
    replaced. The new file keeps the mode of the old one. It is first written under a random name,
    so that of several processes that replace the same file, each writes a complete one. ``errors``
    is as for ``open``. Raises OSError; the old file is then unchanged.
    """
    target = Path(os.path.realpath(path))
    check_regular_file(target)
    with (
        draft_of(target) as draft,
        draft.open("x", encoding="utf-8", errors=errors, newline="\n") as file,
    ):
        with suppress(OSError):  # there is no old file, or the file system has no modes
            mode = stat.S_IMODE(target.stat().st_mode)
            draft.chmod(mode)
        file.writelines(chunks)


_encode = json.JSONEncoder(ensure_ascii=False).encode
"""``json.dumps`` would make an encoder for each line."""


def to_json_line(data: object) -> str:
    """Return data as a line of a JSON Lines file."""
    return _encode(data) + "\n"


def write_json_lines(path: Path, entries: Iterable[object]) -> None:
    """Write a JSON Lines file, or replace it when the new one is complete. Raises OSError."""
    lines = map(to_json_line, entries)
    write_atomically(path, lines, JSON_ENCODING_ERRORS)


def append_json_line(path: Path, entry: object) -> None:
    """Add a line at the end of a JSON Lines file. Raises OSError; the file is then as before."""
    append_text(path, to_json_line(entry), JSON_ENCODING_ERRORS)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a path to write a file under, which then takes the place of ``path``.

    The folders are created if they are missing. If there is an error, the draft is deleted, and
    what is at ``path`` stays. Raises OSError. The draft is a hidden file beside it, with a random
    name.
    """
    random_name = os.urandom(8).hex()
    draft = path.with_name(f".kgwb-{random_name}.part")
    try:
        make_folder(path.parent)
        yield draft
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def read_json_lines(path: Path, damaged: list[int] | None = None) -> Iterator[tuple[int, Any]]:
    """Yield the number and the data of each line of a JSON Lines file, which may be gzipped.

    Blank lines are left out. So is a last line without a line end, which a killed process did not
    finish, unless it is the only line. Raises OSError, and NotJsonError for a line that is not
    JSON; if ``damaged`` is given, the numbers of these lines are added to it instead.
    """
    data = check_regular_file(path).read_bytes()
    if path.suffix == ".gz":
        data = _unpack_gzip(data, path)
    *lines, unfinished = data.split(b"\n")
    for number, line in enumerate(lines or [unfinished], 1):
        if not line.strip():
            continue
        try:
            text = line.decode("utf-8", "surrogatepass")
            entry = json.loads(text)
        except (ValueError, RecursionError) as exc:
            if damaged is None:
                raise NotJsonError(number) from exc
            damaged.append(number)
            continue
        yield number, entry


def _unpack_gzip(data: bytes, path: Path) -> bytes:
    """Return the content of a gzip file, which may consist of several gzip files after another.

    Raises OSError if it is not one, breaks off, or unpacks to more than MAX_UNPACKED_BYTES.
    """
    packed_file = BytesIO(data)
    read_chunk = partial(packed_file.read, _GZIP_CHUNK_BYTES)
    packed_chunks = iter(read_chunk, b"")
    try:
        chunks = read_body(packed_chunks, "gzip", MAX_UNPACKED_BYTES + 1, inf)
        unpacked = b"".join(chunks)
    except ValueError as exc:
        raise OSError(errno.EINVAL, str(exc), str(path)) from exc
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise OSError(errno.EFBIG, "it is too large once unpacked", str(path))
    return unpacked


class NotJsonError(ValueError):
    """A line of a file is not JSON."""

    def __init__(self, number: int) -> None:
        super().__init__("it is not JSON")
        self.line_number = number
        """Counted from 1."""


def truncate_unfinished_line(path: Path) -> None:
    """Cut off a file's last line if it has no line end, as a killed process leaves it.

    If it is the only line and is valid JSON, it gets a line end instead. Nothing happens if the
    file is missing. Raises OSError.
    """
    if not path.exists():
        return
    data = check_regular_file(path).read_bytes()
    if not data or data.endswith(b"\n"):
        return
    with suppress(NotJsonError):
        is_only_line = b"\n" not in data
        if is_only_line and list(read_json_lines(path)):
            append_text(path, "\n")
            return
    end_of_last_line = data.rfind(b"\n") + 1
    os.truncate(path, end_of_last_line)
