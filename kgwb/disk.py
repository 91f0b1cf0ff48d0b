"""Reading plain files only, and writing them so that a full disk or a killed process leaves them whole."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kgwb.errors import InputError

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the operating system answers where no more can be written."""
JSON_ENCODING_ERRORS = "backslashreplace"
"""For ``errors``: half a character becomes its escape, which JSON reads back."""
MAX_UNPACKED_BYTES = 200_000_000
"""Bytes of a gzipped file once it is unpacked."""


def cache_dir() -> Path:
    """Where kgwb keeps what it can make again: KGWB_CACHE, else kgwb in XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("KGWB_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgwb"


@contextmanager
def os_errors_as_input_error(problem: str, hint: str) -> Iterator[None]:
    """Raise InputError, the problem with its reason, for what the operating system refuses in this block."""
    try:
        yield
    except OSError as exc:
        raise InputError(f"{problem}: {exc.strerror or exc}", hint=hint) from exc


def check_regular_file(path: Path) -> Path:
    """The path, unless a device, pipe or socket is there: it may never end, and must not be replaced.

    Raises OSError.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder has errors of its own
            raise OSError(errno.EINVAL, "it is a device or a pipe, not a file", str(path))
    return path


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a plain file. Raises OSError, UnicodeDecodeError."""
    return check_regular_file(path).read_text(encoding=encoding)


def append_text(path: Path, text: str, errors: str = "strict") -> None:
    """Add text to a file, made if it is not there, and hand it to the operating system.

    Raises OSError; the file is then as it was. A killed process leaves a part of the text at most.
    """
    check_regular_file(path).parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a", encoding="utf-8", errors=errors)
    size = os.fstat(file.fileno()).st_size
    try:
        with file:
            file.write(text)
    except OSError:
        with suppress(OSError):  # half a line must not stay in the middle of the file
            os.truncate(path, size)
        raise


def write_atomically(path: Path, chunks: Iterable[str], errors: str = "strict") -> None:
    """Make a new file of these texts; one that is there stays until the new one is whole. Raises OSError.

    The draft has a name of its own, so that of several processes that replace one file each writes it whole.
    """
    path = check_regular_file(Path(os.path.realpath(path)))  # a link stays a link
    draft = path.with_name(f".kgwb-{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8", errors=errors) as file:
            with suppress(OSError):  # there is none yet, or the file system knows no modes
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.writelines(chunks)
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The data of each line of a file, gzipped if it ends in .gz, with the line's number.

    Blank lines are left out, and so is a last line that a killed process left unfinished, unless it is the
    only one. Raises OSError; NotJsonError for a line that is not JSON.
    """
    data = check_regular_file(path).read_bytes()
    if path.suffix == ".gz":
        unpacking = zlib.decompressobj(wbits=31)  # gzip
        try:
            data = unpacking.decompress(data, MAX_UNPACKED_BYTES)
        except zlib.error as exc:
            raise OSError(errno.EINVAL, "it is no gzip file", str(path)) from exc
        if unpacking.unconsumed_tail or not unpacking.eof:
            reason = (
                "it is too large once unpacked" if unpacking.unconsumed_tail else "it is cut off"
            )
            raise OSError(errno.EFBIG, reason, str(path))
    *whole, unfinished = data.split(b"\n")
    for number, line in enumerate(whole or [unfinished], 1):
        if line.strip():
            try:
                entry = json.loads(line.decode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError) as exc:
                raise NotJsonError(number) from exc
            yield number, entry


class NotJsonError(ValueError):
    """A line that is not JSON."""

    def __init__(self, number: int) -> None:
        super().__init__("it is not JSON")
        self.line_number = number


def truncate_unfinished_line(path: Path) -> None:
    """Cut off a last line that a killed process left unfinished; one that lacks only its end gets it.

    Raises OSError.
    """
    raw = check_regular_file(path).read_bytes() if path.exists() else b""
    if not raw or raw.endswith(b"\n"):
        return
    with suppress(NotJsonError):
        if b"\n" not in raw and list(read_json_lines(path)):
            append_text(path, "\n")
            return
    os.truncate(path, raw.rfind(b"\n") + 1)
