"""A run as HTML: its answer, its steps with inputs and attempts, and where the time went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kgwb.records import one_line
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.calls import Call
from kgwb.run.steps import (
    Attempt,
    CheckResult,
    Step,
    group_by_supervisor,
    names_in_steps,
    step_costs,
)
from kgwb.show.html import (
    AGENT_KIND_LABELS,
    Html,
    agent_kind_badge,
    div,
    icon,
    join,
    join_with_dots,
    muted_text,
    note,
    render_template,
    span,
    state_badge,
    static_section,
    table,
    tag,
)
from kgwb.show.records import has_details, render, render_answer_parts
from kgwb.show.run_state import (
    STEP_STATES,
    RunState,
    answer_state,
    displayed_agent_kind,
    setup_text,
    subject_text,
)
from kgwb.show.terms import RenderContext, context_of
from kgwb.show.timeline import render_pipeline, render_row_badge, skipped_model, step_depths
from kgwb.text import display_name, format_seconds, pluralize, shorten, single_line

MAX_BANNER_CHARS = 1_000
"""Characters of the question, and of the answer, in the large type at the top."""
ORIGIN_TEXTS = {"record": "from the record", "live": "live"}
"""Where the calls of a step came from, by the origin of its output."""


# The whole run


def render_run_page(run: Run) -> str:
    """Render a run as HTML that stands alone."""
    return static_section(render_run(run), aria_label=shorten(run.question))


def render_run(run: Run) -> Html:
    """Render a run: the answer, what supports it, and every step, collapsed."""
    state = RunState.of(run)
    context = context_of(run)
    answer_parts = []
    if run.answer and run.status == "done":  # why there is no answer is part of the banner
        answer_parts = render_answer_parts(run.answer, context)
    return render_template(
        "show/templates/run.html",
        question=shorten(run.question, MAX_BANNER_CHARS),
        setup=setup_text(run),
        answer_banner=render_answer_banner(state),
        answer_parts=answer_parts,
        flow_strip=render_pipeline(state),
        steps=_render_steps(state, context),
        waterfall=render_waterfall(run.steps, run.calls),
    )


def render_question_header(run: Run) -> Html:
    """Render the question, and the system, models and settings that answer it."""
    question = tag("h2", shorten(run.question, MAX_BANNER_CHARS), class_="question grow")
    return div("head", question, span("soft small", setup_text(run)))


def render_answer_banner(state: RunState, extra: object = "") -> Html:
    """Render the answer in large letters, and below it its state, its cost and ``extra``."""
    shown = answer_state(state)
    is_waiting = shown.icon == "wait"
    return render_template(
        "show/templates/answer_banner.html",
        css_class="run" if is_waiting else shown.icon,
        role="alert" if shown.icon == "bad" else "status",
        icon=icon(shown.icon, "spin" if is_waiting else ""),
        headline=shorten(shown.headline, MAX_BANNER_CHARS),
        label=shown.label,
        details=shorten(shown.details, MAX_BANNER_CHARS),
        extra=extra,
    )


def _render_steps(state: RunState, context: RenderContext) -> list[Html]:
    """Render the steps of a run, each with those that it supervises inside it."""
    groups = group_by_supervisor(state.steps.values())

    def render_group(supervisor: str | None, depth: int) -> list[Html]:
        rendered = []
        for step in groups.get(supervisor, ()):
            supervised = render_group(step.key, depth + 1)
            rendered.append(_render_collapsed_step(step, depth, supervised, state, context))
        return rendered

    return render_group(None, 0)


def _render_collapsed_step(
    step: Step, depth: int, supervised: list[Html], state: RunState, context: RenderContext
) -> Html:
    """Render a step as one line that expands; it is expanded if it failed or is a top supervisor."""
    kind = displayed_agent_kind(state.run, step.agent)
    is_top_supervisor = bool(supervised) and depth == 0
    calls = state.run.calls
    inputs = _render_input_table(step)
    return render_template(
        "show/templates/run_step.html",
        is_expanded=step.error or is_top_supervisor,
        depth=depth,
        kind_badge=agent_kind_badge(kind, small=True, outlined=skipped_model(step, kind)),
        agent_name=display_name(step.agent),
        state_badge=render_row_badge(step, state.step_state(step.key), False),
        outcome=step.outcome if step.done else "",
        duration=format_seconds(step.seconds),
        body=_render_step_body(step, context, calls, inputs, supervises=bool(supervised)),
        supervised_steps=supervised,
    )


def _render_input_table(step: Step) -> Html:
    """Render the inputs of a step, each in one line."""
    rows = []
    for name, value in step.inputs.items():
        rows.append((display_name(name), tag("bdi", one_line(value))))
    return table((), rows)


# One step


def render_step_page(step: Step) -> str:
    """Render a step as HTML that stands alone: its output, inputs, prompts and replies."""
    names = names_in_steps([step], step.known_calls)
    context = RenderContext(names, steps=(step,), views=step.views)
    inputs = render_inputs(step, context)
    page = render_template(
        "show/templates/step.html",
        agent_name=display_name(step.agent),
        subject=subject_text(step),
        outcome=step.outcome,
        is_done=step.done,
        body=_render_step_body(step, context, step.known_calls, inputs),
    )
    return static_section(page)


def _render_step_body(
    step: Step,
    context: RenderContext,
    calls: Mapping[str, Call],
    inputs: Html,
    *,
    supervises: bool = False,
) -> Html:
    """Render a step in full; the output of a supervising step is left to the steps below it."""
    output = Html()
    if step.done and not supervises:
        context = replace(context, inputs=tuple(step.inputs.values()))
        output = render(step.output, context)
    key = muted_text(single_line(step.key))
    return render_template(
        "show/templates/step_body.html",
        notes=render_step_notes(step),
        output=output,
        costs=join_with_dots(key, *_render_cost_and_origin(step, calls)),
        input_count=pluralize(len(step.inputs), "input") if step.inputs else "",
        inputs=inputs,
        attempt_count=pluralize(len(step.attempts), "attempt") if step.attempts else "",
        attempts=render_attempts(step, calls),
    )


def render_step_header(state: RunState, key: str, controls: object = "") -> Html:
    """Render the icon, name, subject and state of a step, and below them its kind and cost.

    ``key`` may be the name of an agent that has no step. ``controls`` are shown at the end.
    """
    step = state.steps.get(key)
    agent = agent_of_key(key)
    kind = displayed_agent_kind(state.run, agent)
    badge_icon, badge_label = _step_badge(step, state.step_state(key))
    purpose = state.run.system.agent_spec(agent).purpose
    return render_template(
        "show/templates/step_header.html",
        kind_badge=agent_kind_badge(kind, outlined=skipped_model(step, kind)),
        purpose=purpose.replace("``", ""),
        agent_name=display_name(agent),
        subject=subject_text(step) if step is not None else "",
        state_badge=state_badge(badge_icon, badge_label, pill=True),
        facts=join_with_dots(*_render_step_facts(state, step, agent, kind)),
        controls=controls,
    )


def _render_step_facts(state: RunState, step: Step | None, agent: str, kind: str) -> list[Html]:
    """Render the kind of an agent, and of its step the cost, the origin and the model, if any."""
    facts = [span(f"kindword {kind}", AGENT_KIND_LABELS[kind])]
    if skipped_model(step, kind):
        facts.append(span("", "was not asked"))
    if step is not None and (step.done or step.error):
        facts += _render_cost_and_origin(step, state.run.calls)
        if step.attempts:
            facts.append(muted_text(f"by {state.run.model_name(agent)}"))
    return facts


def _step_badge(step: Step | None, step_state: str) -> tuple[str, str]:
    """Return the icon and the label of a step's state; a value set by hand has its own."""
    if step is not None and step.origin == "by hand" and step_state == "done":
        return "hand", "by hand"
    return STEP_STATES[step_state]


