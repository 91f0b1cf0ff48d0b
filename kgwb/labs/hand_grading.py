"""The widget in which a person grades open answers: one after the other, task by task, without names."""

from __future__ import annotations

from pathlib import Path

from kgwb.bench.judgements import require_name
from kgwb.errors import InputError
from kgwb.labs.answers import read_number
from kgwb.labs.collecting import collect_hand_ins
from kgwb.labs.hand_grades import HandGrade, HandGrades, OpenAnswer
from kgwb.labs.hand_ins import TaskProgress
from kgwb.labs.tasks import Task, make_lab_opener
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.ui.live import Event, Live, argument_of, form_of


class HandGrading(Live):
    """The widget in which a person gives points and comments to the answers to tasks with a rubric.

    It shows one answer at a time, task by task, and no names; equal answers are shown once. Each
    grade is kept at once. It never shows what other people say, so that two people grade without
    seeing each other's points.
    """

    def __init__(
        self,
        hand_ins: str | Path,
        grader: str,
        *,
        folder: str | Path = "grades",
        lab: str | Path | None = None,
        language: str = "",
    ) -> None:
        """Open the answers in a folder or zip of hand-ins for one person.

        ``grader`` names the person's file in ``folder``. ``lab`` is the file of a lab of one's own.
        Raises InputError for a grader without a name, if there is no answer to a task with a rubric,
        and for a file that cannot be read.
        """
        require_name(grader, "grades", "HandGrading(FOLDER, 'ann')")
        self.grader = grader
        self.file = HandGrades(folder)
        self.command = f'kgwb labs collect "{hand_ins}" --by-hand "{folder}"'
        if lab:
            self.command += f' --lab "{lab}"'
        self.tasks: dict[str, Task] = {}
        found: dict[OpenAnswer, list[TaskProgress]] = {}
        open_lab = make_lab_opener(lab, language)
        for collected in collect_hand_ins(hand_ins, open_lab=open_lab):
            for name, task in collected.lab.tasks.items():
                self.tasks[name] = task
                for work in collected.works:
                    progress = work.hand_in.progress(name)
                    answer = OpenAnswer.of_progress(name, progress)
                    if task.rubric and (answer.answer or answer.discussion):
                        found.setdefault(answer, []).append(progress)
        if not found:
            raise InputError(
                f"nothing in {hand_ins} is graded by hand: no task with a rubric was answered",
                hint="give a task of your lab a rubric, see docs/how-to/my-lab.md",
            )
        places = list(self.tasks)
        self.answers = sorted(found, key=lambda answer: (places.index(answer.task), answer))
        """By task, then by text, so that their order says nothing about the students."""
        self.progress = found
        """What the students did who gave each answer."""
        self.selected = self._find_ungraded()
        super().__init__()

    @property
    def grades(self) -> dict[OpenAnswer, HandGrade]:
        """What this person has said of the answers."""
        grades = self.file.by_grader(self.grader)
        return {answer: grades[answer] for answer in self.answers if answer in grades}

    def _find_ungraded(self) -> OpenAnswer:
        """Return the first answer without a grade; the first of all if all have one."""
        graded = self.grades
        return next((answer for answer in self.answers if answer not in graded), self.answers[0])

    def view(self) -> Html:
        """Render how far the person is, the answers by task, the selected answer, and its form."""
        task = self.tasks[self.selected.task]
        progress = self.progress[self.selected]
        return h.render_template(
            "labs/templates/hand_grading.html",
            page=self,
            answer=self.selected,
            task=task,
            grades=self.grades,
            grade=self.grades.get(self.selected),
            progress=progress[0],
            count=len(progress),
        )

    def do_go(self, event: Event) -> None:
        """Show the answer whose position is the event's ``arg``."""
        self.selected = self.answers[int(argument_of(event))]

    def do_grade(self, event: Event) -> str:
        """Keep the points and the comment of the form, and show the next answer without a grade.

        Returns a message if all have one. Raises InputError if the points of a criterion are not from 0 to
        its most points, and if the file cannot be written.
        """
        form = form_of(event)
        task = self.tasks[self.selected.task]
        points = []
        for number, (criterion, most) in enumerate(task.rubric.items()):
            given = read_number(form.get(f"points-{number}", ""))
            if isinstance(given, str) or not 0 <= given <= most:
                raise InputError(
                    f"the grade was not saved: “{criterion}” has no points from 0 to {most:g}",
                    hint="give each criterion its points; half points are possible",
                )
            points.append(given)
        comment = form.get("comment", "").strip()
        about = self.selected._asdict()
        self.file.add(self.grader, HandGrade(**about, points=tuple(points), comment=comment))
        self.selected = self._find_ungraded()
        if len(self.grades) < len(self.answers):
            return ""
        return f"All are graded. Give the points: {self.command}"

    def do_undo(self, event: Event) -> str:
        """Take back the last grade, show its answer, and return a message. Raises as ``HandGrades.undo`` does."""
        last = self.file.undo(self.grader)
        if last.about in self.progress:
            self.selected = last.about
        return f"the last grade was taken back, of an answer to {last.task}; its points: {last.total:g}"

    def __repr__(self) -> str:
        """Return how many answers the person has graded."""
        graded = f"{len(self.grades)} of {len(self.answers)} answers graded"
        return f"HandGrading({self.grader}: {graded})"
