"""What was handed in, as rows of a class: one for each work and each submission without one, and remarks on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import PurePosixPath
from typing import TypeVar

from kgwb.labs.hand_ins import HandIn
from kgwb.labs.roster import RosterStudent
from kgwb.labs.tasks import STAGES, Lab, Stage
from kgwb.records import frozen
from kgwb.text import look_of, pluralize, single_line

T = TypeVar("T")
NO_LAB = 0
"""Stands for the lab of a submission without a hand-in."""


@frozen
class Submission:
    """A file that was handed in, or an empty folder, whose ``place`` then ends in "/".

    It is a row of a class, if it is the file of a work that counts, or a submission without a hand-in.
    """

    place: str
    """Its path in the folder, through zips: "class.zip/Ada_1_assignsubmission_file/lab1.json".

    Of a submission without a hand-in, its folder or its only file; empty if there is none.
    """
    data: bytes = b""
    hand_in: HandIn = field(default_factory=partial(HandIn, kgwb_lab=NO_LAB))
    """What it holds; one of NO_LAB if it is no hand-in."""
    problem: str = ""
    """Why it could not be read; of a row without a hand-in, what was found, and which file to ask for.

    It is empty for a hand-in, and for a file that does not end in ".json".
    """
    student_id: str = ""
    """Who handed it in, as the learning platform, the folder or the file's name says; empty if none does."""
    student_name: str = ""
    """The student's name, if the learning platform says it."""
    changed: str = ""
    """When it was handed in or last changed, in UTC, ISO 8601."""
    is_time_of_platform: bool = False
    """Whether the platform says when it was handed in, which a student cannot change."""
    is_late: bool = False
    """Whether the platform says that it was late."""

    others: tuple[Submission, ...] = ()
    """Of a row, the student's other files that could not be read; without a hand-in, all files."""
    listed: RosterStudent | None = None
    """Who it is in the list of the class; None if that is nobody, or there is no list."""
    name: str = ""
    """The student as shown in a row. Of students with one name, the name is followed by the file."""
    disagreements: Mapping[str, str] = field(default_factory=dict)
    """By task, why the state in the file is not that of its answer; empty if it was not checked."""

    @property
    def file_name(self) -> str:
        """The name of the file without its folders."""
        return PurePosixPath(self.place).name

    @property
    def folder(self) -> str:
        """Where it is: its path without its name."""
        return self.place.rpartition("/")[0]

    @property
    def is_missing(self) -> bool:
        """Whether it is no hand-in."""
        return self.hand_in.kgwb_lab == NO_LAB

    @property
    def identity(self) -> str:
        """The identity of the work; of one that names none, the path of its file."""
        return self.hand_in.work_id or self.place

    @property
    def names(self) -> tuple[str, ...]:
        """What the student is called by the platform or folder, as id and as name, and by the file."""
        return (self.student_id, self.student_name, self.hand_in.student)

    @property
    def student(self) -> str:
        """The student's name: as the class's list, the file, the platform or the folder says it; may be empty."""
        if self.listed:
            return self.listed.name
        return next(filter(look_of, reversed(self.names)), "")

    @property
    def shown_name(self) -> str:
        """The student's name; of a student without one, the path of the file."""
        return self.student or self.place

    @property
    def when(self) -> str:
        """When the work was handed in, as text in ISO 8601.

        It is the platform's time, else the one that kgwb wrote in the file, which a student can
        change, else the file's on the disk.
        """
        if self.is_time_of_platform:
            return self.changed
        return self.hand_in.written or self.changed

    def is_solved(self, task: str) -> bool:
        """Return whether a task counts as solved: in the file, and if checked, again."""
        is_solved = self.hand_in.progress(task).state == "solved"
        return is_solved and task not in self.disagreements


@frozen
class Remark:
    """Something that the lecturer should look at."""

    text: str
    places: tuple[str, ...]
    """The files of the rows that it concerns."""


@frozen
class CollectedHandIns:
    """The rows of a class in one lab."""

    lab: Lab
    works: tuple[Submission, ...]
    """One row for each work, by the student's name."""
    missing: tuple[Submission, ...] = ()
    """The rows of submissions without a hand-in, by the student's name."""
    remarks: tuple[Remark, ...] = ()

    @property
    def rows(self) -> tuple[Submission, ...]:
        """All rows: those with a hand-in first."""
        return self.works + self.missing

    def stuck_students(self, task: str) -> list[str]:
        """Return the names of the students who are stuck at a task; see TaskProgress.is_stuck."""
        return [work.name for work in self.works if work.hand_in.progress(task).is_stuck]

    def count_solved(self, task: str) -> int:
        """Return how many students have solved a task."""
        return sum(work.is_solved(task) for work in self.works)

    def solved_by_stage(self) -> dict[Stage, tuple[int, int]]:
        """Return, by stage, the number of right answers and the number of possible ones (tasks times students).

        The stages are in the order of STAGES; those without a task in the lab, and all if there are
        no hand-ins, are left out.
        """
        by_stage = {}
        for stage in STAGES:
            names = [name for name, task in self.lab.tasks.items() if task.stage == stage]
            asked = len(names) * len(self.works)
            if asked:
                by_stage[stage] = (sum(map(self.count_solved, names)), asked)
        return by_stage

    def agents_blamed_first(self, task: str) -> list[tuple[str, int]]:
        """Return the agents that students edited in their first try at a task, each with the number of students.

        The most frequent comes first. Empty for a task that does not ask for a run.
        """
        first = [work.hand_in.progress(task).first_agent for work in self.works]
        return Counter(filter(None, first)).most_common()

    def remarks_on(self, row: Submission) -> list[str]:
        """Return all remarks that concern a row."""
        return [remark.text for remark in self.remarks if row.place in remark.places]

    def all_remarks(self) -> list[str]:
        """Return all remarks, those on a single row written "NAME: REMARK"."""
        names = {work.place: work.name for work in self.rows}
        lines = []
        for remark in self.remarks:
            text = remark.text
            if len(remark.places) == 1:
                text = f"{names[remark.places[0]]}: {text}"
            lines.append(text)
        return lines

    def __str__(self) -> str:
        """Return a text with the number of hand-ins, and a line for each task, stage, remark and missing hand-in.

        The line of a task says how many solved it, and who is stuck at it.
        """
        number = len(self.works)
        lines = [f"lab {self.lab.number}: {pluralize(number, 'hand-in')}"]
        for name, task in self.lab.tasks.items():
            solved = f"{self.count_solved(name)} of {number} solved"
            stuck = self.stuck_students(name)
            if stuck:
                students = single_line(", ".join(stuck))
                solved += f", stuck: {students}"
            lines.append(f"  {name:<5} {task.title:<60.60} {solved}")
        for stage, (right, asked) in self.solved_by_stage().items():
            lines.append(f"  {stage}: {right} of {asked} answers right")
        notes = self.all_remarks()
        notes += [f"{work.name}: {work.problem}" for work in self.missing]
        for note in notes:
            lines.append("  " + single_line(note))
        return "\n".join(lines)


def remark_on(works: Sequence[Submission], text: str) -> Remark:
    """Return a remark on some works, which names several after a colon."""
    if len(works) > 1:
        text += ": " + ", ".join(work.name for work in works)
    return Remark(text, tuple(work.place for work in works))


def group(items: Iterable[T], key_of: Callable[[T], Hashable]) -> list[list[T]]:
    """Return the items in lists of those with equal keys, in the order in which the keys first occur."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key_of(item), []).append(item)
    return list(groups.values())
