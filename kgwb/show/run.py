"""A run as HTML: its answer, its steps with inputs and attempts, and where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgwb.records import one_line
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.calls import Call
from kgwb.run.steps import Attempt, Step, group_by_supervisor, names_in_steps, step_costs
from kgwb.show import html as h
from kgwb.show.html import Html
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
ORIGIN_TEXTS = {"record": "from the record", "live": "asked live"}


# The whole run


def render_run_page(run: Run) -> str:
    """Render a run as HTML that stands alone."""
    return h.static_section(render_run(run), aria_label=shorten(run.question))


def render_run(run: Run) -> Html:
    """Render a run: the answer, what supports it, and every step, collapsed."""
    state = RunState.of(run)
    context = context_of(run)
    has_answer = run.answer is not None and run.status == "done"
    return h.render_template(
        "show/templates/run.html",
        question=shorten(run.question, MAX_BANNER_CHARS),
        setup=setup_text(run),
        answer_banner=render_answer_banner(state),
        answer_parts=render_answer_parts(run.answer, context) if run.answer and has_answer else [],
        flow_strip=render_pipeline(state),
        steps=list(_render_steps(state, context, None, 0)),
        waterfall=render_waterfall(run.steps, run.calls),
    )


def render_question_header(run: Run) -> Html:
    """Render the question, and the setup that answers it."""
    question = h.tag("h2", shorten(run.question, MAX_BANNER_CHARS), class_="question grow")
    return h.div("head", question, h.span("soft small", setup_text(run)))


def render_answer_banner(state: RunState, extra: object = "") -> Html:
    """Render the answer in large letters, with its state and its cost."""
    icon, word, text, details = answer_state(state)
    is_waiting = icon == "wait"
    under = ""
    if details:
        under = h.join(" · ", h.tag("bdi", shorten(details, MAX_BANNER_CHARS)))
    return h.div(
        f"answer {'run' if is_waiting else icon}",
        h.icon(icon, "spin" if is_waiting else ""),
        h.div("big", h.tag("bdi", shorten(text, MAX_BANNER_CHARS))),
        h.div("under", h.span("word", word), under, extra),
        role="alert" if icon == "bad" else "status",
    )


def _render_steps(
    state: RunState, context: RenderContext, parent: str | None, depth: int
) -> Iterator[Html]:
    """Yield the steps below one, each collapsed with the steps that it supervises."""
    groups = group_by_supervisor(state.steps.values())
    for step in groups.get(parent, ()):
        below = tuple(_render_steps(state, context, step.key, depth + 1))
        kind = displayed_agent_kind(state.run, step.agent)
        head = h.span(
            "go",
            h.agent_kind_badge(kind, small=True, outlined=skipped_model(step, kind)),
            h.span(
                "say",
                h.span("nm", display_name(step.agent)),
                render_row_badge(step, state.step_state(step.key), False),
                h.span("out cut", step.outcome if step.done else ""),
            ),
            h.span("ms", format_seconds(step.seconds)),
        )
        inputs = h.table(
            (),
            [
                (display_name(name), h.tag("bdi", one_line(value)))
                for name, value in step.inputs.items()
            ],
        )
        is_open = bool(step.error) or (bool(below) and depth < 1)
        yield h.tag(
            "details",
            h.tag("summary", head, style=f"--d:{depth}"),
            _render_step_body(step, context, state.run.calls, inputs, supervises=bool(below)),
            *below,
            open=is_open,
        )


# One step


def render_step_page(step: Step) -> str:
    """Render a step alone: its output, inputs, prompts and replies."""
    names = names_in_steps([step], step.known_calls)
    context = RenderContext(names, steps=(step,), views=step.views)
    head = h.div(
        "head",
        h.tag("h3", display_name(step.agent), class_="title"),
        h.muted_text(subject_text(step)),
        h.span("" if step.done else "soft", step.outcome),
    )
    inputs = render_inputs(step, context)
    return h.static_section(head, _render_step_body(step, context, step.known_calls, inputs))


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
        output = render(step.output, replace(context, inputs=tuple(step.inputs.values())))
    costs = h.join_with_dots(
        h.muted_text(single_line(step.key)), *_render_cost_and_origin(step, calls)
    )
    folds = []
    if step.inputs:
        folds.append(h.collapsible(h.muted_text(pluralize(len(step.inputs), "input")), inputs))
    if step.attempts:
        title = h.muted_text(pluralize(len(step.attempts), "attempt"))
        folds.append(h.collapsible(title, render_attempts(step, calls)))
    body = h.div("body stack tight", h.div("small", costs), *folds)
    return h.div("inside", render_step_notes(step), output, body)


def render_step_header(state: RunState, key: str, controls: object = "") -> Html:
    """Render the icon, name, subject and state of a step, and below them its kind and cost."""
    run = state.run
    step = state.steps.get(key)
    agent = agent_of_key(key)
    kind = displayed_agent_kind(run, agent)
    is_silent = skipped_model(step, kind)
    facts: list[object] = [h.span(f"kindword {kind}", h.AGENT_KIND_LABELS[kind])]
    if is_silent:
        facts.append(h.span("", "was not asked"))
    if step is not None and (step.done or step.error):
        facts += _render_cost_and_origin(step, run.calls)
        if step.attempts:
            facts.append(h.muted_text(f"by {run.model_name(agent)}"))
    subject = h.span("soft cut", subject_text(step)) if step is not None and step.subject else ""
    purpose = run.system.agent_spec(agent).purpose.replace("``", "")
    title = h.tag("h3", display_name(agent), class_="title", title=purpose)
    badge = h.state_badge(*_step_badge(step, state.step_state(key)), pill=True)
    about = h.div(
        "grow", h.div("row", title, subject, badge), h.div("row small", h.join_with_dots(*facts))
    )
    return h.div("head", h.agent_kind_badge(kind, outlined=is_silent), about, controls)


def _step_badge(step: Step | None, step_state: str) -> tuple[str, str]:
    """Return the icon and the word of a step's state."""
    if step is not None and step.origin == "by hand" and step_state == "done":
        return "hand", "by hand"
    return STEP_STATES[step_state]


