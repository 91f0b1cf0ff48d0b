"""The agents of a system by stage, and the steps of a run below each other, as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kgwb.run.agents import agent_of_key
from kgwb.run.steps import Step
from kgwb.show import html as h
from kgwb.show.html import Html
from kgwb.show.run_state import STEP_STATES, RunState, displayed_agent_kind, subject_text
from kgwb.text import display_name, format_seconds

NODE_CLASSES = {
    "failed": "lit isbad",
    "stale": "isstale",
    "not needed": "unused",
    "done": "lit",
    "running": "lit",
}
"""CSS classes of an agent in the flow strip, by the first of these states that one of its steps has."""
MIN_BAR_PERCENT = 2.0


# The flow strip


def render_pipeline(state: RunState, selected: str = "") -> Html:
    """Render the agents by stage, lit as far as the run came; a click chooses an agent's step.

    Screen readers skip it: the timeline says the same in words.
    """
    stages = []
    for title, agents in state.run.system.stages:
        nodes = [
            _render_agent_node(state, agent, agent == agent_of_key(selected)) for agent in agents
        ]
        stage = h.div(
            "stage", h.span("caption", title), h.tag("ol", *nodes), style=f"--n:{len(agents)}"
        )
        stages.append(stage)
    return h.div("flow", *stages, aria_hidden="true")


def _render_agent_node(state: RunState, agent: str, is_selected: bool) -> Html:
    steps = [step for step in state.steps.values() if step.agent == agent]
    agent_state = _state_of_agent(state, agent, steps)
    kind = displayed_agent_kind(state.run, agent)
    classes = ["node", NODE_CLASSES.get(agent_state, "waiting")]
    if any(step.origin == "by hand" for step in steps):
        classes.append("ishand")
    if is_selected:
        classes.append("chosen")
    if state.run.breakpoints & {agent, *(step.key for step in steps)}:
        classes.append("stop")
    times = h.span("times", f"×{len(steps)}") if len(steps) > 1 else ""
    icon = h.icon("bad" if agent_state == "failed" else kind)
    _, state_word = STEP_STATES[agent_state]
    button = h.tag(
        "button",
        h.span(f"kind {kind}", icon, times),
        h.span("name", display_name(agent)),
        type="button",
        data_do="choose",
        data_arg=steps[0].key if steps else agent,
        title=f"{display_name(agent)}: {h.AGENT_KIND_LABELS[kind]}, {state_word}",
        tabindex="-1",
    )
    return h.tag("li", button, class_=" ".join(classes))


def _state_of_agent(state: RunState, agent: str, steps: list[Step]) -> str:
    """Return the state of an agent: the first in NODE_CLASSES that one of its steps has."""
    states = {state.step_state(step.key) for step in steps} or {state.step_state(agent)}
    for candidate in NODE_CLASSES:
        if candidate in states:
            return candidate
    return "not run"


# The timeline


class TimelineRow(NamedTuple):
    """A line of the timeline: a step, or an agent without steps where its step would be."""

    key: str
    step: Step | None
    depth: int
    """The number of supervisors above it."""


def step_depths(steps: Iterable[Step]) -> dict[str, int]:
    """Return the number of supervisors above each step, by key."""
    depths = {"": -1}
    for step in steps:
        depths[step.key] = depths.get(step.parent, -1) + 1
    return depths


def timeline_rows(state: RunState) -> list[TimelineRow]:
    """Return the steps in flow order, and between them the agents that have no step."""
    depths = step_depths(state.steps.values())
    rows = [TimelineRow(step.key, step, depths[step.key]) for step in state.steps.values()]
    reached = {step.agent for step in state.steps.values()}
    for spec in state.run.system.agents:
        if spec.name not in reached:
            _insert_agent(state, rows, spec.name)
    return rows


def _insert_agent(state: RunState, rows: list[TimelineRow], agent: str) -> None:
    """Insert an agent after the last step of an agent before it, below its supervisor if it can."""
    system = state.run.system
    flow_order = [spec.name for spec in system.agents]
    supervisor_of = {
        supervised: supervisor
        for supervisor, agents in system.supervisors.items()
        for supervised in agents
    }
    supervisor = supervisor_of.get(agent)
    depth = 0
    above = supervisor
    while above:
        depth += 1
        above = supervisor_of.get(above)

    agents = [agent_of_key(row.key) for row in rows]
    siblings = [
        position
        for position, name in enumerate(agents)
        if supervisor in (name, supervisor_of.get(name))
    ]
    candidates = siblings or range(len(rows))
    place = flow_order.index(agent)
    earlier = [position for position in candidates if flow_order.index(agents[position]) < place]
    position = max(earlier, default=-1) + 1
    depth = min(depth, rows[position - 1].depth + 1 if position else 0)
    while position < len(rows) and rows[position].depth > depth:
        position += 1  # past the steps that are supervised by the one before
    rows.insert(position, TimelineRow(agent, None, depth))


def render_timeline(state: RunState, selected: str) -> Html:
    """Render a line for each step: breakpoint, icon, name, outcome, and its time as a bar.

    A line is drawn after the last step that is done, where the run has not ended.
    """
    rows = timeline_rows(state)
    supervisors = {step.parent for step in state.steps.values()} | set(state.run.system.supervisors)
    times = [row.step.seconds for row in rows if row.step and row.key not in supervisors]
    longest = max(times, default=0.0) or 1.0
    keys = [row.key for row in rows]
    chosen_position = keys.index(selected) if selected in keys else 0
    shortcuts = {chosen_position - 1: "k ArrowUp", chosen_position + 1: "j ArrowDown"}
    cursor = _paused_position(state, rows)
    lines = []
    for position, row in enumerate(rows):
        lines.append(
            _render_timeline_row(
                state,
                row,
                is_selected=row.key == selected,
                shortcut=shortcuts.get(position),
                supervises=row.key in supervisors,
                longest=longest,
            )
        )
        if position == cursor:
            lines.append(h.tag("li", class_="cursor", aria_label="the run stands here"))
    return h.tag("ol", *lines, class_="tl", aria_label="steps of the run")


def _paused_position(state: RunState, rows: list[TimelineRow]) -> int | None:
    """Return the position of the last row that the latest execution reached; None at the end."""
    if state.has_ended or not state.run.steps:
        return None
    reached = {step.key for step in state.run.steps}
    positions = [
        position
        for position, row in enumerate(rows)
        if row.key in reached and state.step_state(row.key) != "stale"
    ]
    return max(positions, default=-1)


def _render_timeline_row(
    state: RunState,
    row: TimelineRow,
    *,
    is_selected: bool,
    shortcut: str | None,
    supervises: bool,
    longest: float,
) -> Html:
    step = row.step
    agent = agent_of_key(row.key)
    name = display_name(agent)
    kind = displayed_agent_kind(state.run, agent)
    step_state = state.step_state(row.key)
    outcome = _outcome_text(row, step_state, supervises)
    subject = f" {subject_text(step)}" if step is not None and step.subject else ""
    button = h.tag(
        "button",
        h.agent_kind_badge(kind, small=True, outlined=skipped_model(step, kind)),
        h.span(
            "say",
            h.span("nm", name),
            render_row_badge(step, step_state, supervises),
            h.span("out cut", outcome),
        ),
        _render_time_bar(step, kind, longest, supervises),
        class_="go",
        type="button",
        tabindex="0" if is_selected else "-1",
        data_do="choose",
        data_arg=row.key,
        data_key=shortcut,
        title=f"{name}{subject}{': ' if outcome else ''}{outcome}",
        style=f"--d:{row.depth}",
        id=f"t-{row.key}",
        aria_current="step" if is_selected else None,
    )
    classes = []
    if is_selected:
        classes.append("chosen")
    if supervises:
        classes.append("sup")
    if step is None:
        classes.append("offrow")
    if step_state in ("stale", "ahead"):
        classes.append("isstale" if step_state == "stale" else "ahead")
    gutter = _render_breakpoint_button(state, row, is_selected)
    return h.tag("li", gutter, button, class_=" ".join(classes) or "trow")


def _render_breakpoint_button(state: RunState, row: TimelineRow, is_chosen: bool) -> Html:
    agent = agent_of_key(row.key)
    has_breakpoint = bool(state.run.breakpoints & {row.key, agent})
    return h.tag(
        "button",
        class_="gut",
        type="button",
        tabindex="-1",
        data_do="stop",
        data_arg=row.key,
        data_key="b" if is_chosen else None,
        aria_pressed=str(has_breakpoint).lower(),
        aria_label=f"stop after {display_name(agent)}",
        title="stop here (b)",
    )


def _outcome_text(row: TimelineRow, step_state: str, supervises: bool) -> str:
    """Return the outcome of a line; a supervisor has one only if its step has a subject."""
    step = row.step
    if step is None:
        return "not needed" if step_state == "not needed" else ""
    if not step.done or step_state in ("stale", "failed"):
        return ""
    if not supervises:
        return step.outcome
    return f"{subject_text(step)}: {step.outcome}" if step.subject else ""


def _render_time_bar(step: Step | None, kind: str, longest: float, supervises: bool) -> Html:
    is_timed = step is not None and (step.done or step.error) and step.origin != "by hand"
    if step is None or supervises or not is_timed:
        return h.span("ms")
    percent = min(100.0, max(MIN_BAR_PERCENT, step.seconds / longest * 100))
    bar = h.tag("i", class_=kind, style=f"right:0;width:{percent:.1f}%")
    return h.span("ms", format_seconds(step.seconds), h.span(f"track {kind}", bar))


def render_row_badge(step: Step | None, step_state: str, supervises: bool) -> Html:
    """Render the state of a step where it is worth a word; nothing for a step that is done."""
    if step_state in ("failed", "stale", "running") and not supervises:
        return h.state_badge(*STEP_STATES[step_state])
    if step is not None and step.origin == "by hand":
        return h.state_badge("hand", "by hand")
    return Html()


def skipped_model(step: Step | None, kind: str) -> bool:
    """Return whether a step of an agent with a model was done without asking the model."""
    if step is None or kind != "model" or not step.done:
        return False
    return not step.attempts and step.origin != "by hand"
