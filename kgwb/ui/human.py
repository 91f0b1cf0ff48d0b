"""A person who plays an agent: the question, what is wanted, the choices or fields of the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kgwb.errors import InvalidReplyError, ModelError
from kgwb.llm.human import Human, PendingRequest
from kgwb.run.agents import agent_of_key
from kgwb.run.models import open_model
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.form import (
    FormField,
    add_or_remove_row,
    empty_data,
    field_for_schema,
    fit_field,
    parse_form_values,
    to_form_values,
)
from kgwb.show.form_html import render_fields
from kgwb.show.html import Html
from kgwb.show.prompt_form import render_request
from kgwb.text import display_name, shorten
from kgwb.ui.live import Event, Part, read_name, render_failure, text_input
from kgwb.ui.session import Session, Worker

MAX_CONTEXT_CHARS = 200
"""Letters of a variable of the prompt that is shown beside the question."""


class Person(Part):
    """What waits for the person's reply in a session's run, and the form of the reply.

    It listens to the human models of the run while its session is at work: a run from elsewhere learns that
    nobody is here.
    """

    def __init__(self, session: Session, outer: Part) -> None:
        self.session, self.parent = session, outer
        self.humans = {model for model in session.run.models.values() if isinstance(model, Human)}
        self.shown_request: PendingRequest | None = None  # the request that is shown
        self.form_field = FormField("", "text")
        self.values: dict[str, str] = {}
        self.is_json = False
        self.revision = 0  # raised whenever Python overwrites what was typed
        self.started_steps: dict[str, Step] = {}
        """The latest steps by key; steps side by side are in the run only when all are done."""
        self.worker, self.model_comparison = Worker(), Html()
        self.subscribe_to(self.worker)
        if self.humans:
            session.run.listeners.append(
                lambda _, step: self.started_steps.update({step.key: step})
            )

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """What this run asks while the session is at work; the person plays in other runs too."""
        mine, requests = self.session.run._cancel, []
        for human in self.humans:
            if not self.session.current_task:
                human.listeners.pop(self.redraw, None)
                continue
            human.listeners[self.redraw] = mine
            requests += [asked for asked in human.pending_requests if asked.cancel is mine]
        return tuple(requests)

    def view(self) -> Html:
        """The reply that is wanted; nothing for a run in which no person plays."""
        if not (waiting := self.pending_requests):
            self.shown_request = None
            return self._render_idle() if self.humans else Html()
        asked, request, run = waiting[0], waiting[0].request, self.session.run
        # Which of the steps waits for the reply; none if the request is not theirs
        steps = [
            each
            for each in (*run.steps, *self.started_steps.values())
            if request.task in each.prompts
        ]
        steps = [each for each in steps if not (each.done or each.error)]
        variables = list(request.variables.values())
        about = [each for each in steps if each.subject in variables]  # entities side by side
        step = next(iter(about or steps), None)
        attempts = step.attempts if step else []
        if asked is not self.shown_request:
            # A form for another request, filled with the reply before it
            self.shown_request, self.is_json = asked, False
            data = (
                empty_data(field_for_schema(asked.request.schema)) if asked.request.schema else ""
            )
            with suppress(ValueError, RecursionError):
                data = json.loads(attempts[-1].reply) if attempts else data
            self._fill_form(asked, data)
        name = display_name(agent_of_key(step.key) if step else request.task.rpartition("/")[2])
        more = h.muted_text(f"and {len(waiting) - 1} more after this") if len(waiting) > 1 else ""
        place = h.muted_text(f"· attempt {len(attempts) + 1} of {run.settings.theta}")
        sign = h.state_badge("wait", "waits for you", pill=True)
        title = h.div("row", h.tag("h3", name, class_="title"), sign, more)
        kind = h.div(
            "row small", h.span("kindword person", "you answer in the place of a model"), place
        )
        head = h.div("head", h.agent_kind_badge("person"), h.div("grow", title, kind))
        wrong: Html | str = ""
        if attempts:
            failed = (check for check in attempts[-1].checks if check.problem)
            lines = (h.join(check.name, ": ", check.problem, h.tag("br")) for check in failed)
            words = h.tag("b", "Your last reply cannot be used: ")
            wrong = h.div(
                "body notes", h.note(words, h.tag("br"), *lines, level="bad"), role="alert"
            )
        purpose = run.prompts.load(request.task).header["purpose"] if step else ""
        context = [
            h.div("", h.muted_text(f"{display_name(name)} "), h.span("ent", shorten(value)))
            for name, value in request.variables.items()
            if isinstance(value, str)
            and 0 < len(value) < MAX_CONTEXT_CHARS
            and name not in ("question", "dialogue")
        ]
        question = h.div("question", str(request.variables.get("question", run.question)))
        caption = h.span("caption", "The question")
        wanted = h.div("body stack tight", caption, question, h.div("soft", purpose), *context)
        parts = (head, wrong, wanted, self._render_reply_form(asked))
        return h.tag("form", *parts, data_do="send", id=f"reply-{id(asked)}", class_="person-form")

    def _render_idle(self) -> Html:
        session = self.session
        attempts = (
            session.failure.attempts if isinstance(session.failure, InvalidReplyError) else None
        )
        for step in session.steps.values():
            if tuple(step.attempts) == attempts:
                words = f"No reply of yours to {display_name(step.key)} passed its checks: ask this step anew."
                return h.div("body notes", h.note(words, level="bad"))
        words = (
            f"yet: {session.current_task}."
            if session.current_task
            else "now: run the agent that you play."
        )
        calm = h.div("body notes", h.note(f"Nothing waits for you {words}", level="calm"))
        mine = self._latest_human_step()
        if mine is None:
            return calm
        error = self.worker.failure
        wrong = h.div("band", render_failure(error), role="alert") if error else ""
        model = text_input("model", "model", value="rules", id="beside-model")
        ask = h.div(
            "row",
            h.muted_text("What would a model say to "),
            h.tag("b", display_name(mine.agent)),
            model,
        )
        form = h.tag(
            "form", ask, h.button("Ask it", "beside", "model"), data_do="beside", class_="row"
        )
        return h.join(
            calm,
            h.div(
                "band stack controls",
                form,
                h.muted_text(self.worker.current_task),
                self.model_comparison,
            ),
            wrong,
        )

    def _latest_human_step(self) -> Step | None:
        """The latest step in which a person replied."""
        for step in reversed([*self.session.steps.values()]):
            if step.done and any(
                step.known_calls[key].request.get("model") == Human.name for key in step.calls
            ):
                return step
        return None

    def _render_reply_form(self, asked: PendingRequest) -> Html:
        options, fields = self._numbered_options(), self.form_field
        rows: Html | str = ""
        if options:
            number = self.values.get("number", "")
            picked = next(
                (n for n, option in enumerate(options) if str(option["number"]) == number), 0
            )
            choices = (
                _render_option(n, option, n == picked)
                for n, option in [*enumerate(options), (-1, {})]
            )
            rows = h.tag("ol", *choices, class_="rows")
            kept = tuple(part for part in fields.subfields if part.name not in options[0])
            fields = FormField("", "group", subfields=kept)
        form = render_fields(fields, self.values, "", self.revision)
        other = h.button("As a form" if self.is_json else "Reply as JSON", "json", class_="ghost")
        send = h.button("Send", "send", "run", "primary", shortcut="Control+Enter")
        hint = h.span("hint", h.tag("kbd", "Ctrl"), "+", h.tag("kbd", "Enter"))
        cancel = h.button("Cancel", "cancel", "stop", "ghost")
        row = h.div("row controls", send, hint, other if asked.request.schema else "", cancel)
        prompt = render_request(asked.request, title="The prompt in full, as a model gets it")
        return h.join(rows, h.div("body stack", form, row, prompt))

    def do_send(self, event: Event) -> None:
        """Reply with what the form holds. Raises OverrideError with what is wrong where."""
        if self.shown_request is None:
            raise ModelError("nobody waits for this reply", hint="run the agent again, then reply")
        values = self._read_form(event)
        if self.form_field.kind in (
            "text",
            "json",
        ):  # a text is judged as it is, as a model's would be
            text = values.get("value", "").replace("\r\n", "\n")
        else:
            text = json.dumps(parse_form_values(self.form_field, values), ensure_ascii=False)
        next(human for human in self.humans if self.shown_request in human.pending_requests).reply(
            text, self.shown_request
        )

    def do_more(self, event: Event) -> None:
        less = event["do"] == "less"
        self.values = add_or_remove_row(
            self.form_field, self._read_form(event), str(event["arg"]), remove=less
        )
        self.revision += 1

    do_less = do_more

    def do_json(self, event: Event) -> None:
        """Carry the reply over to the other form. Raises OverrideError where that is impossible."""
        if self.shown_request is not None:
            data = parse_form_values(self.form_field, self._read_form(event))
            self.is_json = not self.is_json
            self._fill_form(self.shown_request, data)

    def do_beside(self, event: Event) -> None:
        """Have a model play the person's latest step in a fork, and show both replies."""
        mine, run = self._latest_human_step(), self.session.run
        if mine is None:
            return
        model = open_model(read_name(event, "model") or "rules")

        def work() -> None:
            other = run.fork(models={**run.models, mine.agent: model}).remove_override(mine.key)
            with suppress(InvalidReplyError):  # its replies are shown with the step
                other.go(until=mine.key)
            sides = []
            for name, step in (("you", mine), (model.name, other[mine.key])):
                replies = (h.preformatted(attempt.reply) for attempt in step.attempts[-1:])
                sides.append(h.div("", h.tag("b", name), *replies, h.div("", step.outcome)))
            self.model_comparison = h.div("ab", *sides)

        self.worker.submit(f"asking {model.name} to play {display_name(mine.agent)}", work)

    def do_cancel(self, event: Event) -> None:
        self.session.cancel()

    def _fill_form(self, asked: PendingRequest, data: Any) -> None:
        schema = asked.request.schema
        self.form_field = FormField("", "json") if self.is_json else FormField("", "text")
        if schema and not self.is_json:
            self.form_field = fit_field(field_for_schema(schema), data)
        self.values = to_form_values(self.form_field, data)
        self.revision += 1

    def _numbered_options(self) -> list[dict[str, Any]]:
        """What the request offers to choose from, where a reply names one by its number."""
        request = self.shown_request.request if self.shown_request else None
        if (
            request is None
            or self.is_json
            or "number" not in (request.schema or {}).get("properties", {})
        ):
            return []
        lists = (value for value in request.variables.values() if isinstance(value, list) and value)
        numbered = (
            rows for rows in lists if all(isinstance(row, dict) and "number" in row for row in rows)
        )
        return next(numbered, [])

    def _read_form(self, event: Event) -> dict[str, str]:
        values, options = dict(event.get("form", {})), self._numbered_options()
        if options:
            place = int(values.get("option", "0"))
            none = {name: 0 if isinstance(value, int) else "" for name, value in options[0].items()}
            chosen = options[place] if place >= 0 else none
            for part in self.form_field.subfields:
                if part.name in chosen:
                    values |= to_form_values(part, chosen[part.name], part.name)
        self.values = values
        return values


def _render_option(number: int, option: Mapping[str, Any], chosen: bool) -> Html:
    radio = h.tag("input", type="radio", name="option", value=number, class_="vh", checked=chosen)
    words = h.span("soft", "none of these is meant")
    if number >= 0:
        values = [value for name, value in option.items() if name not in ("number", "label")]
        about = [
            ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            for value in values
        ]
        label = h.tag("b", shorten(str(option.get("label", number))))
        words = h.span("grow", label, h.span("under soft", shorten(" · ".join(about))))
    return h.tag(
        "li",
        h.tag("label", radio, h.span("mark"), words, h.span("take"), class_="cand"),
        class_="pickable",
    )
