"""How labs are shown: feedback, the tasks of a student, the page of a class, and what students get back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from kgwb.labs.hand_grades import HandGrades, OpenAnswer
from kgwb.labs.hand_ins import HandIn, write_file
from kgwb.labs.rows import CollectedHandIns, Submission
from kgwb.labs.tasks import Lab, Task
from kgwb.records import frozen
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.static_form import load_style
from kgwb.text import tell_apart

if TYPE_CHECKING:
    from kgwb.labs.points import Grading

UNSAFE_IN_NAMES = re.compile(r"[^\w .,@()+'-]+")
"""Characters that a system may not allow in the name of a file or a folder."""
MAX_NAME_BYTES = 200
"""Bytes of such a name in UTF-8; systems allow some 255."""


@frozen
class Feedback:
    """What a student sees after an answer, or a hint."""

    task: Task
    state: Literal["right", "wrong", "hint"]
    text: str
    """What is wrong with the answer, or the hint; of a right answer, that it is right, and the lesson."""

    def __repr__(self) -> str:
        return f"{self.task.name} {self.text}"

    def _repr_html_(self) -> str:
        markup = h.render_template("labs/templates/task_feedback.html", feedback=self)
        return h.static_page(markup)


def render_lab_page(lab: Lab, work: HandIn) -> str:
    """Render the table of a lab's tasks below its title, with the style that it needs in a notebook."""
    title = h.tag("h2", describe_lab(lab), class_="title")
    table = h.render_template("labs/templates/tasks.html", lab=lab, hand_in=work, disagreements={})
    return h.static_page(title, table)


def describe_lab(lab: Lab) -> str:
    """Return the number and the title of a lab."""
    return lab.texts.get("lab.heading", number=lab.number, title=lab.title)


def render_class_page(collected: Sequence[CollectedHandIns], grading: Grading) -> str:
    """Render the page of a class, with the template labs/templates/class.html, as a complete HTML document.

    It sums up by stage, and shows who solved which task, who is stuck, what is remarkable, the
    latest answers side by side, who handed in nothing that can be read, and the points. The page is in English.
    """
    return h.render_template(
        "labs/templates/class.html",
        title="Labs of the class",
        style=Html(load_style()),
        labs=collected,
        grading=grading,
    )


# --- what students get back


def render_student_page(lab: Lab, work: Submission, by_hand: HandGrades | None) -> str:
    """Render what a student gets back, as a complete HTML document in the language of the lab.

    It has the table of the tasks, in which one that is found wrong again is not solved, and for each
    task that was tried or graded the feedback that the student saw, what was found when it was
    checked again, the mean points of each criterion by those who graded it by hand, and their
    comments.
    """
    return h.render_template(
        "labs/templates/feedback.html",
        title=describe_lab(lab),
        language=Path(lab.texts.language).stem,
        style=h.Html(load_style()),
        lab=lab,
        work=work,
        disagreements=work.disagreements,
        by_hand=by_hand,
        answer_of=OpenAnswer.of_progress,
    )


def save_student_pages(
    collected: Sequence[CollectedHandIns], folder: Path, by_hand: HandGrades | None
) -> int:
    """Write the page of each student to a folder, and return how many there are.

    A page has the path of the hand-in below the folder or zip that was collected, as learning
    platforms take feedback, with the ending ".html" and without the names of zips. Where pages of several
    hand-ins would have one path, a number is before its last part. Raises InputError if a file cannot be written.
    """
    works = {}
    for hand_ins in collected:
        for work in hand_ins.works:
            works[work.place] = (hand_ins.lab, work)
    places = list(works)
    forms = (
        _path_of_page,
        lambda place: _path_of_page(place, f"{places.index(place) + 1} "),
    )
    for place, path in tell_apart(places, forms, fold_case=True).items():
        write_file(folder / path, render_student_page(*works[place], by_hand))
    return len(places)


def _path_of_page(place: str, prefix: str = "") -> str:
    """Return where the page of a hand-in is in the folder of all pages, whatever a zip names its files.

    Parts that lead out of the folder, and zips, are left out. The prefix is before the last part.
    """
    names = []
    for part in re.split(r"[/\\]", place):
        if not part.casefold().endswith(".zip"):
            safe = UNSAFE_IN_NAMES.sub("_", part).strip(". ").encode()
            names.append(safe[:MAX_NAME_BYTES].decode(errors="ignore"))
    path = PurePosixPath(*names)
    return str(path.parent / f"{prefix}{path.stem or 'feedback'}.html")
