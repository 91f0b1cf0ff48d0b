"""The list of a class, as a learning platform exports it: who is in it, whose a submission is, and the grades."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kgwb.errors import InputError
from kgwb.labs.submissions import FoundFile
from kgwb.labs.tables import read_table, write_table
from kgwb.records import frozen

NAME_HEADING = re.compile(
    r"((full|first|last|given|family|student) )?name|student|surname|(vor|nach|vollständiger )name",
    re.IGNORECASE,
)
"""The columns that make up a student's name: those of Moodle and Canvas, and usual ones."""
ID_HEADING = re.compile(
    r".*\bid\b.*|identifier|.*login.*|.*mail.*|user ?name|anmeldename|account|matrikelnummer",
    re.IGNORECASE,
)
"""The columns with what tells students apart, such as Canvas's "SIS Login ID" and Moodle's "Identifier"."""
DIGIT = re.compile(r"\d")
MAXIMUM_ROW = "Points Possible"
"""Stands for a student in the row of Canvas's grade book that has the greatest points."""
GRADE_HEADING = re.compile(
    r"grade|bewertung|note|nota|calificación|valutazione|avaliação|ocena|hodnocení|hodnotenie|beoordeling|betyg"
    r"|arvosana|értékelés|оценка|оцінка|karakter",
    re.IGNORECASE,
)
"""The column of grades in Moodle's grading worksheet, in its languages."""
DELIMITERS = ",;\t"


@frozen
class RosterStudent:
    """A student of a class."""

    row: int
    """The number of the row in the table."""
    name: str
    keys: frozenset[str]
    """The name, and what a platform or a folder may call the student, as ``_to_key`` writes them."""


def _to_key(text: str) -> str:
    """Return the words of a text in lower case, sorted: "Lovelace, Ada" and "ada_lovelace" are equal."""
    return " ".join(sorted(set(re.findall(r"[^\W_]+", text.casefold()))))


class Roster:
    """The students of a class, by the rows of a CSV table.

    The table may be Moodle's list of participants, its grading worksheet or its grades, Canvas's
    grade book, or one of one's own. Commas, semicolons or tabs separate the cells.
    """

    def __init__(self, path: Path) -> None:
        """Read the students from a CSV file. Raises InputError if it cannot be read or has none."""
        hint = (
            "name a CSV table with a column for names or ids, such as Moodle's or Canvas's grades"
        )
        self._rows, self._delimiter = read_table(path, "the class", hint, DELIMITERS)
        self.students = list(filter(None, map(self._read_student, range(1, len(self._rows)))))
        if not self.students:
            raise InputError(f"there are no students in {path}", hint=hint)

    def _read_student(self, number: int) -> RosterStudent | None:
        """Return the student of a row; None if it has no name and no id, or is MAXIMUM_ROW.

        Where no heading is known as that of names, as in other languages, they are what stands before the
        mail address without a digit, if that is two words or more.
        """
        row = self._rows[number]
        with_mail = [place for place, cell in enumerate(row) if "@" in cell]
        names = []
        ids = []
        guessed_names = []
        for place, (heading, cell) in enumerate(zip(self._rows[0], row, strict=False)):
            is_before_mail = place < min(with_mail, default=0)
            has_digits = DIGIT.search(cell)
            if NAME_HEADING.fullmatch(heading.strip()):
                names += cell.split()
            elif ID_HEADING.fullmatch(heading.strip()) or (is_before_mail and has_digits):
                number_of_participant = cell.rpartition(" ")[2]  # as in "Participant 1234"
                ids += [cell, number_of_participant, cell.partition("@")[0]]
            elif is_before_mail:
                guessed_names += cell.split()
        if not names and len(guessed_names) > 1:
            names = guessed_names
        name = " ".join(dict.fromkeys(names)) or "".join(ids[:1])
        if not name or name == MAXIMUM_ROW:
            return None
        keys = frozenset(map(_to_key, (name, *ids))) - {""}
        return RosterStudent(number, name, keys)

    def find(self, file: FoundFile) -> RosterStudent | None:
        """Return the student who handed in a file; None if that is nobody of the class, or not clear.

        The id that the platform, the folder or the file's name says counts first, then the name
        that the platform says, then the name that the student wrote.
        """
        written = file.hand_in.student if file.hand_in else ""
        for text in (file.student_id, file.student_name, written):
            found = [student for student in self.students if _to_key(text) in student.keys]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def save(self, path: Path, grades: Mapping[str, Mapping[int, str]]) -> Path:
        """Write the table with a column of grades for each lab, and return the path.

        ``grades`` are by the lab's heading, such as "Lab 1", and the row. They go to the column whose
        heading ends so, before what Moodle and Canvas add in brackets; or to GRADE_HEADING; or to a
        new column. All other cells, and those of students without a grade, stay as they are. Raises
        InputError if the file cannot be written.
        """
        rows = [list(row) for row in self._rows]
        headings = rows[0]
        for title, by_row in grades.items():
            names = [heading.partition(" (")[0].strip() for heading in headings]
            found = [
                name for name in names if name.endswith(title) or GRADE_HEADING.fullmatch(name)
            ]
            if not found:
                headings.append(title)
            column = names.index(found[0]) if found else len(names)
            for number, grade in by_row.items():
                row = rows[number]
                row += [""] * (len(headings) - len(row))
                row[column] = grade
        return write_table(path, rows, self._delimiter)
