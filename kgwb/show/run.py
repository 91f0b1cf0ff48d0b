"""Runs and their steps as HTML, and the notices of what leaves the machine."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgwb.llm.base import SHOWN_ONCE, ChatReply, DataNotice
from kgwb.records import one_line
from kgwb.run import Run
from kgwb.run.agents import AgentSpec, agent_of_key, current_version
from kgwb.run.answers import Answer
from kgwb.run.http_protocols import shown_text
from kgwb.run.models import NewReplies, NewReply
from kgwb.run.steps import (
    Attempt,
    Call,
    Step,
    group_by_supervisor,
    names_in_steps,
    step_costs,
)
from kgwb.show.answers import render_answer_parts
from kgwb.show.html import (
    AGENT_KIND_LABELS,
    Html,
    agent_kind_badge,
    collapsible,
    div,
    icon,
    join,
    join_with_dots,
    muted_text,
    preformatted,
    render_template,
    span,
    state_badge,
    static_section,
    tag,
)
from kgwb.show.records import has_details, render
from kgwb.show.run_state import (
    ANSWER_STATE_LABELS,
    ERROR,
    STEP_STATES,
    RunState,
    answer_view,
    displayed_agent_kind,
    setup_text,
    state_of_output,
    subject_text,
)
from kgwb.show.terms import RenderContext, context_of
from kgwb.show.timeline import (
    render_pipeline,
    render_row_badge,
    render_step_time,
    render_waterfall,
    skipped_model,
)
from kgwb.text import display_name, format_seconds, shorten, shorten_at_word, single_line

MAX_BANNER_CHARS = 1_000
"""Characters of the question, and of the answer, at the top."""
MAX_LARGE_CHARS = 160
"""A longer answer is not in the largest type."""


def render_run_page(run: Run) -> str:
    """Render a run as HTML that stands alone."""
    title = shorten(run.question)
    return static_section(render_run(run), aria_label=title)


def render_run(run: Run, blamed_step: str = "") -> Html:
    """Render a run: question, answer with its support, agents, steps, and where the time went.

    Steps are collapsed, and stand below their supervisors. ``blamed_step`` is the key of the step that
    lost the answer, if it is known: it is marked and open. The values of the answer are only shown
    once the run is done.
    """
    state = RunState.of(run)
    context = context_of(run)
    answer_parts = []
    if run.answer and run.status == "done":  # why there is no answer is part of the banner
        is_doubt_shown = answer_view(state).has_doubt
        answer_parts = render_answer_parts(run.answer, context, is_doubt_shown=is_doubt_shown)
    return render_template(
        "show/templates/run.html",
        header=render_question_header(run),
        answer_banner=render_answer_banner(state),
        answer_parts=answer_parts,
        flow_strip=render_pipeline(state),
        view=sys.modules[__name__],
        state=state,
        context=context,
        groups=group_by_supervisor(run.steps),
        blamed_step=blamed_step,
        render_row_badge=render_row_badge,
        render_step_time=render_step_time,
        waterfall=render_waterfall(run.steps, run.calls),
    )


def render_question_header(run: Run) -> Html:
    """Render the question, and the system, models and settings that answer it."""
    question = shorten(run.question, MAX_BANNER_CHARS)
    title = tag("h2", question, class_="question grow")
    setup = span("soft small", setup_text(run))
    return div("head", title, setup)


def render_answer_banner(state: RunState) -> Html:
    """Render the answer in large letters, and below it its state, its cost, and the right answer.

    The right answer is shown as far as it is known. A failure is announced at once to screen
    readers (role "alert"). A wrong answer is none: the run did what it should.
    """
    answer = answer_view(state)
    has_failed = answer.label == ANSWER_STATE_LABELS[ERROR]
    return render_template(
        "show/templates/answer_banner.html",
        state=answer.icon,
        has_failed=has_failed,
        icon=icon(answer.icon),
        headline=shorten_at_word(answer.headline, MAX_BANNER_CHARS),
        is_long=len(answer.headline) > MAX_LARGE_CHARS,
        label=answer.label,
        details=answer.small_text(MAX_BANNER_CHARS),
        right_answer=state.run.right_answer,
        answer=state.answer,
        max_chars=MAX_BANNER_CHARS,
    )


ORIGIN_TEXTS = {"record": "from the record", "live": "live"}
"""Where the calls of a step came from, by the origin of its output."""


def render_step_page(step: Step) -> str:
    """Render a step as HTML that stands alone: its output, inputs, prompts and replies.

    Names are those that its own record holds.
    """
    names = names_in_steps([step], step.known_calls)
    context = RenderContext(names, steps=(step,), views=step.views)
    inputs = render_inputs(step, context)
    page = render_template(
        "show/templates/step.html",
        step=step,
        subject=subject_text(step),
        body=render_step_body(step, context, step.known_calls, inputs),
    )
    return static_section(page)


def render_step_body(
    step: Step,
    context: RenderContext,
    calls: Mapping[str, Call],
    inputs: Html,
    *,
    supervises: bool = False,
) -> Html:
    """Render a step in full: notes, output, cost, and collapsed its inputs and its attempts.

    ``inputs`` are the rendered inputs, and ``calls`` those of the run. The output of a step that
    ``supervises`` others is left out, since the steps below it show the same. Inputs and attempts
    have their number, and are left out if there are none.
    """
    output = Html()
    if step.done and not supervises:
        context = replace(context, inputs=tuple(step.inputs.values()))
        output = render(step.output, context)
    return render_template(
        "show/templates/step_body.html",
        notes=render_step_notes(step),
        output=output,
        costs=join_with_dots(single_line(step.key), *_cost_and_origin(step, calls)),
        input_count=len(step.inputs),
        inputs=inputs,
        attempt_count=len(_attempts_of(step, calls)),
        attempts=render_attempts(step, calls),
    )


# The head


def render_step_header(state: RunState, key: str, controls: object = "") -> Html:
    """Render the icon, name, subject and state of a step, and below them facts about it.

    The facts are kind and role of the agent, cost and origin. ``key`` may be the name of an agent
    that has no step. ``controls`` are shown at the end. The last line is the first one of the
    agent's docstring.
    """
    step = state.steps.get(key)
    agent = agent_of_key(key)
    kind = displayed_agent_kind(state.run, agent)
    purpose = state.run.system.agent_spec(agent).purpose
    badge_icon, badge_label = step_badge(state, step, state.step_state(key))
    facts = _render_step_facts(state, step, agent, kind)
    return render_template(
        "show/templates/step_header.html",
        kind_badge=agent_kind_badge(kind, outlined=skipped_model(step, kind)),
        purpose=purpose.replace("``", ""),
        agent=agent,
        subject=subject_text(step) if step else "",
        state_badge=state_badge(badge_icon, badge_label, pill=True),
        facts=join_with_dots(*facts),
        controls=controls,
    )


def step_badge(state: RunState, step: Step | None, step_state: str) -> tuple[str, str]:
    """Return the icon and the label of a step's state.

    A step that is done has "by hand" if its output was put in, or, if the output is an answer, the
    state of that answer.
    """
    if step is None or step_state != "done":
        return STEP_STATES[step_state]
    if step.origin == "by hand":
        return "hand", "by hand"
    if isinstance(step.output, Answer):
        judged = state_of_output(state.run, step.output)
        return judged.icon, judged.label
    return STEP_STATES[step_state]


def _render_step_facts(state: RunState, step: Step | None, agent: str, kind: str) -> list[Html]:
    """Render facts about a step: kind and role of the agent, cost, origin, and the model.

    They come in this order. It is said if the model was not asked, and the model is named only if
    it was. A step that was not executed has only kind and role.
    """
    facts = [span(f"kindword {kind}", AGENT_KIND_LABELS[kind])]
    role = state.run.system.role_of(agent)
    if role:
        facts.append(span("", display_name(role)))
    if skipped_model(step, kind):
        facts.append(span("", "was not asked"))
    if step is None:
        return facts
    if step.done or step.error:
        facts += map(muted_text, _cost_and_origin(step, state.run.calls))
        if step.attempts:
            model_name = state.run.model_name(agent)
            facts.append(muted_text(f"by {model_name}"))
    return facts


def _cost_and_origin(step: Step, calls: Mapping[str, Call]) -> list[str]:
    """Return what a step cost, and if it made calls, whether they were recorded or live.

    An origin that ORIGIN_TEXTS does not name is not said. A live call of a model that replays a file
    has recorded replies.
    """
    parts = [" · ".join(step_costs(step, calls))]
    if any(call.request["model"].startswith("replay:") for call in step.model_calls):
        parts.append("recorded replies")
    elif step.calls and step.origin in ORIGIN_TEXTS:
        parts.append(ORIGIN_TEXTS[step.origin])
    return parts


def render_step_notes(step: Step | None) -> Html:
    """Render the notes of an agent, and why its step failed; nothing if there is neither.

    The failure comes last.
    """
    return render_template("show/templates/step_notes.html", step=step)


# Inputs


def render_inputs(step: Step, context: RenderContext) -> Html:
    """Render the inputs of a step, and which earlier step each of them came from.

    Earlier steps are known if the step is one of ``context.steps``; an input that came from none of
    them is said to be from the question. A step without inputs says so.
    """
    if not step.inputs:
        return div("body soft", "This step has no inputs.")
    earlier: Sequence[Step] = ()
    if step in context.steps:
        position = context.steps.index(step)
        earlier = context.steps[:position]
    inputs = []
    for name, value in step.inputs.items():
        origin = _origin_of_input(step, value, earlier)
        inputs.append((name, origin, _render_input(value, context)))
    return render_template("show/templates/inputs.html", inputs=inputs)


def _render_input(value: Any, context: RenderContext) -> Html:
    """Render a value in full if it has more than one line, else its line."""
    if has_details(value, context):
        return render(value, context)
    return div("body", tag("bdi", one_line(value)))


def _origin_of_input(step: Step, value: Any, earlier: Sequence[Step]) -> str:
    """Return the first earlier agent whose output is this very object, else "the question".

    The supervisor of the step does not count: it stands before the step, but ends after it.
    """
    for other in earlier:
        is_supervisor = other.key == step.parent
        if other.done and other.output is value and not is_supervisor:
            return display_name(other.agent)
    return "the question"


# Source


def render_source(spec: AgentSpec) -> Html:
    """Render the source of an agent's function, folded; nothing if it cannot be found.

    It is the present version, also of a module that was loaded again and of a cell.
    """
    function = current_version(spec.function)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return Html()
    full_name = f"{function.__module__}.{function.__qualname__}"
    title = join("Source ", muted_text(full_name))
    return collapsible(title, preformatted(source), key="source")


# Attempts


def render_attempts(step: Step, calls: Mapping[str, Call], *, can_edit: bool = False) -> Html:
    """Render each attempt: the reply as it came, the checks by name, and the prompt as sent.

    Model calls that an agent made by itself stand below the attempts. A step without any is a line
    that says so. With ``can_edit`` each reply has a form in which another one is put in.
    """
    attempts = _attempts_of(step, calls)
    if not attempts:
        return div("body soft", "This step made no model call.")
    return render_template(
        "show/templates/attempts.html",
        attempts=attempts,
        made=step.model_calls,
        can_edit=can_edit,
        describe_cost=_describe_cost,
        shown_text=shown_text,
    )


def _attempts_of(step: Step, calls: Mapping[str, Call]) -> list[tuple[Attempt | None, Call | None]]:
    """Return the attempts of a step with their calls, and then its other model calls.

    A call that is not known is None, and so is the attempt of a call that was not checked.
    """
    attempts: list[tuple[Attempt | None, Call | None]] = []
    for attempt in step.attempts:
        attempts.append((attempt, calls.get(attempt.call)))
    checked = {attempt.call for attempt in step.attempts}
    for call in step.model_calls:
        if call.key not in checked:
            attempts.append((None, call))
    return attempts


def _describe_cost(model_name: str, reply: ChatReply | NewReply, seconds: float) -> str:
    """Return the model, tokens and seconds of a reply: "rules · 120 + 31 tokens · 4 ms".

    The tokens are those of the prompt and of the reply.
    """
    tokens = f"{reply.prompt_tokens} + {reply.completion_tokens} tokens"
    return f"{model_name} · {tokens} · {format_seconds(seconds)}"


def render_new_replies(asked: NewReplies, context: RenderContext) -> Html:
    """Render the replies to a call that was asked again, each with its model, tokens and time.

    A reply that is equal to the recorded one says so.
    """
    return render_template(
        "show/templates/new_replies.html",
        asked=asked,
        context=context,
        render=render,
        describe_cost=_describe_cost,
    )


def render_notice(notice: DataNotice) -> Html:
    """Render which model is asked where, and below it what leaves the machine with its prompts."""
    return render_template("show/templates/notice.html", notice=notice, once=SHOWN_ONCE)


def render_notice_page(notice: DataNotice) -> str:
    """Render a notice as HTML that stands alone."""
    body = div("body", render_notice(notice))
    return static_section(body)


def render_notices(notices: tuple[DataNotice, ...]) -> Html:
    """Render notices below each other; nothing without any."""
    if not notices:
        return Html()
    return div("body notes", join(*map(render_notice, notices)), role="status")
