"""Two executions side by side in a notebook: what differs, all steps, and one step of both in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import ipywidgets as widgets

from kgwb import llm
from kgwb.llm.base import ChatModel
from kgwb.record import difference
from kgwb.render.comparison import Side, comparison, comparison_html
from kgwb.render.html import Html, aside, tag
from kgwb.render.text import differing
from kgwb.render.views import step_html
from kgwb.render.words import clean
from kgwb.run import Run
from kgwb.settings import PROFILES, Settings, profile
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
        self._shown = widgets.ToggleButtons(options=SHOWN)
        self._step = widgets.Dropdown(options=[("none", "")], layout=widgets.Layout(width="26em"))
        self._overview, self._both = markup(), markup()
        super().__init__()
        self.watch(self._shown, lambda _: self._draw())
        self.watch(self._step, lambda _: self._draw_both())
        self.first, self.second = side(names[0], first), side(names[1], second)
        self.show(*self._parts())
        self._draw()

    @staticmethod
    def of(session: Session) -> SessionComparison:
        """The run before the latest edit beside the run as it stands; it follows what happens to the run."""
        return SessionComparison(session)

    def compare(self, first: Side, second: Side) -> None:
        """Show two other executions."""
        self.first, self.second = first, second
        self._draw()

    def static(self) -> str:
        """See Panel."""
        return comparison_html(self.first, self.second)

    def __repr__(self) -> str:
        told = differing(difference(self.first.steps, self.second.steps))
        return f"{type(self).__name__}({clean(self.first.name)} and {clean(self.second.name)}: {told})"

    def _parts(self) -> tuple[widgets.Widget, ...]:
        above = row(field("Show", self._shown), field("A step of both in full", self._step), grid_gap="14px")
        return above, self._overview, self._both

    def _draw(self) -> None:
        shown = comparison(self.first, self.second, all_steps=self._shown.value == SHOWN[1])
        self._overview.value = body(shown)
        steps = difference(self.first.steps, self.second.steps)
        options = [("none", ""), *((f"{clean(one.key)}: {one.status}", one.key) for one in steps)]
        if self._step.options != tuple(options):
            chosen = self._step.value
            self._step.options = options
            self._step.value = chosen if chosen in {key for _, key in options} else ""
        self._draw_both()

    def _draw_both(self) -> None:
        key = self._step.value
        sides = [_in_full(side, key) for side in (self.first, self.second)] if key else []
        self._both.value = body(tag("div", *sides, style="display: flex; gap: 10px; flex-wrap: wrap"))


def _in_full(side: Side, key: str) -> Html:
    step = side.steps.get(key)
    told = Html(step_html(step, step.known)) if step else aside("no such step")
    return tag("div", tag("b", side.name), told, style="flex: 1 1 20em; min-width: 0")


def side(name: str, given: Run | Session | Version) -> Side:
    """An execution as one side of a comparison."""
    if isinstance(given, Version):
        return Side(name, given.steps, given.totals, given.answer)
    run = given.run if isinstance(given, Session) else given
    steps = given.steps if isinstance(given, Session) else given.by_key
    ended = f"failed: {run.error.message}" if run.error else run.status
    return Side(name, steps, run.totals, run.answer, ended)


class SessionComparison(ComparisonPanel):
    """A run beside what it was before an edit, or beside the same question put otherwise."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.others: list[tuple[str, Session]] = []
        """The same question under another profile or model, with what is different."""
        self._chosen: Version | Session = session
        self._versions, self._offering = 0, False
        self._with = widgets.Dropdown(options=[NOW], layout=widgets.Layout(width="26em"))
        self._model = Entry(self._entered, placeholder="openai:gpt-4o", layout=widgets.Layout(width="14em"))
        super().__init__(session, session, (NOW, NOW))
        self.watch(self._with, self._choose, "index")
        session.listeners.append(self._follow)
        self._offer(session)
        self._follow()

    def fork(
        self,
        *,
        settings: Settings | None = None,
        models: Mapping[str, ChatModel] | ChatModel | None = None,
        name: str = "",
    ) -> Future[None]:
        """Put the same question under other settings or to another model, and show both.

        What is recorded is not asked again. Raises SettingError.
        """
        changes: dict[str, Any] = {"settings": settings, "models": models}
        other = session_of(
            self.session.run.fork(**{key: to for key, to in changes.items() if to is not None})
        )
        self.others.append((name or _changed(settings, other), other))
        other.listeners.append(self._follow)
        going = other.go()
        self._offer(other)
        return going

    def close(self) -> None:
        """See Widget.close."""
        for session in (self.session, *(other for _, other in self.others)):
            if self._follow in session.listeners:
                session.listeners.remove(self._follow)
        super().close()

    def _parts(self) -> tuple[widgets.Widget, ...]:
        profiles = [
            self.button(
                f"The same under profile {name}", self._under(name), tooltip="runs the question again"
            )
            for name in PROFILES
        ]
        ask = self.button("The same with this model", self._by)
        return (
            row(field("Compared", self._with), *profiles, align_items="flex-end"),
            row(field("Another model", self._model), ask, align_items="flex-end"),
            *super()._parts(),
        )

    def _under(self, name: str) -> Callable[[], Any]:
        return lambda: self.fork(settings=profile(name), name=f"under profile {name}")

    def _entered(self, _: str) -> None:
        with self.message.guarding():
            self._by()

    def _by(self) -> None:
        spec = self._model.spoken()
        self.fork(models=llm.model(spec), name=f"with model {spec}")

    def _follow(self) -> None:
        """What happened to one of the runs is shown once it is over."""
        with self.message.guarding():
            if len(self.session.versions) != self._versions:
                self._versions = len(self.session.versions)
                self._offer(self.session.versions[-1])
            else:
                self._show_chosen()

    def _candidates(self) -> list[tuple[str, Version | Session]]:
        versions = [(f"{version.label}, and {NOW}", version) for version in self.session.versions]
        others = [(f"{NOW}, and {label}", other) for label, other in self.others]
        return [*versions, *others] or [("nothing was edited yet", self.session)]

    def _offer(self, chosen: Version | Session) -> None:
        self._chosen = chosen
        candidates = self._candidates()
        self._offering = True
        self._with.options = [clean(label) for label, _ in candidates]
        self._with.index = next((n for n, (_, other) in enumerate(candidates) if other is chosen), 0)
        self._offering = False
        self._show_chosen()

    def _choose(self, index: int | None) -> None:
        if index is not None and not self._offering:
            self._chosen = self._candidates()[index][1]
            self._show_chosen()

    def _show_chosen(self) -> None:
        """The earlier or unchanged one stands on the left; while one of them runs, both stay as they are."""
        chosen, now = self._chosen, side(NOW, self.session)
        working = self.session if isinstance(chosen, Version) else chosen
        if not working.busy and isinstance(chosen, Version):
            self.compare(side(chosen.label, chosen), now)
        elif not working.busy:
            label = next((label for label, other in self.others if other is chosen), NOW)
            self.compare(now, side(label, chosen))
        self._tell(working)

    def _tell(self, session: Session) -> None:
        if session.busy:
            self.message.say(f"{session.busy} ...")
        elif session.failure is not None:
            self.message.fail(session.failure)
        elif session.stale:
            self.message.say("some steps are stale: run on to the end to compare them too")
        else:
            self.message.clear()


def compared_with(
    session: Session,
    *,
    settings: Settings | None = None,
    models: Mapping[str, ChatModel] | ChatModel | None = None,
) -> SessionComparison:
    """A run beside the same question under other settings or to another model, which runs meanwhile."""
    panel = ComparisonPanel.of(session)
    panel.fork(settings=settings, models=models)
    return panel


def _changed(settings: Settings | None, other: Session) -> str:
    model = other.run.model_name("") or "recorded replies"
    return f"under profile {settings.profile}" if settings is not None else f"with model {model}"
