"""A dialogue in a notebook: its turns on the left, one of them opened on the right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import ipywidgets as widgets

from kgwb.render.html import Html, aside, join, page, tag
from kgwb.render.text import summary
from kgwb.render.views import run_html
from kgwb.render.words import clean, count
from kgwb.run import Run
from kgwb.ui.dialogue import Conversation
from kgwb.ui.entry import Entry
from kgwb.ui.kit import Panel, body, field, markup, row
from kgwb.ui.session import Session, session_of

if TYPE_CHECKING:
    from kgwb.workbench import Workbench

MOST_CHARACTERS = 400
"""Of a question or an answer in the list of turns."""
STOPPED = {
    "new": "○ not run yet",
    "running": "▶ running",
    "paused": "◐ stopped on the way",
    "cancelled": "■ cancelled",
    "failed": "✗ failed",
}
"""What is told of a turn without an answer."""


class TurnPanel(Panel):
    """One turn as it stands: question, answer, and the steps to unfold."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._told = markup()
        self.show(self._told)
        session.listeners.append(self._draw)
        self._draw()

    def static(self) -> str:
        """See Panel."""
        return run_html(self.session.run)

    def _draw(self) -> None:
        with self.message.guarding():
            if not self.session.busy:
                self._told.value = self.static()


class Chat(Panel):
    """The dialogue of a workbench: ask, open a turn, correct it, and run the later ones again.

    ``open_turn`` makes the widget that shows an opened turn.
    """

    def __init__(
        self, workbench: Workbench, open_turn: Callable[[Session], widgets.Widget] = TurnPanel
    ) -> None:
        super().__init__()
        self.conversation = Conversation(workbench)
        self._open_turn = open_turn
        self._made: dict[str, widgets.Widget] = {}
        """The widget of every turn that was opened, by the run's id, so that nothing typed there is lost."""
        self._number = -1
        self._lock = threading.RLock()
        self._rows: list[_Turn] = []
        self._head, self._list = markup(), _column("18em", max_height="32em", overflow="auto")
        self._entry = Entry(
            self._entered,
            placeholder="Who directed Arrival?",
            layout=widgets.Layout(width="auto", flex="1 1 12em"),
        )
        self._cancel = self.button("Cancel", self.conversation.cancel)
        self._rerun = self.button(
            "Run the later turns again", self.conversation.rerun, button_style="warning"
        )
        self._opened = _column("24em")
        self._opened.layout.flex = "2 1 24em"
        self._arrange()
        self.conversation.listeners.append(self._draw)
        self._draw()

    def ask(self) -> Future[None]:
        """Ask what was written; it stays there if it cannot be asked. Raises as Conversation.ask."""
        asked = self.conversation.ask(self._entry.value)
        self._entry.value = ""
        return asked

    def open_turn(self, number: int) -> None:
        """Show turn ``number``, counted from 0, on the right."""
        self._number = number
        run = self.conversation.turns[number]
        if run.id not in self._made:
            self._made[run.id] = self._open_turn(session_of(run))
        head = markup(tag("b", f"Turn {number + 1}"), ": ", cut(run.question))
        self._opened.children = (head, self._made[run.id])

    def static(self) -> str:
        """See Panel."""
        numbers = range(len(self.conversation.turns))
        return page(*(told(self.conversation, number) for number in numbers), _heading(self.conversation))

    def __repr__(self) -> str:
        return (
            f"Chat({count(len(self.conversation.turns), 'turn')} on {self.conversation.workbench.kg.source})"
        )

    def _arrange(self) -> None:
        ask = self.button("Ask", self.ask, button_style="primary")
        new = self.button("New dialogue", self._forget)
        asking = row(self._entry, ask, self._cancel, width="auto")
        below = row(self._rerun, new)
        left = _column("20em", children=(self._head, self._list, field("Your question", asking), below))
        left.layout.flex = "1 1 20em"
        layout = widgets.Layout(flex_flow="row wrap", grid_gap="14px", align_items="flex-start")
        self.show(widgets.HBox((left, self._opened), layout=layout))

    def _entered(self, _: str) -> None:
        with self.message.guarding():
            self.ask()

    def _forget(self) -> None:
        self.conversation.forget()
        self.message.say("A new dialogue has begun; the runs of the old one are in chat.conversation.ended.")

    def _draw(self) -> None:
        with self._lock, self.message.guarding():
            turns = self.conversation.turns
            while len(self._rows) < len(turns):
                self._rows.append(_Turn(self, len(self._rows)))
            for shown in self._rows[: len(turns)]:
                shown.draw()
            if len(self._list.children) != len(turns):
                self._list.children = tuple(self._rows[: len(turns)])
            self._head.value = body(_heading(self.conversation))
            self._cancel.disabled = not self.conversation.busy
            stale = any(self.conversation.stale(number) for number in range(len(turns)))
            self._rerun.layout.display = "" if stale and not self.conversation.busy else "none"
            if self._number >= len(turns):
                self._number, self._opened.children = -1, ()
            if self._number >= 0 and turns[self._number].id not in self._made:
                self.open_turn(self._number)  # another run stands in that turn now
            if self.conversation.failure is not None:
                self.message.fail(self.conversation.failure)
            elif self.conversation.busy:
                self.message.clear()