def _render_cost_and_origin(step: Step, calls: Mapping[str, Call]) -> list[Html]:
    """Render what a step cost, and whether its calls came from the record."""
    parts = [h.muted_text(" · ".join(step_costs(step, calls)))]
    if step.calls and step.origin in ORIGIN_TEXTS:
        parts.append(h.muted_text(ORIGIN_TEXTS[step.origin]))
    return parts


def render_step_notes(step: Step | None) -> Html:
    """Render the remarks of an agent, and why it failed; nothing if there is neither."""
    if step is None:
        return Html()
    notes = [h.note(text, level="calm") for text in step.notes]
    if step.error:
        notes.append(h.note(h.tag("b", "Failed. "), step.error, level="bad"))
    return h.div("body notes", *notes) if notes else Html()


def render_inputs(step: Step, context: RenderContext) -> Html:
    """Render the inputs of a step, and which earlier step each of them came from."""
    if not step.inputs:
        return h.div("body soft", "Nothing comes in.")
    earlier: Sequence[Step] = ()
    if step in context.steps:
        earlier = context.steps[: context.steps.index(step)]
    parts = []
    for name, value in step.inputs.items():
        origin = h.muted_text(f" from {_origin_of_input(step, value, earlier)}")
        shown = h.div("body", h.tag("bdi", one_line(value)))
        if has_details(value, context):
            shown = render(value, context)
        head = h.div("lead", h.tag("b", display_name(name)), origin)
        parts.append(h.div("part", head, shown))
    return h.join(*parts)


def _origin_of_input(step: Step, value: Any, earlier: Sequence[Step]) -> str:
    """Return the agent whose output an input is; "the question" if there is none."""
    for other in earlier:
        if other.done and other.output is value and other.key != step.parent:
            return display_name(other.agent)
    return "the question"


def render_attempts(step: Step, calls: Mapping[str, Call]) -> Html:
    """Render each attempt: the reply as it came, the checks by name, and the prompt as sent."""
    if not step.attempts:
        return h.div("body soft", "This step asked no model.")
    attempts = [
        _render_attempt(number, attempt, calls.get(attempt.call))
        for number, attempt in enumerate(step.attempts, 1)
    ]
    return h.div("body stack", *attempts)


