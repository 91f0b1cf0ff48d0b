"""What is shown of labs: remarks, a student's tasks, and the page of a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kgwb.bench.report import render_document
from kgwb.errors import InputError
from kgwb.labs.tasks import HandIn, Lab, Task, TaskProgress, load_lab, read_hand_in, write_file
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.text import pluralize, single_line

STATE_ICONS = {
    "right": "ok",
    "wrong": "bad",
    "hint": "hand",
    "solved": "ok",
    "tried": "bad",
    "open": "off",
}
MIN_STUCK_TRIES = 3
"""Tries after which an unsolved task, or one that took all hints, counts as one where somebody got stuck."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What is said to an answer, or a hint."""

    task: Task
    state: Literal["right", "wrong", "hint"]
    text: str

    def __repr__(self) -> str:
        return f"{self.task.name} {self.text}"

    def _repr_html_(self) -> str:
        words = "not yet" if self.state == "wrong" else self.state
        sign = h.state_badge(STATE_ICONS[self.state], words, pill=True)
        title = h.div("row", h.tag("b", f"{self.task.name} {self.task.title}"), sign)
        text = h.div("soft", self.text) if self.state != "right" else ""
        return h.static_page(h.div("stack tight", title, text))


def render_lab_page(lab: Lab, done: HandIn) -> str:
    """The tasks of a lab with their state."""
    rows = [
        (name, task.title, _render_state(tried), tried.tries or "", tried.hints or "")
        for name, task in lab.tasks.items()
        for tried in [done.tasks.get(name, TaskProgress())]
    ]
    title = h.tag("h2", f"Lab {lab.number}: {lab.title}", class_="title")
    return h.static_page(title, h.table(("task", "", "state", "tries", "hints"), rows))


def _render_state(tried: TaskProgress) -> Html:
    return h.state_badge(STATE_ICONS[tried.state], tried.state)


# --- a class


@dataclass(frozen=True, slots=True)
class CollectedHandIns:
    """The hand-ins of a class in one lab, and the files that are none, with why."""

    lab: int
    hand_ins: tuple[HandIn, ...]
    rejected_files: Mapping[str, str]

    def stuck_students(self, task: str) -> list[str]:
        """The students who tried a task often, or took its hints, and have not solved it."""
        tried = [(each.student, each.tasks.get(task, TaskProgress())) for each in self.hand_ins]
        return [
            name
            for name, t in tried
            if t.state != "solved" and (t.tries >= MIN_STUCK_TRIES or t.hints)
        ]

    def count_solved(self, task: str) -> int:
        return sum(each.tasks.get(task, TaskProgress()).state == "solved" for each in self.hand_ins)

    def __str__(self) -> str:
        """A line a task."""
        number = len(self.hand_ins)
        lines = [f"lab {self.lab}: {pluralize(number, 'hand-in')}"]
        for name, task in load_lab(self.lab).tasks.items():
            stuck = self.stuck_students(name)
            tail = f", stuck: {single_line(', '.join(stuck))}" if stuck else ""
            lines.append(
                f"  {name:<5} {task.title:<60.60} {self.count_solved(name)} of {number} solved{tail}"
            )
        lines += [
            f"  not read: {single_line(name)}: {single_line(why)}"
            for name, why in self.rejected_files.items()
        ]
        return "\n".join(lines)


def collect_hand_ins(folder: str | Path) -> list[CollectedHandIns]:
    """The hand-ins in a folder, lab by lab, students by name; the latest file of each. Raises InputError."""
    folder = Path(folder)
    try:
        files = sorted(folder.glob("*.json"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    except OSError as exc:
        raise InputError(
            f"cannot read {folder}: {exc.strerror or exc}", hint="give the hand-ins' folder"
        ) from exc
    if not files:
        raise InputError(
            f"there are no hand-ins in {folder}", hint="give the folder with the students' files"
        )
    refused: dict[str, str] = {}
    by_lab: dict[int, dict[str, HandIn]] = {}
    for file in files:
        try:
            work = read_hand_in(file)
            known = load_lab(work.kgwb_lab).tasks
            if strange := sorted(set(work.tasks) - set(known)):
                raise InputError(f"lab {work.kgwb_lab} has no task {strange[0]!r}", hint="")
            work.student = work.student or file.name
            by_lab.setdefault(work.kgwb_lab, {})[work.student.casefold()] = work
        except InputError as exc:
            refused[file.name] = exc.message.removeprefix(f"{file.name} is ")
    return [
        CollectedHandIns(
            number,
            tuple(work for _, work in sorted(students.items())),
            refused if place == 0 else {},
        )
        for place, (number, students) in enumerate(sorted(by_lab.items()))
    ] or [CollectedHandIns(1, (), refused)]


def render_class_page(collected: Sequence[CollectedHandIns]) -> str:
    """One page of the class: who solved what, where they got stuck, and the answers side by side."""
    parts: list[Html] = []
    for each in collected:
        lab = load_lab(each.lab)
        signs = (
            (
                work.student,
                *(_render_state(work.tasks.get(name, TaskProgress())) for name in lab.tasks),
            )
            for work in each.hand_ins
        )
        parts.append(h.tag("h2", f"Lab {each.lab}: {lab.title}", class_="title"))
        parts.append(h.table(("student", *lab.tasks), signs))
        for name, task in lab.tasks.items():
            stuck = each.stuck_students(name)
            summary = h.join_with_dots(
                h.tag("b", f"{name} {task.title}"),
                f"{each.count_solved(name)} of {len(each.hand_ins)} solved",
                f"stuck: {', '.join(stuck)}" if stuck else "",
            )
            answers = [
                (
                    work.student,
                    _render_state(t),
                    t.tries,
                    t.hints,
                    h.preformatted(t.answers[-1]),
                    t.remark,
                )
                for work in each.hand_ins
                if (t := work.tasks.get(name, TaskProgress())).answers
            ]
            heads = ("student", "", "tries", "hints", "latest answer", "what the check said")
            parts.append(h.collapsible(summary, h.table(heads, answers), expanded=bool(stuck)))
    refused = [(name, why) for each in collected for name, why in each.rejected_files.items()]
    if refused:
        parts += [
            h.tag("h2", "Files that are no hand-ins", class_="title"),
            h.table(("file", "why"), refused),
        ]
    return render_document(
        "Labs of the class", h.tag("h1", "Labs of the class", class_="h1"), *parts
    )


def save_class_page(collected: Sequence[CollectedHandIns], path: str | Path) -> Path:
    """Write the page of the class. Raises InputError."""
    return write_file(Path(path), render_class_page(collected))