def _render_cost_and_origin(step: Step, calls: Mapping[str, Call]) -> list[Html]:
    """Render what a step cost, and whether its calls came from the record."""
    parts = [muted_text(" · ".join(step_costs(step, calls)))]
    if step.calls and step.origin in ORIGIN_TEXTS:
        parts.append(muted_text(ORIGIN_TEXTS[step.origin]))
    return parts


def render_step_notes(step: Step | None) -> Html:
    """Render the notes of an agent, and why its step failed; nothing if there is neither."""
    if step is None:
        return Html()
    notes = [note(text, level="calm") for text in step.notes]
    if step.error:
        notes.append(note(tag("b", "Failed. "), step.error, level="bad"))
    return div("body notes", *notes) if notes else Html()


def render_inputs(step: Step, context: RenderContext) -> Html:
    """Render the inputs of a step, and which earlier step each of them came from."""
    if not step.inputs:
        return div("body soft", "This step has no inputs.")
    earlier: Sequence[Step] = ()
    if step in context.steps:
        earlier = context.steps[: context.steps.index(step)]
    parts = []
    for name, value in step.inputs.items():
        origin = muted_text(f" from {_origin_of_input(step, value, earlier)}")
        heading = div("lead", tag("b", display_name(name)), origin)
        if has_details(value, context):
            shown = render(value, context)
        else:
            shown = div("body", tag("bdi", one_line(value)))
        parts.append(div("part", heading, shown))
    return join(*parts)


