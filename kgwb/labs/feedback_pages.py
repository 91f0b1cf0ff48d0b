"""What students get back: a page for each, with the feedback, and the points and comments that were given by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from kgwb.labs.hand_grades import HandGrades, OpenAnswer
from kgwb.labs.hand_ins import write_file
from kgwb.labs.pages import Feedback, describe_lab, render_progress_table
from kgwb.labs.rows import CollectedHandIns, CollectedWork
from kgwb.labs.tasks import Lab
from kgwb.show import html as h
from kgwb.show.static_form import load_style

UNSAFE_IN_PATHS = re.compile(r"[^\w .,@()+-]+")
"""What divides the parts of a path: slashes, and characters that a system may not allow in a name."""


def render_student_page(lab: Lab, work: CollectedWork, by_hand: HandGrades | None) -> str:
    """Render what a student gets back, as a complete HTML document in the language of the lab.

    It has the table of the tasks as the notebook shows it, and for each task that was tried or graded
    the feedback that the student saw, what was found when it was checked again, the mean points of
    each criterion by those who graded it by hand, and their comments.
    """
    tasks = []
    disagreements = work.disagreements or {}
    for name, task in lab.tasks.items():
        progress = work.hand_in.progress(name)
        answer = OpenAnswer.of_progress(name, progress)
        grades = by_hand.of_answer(answer) if by_hand else []
        feedback = Feedback(task, "wrong", disagreements.get(name, progress.remark))
        if work.is_solved(name):
            feedback = Feedback(task, "right", task.describe_lesson(answer.answer))
        if progress.tries or grades:
            by_criterion = zip(*(grade.points for grade in grades), strict=False)
            points = zip(task.rubric.items(), map(fmean, by_criterion), strict=False)
            tasks.append((feedback, list(points), [grade.comment for grade in grades]))
    return h.render_template(
        "labs/templates/feedback.html",
        title=describe_lab(lab),
        language=Path(lab.texts.language).stem,
        style=h.Html(load_style()),
        student=work.student,
        table=render_progress_table(lab, work.hand_in),
        tasks=tasks,
    )


def save_student_pages(
    collected: Sequence[CollectedHandIns], folder: Path, by_hand: HandGrades | None
) -> int:
    """Write the page of each student to a folder, and return how many there are.

    A page has the path of the hand-in below the folder or zip that was collected, as learning
    platforms take feedback, with the ending ".html". Parts that lead out of the folder are left out.
    Raises InputError if a file cannot be written.
    """
    count = 0
    for hand_ins in collected:
        for work in hand_ins.works:
            parts = [part.strip(". ") for part in UNSAFE_IN_PATHS.split(work.file.place)]
            kept = [part for part in parts if part and not part.casefold().endswith(".zip")]
            page = render_student_page(hand_ins.lab, work, by_hand)
            write_file(folder.joinpath(*kept).with_suffix(".html"), page)
            count += 1
    return count