class _Turn(widgets.VBox):
    """One turn in the list, with what can be done to it."""

    def __init__(self, chat: Chat, number: int) -> None:
        self._chat, self._number = chat, number
        self._told = markup()
        self._words = Entry(self._entered, layout=widgets.Layout(width="auto", flex="1 1 10em"))
        self._resume = chat.button("Go on", lambda: chat.conversation.resume(number))
        self._correction = row(
            field("The question in other words", self._words), chat.button("Ask it so", self._correct)
        )
        self._correction.layout.display = "none"
        self._correction.layout.align_items = "flex-end"
        buttons = row(
            chat.button("Open", lambda: chat.open_turn(number)),
            chat.button("Correct", self._show),
            self._resume,
        )
        super().__init__(
            (self._told, buttons, self._correction), layout=widgets.Layout(margin="0 0 8px", flex="none")
        )

    def draw(self) -> None:
        """Show the turn as it stands."""
        run = self._chat.conversation.turns[self._number]
        shown = body(told(self._chat.conversation, self._number))
        if self._told.value != shown:
            self._told.value = shown
        waits = run.status in ("new", "paused", "failed", "cancelled") and not self._chat.conversation.busy
        self._resume.layout.display = "" if waits else "none"

    def _show(self) -> None:
        hidden = self._correction.layout.display == "none"
        if hidden:
            self._words.value = self._chat.conversation.turns[self._number].question
        self._correction.layout.display = "" if hidden else "none"

    def _entered(self, _: str) -> None:
        with self._chat.message.guarding():
            self._correct()

    def _correct(self) -> None:
        self._chat.conversation.correct(self._number, self._words.value)
        self._correction.layout.display = "none"


def told(conversation: Conversation, number: int) -> Html:
    """A turn in the list: question, answer or failure, and what it stands on and cost."""
    run = conversation.turns[number]
    parts = [tag("div", tag("b", f"{number + 1}. {cut(run.question)}")), _outcome(run)]
    if run.status == "done":
        facts = [f"stands on {count(len(run.answer.support), 'triple')}"] if run.answer else []
        models = ", ".join(dict.fromkeys(model.name for model in run.models.values())) or "recorded replies"
        parts.append(tag("div", aside(" · ".join((*facts, f"{run.totals.seconds:.2f} s", clean(models))))))
    if conversation.stale(number) and run.status != "running":
        stale = "↻ stale: what was said before it has changed since"
        parts.append(tag("div", stale, class_="kgwb-stale"))
    before = conversation.replaced.get(run.id)
    if before is not None:
        asked = f"“{cut(before.question)}”: " if before.question != run.question else ""
        answer = summary(before.answer) if before.answer is not None else before.status
        parts.append(tag("div", aside(f"before: {asked}{cut(answer)}")))
    return join(*parts)


def _outcome(run: Run) -> Html:
    if run.status == "done" and run.answer is not None:
        return tag("div", cut(summary(run.answer)), class_="kgwb-good" if run.answer else "kgwb-note")
    failure = run.error or session_of(run).failure
    if run.status == "failed" and failure is not None:
        hint = tag("div", f"What to do: {failure.hint}") if failure.hint else ""
        return tag("div", tag("b", f"{STOPPED['failed']}: "), cut(failure.message), hint, class_="kgwb-bad")
    return tag("div", STOPPED.get(run.status, run.status), class_="kgwb-note")


def _heading(conversation: Conversation) -> Html:
    turns = count(len(conversation.turns), "turn")
    about = f"{turns} on {clean(conversation.workbench.kg.source)}"
    return tag("div", aside(f"{about}: {conversation.busy} ..." if conversation.busy else about))


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """A text on one line, and how much of it was left out."""
    line = clean(text)
    left = len(line) - most
    return f"{line[:most]}… ({left:,} more characters)" if left > 0 else line


def _column(width: str, children: tuple[widgets.Widget, ...] = (), **layout: str) -> widgets.VBox:
    return widgets.VBox(children, layout=widgets.Layout(min_width=width, max_width="100%", **layout))