def _render_attempt(number: int, attempt: Attempt, call: Call | None) -> Html:
    badge = h.state_badge("bad", "not accepted")
    if attempt.accepted:
        badge = h.state_badge("ok", "accepted")
    checks = []
    for check in attempt.checks:
        if check.problem:
            sign = h.state_badge("bad", check.name)
            checks.append(h.div("row", sign, h.span("", check.problem)))
        else:
            checks.append(h.state_badge("ok", check.name))
    cost = ""
    prompt = Html()
    if call is not None:
        tokens = f"{call.result.prompt_tokens} + {call.result.completion_tokens} tokens"
        cost = f"{call.request['model']} · {tokens} · {format_seconds(call.seconds)}"
        messages = [
            h.join(h.span("role", role), content, "\n")
            for role, content in call.request["content"]["messages"]
        ]
        title = h.muted_text("the prompt as it was sent")
        prompt = h.collapsible(title, h.preformatted(*messages), key=f"sent-{number}")
    head = h.div("row", h.tag("b", f"Attempt {number}"), badge, h.muted_text(cost))
    return h.div("stack tight", head, h.preformatted(attempt.reply), h.div("row", *checks), prompt)


# Where the time went


@dataclass(frozen=True, slots=True)
class StepTime:
    """The seconds of a step, without those of the steps that it supervises."""

    model: float
    graph_s: float
    other_s: float

    @property
    def total_s(self) -> float:
        return self.model + self.graph_s + self.other_s

    @property
    def segments(self) -> list[tuple[str, str, float]]:
        """What took time: its name, the CSS class of its bar, and the seconds."""
        parts = [
            ("model", "model", self.model),
            ("graph", "sparql", self.graph_s),
            ("rest", "code", self.other_s),
        ]
        return [part for part in parts if part[2]]


def render_waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """Render a bar for each step, end to end, in model time, graph time and the rest.

    Calls from the record count with the time they took when they were made.
    """
    spent = _step_times(steps, calls)
    total = sum(time.total_s for time in spent.values())
    if not total:
        return Html()
    depths = step_depths(steps)
    begun = 0.0
    rows = []
    for step in steps:
        time = spent[step.key]
        bars = []
        if begun:
            bars.append(h.tag("i", style=f"width:{begun / total * 100:.2f}%"))
        for _, bar_class, seconds in time.segments:
            width = f"width:{seconds / total * 100:.2f}%"
            bars.append(h.tag("i", class_=bar_class, style=width))
        figures = ", ".join(f"{name} {format_seconds(part)}" for name, _, part in time.segments)
        if step.origin == "record" and any(key in calls for key in step.calls):
            figures = f"{figures} (recorded)"
        key = single_line(step.key)
        name = h.span("cut", key, style=f"padding-left:{depths[step.key]}em", title=key)
        rows.append(h.div("fall", name, h.span("lane", *bars), h.span("num", figures)))
        begun += time.total_s
    return h.div("stack tight", *rows, h.muted_text(_total_text(list(spent.values()))))


def _step_times(steps: Sequence[Step], calls: Mapping[str, Call]) -> dict[str, StepTime]:
    """Return the time spent in each step by key, without that in the steps below it."""
    seconds_below: dict[str, float] = {}
    for step in steps:
        seconds_below[step.parent] = seconds_below.get(step.parent, 0.0) + step.seconds
    spent = {}
    for step in steps:
        own_calls = [calls[key] for key in step.calls if key in calls]
        model = sum(call.seconds for call in own_calls if call.kind == "model")
        graph = sum(call.seconds for call in own_calls if call.kind not in ("model", "similarity"))
        own = max(0.0, step.seconds - seconds_below.get(step.key, 0.0))
        rest = max(0.0, own - model - graph) if step.origin == "live" else own
        spent[step.key] = StepTime(model, graph, rest)
    return spent


def _total_text(spent: Sequence[StepTime]) -> str:
    model = format_seconds(sum(time.model for time in spent))
    graph = format_seconds(sum(time.graph_s for time in spent))
    rest = format_seconds(sum(time.other_s for time in spent))
    total = format_seconds(sum(time.total_s for time in spent))
    return (
        f"{total} in all: model {model}, graph {graph}, rest {rest}. "
        "Steps are laid end to end, also those that ran side by side."
    )
