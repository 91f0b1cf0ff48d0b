"""A dialogue in a notebook: its turns on the left, one of them opened on the right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import ipywidgets as widgets
from IPython import get_ipython

from kgwb.render.html import Html, aside, join, page, short, tag
from kgwb.render.text import summary
from kgwb.render.words import clean, count
from kgwb.run import Run
from kgwb.ui.debugger import Debugger
from kgwb.ui.dialogue import Conversation
from kgwb.ui.entry import Entry
from kgwb.ui.kit import Panel, body, field, markup, row
from kgwb.ui.session import Session, session_of

if TYPE_CHECKING:
    from kgwb.workbench import Workbench

STOPPED = {
    "new": "○ not run yet",
    "running": "▶ running",
    "paused": "◐ stopped on the way",
    "cancelled": "■ cancelled",
    "failed": "✗ failed",
}
"""What is told of a turn without an answer."""


class Chat(Panel):
    """The dialogue of a workbench: ask, open a turn, correct it, and run the later ones again.

    ``open_turn`` makes the widget that shows an opened turn.
    """

    def __init__(self, workbench: Workbench, open_turn: Callable[[Session], Panel] = Debugger) -> None:
        super().__init__()
        self.conversation = Conversation(workbench)
        self._open_turn = open_turn
        self._made: dict[str, Panel] = {}
        """The widget of every turn that was opened, by the run's id, so that nothing typed there is lost."""
        self._number = -1
        self._lock = threading.RLock()
        self._rows: list[_Turn] = []
        self._head, self._list = markup(), _column("18em", max_height="32em", overflow="auto")
        self._entry = Entry(self, self.ask, placeholder="Who directed Arrival?", layout=_growing("12em"))
        self._cancel = self.button("Cancel", self.conversation.cancel)
        self._rerun = self.button("Run the later turns again", self.conversation.rerun)
        self._opened = _column("24em", flex="2 1 24em")
        self._arrange()
        self.conversation.listeners.append(self._draw)
        if (shell := get_ipython()) is not None:  # a cell may have asked: a workbench tells nobody
            shell.events.register("post_run_cell", lambda _: self._draw())
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
        head = markup(tag("b", f"Turn {number + 1}"), ": ", short(clean(run.question)))
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
        asking = field("Your question", row(self._entry, ask, self._cancel, width="auto"))
        below = row(self._rerun, self.button("New dialogue", self._forget))
        left = _column("20em", self._head, self._list, asking, below, flex="1 1 20em")
        layout = widgets.Layout(flex_flow="row wrap", grid_gap="14px", align_items="flex-start")
        self.show(widgets.HBox((left, self._opened), layout=layout))

    def _forget(self) -> None:
        self.conversation.forget()
        self.message.say("A new dialogue has begun; the runs of the old one are in chat.conversation.ended.")

    def _draw(self) -> None:
        with self._lock, self.message.guarding():
            conversation, turns = self.conversation, self.conversation.turns
            conversation.listen()
            while len(self._rows) < len(turns):
                self._rows.append(_Turn(self, len(self._rows)))
            self._list.children = self._rows[: len(turns)]
            for shown in self._list.children:
                shown.draw()
            self._head.value = body(_heading(conversation))
            self._cancel.disabled = not conversation.busy
            stale = any(conversation.stale(number) for number in range(len(turns)))
            self._rerun.layout.display = "" if stale and not conversation.busy else "none"
            if self._number >= len(turns):
                self._number, self._opened.children = -1, ()
            if self._number >= 0 and turns[self._number].id not in self._made:
                self.open_turn(self._number)  # another run stands in that turn now
            if conversation.failure is not None:
                self.message.fail(conversation.failure)
            elif conversation.busy:
                self.message.clear()


class _Turn(widgets.VBox):
    """One turn in the list, with what can be done to it."""

    def __init__(self, chat: Chat, number: int) -> None:
        self._chat, self._number = chat, number
        self._told = markup()
        self._words = Entry(chat, self._correct, layout=_growing("10em"))
        self._resume = chat.button("Go on", lambda: chat.conversation.resume(number))
        words = field("The question in other words", self._words)
        self._correction = row(words, chat.button("Ask it so", self._correct), align_items="flex-end")
        self._correction.layout.display = "none"
        opened = chat.button("Open", lambda: chat.open_turn(number))
        buttons = row(opened, chat.button("Correct", self._show), self._resume)
        layout = widgets.Layout(margin="0 0 8px", flex="none")
        super().__init__((self._told, buttons, self._correction), layout=layout)

    def draw(self) -> None:
        """Show the turn as it stands."""
        conversation = self._chat.conversation
        self._told.value = body(told(conversation, self._number))
        waits = conversation.turns[self._number].status not in ("done", "running") and not conversation.busy
        self._resume.layout.display = "" if waits else "none"

    def _show(self) -> None:
        hidden = self._correction.layout.display == "none"
        if hidden:
            self._words.value = self._chat.conversation.turns[self._number].question
        self._correction.layout.display = "" if hidden else "none"

    def _correct(self) -> None:
        self._chat.conversation.correct(self._number, self._words.value)
        self._correction.layout.display = "none"


def told(conversation: Conversation, number: int) -> Html:
    """A turn in the list: question, answer or failure, and what it stands on and cost."""
    run = conversation.turns[number]
    parts = [tag("div", tag("b", f"{number + 1}. ", short(clean(run.question)))), _outcome(run)]
    if run.status == "done":
        facts = count(len(run.answer.support), "triple") if run.answer else "nothing"
        models = ", ".join(dict.fromkeys(model.name for model in run.models.values())) or "recorded replies"
        spent = f"stands on {facts} · {run.totals.seconds:.2f} s · {clean(models)}"
        parts.append(tag("div", aside(spent)))
    if conversation.stale(number) and run.status != "running":
        parts.append(tag("div", "↻ stale: what was said before it has changed since", class_="kgwb-stale"))
    before = conversation.replaced.get(run.id)
    if before is not None:
        asked = f"“{before.question}”: " if before.question != run.question else ""
        answer = summary(before.answer) if before.answer is not None else before.status
        parts.append(tag("div", aside(f"before: {short(clean(asked + answer))}")))
    return join(*parts)


def _outcome(run: Run) -> Html:
    if run.status == "done" and run.answer is not None:
        return tag("div", short(summary(run.answer)), class_="kgwb-good" if run.answer else "kgwb-note")
    failure = run.error or session_of(run).failure
    if run.status == "failed" and failure is not None:
        hint = tag("div", f"What to do: {failure.hint}") if failure.hint else ""
        return tag("div", tag("b", f"{STOPPED['failed']}: "), short(failure.message), hint, class_="kgwb-bad")
    return tag("div", STOPPED.get(run.status, run.status), class_="kgwb-note")


def _heading(conversation: Conversation) -> Html:
    about = f"{count(len(conversation.turns), 'turn')} on {clean(conversation.workbench.kg.source)}"
    return tag("div", aside(f"{about}: {conversation.busy} ..." if conversation.busy else about))


def _column(width: str, *children: widgets.Widget, **layout: str) -> widgets.VBox:
    return widgets.VBox(children, layout=widgets.Layout(min_width=width, max_width="100%", **layout))


def _growing(width: str) -> widgets.Layout:
    return widgets.Layout(width="auto", flex=f"1 1 {width}")
