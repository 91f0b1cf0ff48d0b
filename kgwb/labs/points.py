"""Points of a class as a CSV table, for a spreadsheet or a learning platform."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from kgwb.errors import InputError
from kgwb.labs.hand_ins import write_file
from kgwb.labs.rows import CollectedHandIns, CollectedWork
from kgwb.text import quote_cell, single_line

DEFAULT_POINTS = 1.0


def parse_points(assignments: Mapping[str, str]) -> dict[str, float]:
    """Convert points by task from text to numbers: {"1.7": "2"} becomes {"1.7": 2.0}.

    Raises InputError for a text that is not a finite number of at least 0. Whether there is such a
    task is not checked.
    """
    points = {}
    for task, text in assignments.items():
        try:
            points[task] = float(text)
        except ValueError:
            points[task] = -1.0
        if not 0 <= points[task] < float("inf"):
            raise InputError(
                f"{text!r} is not a number of points for task {task}",
                hint=f"write a number from 0 on, such as --points {task}=2",
            )
    return points


def parse_due(text: str) -> datetime:
    """Parse a time such as "2026-11-24 18:00" or "2026-11-24T18:00+01:00", and return it in UTC.

    A time without a zone is one of this machine's zone. Raises InputError for a text that is not in
    ISO 8601.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        hint = "write it as 2026-11-24T18:00, or with its zone, as 2026-11-24T18:00+01:00"
        raise InputError(
            f"{text!r} cannot be read as the time when hand-ins were due", hint=hint
        ) from exc


def save_points(
    collected: Sequence[CollectedHandIns],
    path: Path,
    *,
    points: Mapping[str, float] | None = None,
    due: datetime | None = None,
) -> Path:
    """Write a row for each hand-in and each submission without one to a CSV file, and return its path.

    A row has the points of each task of all labs, their total, tries, hints and remarks. ``points``
    are those of a solved task, by its name; DEFAULT_POINTS for a task that is not named, and 0 for
    one that is not solved. ``late`` is "yes" or "no", and empty without ``due`` unless the platform
    says that the file was late. A cell is one line. A file at the path is replaced. Raises
    InputError if ``points`` names no task of these labs, or if the file cannot be written.
    """
    names = [name for hand_ins in collected for name in hand_ins.lab.tasks]
    points = points or {}
    for name in points:
        if name not in names:
            raise InputError(
                f"points were given for the task {name!r}, which no collected lab has",
                hint=f"give points for the tasks {', '.join(names)}",
            )
    headings = ["lab", "id", "student", *names, "total", "tries", "hints", "late", "time"]
    headings += ["version", "file", "remarks"]
    table = StringIO()
    writer = csv.DictWriter(table, headings, restval="")
    writer.writeheader()
    for hand_ins in collected:
        for work in hand_ins.rows:
            row = _make_row(hand_ins, work, points, due)
            writer.writerow({heading: _to_cell(value) for heading, value in row.items()})
    return write_file(path, table.getvalue())


def _to_cell(value: str) -> str:
    """Return a text for a cell: in one line, and with a quote before what a spreadsheet would compute."""
    return quote_cell(single_line(value))


def _make_row(
    hand_ins: CollectedHandIns,
    work: CollectedWork,
    points: Mapping[str, float],
    due: datetime | None,
) -> dict[str, str]:
    """Return the cells of a hand-in by their heading; the tasks of other labs have none.

    A solved task has its points, and another one 0. Numbers are written without needless zeros.
    """
    hand_in = work.hand_in
    row: dict[str, str] = {}
    total = 0.0
    for name in hand_ins.lab.tasks:
        reached = points.get(name, DEFAULT_POINTS) if work.is_solved(name) else 0.0
        row[name] = f"{reached:g}"
        total += reached
    row |= {
        "lab": str(hand_ins.lab.number),
        "id": work.file.student_id,
        "student": work.student,
        "total": f"{total:g}",
        "tries": str(sum(progress.tries for progress in hand_in.tasks.values())),
        "hints": str(sum(progress.hints for progress in hand_in.tasks.values())),
        "late": _describe_lateness(work, due),
        "time": work.when,
        "version": hand_in.kgwb_version,
        "file": work.file.place,
        "remarks": "; ".join(filter(None, (work.problem, *work.remarks))),
    }
    return row


def _describe_lateness(work: CollectedWork, due: datetime | None) -> str:
    """Return "yes" or "no" for whether a hand-in is late; "" if that is not known.

    It is late if the platform says so, or if its time is after ``due``; a time without a zone is
    taken as UTC. It is not known without ``due``, or if the time cannot be read.
    """
    if work.file.is_late:
        return "yes"
    if due is None or work.problem:
        return ""
    try:
        handed_in = datetime.fromisoformat(work.when)
    except ValueError:
        return ""
    if handed_in.tzinfo is None:
        handed_in = handed_in.replace(tzinfo=UTC)
    return "yes" if handed_in > due else "no"
