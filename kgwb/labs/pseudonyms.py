"""Pseudonyms of students, so that a page can be shown or kept without their names."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from kgwb import disk
from kgwb.errors import InputError

HEADINGS = ("pseudonym", "student", "id")


class Pseudonyms:
    """Pseudonyms such as "student 7", and the file that says whose they are.

    The file is a CSV table for the lecturer alone. A student who is in it keeps the pseudonym.
    """

    def __init__(self, path: Path) -> None:
        """Read the pseudonyms from a CSV file; begin without any if the file is missing. Nothing is written yet.

        Raises InputError if it cannot be read, or is no table of pseudonyms.
        """
        self.path = path
        self._by_student: dict[tuple[str, str], str] = {}
        self._files: dict[str, str] = {}
        if not path.exists():
            return
        hint = "name with --pseudonyms a file that kgwb labs has written, or a new one"
        with disk.os_errors_as_input_error(f"cannot read the pseudonyms {path}", hint):
            text = disk.read_text(path)
        rows = list(csv.reader(StringIO(text)))
        lengths = {len(row) for row in rows}
        if lengths != {len(HEADINGS)} or tuple(rows[0]) != HEADINGS:
            raise InputError(f"{path} is not a table of pseudonyms", hint=hint)
        for pseudonym, student, student_id in rows[1:]:
            self._by_student[student, student_id] = pseudonym

    def of_student(self, student: str, student_id: str) -> str:
        """Return the pseudonym of a student: that of before, or the next "student N", which is remembered.

        A student is the pair of name and id, so students of one name with different ids have
        different ones.
        """
        new_pseudonym = f"student {len(self._by_student) + 1}"
        return self._by_student.setdefault((student, student_id), new_pseudonym)

    def of_file(self, place: str) -> str:
        """Return the pseudonym "file N" of a file's path, the same each time; ``save`` does not write it."""
        return self._files.setdefault(place, f"file {len(self._files) + 1}")

    def save(self) -> None:
        """Write all pseudonyms with their students' names and ids to the file, which is replaced or created.

        Raises InputError if it cannot be written.
        """
        text = StringIO()
        writer = csv.writer(text)
        writer.writerow(HEADINGS)
        for (student, student_id), pseudonym in self._by_student.items():
            writer.writerow((pseudonym, student, student_id))
        hint = "choose another file or folder"
        with disk.os_errors_as_input_error(f"cannot write {self.path}", hint):
            disk.write_atomically(self.path, [text.getvalue()])
