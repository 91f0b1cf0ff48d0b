"""The panel in which a person plays an agent: the prompt, the reply's form, and a model's reply beside."""

from __future__ import annotations

import json
import threading
from itertools import zip_longest
from typing import Any

import ipywidgets as widgets

from kgwb.errors import OverrideError
from kgwb.llm import model
from kgwb.llm.human import Asked, Human
from kgwb.record import Attempt, Step
from kgwb.render.html import fold, page, preformatted, table
from kgwb.render.records import record
from kgwb.render.words import names_in
from kgwb.ui.fields import blank, field_of
from kgwb.ui.kit import Html, Panel, body, field, join, markup, row, tag
from kgwb.ui.played import beside, played, step_of
from kgwb.ui.schema_form import WIDE, SchemaForm
from kgwb.ui.session import Session


class HumanPanel(Panel):
    """Shows what waits for the person's reply, and takes it; afterwards, what a model would have said.

    It listens to ``human`` while its session is at work: a run from elsewhere is told that nobody is here.
    """

    def __init__(self, human: Human, session: Session) -> None:
        super().__init__()
        self.human, self.session = human, session
        self._lock = threading.RLock()
        self._told = markup()
        self._shown: Asked | None = None
        self._place = widgets.VBox()
        self.reply: ReplyForm | None = None
        """The form of the request that is shown."""
        self.comparison = Comparison(self)
        self.show(self._told, self._place, self.comparison)
        self._running: dict[str, Step] = {}
        session.run.listeners.append(self._on_step)
        session.listeners.append(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what waits now; a form that is being filled in stays as it is."""
        with self._lock, self.message.guarding():
            self._listen(bool(self.session.busy))
            waiting = self.human.waiting if self.session.busy else ()
            if (waiting[0] if waiting else None) is not self._shown:
                self._shown = waiting[0] if waiting else None
                self.reply = ReplyForm(self, self._shown) if self._shown else None
                self._place.children = (self.reply,) if self.reply else ()
                self.message.clear()
            self._told.value = body(self._state(len(waiting)))
            self.comparison.refresh()

    def static(self) -> str:
        return page(self._state(int(self._shown is not None)), self.comparison.table)

    def step_of(self, asked: Asked) -> Step | None:
        """The step that waits for a reply; steps side by side are in the run only when all are done."""
        return step_of(asked, tuple(self._running.values()))

    def _on_step(self, event: str, step: Step) -> None:
        if event == "start":
            self._running[step.key] = step
        else:
            self._running.pop(step.key, None)

    def _listen(self, wanted: bool) -> None:
        if wanted and self.refresh not in self.human.listeners:
            self.human.listeners.append(self.refresh)
        if not wanted and self.refresh in self.human.listeners:
            self.human.listeners.remove(self.refresh)

    def _state(self, waiting: int) -> Html:
        if not waiting:
            when = f"yet: {self.session.busy}" if self.session.busy else "now: run the agent that you play"
            return tag("div", f"Nothing waits for you {when}.")
        more = f" (and {waiting - 1} more after this)" if waiting > 1 else ""
        name = self.reply.name if self.reply else ""
        return tag("div", tag("span", f"Waiting for you: {name}", class_="kgwb-head"), more)


class ReplyForm(widgets.VBox):
    """One request: what was wrong before, the prompt, and the reply's form."""

    def __init__(self, panel: HumanPanel, asked: Asked) -> None:
        self.panel, self.asked = panel, asked
        step = panel.step_of(asked)
        attempts = step.attempts if step else []
        self.name = f"{step.key if step else asked.request.task}, attempt {len(attempts) + 1}"
        former = attempts[-1] if attempts else None
        self._raw = widgets.Textarea(rows=12, layout=widgets.Layout(width=WIDE))
        self.as_json = widgets.ToggleButton(description="As JSON text")
        self.form = self._form(_loads(former.reply) if former else None)
        self._reply = widgets.VBox()
        self.send_button = panel.button("Send", self.send, button_style="primary")
        panel.watch(self.as_json, self._toggle)
        self._draw()
        prompt = markup(*_prompt(asked, folded=former is not None))
        controls = row(self.send_button, *((self.as_json,) if self.form else ()))
        super().__init__((markup(_wrong(former)), prompt, field("your reply", self._reply), controls))

    def send(self) -> None:
        """Reply with what the form holds. Raises OverrideError that says what is wrong where."""
        self.panel.message.clear()
        text = self._raw.value
        if self.form and not self.as_json.value:
            text = json.dumps(self.form.value(), ensure_ascii=False)
        self.panel.human.reply(text, self.asked)

    @property
    def raw(self) -> widgets.Textarea:
        """The reply as text, used while ``as_json`` is pressed, and where no form is asked for."""
        return self._raw

    def _form(self, data: Any) -> SchemaForm | None:
        schema = self.asked.request.schema
        if schema is None:
            return None
        field = field_of(schema)
        return SchemaForm(field, blank(field) if data is None else data, self.panel)

    def _toggle(self, raw: bool) -> None:
        """Carry the reply over to the other form; where that is impossible, stay."""
        if self.form is None or raw == (self._reply.children == (self._raw,)):
            return
        try:
            if raw:
                self._raw.value = json.dumps(self.form.value(), ensure_ascii=False, indent=2)
            else:
                self.form = self._form(_parsed(self._raw.value))
        except OverrideError:
            self.as_json.value = not raw
            raise
        self.panel.message.clear()
        self._draw()

    def _draw(self) -> None:
        shown = self._raw if self.form is None or self.as_json.value else self.form
        self._reply.children = (shown,)


class Comparison(widgets.VBox):
    """What a model would have said in the person's place, side by side."""

    def __init__(self, panel: HumanPanel) -> None:
        self.panel = panel
        self.table = Html()
        """The latest comparison."""
        self._shown = markup()
        self.step = widgets.Dropdown(description="your step")
        self.model = widgets.Text("rules", description="model")
        self.ask_button = panel.button("What would a model say?", self.ask)
        super().__init__((row(self.step, self.model, self.ask_button), self._shown))

    def refresh(self) -> None:
        """Offer the steps that were played; nothing is shown before there is one."""
        keys = tuple(step.key for step in played(self.panel.session))
        self.layout.display = "" if keys else "none"
        if self.step.options != keys:
            chosen = self.step.value
            self.step.options = keys
            if keys:
                self.step.value = chosen if chosen in keys else keys[-1]

    def ask(self) -> None:
        """Have the model play the step, aside; the table follows."""
        key, other = self.step.value, model(self.model.value)
        mine = self.panel.session.steps[key]
        self.ask_button.disabled = True
        self.panel.message.say(f"asking {other.name} to play {key} ...")

        def work() -> None:
            with self.panel.message.guarding():
                try:
                    theirs = beside(self.panel.session.run, key, other)
                    self.table = side_by_side(mine, theirs, other.name)
                    self._shown.value = body(self.table)
                    self.panel.message.clear()
                finally:
                    self.ask_button.disabled = False

        threading.Thread(target=work, name="kgwb-beside", daemon=True).start()


def side_by_side(mine: Step, theirs: Step, name: str) -> Html:
    """Two executions of a step in two columns: results, then replies with their checks."""
    pairs = enumerate(zip_longest(mine.attempts, theirs.attempts), 1)
    attempts = [(f"attempt {number}", *map(_attempt, pair)) for number, pair in pairs]
    rows = [("result", _result(mine), _result(theirs)), *attempts]
    return table((mine.key, "you", name), ((head, *map(_column, cells)) for head, *cells in rows))


def _column(content: object) -> Html:
    """Narrow enough for two beside each other."""
    return tag("div", content, style="max-width: 36em; overflow-x: auto")


def _attempt(attempt: Attempt | None) -> Html:
    if attempt is None:
        return Html("–")
    return join(preformatted(_by_part(attempt.reply)), *map(_check, attempt.checks))


def _by_part(reply: str) -> str:
    """A reply with each part on a line of its own; what is no JSON object as it is."""
    data = _loads(reply)
    if not isinstance(data, dict):
        return reply
    return "\n".join(f"{name}: {json.dumps(part, ensure_ascii=False)}" for name, part in data.items())


def _check(check: Any) -> Html:
    if check.problem:
        return tag("div", f"✗ failed: {check.name}: {check.problem}", class_="kgwb-bad")
    return tag("div", f"✓ passed: {check.name}", class_="kgwb-good")


def _result(step: Step) -> Html:
    if step.done:
        return record(step.output, names_in([step], step.known))
    return tag("div", step.error or "not done", class_="kgwb-bad")


def _wrong(former: Attempt | None) -> Html:
    """What the checks had against the reply before."""
    if former is None:
        return Html()
    problems = (_check(check) for check in former.checks if check.problem)
    return join(tag("div", "Your reply before cannot be used:"), *problems)


def _prompt(asked: Asked, *, folded: bool) -> list[Html]:
    """The messages by role, as a model would get them; of what was read before only the question is open."""
    messages = asked.request.messages
    question = next((said for said in messages if said.role == "user"), None)
    return [
        fold(
            f"prompt: {said.role}",
            tag("pre", said.content, class_="kgwb-pre", style="max-height: 22em"),  # the form stays in sight
            unfolded=said is question or not folded,
        )
        for said in messages
    ]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        hint = "mend the text, or send it as it is and see what the checks say"
        raise OverrideError(f"this is no JSON: {exc}", hint=hint) from exc


def _loads(text: str) -> Any:
    """The data of a reply; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
