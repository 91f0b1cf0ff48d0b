"""Points and comments that people give by hand, by the rubric of a task.

A grade is about an answer, and not about a student: equal answers of two students get the same
points, and the files of grades name nobody. What somebody says is kept in a folder, in a file for
each grader. Of several grades of one answer by one person the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from kgwb import disk
from kgwb.bench import judgements
from kgwb.bench.statistics import compute_weighted_kappa
from kgwb.errors import InputError
from kgwb.labs.hand_ins import TaskProgress
from kgwb.show.tables import Table
from kgwb.text import shorten, single_line

GRADES_FILES = "grades.*.jsonl"
MAX_SHOWN_CHARS = 60
"""Characters of an answer in a table."""


Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OpenAnswer(NamedTuple):
    """What students answered to a task, and what they say about its open question."""

    task: str
    answer: str
    discussion: str

    @classmethod
    def of_progress(cls, task: str, progress: TaskProgress) -> OpenAnswer:
        """Return the answer of a student that counts; its texts are empty if there is none."""
        answer = next(reversed(progress.answers), "")
        if progress.data:
            answer = progress.data.text
        return cls(task, answer, progress.discussion)


class HandGrade(BaseModel, frozen=True, extra="forbid"):
    """What a person says of one answer; a line of the person's file."""

    task: str
    answer: str
    discussion: str = ""
    points: tuple[Points, ...]
    """Of each criterion of the rubric, whose texts are in the language of the lab."""
    comment: str = ""

    @property
    def about(self) -> OpenAnswer:
        """The answer that is graded."""
        return OpenAnswer(self.task, self.answer, self.discussion)

    @property
    def total(self) -> float:
        """The points of all criteria together."""
        return sum(self.points)


class HandGrades:
    """The grades in a folder, by all graders."""

    def __init__(self, folder: str | Path) -> None:
        """Read the grades in a folder, which need not exist. Raises InputError for a line that is no grade."""
        self.folder = Path(folder)
        self._grades: dict[str, dict[OpenAnswer, HandGrade]] = {}
        """What counts of each grader, by answer."""
        for grader, path in judgements.list_people(self.folder, GRADES_FILES):
            self._keep(grader, self._read(path))

    def _read(self, path: Path) -> list[HandGrade]:
        hint = "correct this line of the file, or remove it: the grade of this answer is then lost"
        return judgements.read_lines(path, HandGrade.model_validate, "is no grade", hint)

    def _keep(self, grader: str, lines: Iterable[HandGrade]) -> None:
        """Set what counts of a grader: of several grades of one answer, the last."""
        self._grades[grader] = {grade.about: grade for grade in lines}

    def by_grader(self, grader: str) -> Mapping[OpenAnswer, HandGrade]:
        """Return the grades that count of a person, by answer."""
        return self._grades.get(grader, {})

    def add(self, grader: str, grade: HandGrade) -> None:
        """Add a grade to the grader's file. Raises InputError if it cannot be written.

        What the person has said in another window meanwhile counts too.
        """
        path = judgements.file_of(self.folder, GRADES_FILES, grader)
        lines = self._read(path)
        judgements.append_line(path, grade)
        self._keep(grader, [*lines, grade])

    def undo(self, grader: str) -> HandGrade:
        """Take a person's last grade out of the file, and return it. Raises InputError if there is none."""
        path = judgements.file_of(self.folder, GRADES_FILES, grader)
        lines = self._read(path)
        if not lines:
            raise InputError("there is no grade to take back", hint="grade an answer first")
        last = lines.pop()
        with disk.os_errors_as_input_error(f"cannot write {path}", judgements.WRITING_HINT):
            disk.write_json_lines(path, map(HandGrade.model_dump, lines))
        self._keep(grader, lines)
        return last

    def of_answer(self, answer: OpenAnswer) -> list[HandGrade]:
        """Return the grades of an answer, one of each person who has graded it."""
        return [grades[answer] for grades in self._grades.values() if answer in grades]

    def mean_points(self, answer: OpenAnswer) -> list[float]:
        """Return the mean points of each criterion by those who have given it points; empty if nobody has."""
        means = []
        for given in zip_longest(*(grade.points for grade in self.of_answer(answer))):
            known = [points for points in given if points is not None]
            means.append(fmean(known))
        return means

    def points_of(self, answer: OpenAnswer) -> float | None:
        """Return the mean total of an answer by those who have graded it; None if nobody has."""
        totals = [grade.total for grade in self.of_answer(answer)]
        return fmean(totals) if totals else None

    def list_tables(self) -> list[Table]:
        """Return how far each pair of graders agrees, with Cohen's weighted kappa, and where they do not.

        They have no rows with fewer than two graders.
        """
        totals: dict[str, dict[OpenAnswer, float]] = {}
        for grader, grades in self._grades.items():
            totals[grader] = {answer: grade.total for answer, grade in grades.items()}
        rows = []
        answers = dict.fromkeys(chain.from_iterable(totals.values()))
        for answer in answers:
            points = [str(given.get(answer, "–")) for given in totals.values()]
            if len({*points, "–"}) > 2:
                text = single_line(answer.answer or answer.discussion)
                text = shorten(text, MAX_SHOWN_CHARS)
                rows.append((f"{answer.task} {text}", *points))
        agreement = judgements.compare_people(
            "graders",
            totals,
            lambda pairs: judgements.show_figure(compute_weighted_kappa(pairs)),
        )
        return [agreement, Table(("different points", *totals), rows)]
