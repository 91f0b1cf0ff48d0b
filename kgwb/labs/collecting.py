"""The hand-ins of a class: found, read, the latest of each work kept, and checked again on wish.

Students can be given pseudonyms, and equal answers of two students are named. Points are written as
a CSV table, for a spreadsheet or a learning platform.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from kgwb import disk
from kgwb.disk import __version__
from kgwb.errors import InputError
from kgwb.labs.hand_ins import FoundFile, HandIn, find_files, parse_hand_in, write_file
from kgwb.labs.rechecking import check_again
from kgwb.labs.tasks import STAGES, Lab, Stage, load_lab
from kgwb.text import look_of, pluralize, quote_cell, single_line, unquote_cell

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
        with disk.os_errors_as_input_error(f"cannot read the pseudonyms {path}", hint):
            text = disk.read_text(path)
        rows = list(filter(None, csv.reader(StringIO(text))))
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
            writer.writerow(map(quote_cell, (pseudonym, student, student_id)))
        writer.writerow((f"student {self._next_number}", *NEXT))
        hint = "choose another file or folder"
        with disk.os_errors_as_input_error(f"cannot write {self.path}", hint):
            disk.write_atomically(self.path, [text.getvalue()])


MIN_COMPARED_CHARS = 30
"""Shorter answers are often equal by chance, and are not compared."""
MAX_CHANCE_GROUP = 3
"""Of any class, so many equal answers are remarkable."""
MAX_GROUP_PART = 0.2
"""What more than this part of a class answers is the natural answer, and is not remarked."""
WORD = re.compile(r"\?\w+|\w+")
"""A word, or a variable of SPARQL."""


def find_equal_answers(lab: Lab, hand_ins: Mapping[str, HandIn]) -> list[str]:
    """Return a remark for each group of students with equal answers, which names students and tasks.

    ``hand_ins`` are by the student's name. Only tasks with ``is_free`` are compared, by the stored
    answer, and only answers of at least MIN_COMPARED_CHARS characters; whitespace, order, case and
    names of variables do not count. A group is remarked if it has at most MAX_CHANCE_GROUP
    students, or MAX_GROUP_PART of the class if that is more: what more students answer is the
    natural answer. Empty if there are no such groups.
    """
    max_group = max(MAX_CHANCE_GROUP, MAX_GROUP_PART * len(hand_ins))
    tasks_of_group: dict[tuple[str, ...], list[str]] = {}
    for name, task in lab.tasks.items():
        if not task.is_free:
            continue
        students: dict[str, list[str]] = {}
        for student, hand_in in hand_ins.items():
            compared = _normalize_answer(hand_in, name)
            if len(compared) >= MIN_COMPARED_CHARS:
                students.setdefault(compared, []).append(student)
        for same_answer in students.values():
            if 1 < len(same_answer) <= max_group:
                group = tuple(same_answer)
                tasks_of_group.setdefault(group, []).append(name)

    remarks = []
    for group, names in tasks_of_group.items():
        tasks = ", ".join(names)
        group_names = ", ".join(group)
        remarks.append(
            f"equal answers to {tasks}: {group_names} (apart from spaces, order and names; "
            "short answers can be equal by chance)"
        )
    return remarks


def _normalize_answer(hand_in: HandIn, task: str) -> str:
    """Return the words of a stored answer in lower case, sorted and joined by spaces; "" if there is none.

    Of a run these are the words of its overrides. Each variable, such as "?x", is written "?".
    """
    stored = hand_in.progress(task).data
    if stored is None:
        return ""
    data = stored.run.overrides if stored.run else stored.value
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    words = []
    for word in WORD.findall(text.casefold()):
        words.append("?" if word.startswith("?") else word)
    return " ".join(sorted(words))


@dataclass(frozen=True, slots=True)
class CollectedWork:
    """A hand-in, where it was found, and what is remarkable about it."""

    file: FoundFile
    hand_in: HandIn
    name: str = ""
    """The student as shown. Of students with one name, the name is followed by the file."""
    remarks: tuple[str, ...] = ()
    """What the lecturer should look at."""
    disagreements: Mapping[str, str] | None = None
    """By task, why the state in the file is not that of its answer; None if it was not checked."""

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
        return self.hand_in.progress(task).state == "solved" and not self.disagrees(task)

    def disagrees(self, task: str) -> bool:
        """Return whether the check has shown another state than the file's; False without a check."""
        return task in (self.disagreements or {})


