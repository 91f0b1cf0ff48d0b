"""CSV tables of a class, as spreadsheets and learning platforms read and write them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.hand_ins import write_file


def read_table(
    path: Path, noun: str, hint: str, delimiters: str = ","
) -> tuple[list[list[str]], str]:
    """Return the rows of a CSV table, and its delimiter: the one that its first line has most.

    ``noun`` is what the table is called in the error. Raises InputError if the file cannot be read,
    is not in UTF-8, or is no table.
    """
    try:
        text = disk.read_text(path, "utf-8-sig")
        delimiter = max(delimiters, key=text.partition("\n")[0].count)
        return list(csv.reader(StringIO(text, newline=""), delimiter=delimiter)), delimiter
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise InputError(
            f"cannot read {noun} {path}: {exc}", hint=f"{hint}; it must be saved as CSV in UTF-8"
        ) from exc


def write_table(path: Path, rows: Iterable[Iterable[str]], delimiter: str = ",") -> Path:
    """Write a CSV table, and return its path. Raises InputError if it cannot be written."""
    text = StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return write_file(path, text.getvalue())
