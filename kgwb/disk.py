"""Writing files so that a full disk or a killed process leaves them whole, or as they were."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO


def append(path: Path, text: str, errors: str = "strict") -> None:
    """Add text to a file, made if it is not there, and hand it to the operating system.

    Raises OSError; the file is then as it was. A killed process leaves a part of the text at most.
    """
    file = _opened(path, errors)
    size = os.fstat(file.fileno()).st_size
    try:
        with file:
            file.write(text)
    except OSError:
        with suppress(OSError):  # half a line must not stay in the middle of the file
            os.truncate(path, size)
        raise


def _opened(path: Path, errors: str) -> TextIO:
    try:
        return path.open("a", encoding="utf-8", errors=errors)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="utf-8", errors=errors)


def replace(path: Path, texts: Iterable[str], errors: str = "strict") -> None:
    """Make a new file of these texts; one that is there stays until the new one is whole. Raises OSError."""
    path = path.resolve()  # a link stays a link
    draft = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", errors=errors) as file:
            file.writelines(texts)
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
