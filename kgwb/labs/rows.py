"""The rows of a class: one for each work and each submission without one, and remarks on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from kgwb.labs.hand_ins import HandIn
from kgwb.labs.roster import RosterStudent
from kgwb.labs.submissions import FoundFile
from kgwb.labs.tasks import STAGES, Lab, Stage
from kgwb.records import frozen
from kgwb.text import pluralize, single_line

T = TypeVar("T")


@frozen
class CollectedWork:
    """A row of a class: a work that a student handed in, or a submission without one."""

    file: FoundFile
    """The file that counts. Of a submission without a hand-in, its folder or its only file."""
    others: tuple[FoundFile, ...] = ()
    """The other files of the submission that could not be read; without a hand-in, all its files."""
    problem: str = ""
    """Why there is no hand-in, what was found, and which file to ask for; empty if there is one."""
    listed: RosterStudent | None = None
    """Who it is in the list of the class; None if that is nobody, or there is no list."""
    name: str = ""
    """The student as shown. Of students with one name, the name is followed by the file."""
    disagreements: Mapping[str, str] = field(default_factory=dict)
    """By task, why the state in the file is not that of its answer; empty if it was not checked."""

    @property
    def hand_in(self) -> HandIn:
        """What the file holds; without a hand-in, one of an open lab."""
        return self.file.hand_in or HandIn(kgwb_lab=1)

    @property
    def identity(self) -> str:
        """The identity of the work; of one that names none, the path of its file."""
        return self.hand_in.work_id or self.file.place

    @property
    def student(self) -> str:
        """The student's name: as the class's list, the file, the platform or the folder says it; may be empty."""
        if self.listed:
            return self.listed.name
        return self.hand_in.student or self.file.student_name or self.file.student_id

    @property
    def when(self) -> str:
        """When the work was handed in, as text in ISO 8601.

        It is the platform's time, else the one that kgwb wrote in the file, which a student can
        change, else the file's on the disk.
        """
        if self.file.is_time_of_platform or not self.hand_in.written:
            return self.file.changed
        return self.hand_in.written

    def is_solved(self, task: str) -> bool:
        """Return whether a task counts as solved: in the file, and if checked, again."""
        is_solved = self.hand_in.progress(task).state == "solved"
        return is_solved and task not in self.disagreements


@frozen
class Remark:
    """Something that the lecturer should look at."""

    text: str
    places: tuple[str, ...]
    """The files of the rows that it concerns: ``CollectedWork.file.place``."""


@frozen
class CollectedHandIns:
    """The rows of a class in one lab."""

    lab: Lab
    works: tuple[CollectedWork, ...]
    """One row for each work, by the student's name."""
    missing: tuple[CollectedWork, ...] = ()
    """The rows of submissions without a hand-in, by the student's name."""
    remarks: tuple[Remark, ...] = ()

    @property
    def rows(self) -> tuple[CollectedWork, ...]:
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
        solved: Counter[Stage] = Counter()
        asked: Counter[Stage] = Counter()
        for name, task in self.lab.tasks.items():
            solved[task.stage] += self.count_solved(name)
            asked[task.stage] += len(self.works)
        by_stage = {}
        for stage in STAGES:
            if asked[stage]:
                by_stage[stage] = (solved[stage], asked[stage])
        return by_stage

    def agents_blamed_first(self, task: str) -> list[tuple[str, int]]:
        """Return the agents that students edited in their first try at a task, each with the number of students.

        The most frequent comes first. Empty for a task that does not ask for a run.
        """
        first = [work.hand_in.progress(task).first_agent for work in self.works]
        return Counter(filter(None, first)).most_common()

    def weakest_stage(self) -> Stage | None:
        """Return the stage with the smallest share of right answers, the first of equals; None without hand-ins."""
        parts = self.solved_by_stage()
        if not parts:
            return None
        return min(parts, key=lambda stage: parts[stage][0] / parts[stage][1])

    def remarks_on(self, row: CollectedWork) -> list[str]:
        """Return all remarks that concern a row."""
        return [remark.text for remark in self.remarks if row.file.place in remark.places]

    def all_remarks(self) -> list[str]:
        """Return all remarks, those on a single row written "NAME: REMARK"."""
        names = {work.file.place: work.name for work in self.rows}
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


def remark_on(works: Sequence[CollectedWork], text: str) -> Remark:
    """Return a remark on some works, which names several after a colon."""
    if len(works) > 1:
        text += ": " + ", ".join(work.name for work in works)
    return Remark(text, tuple(work.file.place for work in works))


def group(items: Iterable[T], key_of: Callable[[T], Hashable]) -> list[list[T]]:
    """Return the items in lists of those with equal keys, in the order in which the keys first occur."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key_of(item), []).append(item)
    return list(groups.values())
