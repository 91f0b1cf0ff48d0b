"""A person in the place of a model: the question, what is wanted, the choices or fields of the reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kgwb.errors import InputError, InvalidReplyError, KgwbError, ModelError
from kgwb.llm.base import ChatModel
from kgwb.llm.human import Asked, Human
from kgwb.run import Run
from kgwb.run.agents import spec_at
from kgwb.run.record import Attempt, Step
from kgwb.show.form import Field, blank, field_of, fitted, inputs, read, typed, with_row
from kgwb.show.html import (
    Html,
    aside,
    button,
    div,
    join,
    kind_tile,
    note,
    short,
    span,
    spoken,
    state_sign,
    tag,
)
from kgwb.show.prompt import sent
from kgwb.show.run import agent_of
from kgwb.show.tell import outcome
from kgwb.ui.session import Session, Worker


class Person:
    """What waits for the person's reply in a session's run, and the form of the reply.

    It listens to the human models of the run while its session is at work: a run from elsewhere is told that
    nobody is here.
    """

    def __init__(self, session: Session, redraw: Callable[[], None]) -> None:
        self.session, self.redraw = session, redraw
        self.humans = {model for model in session.run.models.values() if isinstance(model, Human)}
        self.asked: Asked | None = None
        """The request that is shown."""
        self.field = Field("", "text")
        self.values: dict[str, str] = {}
        self.as_json = False
        self.said: tuple[str, Step, Step] | None = None
        """A model's name, the person's step, and the same step with that model."""
        self.begun: dict[str, Step] = {}
        """The latest steps by key; steps side by side are in the run only when all are done."""
        if self.humans:
            session.run.listeners.append(lambda _, step: self.begun.update({step.key: step}))

    @property
    def waiting(self) -> tuple[Asked, ...]:
        """What this run asks while the session is at work; the person plays in other runs too."""
        mine, found = self.session.run._cancel, []
        for human in self.humans:
            if not self.session.busy:
                human.listeners.pop(self.redraw, None)
                continue
            human.listeners[self.redraw] = mine
            found += [asked for asked in human.waiting if asked.cancel is mine]
        return tuple(found)

    # --- what is shown --------------------------------------------------------------------------------------

    def view(self, revision: int) -> Html:
        """The reply that is wanted; nothing for a run in which no person plays."""
        if not self.humans:
            return Html()
        waiting = self.waiting
        if not waiting:
            self.asked = None
            return self._idle()
        if waiting[0] is not self.asked:
            self._begin(waiting[0])
        asked, step = waiting[0], self._step(waiting[0])
        attempts = step.attempts if step else []
        name = spoken(agent_of(step.key) if step else asked.request.task.rpartition("/")[2])
        more = aside(f"and {len(waiting) - 1} more after this") if len(waiting) > 1 else ""
        place = aside(f"· attempt {len(attempts) + 1} of {self.session.run.settings.theta}")
        title = div(
            "row", tag("h3", name, class_="title"), state_sign("wait", "waits for you", pill=True), more
        )
        head = div(
            "head",
            kind_tile("person"),
            div(
                "grow",
                title,
                div("row small", span("kindword person", "you answer in the place of a model"), place),
            ),
        )
        parts = (
            self._wrong(attempts[-1] if attempts else None),
            self._wanted(asked, step),
            self._reply(asked, revision),
        )
        return tag("form", head, *parts, data_do="send", id=f"reply-{id(asked)}", class_="person-form")

    def _idle(self) -> Html:
        failed = refused(self.session)
        if failed is not None:
            name = spoken(agent_of(failed.key))
            words = f"No reply of yours to {name} passed its checks: ask this step anew to try again."
            return div("body notes", note(words, kind="bad"))
        state = (
            f"Nothing waits for you yet: {self.session.busy}."
            if self.session.busy
            else "Nothing waits for you now: run the agent that you play."
        )
        return join(div("body notes", note(state, kind="calm")), self._beside())

    def _wrong(self, former: Attempt | None) -> Html:
        if former is None:
            return Html()
        problems = (
            join(check.name, ": ", check.problem, tag("br")) for check in former.checks if check.problem
        )
        return div(
            "body notes",
            note(tag("b", "Your last reply cannot be used: "), tag("br"), *problems, kind="bad"),
            role="alert",
        )

    def _wanted(self, asked: Asked, step: Step | None) -> Html:
        """The question, and in one sentence what is wanted."""
        request, run = asked.request, self.session.run
        question = request.variables.get("question", run.question)
        purpose = spec_at(run.system, step.agent).purpose.replace("``", "") if step else ""
        shown = [
            div("", aside(f"{spoken(name)} "), span("ent", short(value)))
            for name, value in request.variables.items()
            if isinstance(value, str) and value and name not in ("question", "dialogue") and len(value) < 200
        ]
        return div(
            "body stack tight",
            span("caption", "The question"),
            div("question", str(question)),
            div("soft", purpose),
            *shown,
        )

    def _reply(self, asked: Asked, revision: int) -> Html:
        values = self.values
        options = [] if self.as_json else options_of(asked)
        rows = (
            tag(
                "ol",
                *(_option(n, one, self._picked(options) == n) for n, one in [*enumerate(options), (-1, {})]),
                class_="rows",
            )
            if options
            else ""
        )
        fields = self.field
        if options:
            kept = tuple(part for part in fields.fields if part.name not in options[0])
            fields = Field("", "group", fields=kept)
        form = inputs(fields, values, "", revision)
        as_json = (
            button("As a form" if self.as_json else "Reply as JSON", "json", class_="ghost")
            if asked.request.schema
            else ""
        )
        send = button("Send", "send", "run", "primary", key="Control+Enter")
        row = div(
            "row controls",
            send,
            span("hint", tag("kbd", "Ctrl"), "+", tag("kbd", "Enter")),
            as_json,
            button("Cancel", "cancel", "stop", "ghost"),
        )
        prompt = sent(asked.request, what="The prompt in full, as a model gets it")
        return join(rows, div("body stack", rename(form), row, prompt))

    def _picked(self, options: list[dict[str, Any]]) -> int:
        now = self.values.get("number", "")
        return next((n for n, one in enumerate(options) if str(one["number"]) == now), 0)

    def _beside(self) -> Html:
        """What a model says in the person's place, once there is a step to compare."""
        mine = [step for step in played(self.session) if step.done]
        if not mine:
            return Html()
        typed = tag("input", type="text", name="model", value="rules", aria_label="model", id="beside-model")
        ask = tag(
            "form",
            div(
                "row",
                aside("What would a model say to "),
                tag("b", spoken(mine[-1].agent)),
                typed,
                button("Ask it", "beside", "model"),
            ),
            data_do="beside",
        )
        shown = Html()
        if self.said is not None:
            name, own, theirs = self.said
            sides = (
                div(
                    "",
                    tag("b", who),
                    *(tag("pre", one.reply, class_="src") for one in step.attempts[-1:]),
                    div("", outcome(step)),
                )
                for who, step in (("you", own), (name, theirs))
            )
            shown = div("ab", *sides)
        return div("band stack controls", ask, shown)

    # --- what the person does -------------------------------------------------------------------------------

    def _begin(self, asked: Asked) -> None:
        """A form for another request, filled with the reply before it."""
        self.asked, self.as_json = asked, False
        step = self._step(asked)
        former = step.attempts[-1] if step and step.attempts else None
        whole = field_of(asked.request.schema) if asked.request.schema else Field("", "text")
        data = blank(whole)
        with suppress(ValueError, RecursionError):
            data = json.loads(former.reply) if former else data
        self.field = fitted(whole, data)
        self.values = typed(self.field, data)

    def _step(self, asked: Asked) -> Step | None:
        return step_of(asked, (*self.session.run.steps, *self.begun.values()))

    def _typed(self, form: Mapping[str, str]) -> dict[str, str]:
        values = {name.removeprefix("reply."): value for name, value in form.items()}
        options = options_of(self.asked) if self.asked and not self.as_json else []
        if options:
            place = int(form.get("option", "0"))
            none = {name: 0 if isinstance(value, int) else "" for name, value in options[0].items()}
            chosen = options[place] if place >= 0 else none
            for part in self.field.fields:
                if part.name in chosen:
                    values |= typed(part, chosen[part.name], part.name)
        self.values = values
        return values

    def send(self, form: Mapping[str, str]) -> None:
        """Reply with what the form holds. Raises OverrideError that says what is wrong where."""
        if self.asked is None:
            raise ModelError("nobody waits for this reply", hint="run the agent again, then reply")
        values = self._typed(form)
        if self.field.kind in ("text", "json"):  # a text is judged as it is, as a model's would be
            text = values.get("value", "").replace("\r\n", "\n")
        else:
            text = json.dumps(read(self.field, values), ensure_ascii=False)
        next(human for human in self.humans if self.asked in human.waiting).reply(text, self.asked)

    def row(self, form: Mapping[str, str], path: str, *, less: bool = False) -> None:
        """A row of a table more, or less."""
        self.values = with_row(self.field, self._typed(form), path.removeprefix("reply."), less=less)

    def toggle(self, form: Mapping[str, str]) -> None:
        """Carry the reply over to the other form. Raises OverrideError where that is impossible."""
        if self.asked is None:
            return
        data = read(self.field, self._typed(form))
        self.as_json = not self.as_json
        whole = Field("", "json") if self.as_json else field_of(self.asked.request.schema or {})
        self.field = whole if self.as_json else fitted(whole, data)
        self.values = typed(self.field, data)

    def ask_beside(self, model: ChatModel, worker: Worker) -> None:
        """Have a model play the person's latest step, aside."""
        mine = [step for step in played(self.session) if step.done][-1]

        def work() -> None:
            self.said = model.name, mine, beside(self.session.run, mine.key, model)

        worker.do(f"asking {model.name} to play {spoken(mine.agent)}", work)