@dataclass(frozen=True, slots=True)
class CollectedHandIns:
    """The hand-ins of a class in one lab."""

    lab: Lab
    works: tuple[CollectedWork, ...]
    """One of each work, by the student's name."""
    rejected_files: Mapping[str, str]
    """Why a file in the folder is not a hand-in, by its place."""
    remarks: tuple[str, ...] = ()
    """What is to be known about names that occur more than once, and about files not counted."""

    def stuck_students(self, task: str) -> list[str]:
        """Return the names of the students who are stuck at a task; see TaskProgress.is_stuck."""
        return [work.name for work in self.works if work.hand_in.progress(task).is_stuck]

    def with_answers(self, task: str) -> list[CollectedWork]:
        """Return the hand-ins that have an answer to a task."""
        return [work for work in self.works if work.hand_in.progress(task).answers]

    def with_discussion(self, task: str) -> list[CollectedWork]:
        """Return the hand-ins that say something about the question that a task leaves open."""
        return [work for work in self.works if work.hand_in.progress(task).discussion]

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

    def all_remarks(self) -> list[str]:
        """Return the remarks on the class, followed by those on each hand-in, written "NAME: REMARK"."""
        remarks = list(self.remarks)
        for work in self.works:
            remarks += [f"{work.name}: {remark}" for remark in work.remarks]
        return remarks

    def __str__(self) -> str:
        """Return a text with the number of hand-ins, and a line for each task, stage, remark and rejected file.

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
        for remark in self.all_remarks():
            line = single_line(remark)
            lines.append(f"  {line}")
        for place, reason in self.rejected_files.items():
            line = single_line(f"{place}: {reason}")
            lines.append(f"  not read: {line}")
        return "\n".join(lines)


def collect_hand_ins(
    folder: str | Path,
    *,
    check: bool = False,
    open_lab: Callable[[int | str], Lab] = load_lab,
    pseudonyms: Pseudonyms | None = None,
) -> list[CollectedHandIns]:
    """Read the hand-ins in a folder or a zip, and return them by lab, sorted by the student's name.

    Of several files of one work under one name, the latest counts. Files of different works are all
    listed, also if their students have the same name; files of earlier versions, which do not name
    their work, are each taken for one. A hand-in without a name is listed by the place of its file.
    Files that are not hand-ins are listed with the first lab, or with an empty lab 1 if there is no
    other. With ``check`` the answers are checked again. With ``pseudonyms``, names, ids and files
    are replaced by them. Raises InputError if the folder cannot be read or has no file that ends in
    ".json".
    """
    rejected: dict[str, str] = {}
    by_lab: dict[int | str, list[CollectedWork]] = {}
    for file in find_files(Path(folder)):
        try:
            work = _read_work(file, open_lab)
        except InputError as exc:
            place = pseudonyms.of_file(file.place) if pseudonyms else file.place
            rejected[place] = exc.message.removeprefix(f"{file.name} is ")
            continue
        if pseudonyms:
            work = _with_pseudonym(work, pseudonyms)
        by_lab.setdefault(work.hand_in.kgwb_lab, []).append(work)

    collected: list[CollectedHandIns] = []
    for number, works in sorted(by_lab.items(), key=str):
        listed_here = {} if collected else rejected
        collected.append(_collect_lab(open_lab(number), works, listed_here, check=check))
    return collected or [CollectedHandIns(open_lab(1), (), rejected)]


def _read_work(file: FoundFile, open_lab: Callable[[int | str], Lab]) -> CollectedWork:
    """Parse the hand-in of a found file, and return it with the file.

    Raises InputError if the file has a problem, is no hand-in, is for an unknown lab, or has a task
    that its lab lacks.
    """
    if file.problem:
        raise InputError(file.problem, hint="")
    hand_in = parse_hand_in(file.name, file.data)
    known = open_lab(hand_in.kgwb_lab).tasks
    for name in hand_in.tasks:
        if name not in known:
            raise InputError(f"lab {hand_in.kgwb_lab} has no task {name!r}", hint="")
    return CollectedWork(file, hand_in)


def _with_pseudonym(work: CollectedWork, pseudonyms: Pseudonyms) -> CollectedWork:
    """Return a copy of a work with pseudonyms for the student's name and id and for the file's path.

    The data of the file are removed. A student without a name is told apart by the file's path.
    """
    student = work.hand_in.student or work.file.place
    pseudonym = pseudonyms.of_student(student, work.file.student_id)
    file = replace(
        work.file,
        place=pseudonyms.of_file(work.file.place),
        student_id=pseudonym,
        data=b"",
    )
    hand_in = work.hand_in.model_copy(update={"student": pseudonym})
    return replace(work, file=file, hand_in=hand_in)


def _collect_lab(
    lab: Lab, works: Sequence[CollectedWork], rejected: Mapping[str, str], *, check: bool
) -> CollectedHandIns:
    """Return the hand-ins of one lab, one of each work, sorted by name and with their remarks.

    ``rejected`` are the files to list with it. With ``check`` the answers are checked again, which
    starts processes. Hand-ins with equal answers are remarked on.
    """
    in_order = sorted(works, key=_oldest_first)
    latest, remarks = _keep_latest(in_order)
    remarks += _remark_on_names(latest)
    named = _with_distinct_names(latest)
    hand_ins = {work.name: work.hand_in for work in named}
    remarks += find_equal_answers(lab, hand_ins)
    if check:
        found = check_again(lab, list(hand_ins.values()))
        checked = []
        for work, disagreements in zip(named, found, strict=True):
            checked.append(replace(work, disagreements=disagreements))
        named = checked
    remarked = []
    for work in named:
        own_remarks = _remark_on_work(lab, work)
        remarked.append(replace(work, remarks=tuple(own_remarks)))
    return CollectedHandIns(lab, tuple(remarked), rejected, tuple(remarks))


def _oldest_first(work: CollectedWork) -> tuple[str, str, str]:
    """Return what works are sorted by: when they were written, then their files."""
    return work.when, work.file.changed, work.file.place


def _remark_on_work(lab: Lab, work: CollectedWork) -> Iterable[str]:
    """Yield the remarks on one hand-in: another version of kgwb, impossible states, and failed checks.

    Impossible is a solved task without tries, an open one with tries, and more answers than tries.
    """
    hand_in = work.hand_in
    version = hand_in.kgwb_version
    if version and version != __version__:
        yield f"written by kgwb {version}; this is {__version__}"
    for name in lab.tasks:
        progress = hand_in.progress(name)
        if progress.state == "solved" and not progress.tries:
            yield f"{name} is solved without a try"
        elif progress.state == "open" and progress.tries:
            yield f"{name} is open after {progress.tries} tries"
        if len(progress.answers) > progress.tries:
            yield f"{name} has more answers than tries"
    disagreements = work.disagreements or {}
    for name, problem in disagreements.items():
        state = hand_in.progress(name).state
        yield f"{name} is {state} in the file, but {problem}"


def _keep_latest(works: Sequence[CollectedWork]) -> tuple[list[CollectedWork], list[str]]:
    """Return the latest file of each work under each name, and a remark on each earlier file.

    ``works`` must have the oldest first. Names are compared by their looks. A file without a work's
    identity is never replaced. A file without a name, as it is kept beside a notebook, is left out
    without a remark if a named one of the same work and student's folder is there.
    """
    latest: dict[tuple[str, str], CollectedWork] = {}
    remarks = []
    named = set()
    for work in works:
        if work.hand_in.student:
            named.add(_identity_of(work))
    for work in works:
        work_id = work.hand_in.work_id
        student = work.hand_in.student
        if work_id and not student and _identity_of(work) in named:
            continue
        key = ("", work.file.place)
        if work_id:
            key = (work_id, _look_of_name(student))
        if key in latest:
            earlier = latest[key].file.place
            remarks.append(f"not counted: {earlier}, an earlier state of {work.file.place}")
        latest[key] = work
    return list(latest.values()), remarks


def _identity_of(work: CollectedWork) -> tuple[str, str]:
    """Return the identity of a work, and the id of the student's folder that it was found in."""
    return work.hand_in.work_id, work.file.student_id


