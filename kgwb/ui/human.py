"""A person who plays an agent: the request that waits for a reply, and the form of the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kgwb.errors import InvalidReplyError, ModelError
from kgwb.llm.base import ChatModel, ChatRequest, Human, PendingRequest
from kgwb.run.agents import agent_of_key
from kgwb.run.models import open_model
from kgwb.run.steps import Attempt, Step
from kgwb.show import html as h
from kgwb.show.form import (
    FormField,
    add_or_remove_row,
    empty_data,
    field_for_schema,
    fit_field,
    parse_form_values,
    render_fields,
    to_form_values,
)
from kgwb.show.html import Html
from kgwb.show.prompt_form import render_request
from kgwb.text import display_name, shorten
from kgwb.ui.live import (
    Event,
    Part,
    argument_of,
    form_of,
    read_name,
    render_page,
    render_progress,
    typed_text,
)
from kgwb.ui.session import Session
from kgwb.ui.worker import Worker

MAX_CONTEXT_CHARS = 200
"""Only shorter values of prompt variables are shown beside the question."""


class Person(Part):
    """The request of a session's run that waits for the person, and the form of the reply.

    It listens to the human models of the run only while the session executes a task. So a run that
    is executed elsewhere fails, instead of waiting for a reply that nobody is asked for.
    """

    def __init__(self, session: Session, outer: Part) -> None:
        """``outer`` is the part that this one is shown in."""
        self.session = session
        self.parent = outer
        models = session.run.models.values()
        self.humans = {model for model in models if isinstance(model, Human)}
        self.shown_request: PendingRequest | None = None
        """The request whose form is shown."""
        self.form_field = FormField("", "text")
        """Describes the form of the reply."""
        self.values: dict[str, str] = {}
        """The values of the form, by path."""
        self.is_json = False
        """Whether the reply is typed as JSON."""
        self.revision = 0
        """Increased whenever the form must take over values from Python."""
        self.started_steps: dict[str, Step] = {}
        """The latest steps by key.

        Steps that run at the same time are in the run only when all of them are done.
        """
        self.worker = Worker()
        """Asks a model for comparison."""
        self.model_comparison = Html()
        self.subscribe_to(self.worker)
        if self.humans:
            session.run.listeners.append(self._on_step)

    def _on_step(self, event: str, step: Step) -> None:
        """Remember a step that has begun, so that its request can be matched with it."""
        self.started_steps[step.key] = step

    def _listen(self) -> tuple[PendingRequest, ...]:
        """Return the requests of this run that wait for a person's reply, the oldest first.

        While the session executes a task, this part listens to the human models, which call
        ``redraw`` when their requests change; otherwise it stops listening.
        """
        for human in self.humans:
            if self.session.current_task:
                human.listeners[self.redraw] = self.session.run.execution.cancelled
            else:
                human.listeners.pop(self.redraw, None)
        return self.session.pending_requests

    # The request

    def view(self) -> Html:
        """Render the oldest request that waits for a reply, else that no reply is needed.

        Nothing is rendered if no agent of the run is played by a person.
        """
        waiting = self._listen()
        if waiting:
            return self._render_request(waiting[0], queued_count=len(waiting) - 1)
        self.shown_request = None
        if not self.humans:
            return Html()
        return self._render_idle()

    def _render_request(self, pending: PendingRequest, *, queued_count: int) -> Html:
        """Render a request: its purpose, its variables, the form of the reply, and the full prompt.

        If it is another request than before, a new form is begun. Checks that the last reply failed
        are listed, with the number of the attempt. ``queued_count`` more requests wait behind it.
        """
        request = pending.request
        run = self.session.run
        step = self._find_waiting_step(request)
        attempts = step.attempts if step is not None else []
        if pending is not self.shown_request:
            self._begin_form(pending, attempts)
        agent = request.task.rpartition("/")[2]
        purpose = ""
        if step is not None:
            agent = agent_of_key(step.key)
            parsed_prompt = run.prompts.load(request.task)
            purpose = parsed_prompt.header.get("purpose", "")
        options = self._numbered_options()
        title = "The full prompt, as a model would receive it"
        return render_page(
            "person.html",
            request_id=id(pending),
            agent=agent,
            queued_count=queued_count,
            attempt_number=len(attempts) + 1,
            attempt_limit=run.settings.theta,
            failed_checks=attempts[-1].problems if attempts else (),
            question=request.variables.get("question", run.question),
            purpose=purpose,
            context=_context_values(request),
            options=options,
            picked=self._picked_position(options),
            option_details=_option_details,
            fields=self._render_fields(options),
            has_schema=bool(request.schema),
            is_json=self.is_json,
            prompt=render_request(request, title=title),
        )

    def _find_waiting_step(self, request: ChatRequest) -> Step | None:
        """Return the unfinished step that sent a request; None if there is none.

        Steps of one agent that run at the same time are told apart by their subjects, which are
        among the variables of the prompt.
        """
        steps = []
        started = self.started_steps.values()
        for step in (*self.session.run.steps, *started):
            has_ended = step.done or step.error
            if request.task in step.prompts and not has_ended:
                steps.append(step)
        variables = list(request.variables.values())
        for step in steps:
            if step.subject in variables:
                return step
        return steps[0] if steps else None

    def _begin_form(self, pending: PendingRequest, attempts: Sequence[Attempt]) -> None:
        """Show the form of another request, filled with the reply of the latest attempt.

        Without an attempt, or if that reply is not JSON, it is filled with defaults.
        """
        self.shown_request = pending
        self.is_json = False
        request = pending.request
        data: Any = ""
        if request.schema:
            form_field = field_for_schema(request.schema)
            data = empty_data(form_field)
        if attempts:
            # The reply may be no JSON, or nested too deeply.
            with suppress(ValueError, RecursionError):
                data = json.loads(attempts[-1].reply)
        self._fill_form(request, data)

    def _fill_form(self, request: ChatRequest, data: Any) -> None:
        """Choose the form's fields for a request, and fill them with the data of a reply.

        It is JSON if the person chose that, fields by the schema if the request has one, and
        otherwise one text.
        """
        if self.is_json:
            self.form_field = FormField("", "json")
        elif request.schema:
            self.form_field = fit_field(field_for_schema(request.schema), data)
        else:
            self.form_field = FormField("", "text")
        self.values = to_form_values(self.form_field, data)
        self.revision += 1

    def _render_fields(self, options: Sequence[Mapping[str, Any]]) -> Html:
        """Render the fields of the form, filled with what was typed.

        With ``options``, those fields are left out that the choice of an option fills.
        """
        form_field = self.form_field
        if options:
            others = tuple(part for part in form_field.subfields if part.name not in options[0])
            form_field = FormField("", "group", subfields=others)
        return render_fields(form_field, self.values, self.revision)

    # Options with numbers

    def _numbered_options(self) -> list[dict[str, Any]]:
        """Return the options of the request, if the reply names one of them by its number.

        They are in the first variable of the prompt that is a list of objects with numbers. Empty
        for other requests, and while the reply is typed as JSON.
        """
        if self.shown_request is None or self.is_json:
            return []
        request = self.shown_request.request
        schema = request.schema or {}
        if "number" not in schema.get("properties", {}):
            return []
        for value in request.variables.values():
            if isinstance(value, list) and value and all(map(_is_numbered, value)):
                return value
        return []

    def _picked_position(self, options: Sequence[Mapping[str, Any]]) -> int:
        """Return the position of the option with the number in the form, else of the first one."""
        numbers = [str(option["number"]) for option in options]
        number = self.values.get("number", "")
        return numbers.index(number) if number in numbers else 0

    def _read_form(self, event: Event) -> dict[str, str]:
        """Return the values of the event's form, and keep them for the next drawing.

        For a request with options, the picked option, the first by default, fills the fields that
        have the names of its parts; "none of these" fills them with 0 and empty texts.
        """
        values = dict(form_of(event))
        options = self._numbered_options()
        if options:
            position = int(values.get("option", "0"))
            if position < 0:
                picked = _no_option(options[0])
            else:
                picked = options[position]
            for part in self.form_field.subfields:
                if part.name in picked:
                    values |= to_form_values(part, picked[part.name], part.name)
        self.values = values
        return values

    # Without a request

    def _render_idle(self) -> Html:
        """Render that no reply is needed now, or why the latest execution failed.

        After a reply there is a form that asks a model the same, with the progress, the failure and
        the result of that. If the last execution ended because no reply was valid, only that is
        said.
        """
        rejected = self._find_rejected_step()
        if rejected is not None:
            remark = (
                f"None of your replies to {display_name(rejected.key)} passed its checks. "
                "To try again, press “Ask anew” on this step."
            )
            return render_page("person_idle.html", remark=remark, level="bad", played_agent="")
        remark = "No reply is needed now. Run the agent that you play."
        played_agent = ""
        played = self._latest_human_step()
        if played is not None:
            remark = self._what_comes_next()
            played_agent = display_name(played.agent)
        if self.session.current_task:
            remark = f"No reply is needed yet: {self.session.current_task}."
        return render_page(
            "person_idle.html",
            remark=remark,
            level="calm",
            played_agent=played_agent,
            progress=render_progress(self.worker),
            comparison=self.model_comparison,
        )

    def _what_comes_next(self) -> str:
        """Return a sentence on what a person can do after a reply that passed its checks.

        It depends on whether the run has ended.
        """
        if self.session.run_state().has_ended:
            return "Your reply was used, and the run has ended. To reply again, press “Ask anew” on this step."
        return (
            "Your reply was used. Go on in the debugger, workbench.debug(), with “Continue”. "
            "To reply again, press “Ask anew” on this step."
        )

    def _find_rejected_step(self) -> Step | None:
        """Return the step whose attempts all failed, if that is why the session failed.

        None if it failed for another reason.
        """
        failure = self.session.failure
        if isinstance(failure, InvalidReplyError):
            for step in self.session.all_steps:
                if tuple(step.attempts) == failure.attempts:
                    return step
        return None

    def _latest_human_step(self) -> Step | None:
        """Return the latest finished step in which a person replied; None if there is none.

        That is a step with a call of the model human.
        """
        for step in reversed(self.session.all_steps):
            models = [call.request["model"] for call in step.model_calls]
            if step.done and Human.name in models:
                return step
        return None

    # Events

    def do_send(self, event: Event) -> None:
        """Reply with the values of the form.

        A text, or JSON, is sent as it was typed: the agent's checks judge it, as they judge a
        model's. Raises OverrideError for wrong values in other forms, and ModelError if the request
        does not wait any more.
        """
        values = self._read_form(event)
        if self.form_field.kind in ("text", "json"):
            text = typed_text(values.get("value", ""))
        else:
            data = parse_form_values(self.form_field, values)
            text = json.dumps(data, ensure_ascii=False)
        request = self.shown_request
        for human in self.humans:
            if request is not None and request in human.pending_requests:
                human.reply(text, request)
                return
        raise ModelError(
            "the reply was not sent: no agent waits for it any more",
            hint="run the agent again, then reply",
        )

    def do_more(self, event: Event) -> None:
        """Add a row to a list of the form; for the event "less", remove one.

        The event's ``arg`` is the path of the list, or of the row to remove. What was typed is
        kept. Raises OverrideError if the path is not one of a list.
        """
        values = self._read_form(event)
        path = argument_of(event)
        is_removal = event["do"] == "less"
        self.values = add_or_remove_row(self.form_field, values, path, remove=is_removal)
        self.revision += 1

    do_less = do_more

    def do_json(self, event: Event) -> None:
        """Switch the form between fields and JSON; what was typed is kept.

        Raises OverrideError if what was typed cannot be read. Nothing happens without a request.
        """
        if self.shown_request is None:
            return
        values = self._read_form(event)
        data = parse_form_values(self.form_field, values)
        self.is_json = not self.is_json
        self._fill_form(self.shown_request.request, data)

    def do_beside(self, event: Event) -> None:
        """Submit a fork in which the typed model plays the person's latest step; show both.

        Nothing happens if the person has not played yet. An empty text is the model "rules". Raises
        SettingError for a text that looks like a key, and what opening the model raises.
        """
        played = self._latest_human_step()
        if played is None:
            return
        model = open_model(read_name(event, "model") or "rules")

        def compare() -> None:
            """Keep the comparison of the model's reply with the person's."""
            self.model_comparison = self._compare_with(model, played)

        task = f"asking {model.name} to play {display_name(played.agent)}"
        self.worker.submit(task, compare)

    def _compare_with(self, model: ChatModel, played: Step) -> Html:
        """Execute a fork in which a model plays a step of the person, up to this step.

        Returns the last replies and the outcomes of both, side by side.
        """
        run = self.session.run
        fork = run.fork(models={played.agent: model})
        fork.remove_override(played.key)
        with suppress(InvalidReplyError):  # the invalid reply is shown with the step
            fork.go(until=played.key)
        reply_of_person = _render_reply("you", played)
        reply_of_model = _render_reply(model.name, fork[played.key])
        return h.div("ab", reply_of_person, reply_of_model)

    def do_cancel(self, event: Event) -> None:
        """Cancel the execution that waits for the reply."""
        self.session.cancel()


def _context_values(request: ChatRequest) -> list[tuple[str, str]]:
    """Return the short text variables of a prompt, each with its display name.

    They have 1 to MAX_CONTEXT_CHARS - 1 characters. "question" and "dialogue" are left out: they
    are shown elsewhere.
    """
    values = []
    for name, value in request.variables.items():
        if name in ("question", "dialogue"):
            continue
        if isinstance(value, str) and 0 < len(value) < MAX_CONTEXT_CHARS:
            values.append((display_name(name), shorten(value)))
    return values


def _is_numbered(row: Any) -> bool:
    """Return whether a value is an object with the field "number"."""
    return isinstance(row, dict) and "number" in row


def _no_option(option: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the choice "none of these": 0 for numbers, empty texts for the rest.

    The keys are those of the option.
    """
    values: dict[str, Any] = {}
    for name, value in option.items():
        values[name] = 0 if isinstance(value, int) else ""
    return values


def _render_reply(name: str, step: Step) -> Html:
    """Render the last reply to a step, and the step's outcome, below a name.

    A step without attempts has no reply.
    """
    parts = [h.tag("b", name)]
    if step.attempts:
        last_attempt = step.attempts[-1]
        parts.append(h.preformatted(last_attempt.reply))
    parts.append(h.div("", step.outcome))
    return h.div("", *parts)


def _option_details(option: Mapping[str, Any]) -> str:
    """Return the values of an option in one line, without its number and its label.

    Values are separated by " · ", and the items of a list by commas.
    """
    details = []
    for name, value in option.items():
        if name in ("number", "label"):
            continue
        if isinstance(value, list):
            details.append(", ".join(map(str, value)))
        else:
            details.append(str(value))
    return shorten(" · ".join(details))
