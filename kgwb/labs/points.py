"""Points of a class as a CSV table, for a spreadsheet or a learning platform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from kgwb.errors import InputError
from kgwb.labs.hand_grades import HandGrades, OpenAnswer, Points
from kgwb.labs.roster import Roster, write_table
from kgwb.labs.rows import CollectedHandIns, Submission
from kgwb.labs.tasks import Lab
from kgwb.records import describe_validation_error
from kgwb.text import pluralize, quote_cell, single_line

DEFAULT_POINTS = 1.0


def _parse_due(time: str | datetime) -> datetime:
    """Return a time in UTC. Raises ValueError for a text that is not in ISO 8601."""
    try:
        return datetime.fromisoformat(str(time)).astimezone(UTC)
    except OverflowError as exc:
        raise ValueError(f"{time} is too early or too late") from exc


class Grading(BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """How a class is graded."""

    points: dict[str, Points] = {}
    """The points of a solved task, by its name; DEFAULT_POINTS for a task that is not named."""
    due: Annotated[datetime, BeforeValidator(_parse_due)] | None = None
    """When hand-ins were due, in ISO 8601, without a zone in that of this machine; None if that does not matter."""
    late_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    """What is taken off the points of a late hand-in for each day that has begun since then."""
    by_hand: HandGrades | None = None
    """Points that were given by hand, which count in place of those of a solved task."""

    @classmethod
    def parse(cls, **fields: object) -> Self:
        """Return the grading with these fields, which may be texts. Raises InputError for one of another form."""
        try:
            return cls.model_validate(fields)
        except ValidationError as exc:
            typed = ", ".join(str(problem["input"]) for problem in exc.errors())
            raise InputError(
                f"a class cannot be graded by {typed!r}: {describe_validation_error(exc)}",
                hint="write --points 1.7=2, --due 2026-11-24T18:00+01:00 (or without a zone), --late-percent 20",
            ) from exc

    def require_tasks(self, names: Sequence[str]) -> None:
        """Raise InputError if there are points for a task that is not among these names."""
        for task in self.points:
            if task not in names:
                raise InputError(
                    f"points were given for the task {task!r}, which no collected lab has",
                    hint=f"give points for the tasks {', '.join(names)}",
                )

    def days_late(self, work: Submission) -> int | None:
        """Return for how many days that have begun a hand-in is late, 0 if it is not; None if that is not known.

        It is late by a day at least if the platform says so. A time without a zone is taken as UTC.
        """
        days = None
        with suppress(ValueError):  # the time cannot be read
            handed_in = datetime.fromisoformat(work.when)
            if handed_in.tzinfo is None:
                handed_in = handed_in.replace(tzinfo=UTC)
            if self.due and not work.is_missing:
                days = max(0, ceil((handed_in - self.due) / timedelta(days=1)))
        if work.is_late:
            return max(1, days or 0)
        return days

    def points_by_hand(self, work: Submission, task: str) -> float | None:
        """Return the points that people gave a hand-in for a task; None if nobody did."""
        if self.by_hand is None:
            return None
        progress = work.hand_in.progress(task)
        answer = OpenAnswer.of_progress(task, progress)
        return self.by_hand.points_of(answer)

    def points_of(self, work: Submission, task: str) -> float:
        """Return the points that a hand-in has for a task, before what is taken off because it is late."""
        given = self.points_by_hand(work, task)
        if given is not None:
            return given
        if not work.is_solved(task):
            return 0.0
        return self.points.get(task, DEFAULT_POINTS)

    def total_of(self, lab: Lab, work: Submission) -> float:
        """Return the points of a hand-in for all tasks, less what is taken off because it is late."""
        total = sum(self.points_of(work, name) for name in lab.tasks)
        kept_percent = 100 - self.late_percent * (self.days_late(work) or 0)
        return total * max(0, kept_percent) / 100


def save_points(collected: Sequence[CollectedHandIns], path: Path, grading: Grading) -> Path:
    """Write a row for each hand-in and each submission without one to a CSV file, and return its path.

    A row has the points of each task of all labs, their total, tries, hints and remarks. A task
    that is not solved has 0 points. ``late`` is "yes" or "no", and empty if it is not known. A cell
    is one line. A file at the path is replaced. Raises InputError if it cannot be written.
    """
    names = list(chain.from_iterable(hand_ins.lab.tasks for hand_ins in collected))
    rows: list[list[str]] = []
    for hand_ins in collected:
        for work in hand_ins.rows:
            row = _make_row(hand_ins, work, grading, names)
            if not rows:
                rows.append(list(row))
            # A cell is one line, with a quote before what a spreadsheet would compute.
            cells = map(single_line, row.values())
            rows.append([quote_cell(cell) for cell in cells])
    return write_table(path, rows)


def _make_row(
    collected: CollectedHandIns,
    work: Submission,
    grading: Grading,
    tasks: Iterable[str],
) -> dict[str, object]:
    """Return the cells of a hand-in by their heading, of which some are ``tasks``; those of other labs are empty."""
    lab = collected.lab
    progress = work.hand_in.tasks.values()
    days_late = grading.days_late(work)
    remarks = [work.problem, *collected.remarks_on(work)]
    if days_late and grading.late_percent:
        remarks.append(
            f"{pluralize(days_late, 'day')} late: {grading.late_percent:g} % less for each"
        )
    points = {name: f"{grading.points_of(work, name):g}" for name in lab.tasks}
    return {
        "lab": lab.number,
        "id": work.student_id,
        "student": work.student,
        **dict.fromkeys(tasks, ""),
        **points,
        "total": f"{grading.total_of(lab, work):g}",
        "tries": sum(task.tries for task in progress),
        "hints": sum(task.hints for task in progress),
        "late": {None: "", 0: "no"}.get(days_late, "yes"),
        "time": work.when,
        "version": work.hand_in.kgwb_version,
        "file": work.place,
        "remarks": "; ".join(filter(None, remarks)),
    }


def save_grades(
    roster: Roster,
    collected: Sequence[CollectedHandIns],
    path: Path,
    grading: Grading,
) -> Path:
    """Write the roster's table with the totals of each lab to a file, and return its path.

    Of several works of one student, the latest counts. Who handed in nothing that can be read has
    no new grade. Raises InputError if the file cannot be written.
    """
    grades = {}
    for hand_ins in collected:
        totals = {}
        for work in sorted(hand_ins.works, key=lambda work: work.when):
            if work.listed:
                totals[work.listed.row] = f"{grading.total_of(hand_ins.lab, work):g}"
        grades[f"Lab {hand_ins.lab.number}"] = totals
    return roster.save(path, grades)
