"""How labs are shown: feedback on an answer, the tasks of a student, and the page of a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from kgwb.labs.hand_ins import HandIn, TaskProgress
from kgwb.labs.rows import CollectedHandIns
from kgwb.labs.tasks import Lab, Task
from kgwb.labs.texts import Texts
from kgwb.records import frozen
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run_state import ANSWER_STATE_ICONS, RIGHT, WRONG
from kgwb.show.static_form import load_style
from kgwb.text import display_name

if TYPE_CHECKING:
    from kgwb.labs.points import Grading

STATE_ICONS = {
    "solved": ANSWER_STATE_ICONS[RIGHT],
    "tried": ANSWER_STATE_ICONS[WRONG],
    "open": "off",
}
"""The icon of each state of a task."""
FEEDBACK_BADGES = {
    "right": (ANSWER_STATE_ICONS[RIGHT], "badge.right"),
    "wrong": (ANSWER_STATE_ICONS[WRONG], "badge.wrong"),
    "hint": ("hand", "badge.hint"),
}
"""The icon of each kind of feedback, and the key of its label."""


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
        return h.static_page(self.render())

    def render(self) -> Html:
        """Render the title of the task with a badge of the state, and the lines of the text below it.

        The first line of feedback on a right answer is left out, since the badge says the same.
        """
        icon, label_key = FEEDBACK_BADGES[self.state]
        badge = h.state_badge(icon, self.task.texts.get(label_key), pill=True)
        title = h.tag("b", f"{self.task.name} {self.task.title}")
        lines = [h.div("soft", line) for line in self.text.splitlines()]
        if self.state == "right":
            del lines[0]  # the badge says that it is right
        return h.div("stack tight", h.div("row", title, badge), *lines)


def render_lab_page(lab: Lab, work: HandIn) -> str:
    """Render the table of a lab's tasks below its title, with the style that it needs in a notebook."""
    title = h.tag("h2", describe_lab(lab), class_="title")
    return h.static_page(title, render_progress_table(lab, work))


def describe_lab(lab: Lab) -> str:
    """Return the number and the title of a lab."""
    return lab.texts.get("lab.heading", number=lab.number, title=lab.title)


def render_progress_table(lab: Lab, work: HandIn) -> Html:
    """Render a table of a lab's tasks with the state, the tries and the hints of a student.

    A count of 0 is an empty cell. Tasks are in the order of the lab.
    """
    texts = lab.texts
    rows = []
    for name, task in lab.tasks.items():
        progress = work.progress(name)
        state = render_state(progress, texts)
        rows.append((name, task.title, state, progress.tries or "", progress.hints or ""))
    task_heading, *headings = map(texts.get, ("lab.task", "lab.state", "lab.tries", "lab.hints"))
    return h.table([task_heading, "", *headings], rows)


def render_state(progress: TaskProgress, texts: Texts) -> Html:
    """Render the state of a task as an icon and a word."""
    return h.state_badge(STATE_ICONS[progress.state], texts.get(f"state.{progress.state}"))


def render_class_page(collected: Sequence[CollectedHandIns], grading: Grading | None = None) -> str:
    """Render the page of a class, with the template labs/templates/class.html, as a complete HTML document.

    It sums up by stage, and shows who solved which task, who is stuck, what is remarkable, the
    latest answers side by side, and who handed in nothing that can be read. With ``grading`` it has
    the points. The page is in English.
    """
    return h.render_template(
        "labs/templates/class.html",
        title="Labs of the class",
        style=Html(load_style()),
        labs=collected,
        grading=grading,
        display_name=display_name,
        render_state=render_state,
    )