def options_of(asked: Asked) -> list[dict[str, Any]]:
    """What the request offers to choose from, where a reply names one by its number."""
    parts = (asked.request.schema or {}).get("properties", {})
    for value in asked.request.variables.values():
        if (
            isinstance(value, list)
            and value
            and all(isinstance(one, dict) and "number" in one for one in value)
        ):
            return value if "number" in parts else []
    return []


def _option(number: int, one: Mapping[str, Any], chosen: bool) -> Html:
    radio = tag("input", type="radio", name="option", value=number, class_="vh", checked=chosen)
    if number < 0:
        words = span("soft", "none of these is meant")
    else:
        values = [value for name, value in one.items() if name not in ("number", "label")]
        about = [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values]
        words = span(
            "grow",
            tag("b", short(str(one.get("label", number)))),
            span("under soft", short(" · ".join(about))),
        )
    return tag("li", tag("label", radio, span("mark"), words, span("take"), class_="cand"), class_="pickable")


def rename(form: Html) -> Html:
    """The inputs of a reply, whose rows are added and taken out by actions of their own."""
    return Html(
        form.replace('data-do="more"', 'data-do="reply_more"').replace(
            'data-do="less"', 'data-do="reply_less"'
        )
    )


def step_of(asked: Asked, steps: Iterable[Step]) -> Step | None:
    """Which of the steps waits for the reply; None if the request is none of theirs."""
    request = asked.request
    waiting = [step for step in steps if request.task in step.prompts and not (step.done or step.error)]
    said = list(request.variables.values())
    about = [step for step in waiting if step.subject in said]  # entities side by side
    return next(iter(about or waiting), None)


def played(session: Session) -> tuple[Step, ...]:
    """The steps in which a person replied, in flow order."""
    return tuple(
        step
        for step in session.steps.values()
        if any(step.known[key].request.get("model") == Human.name for key in step.calls)
    )


def refused(session: Session) -> Step | None:
    """The step that ended the run because no reply of the person passed its checks."""
    attempts = session.failure.attempts if isinstance(session.failure, InvalidReplyError) else None
    return next((step for step in played(session) if tuple(step.attempts) == attempts), None)


def beside(run: Run, key: str, model: ChatModel) -> Step:
    """The same step with its agent's replies from another model; a failure is in the step's ``error``.

    All before it is as in ``run``, which stays as it is. Raises whatever keeps the other run from getting to
    this step.
    """
    other = run.fork(models={**run.models, run[key].agent: model})
    other.restore(key)
    try:
        other.go(until=key)
    except KgwbError as exc:
        if isinstance(exc, InputError) or key not in other.by_key:
            raise
    return other[key]
