"""Pseudonyms for the students of a class, and the file that says whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from kgwb.errors import InputError
from kgwb.labs.tables import read_table, write_table
from kgwb.text import quote_cell, unquote_cell

HEADINGS = ("pseudonym", "student", "id")
NEXT = ("the next student", "")
"""Stands as name and id beside the pseudonym that nobody has had, so that rows can be deleted."""
NUMBER_AT_END = re.compile(r"\d+$")


class Pseudonyms:
    """Pseudonyms such as "student 7", and the file that says whose they are.

    The file is a CSV table for the lecturer alone. A student who is in it keeps the pseudonym. Its
    last row has the next pseudonym: one whose row was deleted is not given again. Cells that a
    spreadsheet would compute have a quote before them.
    """

    def __init__(self, path: Path) -> None:
        """Read the pseudonyms from a CSV file; begin without any if the file is missing. Nothing is written yet.

        Raises InputError if it cannot be read, is no table of pseudonyms, or has one twice.
        """
        self.path = path
        self._next_number = 1
        self._by_student: dict[tuple[str, str], str] = {}
        self._files: dict[str, str] = {}
        if not path.exists():
            return
        hint = "name with --pseudonyms a file that kgwb labs has written, or a new one"
        table, _ = read_table(path, "the pseudonyms", hint)
        rows = list(filter(None, table))
        lengths = {len(row) for row in rows}
        if lengths != {len(HEADINGS)} or tuple(rows[0]) != HEADINGS:
            raise InputError(f"{path} is not a table of pseudonyms", hint=hint)
        for row in rows[1:]:
            pseudonym, student, student_id = map(unquote_cell, row)
            key = (student, student_id)
            number = NUMBER_AT_END.search(pseudonym)
            is_next = key == NEXT
            if number:
                self._next_number = max(self._next_number, int(number[0]) + (not is_next))
            if is_next:
                continue
            if pseudonym in self._by_student.values():
                hint = "give one of them another pseudonym in the file"
                raise InputError(f"two students are {pseudonym!r} in {path}", hint=hint)
            self._by_student[key] = pseudonym

    def of_student(self, student: str, student_id: str) -> str:
        """Return the pseudonym of a student: that of before, or the next "student N", which is remembered.

        A student is the pair of name and id, so students of one name with different ids have
        different ones.
        """
        key = (student, student_id)
        if key not in self._by_student:
            self._by_student[key] = f"student {self._next_number}"
            self._next_number += 1
        return self._by_student[key]

    def of_file(self, place: str) -> str:
        """Return the pseudonym of a file's path, such as "file 7.json"; ``save`` does not write it.

        It is the same each time.
        """
        suffix = PurePosixPath(place).suffix
        return self._files.setdefault(place, f"file {len(self._files) + 1}{suffix}")

    def save(self) -> None:
        """Write all pseudonyms with their students' names and ids to the file, which is replaced or created.

        Raises InputError if it cannot be written.
        """
        rows: list[Iterable[str]] = [HEADINGS]
        for (student, student_id), pseudonym in self._by_student.items():
            rows.append(map(quote_cell, (pseudonym, student, student_id)))
        rows.append((f"student {self._next_number}", *NEXT))
        write_table(self.path, rows)
