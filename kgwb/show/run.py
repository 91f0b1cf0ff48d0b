"""A run as HTML: its answer, its steps with inputs and attempts, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    collapsible,
    div,
    icon,
    join,
    join_with_dots,
    muted_text,
    note,
    preformatted,
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
    details = Html()
    if shown.details:
        details = join(" · ", tag("bdi", shorten(shown.details, MAX_BANNER_CHARS)))
    return div(
        "answer run" if is_waiting else f"answer {shown.icon}",
        icon(shown.icon, "spin" if is_waiting else ""),
        div("big", tag("bdi", shorten(shown.headline, MAX_BANNER_CHARS))),
        div("under", span("word", shown.label), details, extra),
        role="alert" if shown.icon == "bad" else "status",
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
    purpose = state.run.system.agent_spec(agent).purpose.replace("``", "")
    title_parts = [tag("h3", display_name(agent), class_="title", title=purpose)]
    if step is not None and step.subject:
        title_parts.append(span("soft cut", subject_text(step)))
    badge_icon, badge_label = _step_badge(step, state.step_state(key))
    title_parts.append(state_badge(badge_icon, badge_label, pill=True))
    facts = join_with_dots(*_render_step_facts(state, step, agent, kind))
    about = div("grow", div("row", *title_parts), div("row small", facts))
    return div("head", agent_kind_badge(kind, outlined=skipped_model(step, kind)), about, controls)


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


def render_attempts(step: Step, calls: Mapping[str, Call]) -> Html:
    """Render each attempt: the reply as it came, the checks by name, and the prompt as sent."""
    if not step.attempts:
        return div("body soft", "This step made no model call.")
    attempts = []
    for number, attempt in enumerate(step.attempts, 1):
        attempts.append(_render_attempt(number, attempt, calls.get(attempt.call)))
    return div("body stack", *attempts)


def _render_attempt(number: int, attempt: Attempt, call: Call | None) -> Html:
    """Render one attempt; its cost and its prompt are missing if the call is not known."""
    badge = state_badge("bad", "not accepted")
    if attempt.accepted:
        badge = state_badge("ok", "accepted")
    cost = ""
    prompt = Html()
    if call is not None:
        tokens = f"{call.result.prompt_tokens} + {call.result.completion_tokens} tokens"
        cost = f"{call.request['model']} · {tokens} · {format_seconds(call.seconds)}"
        prompt = _render_sent_prompt(number, call)
    heading = div("row", tag("b", f"Attempt {number}"), badge, muted_text(cost))
    checks = [_render_check(check) for check in attempt.checks]
    return div("stack tight", heading, preformatted(attempt.reply), div("row", *checks), prompt)


def _render_check(check: CheckResult) -> Html:
    """Render a check by its name, and with the problem that it found."""
    if not check.problem:
        return state_badge("ok", check.name)
    return div("row", state_badge("bad", check.name), span("", check.problem))


def _render_sent_prompt(number: int, call: Call) -> Html:
    """Render the messages of a model call, collapsed, each after the role that says it."""
    messages = []
    for role, content in call.request["content"]["messages"]:
        messages.append(join(span("role", role), content, "\n"))
    title = muted_text("the prompt as it was sent")
    return collapsible(title, preformatted(*messages), key=f"sent-{number}")


# Where the time went


class Segment(NamedTuple):
    """A part of a step's time."""

    label: str
    bar_class: str
    """The CSS class of its bar."""
    seconds: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """The seconds of a step, without those of the steps that it supervises."""

    model_s: float
    graph_s: float
    other_s: float

    @property
    def total_s(self) -> float:
        return self.model_s + self.graph_s + self.other_s

    @property
    def segments(self) -> list[Segment]:
        """The parts of the time that are not zero."""
        segments = [
            Segment("model", "model", self.model_s),
            Segment("graph", "sparql", self.graph_s),
            Segment("rest", "code", self.other_s),
        ]
        return [segment for segment in segments if segment.seconds]


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
        key = single_line(step.key)
        name = span("cut", key, style=f"padding-left:{depths[step.key]}em", title=key)
        bars = _render_time_bars(time, elapsed_s, total_s)
        figures = span("num", _time_text(step, time, calls))
        rows.append(div("fall", name, span("lane", *bars), figures))
        elapsed_s += time.total_s
    rows.append(muted_text(_total_time_text(list(times.values()))))
    return div("stack tight", *rows)


def _render_time_bars(time: StepTime, elapsed_s: float, total_s: float) -> list[Html]:
    """Render the parts of a step's time as bars, after a gap for the steps before it."""
    bars = []
    if elapsed_s:
        bars.append(tag("i", style=_width(elapsed_s, total_s)))
    for segment in time.segments:
        bars.append(tag("i", class_=segment.bar_class, style=_width(segment.seconds, total_s)))
    return bars


def _width(seconds: float, total_s: float) -> str:
    percent = seconds / total_s * 100
    return f"width:{percent:.2f}%"


def _time_text(step: Step, time: StepTime, calls: Mapping[str, Call]) -> str:
    """Return the parts of a step's time: "model 1.2 s, rest 3 ms (recorded)"."""
    parts = [f"{segment.label} {format_seconds(segment.seconds)}" for segment in time.segments]
    text = ", ".join(parts)
    is_recorded = step.origin == "record" and any(key in calls for key in step.calls)
    return f"{text} (recorded)" if is_recorded else text


def _step_times(steps: Sequence[Step], calls: Mapping[str, Call]) -> dict[str, StepTime]:
    """Return the time spent in each step by key, without that in the steps below it."""
    supervised_s: dict[str, float] = {}
    for step in steps:
        supervised_s[step.parent] = supervised_s.get(step.parent, 0.0) + step.seconds
    times = {}
    for step in steps:
        own_s = max(0.0, step.seconds - supervised_s.get(step.key, 0.0))
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


def _total_time_text(times: Sequence[StepTime]) -> str:
    """Return the time of all steps together, and its parts."""
    model = format_seconds(sum(time.model_s for time in times))
    graph = format_seconds(sum(time.graph_s for time in times))
    rest = format_seconds(sum(time.other_s for time in times))
    total = format_seconds(sum(time.total_s for time in times))
    return (
        f"{total} in all: model {model}, graph {graph}, rest {rest}. "
        "Steps are drawn one after another, also those that ran at the same time."
    )
