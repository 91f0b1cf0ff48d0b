"""The panel in which a person plays an agent: the prompt, the reply's form, and a model's reply beside."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

import ipywidgets as widgets

from kgwb.errors import OverrideError
from kgwb.llm import model
from kgwb.llm.human import Asked, Human
from kgwb.record import Attempt, Step
from kgwb.render.html import fold, preformatted
from kgwb.render.views import step_html
from kgwb.render.words import clean
from kgwb.ui.fields import Field, blank, field_of
from kgwb.ui.kit import Html, Panel, body, field, join, markup, row, tag
from kgwb.ui.played import beside, played, refused, step_of
from kgwb.ui.schema_form import SchemaForm
from kgwb.ui.session import Session


class HumanPanel(Panel):
    """Shows what waits for the person's reply in its session's run, and takes it.

    It listens to ``human`` while its session is at work: a run from elsewhere is told that nobody is here.
    """

    def __init__(self, human: Human, session: Session) -> None:
        super().__init__()
        self.human, self.session = human, session
        self.reply: ReplyForm | None = None
        """The form of the request that is shown."""
        self.comparison = Comparison(self)
        self._lock = threading.RLock()
        self._told, self._place = markup(), widgets.VBox()
        self.show(self._told, self._place, self.comparison)
        self.begun: dict[str, Step] = {}
        """The latest steps by key; steps side by side are in the run only when all are done."""
        session.run.listeners.append(lambda _, step: self.begun.update({step.key: step}))
        session.listeners.append(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what waits now; a form that is being filled in stays as it is."""
        with self._lock, self.message.guarding():
            waiting = self._waiting()
            first = waiting[0] if waiting else None
            if first is not (self.reply and self.reply.asked):
                self.reply = ReplyForm(self, first) if first else None
                self._place.children = (self.reply,) if self.reply else ()
                self.message.clear()
            self._told.value = body(self._state(len(waiting)))
            self.comparison.refresh()

    def _waiting(self) -> tuple[Asked, ...]:
        """What this run asks while the session is at work; the person plays in other runs too."""
        mine = self.session.run._cancel
        if not self.session.busy:
            self.human.listeners.pop(self.refresh, None)
            return ()
        self.human.listeners[self.refresh] = mine
        return tuple(asked for asked in self.human.waiting if asked.cancel is mine)

    def _state(self, waiting: int) -> Html:
        if self.reply:
            more = f" (and {waiting - 1} more after this)" if waiting > 1 else ""
            return tag("div", tag("span", f"Waiting for you: {self.reply.name}", class_="kgwb-head"), more)
        if self.session.busy:
            return tag("div", f"Nothing waits for you yet: {self.session.busy}.")
        if failed := refused(self.session):
            told = f"No reply of yours to {failed.key} passed its checks"
            return tag("div", told, ": press “Ask anew” on this step to try again.", class_="kgwb-bad")
        return tag("div", "Nothing waits for you now: run the agent that you play.")