def _remark_on_names(works: Sequence[CollectedWork]) -> list[str]:
    """Return remarks on several hand-ins that share a student's name, a work's identity, or a file's name.

    Each remark lists the paths of the files. Names are compared by their looks. Empty if all are
    distinct.
    """
    remarks = []
    for alike in _group(works, _key_of_name):
        if len(alike) > 1:
            student = alike[0].hand_in.student
            files = _places(alike)
            remarks.append(f"{len(alike)} hand-ins have the name {student}: {files}")
    for alike in _group(works, lambda work: (work.hand_in.work_id, "")):
        if alike[0].hand_in.work_id and len(alike) > 1:
            names = []
            for work in alike:
                names.append(f"{work.hand_in.student!r} ({work.file.place})")
            shown = ", ".join(names)
            remarks.append(f"one work was handed in under {len(names)} names: {shown}")
    for alike in _group(works, lambda work: (work.file.name, "")):
        if len(alike) > 1:
            files = _places(alike)
            remarks.append(f"{len(alike)} files have one name: {files}")
    return remarks


def _places(works: Sequence[CollectedWork]) -> str:
    """Return the places of the works' files as one text with commas."""
    return ", ".join(work.file.place for work in works)


def _with_distinct_names(works: Sequence[CollectedWork]) -> list[CollectedWork]:
    """Return copies of the works with the name to show, sorted by it regardless of case.

    A name that several works have is followed by the file's path in brackets. A hand-in without a
    name gets the path.
    """
    named = []
    for same_name in _group(works, _key_of_name):
        for work in same_name:
            name = work.hand_in.student
            if not look_of(name):
                name = work.file.place
            elif len(same_name) > 1:
                name = f"{name} ({work.file.place})"
            named.append(replace(work, name=name))
    return sorted(named, key=lambda work: (work.name.casefold(), work.name))