def _origin_of_input(step: Step, value: Any, earlier: Sequence[Step]) -> str:
    """Return the agent whose output an input is; "the question" if it is no output.

    A supervisor does not count: it passes on what its steps return.
    """
    for other in earlier:
        if other.done and other.output is value and other.key != step.parent:
            return display_name(other.agent)
    return "the question"


class ShownAttempt(NamedTuple):
    """An attempt, as the template shows it."""

    badge: Html
    cost: str
    reply: str
    checks: list[Html]
    messages: Sequence[tuple[str, str]]
    """The prompt that was sent: the role and the content of each message."""


def render_attempts(step: Step, calls: Mapping[str, Call]) -> Html:
    """Render each attempt: the reply as it came, the checks by name, and the prompt as sent."""
    if not step.attempts:
        return div("body soft", "This step made no model call.")
    attempts = [_shown_attempt(attempt, calls.get(attempt.call)) for attempt in step.attempts]
    return render_template("show/templates/attempts.html", attempts=attempts)


def _shown_attempt(attempt: Attempt, call: Call | None) -> ShownAttempt:
    """Return what is shown of an attempt; without its call, it has no cost and no prompt."""
    badge = state_badge("bad", "not accepted")
    if attempt.accepted:
        badge = state_badge("ok", "accepted")
    cost = ""
    messages = []
    if call is not None:
        tokens = f"{call.result.prompt_tokens} + {call.result.completion_tokens} tokens"
        cost = f"{call.request['model']} · {tokens} · {format_seconds(call.seconds)}"
        messages = call.request["content"]["messages"]
    checks = [_render_check(check) for check in attempt.checks]
    return ShownAttempt(badge, cost, attempt.reply, checks, messages)


def _render_check(check: CheckResult) -> Html:
    """Render a check by its name, and with the problem that it found."""
    if not check.problem:
        return state_badge("ok", check.name)
    return div("row", state_badge("bad", check.name), span("", check.problem))


# Where the time went


class Bar(NamedTuple):
    """A bar of a step in the waterfall, as the template shows it."""

    css_class: str
    width: str
    """In per cent of the time of all steps."""


class WaterfallRow(NamedTuple):
    """A step in the waterfall, as the template shows it."""

    key: str
    depth: int
    gap: str
    """The width of the bars of the steps before it; "" for none."""
    bars: list[Bar]
    figures: str