class ReplyForm(widgets.VBox):
    """One request: what was wrong before, the prompt, and the reply's form."""

    def __init__(self, panel: HumanPanel, asked: Asked) -> None:
        self.panel, self.asked = panel, asked
        step = step_of(asked, (*panel.session.run.steps, *panel.begun.values()))
        attempts = step.attempts if step else []
        self.name = f"{step.key if step else asked.request.task}, attempt {len(attempts) + 1}"
        former = attempts[-1] if attempts else None
        schema = asked.request.schema
        self._whole = field_of(schema) if schema else Field("", "text")
        self._reply = widgets.VBox()
        data = blank(self._whole)
        with suppress(ValueError, RecursionError):
            data = json.loads(former.reply) if former else data
        self._fill(self._whole, data)
        self.as_json = widgets.ToggleButton(description="As JSON text")
        self.send_button = panel.button("Send", self.send, button_style="primary")
        panel.watch(self.as_json, self._toggle)
        controls = row(self.send_button, *((self.as_json,) if schema else ()))
        told = markup(_wrong(former), *_prompt(asked, folded=former is not None))
        super().__init__((told, field("your reply", self._reply), controls))

    def send(self) -> None:
        """Reply with what the form holds. Raises OverrideError that says what is wrong where."""
        self.panel.message.clear()
        text = self.form.typed()
        if not isinstance(text, str):  # a text is judged as it is, as a model's would be
            text = json.dumps(self.form.value(), ensure_ascii=False)
        self.panel.human.reply(text, self.asked)

    def _fill(self, whole: Field, data: Any) -> None:
        self.form = SchemaForm(whole, data, self.panel)
        self._reply.children = (self.form,)

    def _toggle(self, as_json: bool) -> None:
        """Carry the reply over to the other form; where that is impossible, stay."""
        if as_json == (self.form.field.kind == "json"):
            return
        try:
            data = self.form.value()
        except OverrideError:
            self.as_json.value = not as_json
            raise
        self.panel.message.clear()
        self._fill(Field("", "json") if as_json else self._whole, data)


class Comparison(widgets.VBox):
    """What a model would have said in the person's place, side by side."""

    def __init__(self, panel: HumanPanel) -> None:
        self.panel = panel
        self._shown = markup()
        self.step = widgets.Dropdown(description="your step")
        self.model = widgets.Text("rules", description="model")
        self.ask_button = panel.button("What would a model say?", self.ask)
        super().__init__((row(self.step, self.model, self.ask_button), self._shown))

    def refresh(self) -> None:
        """Offer the steps that were played to their end; nothing is shown before there is one."""
        keys = tuple(step.key for step in played(self.panel.session) if step.done)
        self.layout.display = "" if keys else "none"
        options = tuple((clean(key), key) for key in keys)
        if self.step.options != options:
            self.step.options = options
            self.step.value = next(reversed(keys), None)

    def ask(self) -> None:
        """Have the model play the step, aside; both are shown then."""
        key, other = self.step.value, model(self.model.value)
        mine = self.panel.session.steps[key]
        self.ask_button.disabled = True
        self.panel.message.say(f"asking {other.name} to play {key} ...")

        def work() -> None:
            with self.panel.message.guarding():
                try:
                    theirs = beside(self.panel.session.run, key, other)
                    self._shown.value = body(side_by_side(mine, theirs, other.name))
                    self.panel.message.clear()
                finally:
                    self.ask_button.disabled = False

        threading.Thread(target=work, name="kgwb-beside", daemon=True).start()


def side_by_side(mine: Step, theirs: Step, name: str) -> Html:
    """Two executions of a step in two columns: the last reply, then the step in full."""
    sides = _side("you", mine), _side(name, theirs)
    return tag("div", *sides, style="display: flex; gap: 10px; flex-wrap: wrap")


def _side(who: str, step: Step) -> Html:
    reply = (preformatted(one.reply) for one in step.attempts[-1:])
    return tag("div", tag("b", who), *reply, Html(step_html(step)), style="flex: 1 1 20em; min-width: 0")


def _wrong(former: Attempt | None) -> Html:
    """What the checks had against the reply before."""
    if former is None:
        return Html()
    problems = (f"✗ failed: {check.name}: {check.problem}" for check in former.checks if check.problem)
    told = (tag("div", problem, class_="kgwb-bad") for problem in problems)
    return join(tag("div", "Your reply before cannot be used:"), *told)


def _prompt(asked: Asked, *, folded: bool) -> list[Html]:
    """The messages by role, as a model would get them; what is read again is folded but for the questions."""
    return [
        fold(
            f"prompt: {said.role}",
            tag("pre", said.content, class_="kgwb-pre", style="max-height: 22em"),  # the form stays in sight
            unfolded=said.role == "user" or not folded,
        )
        for said in asked.request.messages
    ]
