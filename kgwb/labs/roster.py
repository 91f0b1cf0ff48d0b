"""The students of a class: their list, as a learning platform exports it, with the grades, and their pseudonyms.

Both are CSV tables, as spreadsheets and learning platforms read and write them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path, PurePosixPath

from kgwb import disk
from kgwb.errors import InputError
from kgwb.labs.hand_ins import write_file
from kgwb.records import frozen
from kgwb.text import quote_cell, unquote_cell

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


def read_table(path: Path, noun: str, hint: str) -> tuple[list[list[str]], str]:
    """Return the rows of a CSV table, and its delimiter: the one of DELIMITERS that its first line has most.

    ``noun`` is what the table is called in the error. Raises InputError if the file cannot be read,
    is not in UTF-8, or is no table.
    """
    try:
        text = disk.read_text(path, "utf-8-sig")
        first_line, _, _ = text.partition("\n")
        delimiter = max(DELIMITERS, key=first_line.count)
        rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        return list(rows), delimiter
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise InputError(
            f"cannot read {noun} {path}: {exc}", hint=f"{hint}; it must be saved as CSV in UTF-8"
        ) from exc


def write_table(path: Path, rows: Iterable[Iterable[str]], delimiter: str = ",") -> Path:
    """Write a CSV table, and return its path. Raises InputError if it cannot be written."""
    text = StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return write_file(path, text.getvalue())


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
        self._rows, self._delimiter = read_table(path, "the class", hint)
        self.students = []
        for number in range(1, len(self._rows)):
            student = self._read_student(number)
            if student:
                self.students.append(student)
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

    def find(self, *texts: str) -> RosterStudent | None:
        """Return the student whom the first text names that names one; None if that is nobody, or not clear."""
        for text in texts:
            key = _to_key(text)
            found = [student for student in self.students if key in student.keys]
            if len(found) > 1:
                return None
            if found:
                return found[0]
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
            column = len(names)
            for place, name in enumerate(names):
                if name.endswith(title) or GRADE_HEADING.fullmatch(name):
                    column = place
                    break
            else:
                headings.append(title)
            for number, row in enumerate(rows):
                if row:  # a table with rows of several lengths is not imported everywhere
                    row.extend([""] * (len(headings) - len(row)))
                if number in by_row:
                    row[column] = by_row[number]
        return write_table(path, rows, self._delimiter)


# --- pseudonyms

PSEUDONYM_HEADINGS = ("pseudonym", "student", "id")
NEXT_PSEUDONYM = ("the next student", "")
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
        if lengths != {len(PSEUDONYM_HEADINGS)} or tuple(rows[0]) != PSEUDONYM_HEADINGS:
            raise InputError(f"{path} is not a table of pseudonyms", hint=hint)
        for row in rows[1:]:
            pseudonym, student, student_id = map(unquote_cell, row)
            key = (student, student_id)
            found = NUMBER_AT_END.search(pseudonym)
            number = int(found[0]) if found else 0
            if key == NEXT_PSEUDONYM:
                self._next_number = max(self._next_number, number)
                continue
            self._next_number = max(self._next_number, number + 1)
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
        rows: list[Iterable[str]] = [PSEUDONYM_HEADINGS]
        for (student, student_id), pseudonym in self._by_student.items():
            row = (pseudonym, student, student_id)
            rows.append(map(quote_cell, row))
        rows.append((f"student {self._next_number}", *NEXT_PSEUDONYM))
        write_table(self.path, rows)