def _look_of_name(student: str) -> str:
    """Return a form of a name that is equal for names that look the same but for letter case."""
    return look_of(student).casefold()


def _key_of_name(work: CollectedWork) -> tuple[str, str]:
    """Return the look of the student's name as a key; of a work without a name, the file's path."""
    name = _look_of_name(work.hand_in.student)
    return (name, "") if name else ("", work.file.place)


def _group(
    works: Sequence[CollectedWork], key_of: Callable[[CollectedWork], tuple[str, str]]
) -> list[list[CollectedWork]]:
    """Return the works in lists of those with equal keys, in the order in which the keys first occur."""
    groups: dict[tuple[str, str], list[CollectedWork]] = {}
    for work in works:
        groups.setdefault(key_of(work), []).append(work)
    return list(groups.values())


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
    """Write a row for each hand-in to a CSV file, which is replaced, and return its path.

    A row has the points of each task of all labs, their total, tries, hints and remarks. ``points``
    are those of a solved task, by its name; DEFAULT_POINTS for a task that is not named, and 0 for
    one that is not solved. ``late`` is "yes" or "no", and empty without ``due`` unless the platform
    says that the file was late. A cell that a spreadsheet would compute gets a quote before it.
    Raises InputError if ``points`` names no task of these labs, or if the file cannot be written.
    """
    names = [name for hand_ins in collected for name in hand_ins.lab.tasks]
    points = points or {}
    for name in points:
        if name not in names:
            raise InputError(
                f"points were given for the task {name!r}, which no collected lab has",
                hint=f"give points for the tasks {', '.join(names)}",
            )
    headings = [
        "lab",
        "id",
        "student",
        *names,
        "total",
        "tries",
        "hints",
        "late",
        "time",
        "version",
    ]
    headings += ["file", "remarks"]
    table = StringIO()
    writer = csv.DictWriter(table, headings, restval="")
    writer.writeheader()
    for hand_ins in collected:
        for work in hand_ins.works:
            row = _make_row(hand_ins, work, points, due)
            writer.writerow({heading: quote_cell(str(value)) for heading, value in row.items()})
    return write_file(path, table.getvalue())


def _make_row(
    hand_ins: CollectedHandIns,
    work: CollectedWork,
    points: Mapping[str, float],
    due: datetime | None,
) -> dict[str, object]:
    """Return the cells of a hand-in by their heading; the tasks of other labs have none.

    A solved task has its points, and another one 0. Numbers are written without needless zeros.
    """
    hand_in = work.hand_in
    row: dict[str, object] = {}
    total = 0.0
    for name in hand_ins.lab.tasks:
        reached = points.get(name, DEFAULT_POINTS) if work.is_solved(name) else 0.0
        row[name] = f"{reached:g}"
        total += reached
    row |= {
        "lab": str(hand_ins.lab.number),
        "id": work.file.student_id,
        "student": hand_in.student,
        "total": f"{total:g}",
        "tries": str(sum(progress.tries for progress in hand_in.tasks.values())),
        "hints": str(sum(progress.hints for progress in hand_in.tasks.values())),
        "late": _describe_lateness(work, due),
        "time": work.when,
        "version": hand_in.kgwb_version,
        "file": work.file.place,
        "remarks": "; ".join(work.remarks),
    }
    return row


def _describe_lateness(work: CollectedWork, due: datetime | None) -> str:
    """Return "yes" or "no" for whether a hand-in is late; "" if that is not known.

    It is late if the platform says so, or if its time is after ``due``; a time without a zone is
    taken as UTC. It is not known without ``due``, or if the time cannot be read.
    """
    if work.file.is_late:
        return "yes"
    if due is None:
        return ""
    try:
        handed_in = datetime.fromisoformat(work.when)
    except ValueError:
        return ""
    if handed_in.tzinfo is None:
        handed_in = handed_in.replace(tzinfo=UTC)
    return "yes" if handed_in > due else "no"
