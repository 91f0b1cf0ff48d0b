"""Two executions side by side in a notebook, with what differs marked."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any

import ipywidgets as widgets

from kgwb import llm
from kgwb.record import difference
from kgwb.render.comparison import Side, comparison
from kgwb.render.html import page
from kgwb.render.text import differing
from kgwb.render.words import clean
from kgwb.run import Run
from kgwb.settings import PROFILES
from kgwb.ui.entry import Entry
from kgwb.ui.kit import Panel, body, field, markup, row
from kgwb.ui.session import Session, Version, session_of

SHOWN = ("only what differs", "all steps")
NOW = "as it stands"
"""What the run itself is called beside what it is compared with."""


class ComparisonPanel(Panel):
    """Two executions, each a run, a session, or a version that a session kept, side by side by step."""

    def __init__(
        self,
        first: Run | Session | Version,
        second: Run | Session | Version,
        names: tuple[str, str] = ("first", "second"),
    ) -> None:
        super().__init__()
        self._shown = widgets.ToggleButtons(options=SHOWN)
        self._overview = markup()
        self.watch(self._shown, lambda _: self._draw())
        self.show(field("Show", self._shown), self._overview)
        self.compare(side(names[0], first), side(names[1], second))

    @staticmethod
    def of(session: Session) -> SessionComparison:
        """The run before the latest edit beside the run as it stands; it follows what happens to the run."""
        return SessionComparison(session)

    def compare(self, first: Side, second: Side) -> None:
        """Show these executions."""
        self.first, self.second = first, second
        self._draw()

    def static(self) -> str:
        """See Panel."""
        return page(comparison(self.first, self.second))

    def __repr__(self) -> str:
        told = differing(difference(self.first.steps, self.second.steps))
        return f"{type(self).__name__}({clean(self.first.name)} and {clean(self.second.name)}: {told})"

    def _draw(self) -> None:
        every = self._shown.value == SHOWN[1]
        self._overview.value = body(comparison(self.first, self.second, all_steps=every))


def side(name: str, given: Run | Session | Version) -> Side:
    """An execution as one side of a comparison."""
    if isinstance(given, Version):
        return Side(name, given.steps, given.totals, given.answer, "no answer")
    run = given.run if isinstance(given, Session) else given
    steps = given.steps if isinstance(given, Session) else given.by_key
    ended = f"failed: {run.error.message}" if run.error else run.status
    return Side(name, steps, run.totals, run.answer, ended)


class SessionComparison(ComparisonPanel):
    """A run beside what it was before an edit, or beside the same question put otherwise."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.others: list[tuple[str, Version | Session]] = []
        """What the run can be compared with, and its name, in the order it came about."""
        self._seen = 0
        self._with = widgets.Dropdown(options=["nothing was edited yet"], layout=widgets.Layout(width="26em"))
        self._model = Entry(self, self._by, placeholder="openai:gpt-4o", layout=widgets.Layout(width="14em"))
        super().__init__(session, session, (NOW, NOW))
        self.watch(self._with, lambda _: self._show_chosen(), "index")
        under = [
            self.button(f"The same under profile {name}", partial(self._under, name)) for name in PROFILES
        ]
        ask = self.button("The same with this model", self._by)
        self.show(
            row(field("Compared", self._with), *under, align_items="flex-end"),
            row(field("Another model", self._model), ask, align_items="flex-end"),
            *self.children[1:-1],
        )
        session.listeners.append(self._follow)
        self._follow()

    def fork(self, name: str, **changes: Any) -> Future[None]:
        """Put the same question with changes, those of Run.fork, and show both.

        What is recorded is not asked again. Raises SettingError.
        """
        other = session_of(self.session.run.fork(**changes))
        other.listeners.append(self._follow)
        going = other.go()
        self._offer(name, other)
        self._show_chosen()
        return going

    def close(self) -> None:
        """See Widget.close."""
        for session in (self.session, *(other for _, other in self.others)):
            if isinstance(session, Session) and self._follow in session.listeners:
                session.listeners.remove(self._follow)
        super().close()

    def _under(self, name: str) -> None:
        self.fork(f"under profile {name}", settings=PROFILES[name])

    def _by(self) -> None:
        spec = self._model.spoken()
        self.fork(f"with model {spec}", models=llm.model(spec))

    def _follow(self) -> None:
        """What happened to one of the runs is shown once it is over."""
        with self.message.guarding():
            for version in self.session.versions[self._seen :]:
                self._seen += 1
                self._offer(version.label, version)
            self._show_chosen()

    def _offer(self, name: str, other: Version | Session) -> None:
        self.others.append((name, other))
        self._with.options = [
            clean(f"{name}, and {NOW}" if isinstance(one, Version) else f"{NOW}, and {name}")
            for name, one in self.others
        ]
        self._with.index = len(self.others) - 1

    def _show_chosen(self) -> None:
        """The earlier or unchanged one stands on the left; while one of them runs, both stay as they are."""
        name, other = self.others[self._with.index or 0] if self.others else (NOW, self.session)
        sessions = (self.session, other) if isinstance(other, Session) else (self.session,)
        if not any(session.busy for session in sessions):
            sides = (side(NOW, self.session), side(name, other))
            self.compare(*(sides[::-1] if isinstance(other, Version) else sides))
        self._tell(sessions[-1])

    def _tell(self, session: Session) -> None:
        if session.busy:
            self.message.say(f"{session.busy} ...")
        elif session.failure is not None:
            self.message.fail(session.failure)
        elif session.stale:
            self.message.say("some steps are stale: run on to the end to compare them too")
        else:
            self.message.clear()