@dataclass(frozen=True, slots=True)
class StepTime:
    """The seconds of a step, without those of the steps that it supervises."""

    model_s: float
    graph_s: float
    other_s: float

    @property
    def total_s(self) -> float:
        return self.model_s + self.graph_s + self.other_s


def render_waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """Render a bar for each step, end to end, in model time, graph time and the rest.

    Calls from the record count with the time they took when they were made. Nothing is rendered if
    no time was spent.
    """
    times = _step_times(steps, calls)
    total_s = sum(time.total_s for time in times.values())
    if not total_s:
        return Html()
    depths = step_depths(steps)
    elapsed_s = 0.0
    rows = []
    for step in steps:
        time = times[step.key]
        row = WaterfallRow(
            key=single_line(step.key),
            depth=depths[step.key],
            gap=_percent(elapsed_s, total_s) if elapsed_s else "",
            bars=_bars(time, total_s),
            figures=_step_time_text(step, time, calls),
        )
        rows.append(row)
        elapsed_s += time.total_s
    total = _total_time_text(times.values())
    return render_template("show/templates/waterfall.html", rows=rows, total=total)


def _bars(time: StepTime, total_s: float) -> list[Bar]:
    """Return the bars of a step: one for each kind of time that was spent."""
    bars = []
    if time.model_s:
        bars.append(Bar("model", _percent(time.model_s, total_s)))
    if time.graph_s:
        bars.append(Bar("sparql", _percent(time.graph_s, total_s)))
    if time.other_s:
        bars.append(Bar("code", _percent(time.other_s, total_s)))
    return bars


def _percent(seconds: float, total_s: float) -> str:
    return f"{seconds / total_s * 100:.2f}%"


def _step_time_text(step: Step, time: StepTime, calls: Mapping[str, Call]) -> str:
    """Return the parts of a step's time: "model 1.2 s, rest 3 ms (recorded)"."""
    parts = []
    if time.model_s:
        parts.append(f"model {format_seconds(time.model_s)}")
    if time.graph_s:
        parts.append(f"graph {format_seconds(time.graph_s)}")
    if time.other_s:
        parts.append(f"rest {format_seconds(time.other_s)}")
    text = ", ".join(parts)
    has_known_calls = any(key in calls for key in step.calls)
    if step.origin == "record" and has_known_calls:
        return f"{text} (recorded)"
    return text


def _step_times(steps: Sequence[Step], calls: Mapping[str, Call]) -> dict[str, StepTime]:
    """Return the time spent in each step by key, without that in the steps below it."""
    supervised_s: dict[str, float] = defaultdict(float)
    for step in steps:
        supervised_s[step.parent] += step.seconds
    times = {}
    for step in steps:
        own_s = max(0.0, step.seconds - supervised_s[step.key])
        times[step.key] = _step_time(step, own_s, calls)
    return times


def _step_time(step: Step, own_s: float, calls: Mapping[str, Call]) -> StepTime:
    """Divide the seconds of a step among its model calls, its calls to the graph, and the rest."""
    model_s = 0.0
    graph_s = 0.0
    for key in step.calls:
        call = calls.get(key)
        if call is None or call.kind == "similarity":  # which is computed, and asks no graph
            continue
        if call.kind == "model":
            model_s += call.seconds
        else:
            graph_s += call.seconds
    other_s = own_s
    if step.origin == "live":  # else the calls took no time in this execution
        other_s = max(0.0, own_s - model_s - graph_s)
    return StepTime(model_s, graph_s, other_s)


def _total_time_text(times: Collection[StepTime]) -> str:
    """Return the time of all steps together, and its parts."""
    total = format_seconds(sum(time.total_s for time in times))
    model = format_seconds(sum(time.model_s for time in times))
    graph = format_seconds(sum(time.graph_s for time in times))
    rest = format_seconds(sum(time.other_s for time in times))
    return f"{total} in all: model {model}, graph {graph}, rest {rest}."
