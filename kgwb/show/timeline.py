"""The agents of a system by stage, the steps of a run below each other, and when each ran, as HTML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from kgwb.run.agents import System, agent_of_key
from kgwb.run.steps import Call, Step, time_texts
from kgwb.show.html import (
    AGENT_KIND_LABELS,
    Html,
    agent_kind_badge,
    render_template,
    span,
    state_badge,
    tag,
)
from kgwb.show.run_state import STEP_STATES, RunState, displayed_agent_kind, subject_text
from kgwb.text import display_name, format_seconds

NODE_CLASSES = {
    "failed": "lit isbad",
    "stale": "isstale",
    "not needed": "unused",
    "done": "lit",
    "waiting": "lit",
    "running": "lit",
}
"""CSS classes of an agent in the flow strip: of the first state that one of its steps has."""
MIN_BAR_PERCENT = 2.0
"""The length of the shortest bar of a step's time, so that it can be seen."""


# The flow strip


def render_pipeline(state: RunState, selected: str = "") -> Html:
    """Render the agents of a system by stage, lit as far as the run has come.

    A click selects an agent's first step. The agent of the step with the key ``selected`` is
    marked, and so is one with a breakpoint.
    """
    selected_agent = agent_of_key(selected)
    stages = []
    for title, agents in state.run.system.stages:
        nodes = [_agent_node(state, agent, agent == selected_agent) for agent in agents]
        stages.append((title, nodes))
    return render_template("show/templates/flow_strip.html", stages=stages)


def _agent_node(state: RunState, agent: str, is_selected: bool) -> SimpleNamespace:
    """Return what the template shows of an agent: the state of its steps, and whether one has a breakpoint.

    The edge of the node also shows whether a step was set by hand. A click chooses the agent's
    first step, or the agent if it has none.
    """
    steps = [step for step in state.steps.values() if step.agent == agent]
    agent_state = _state_of_agent(state, agent, steps)
    _, state_label = STEP_STATES[agent_state]
    kind = displayed_agent_kind(state.run, agent)
    name = display_name(agent)
    classes = ["node", NODE_CLASSES.get(agent_state, "waiting")]
    if any(step.origin == "by hand" for step in steps):
        classes.append("ishand")
    if is_selected:
        classes.append("chosen")
    keys = [step.key for step in steps] or [agent]
    if not state.run.breakpoints.isdisjoint([agent, *keys]):
        classes.append("stop")
    return SimpleNamespace(
        key=keys[0],
        name=name,
        kind=kind,
        icon="bad" if agent_state == "failed" else kind,
        step_count=len(steps),
        classes=" ".join(classes),
        tooltip=f"{name}: {AGENT_KIND_LABELS[kind]}, {state_label}",
    )


def _state_of_agent(state: RunState, agent: str, steps: Sequence[Step]) -> str:
    """Return the first state in NODE_CLASSES that one of the agent's steps has, else "not run".

    The state of an agent without steps is "not needed" if the run has ended.
    """
    states = {state.step_state(step.key) for step in steps}
    if not steps:
        states = {state.step_state(agent)}
    for candidate in NODE_CLASSES:
        if candidate in states:
            return candidate
    return "not run"


# The lines of the timeline


class TimelineRow(NamedTuple):
    """A line of the timeline: a step, or an agent without steps where its step would be."""

    key: str
    """The key of the step, or the name of the agent."""
    step: Step | None
    depth: int
    """The number of supervisors above it."""


def step_depths(steps: Iterable[Step]) -> dict[str, int]:
    """Return the number of supervisors above each step, by key.

    A step comes after its supervisor. One whose supervisor is not among the steps is at the top.
    """
    depths = {"": -1}
    for step in steps:
        depths[step.key] = depths.get(step.parent, -1) + 1
    return depths


def timeline_rows(state: RunState) -> list[TimelineRow]:
    """Return the rows of the timeline: the steps, and the agents that have no step.

    Steps are in the order in which they began, so supervisors stand before what they supervise. An
    agent without a step has its row where its step would be.
    """
    steps = state.steps.values()
    depths = step_depths(steps)
    rows = [TimelineRow(step.key, step, depths[step.key]) for step in steps]
    agents_with_steps = {step.agent for step in steps}
    system = state.run.system
    for name in system.specs_by_name:
        if name not in agents_with_steps:
            _insert_agent(rows, name, system)
    return rows


def _insert_agent(rows: list[TimelineRow], agent: str, system: System) -> None:
    """Insert a row for an agent without steps, where its step would be.

    It comes after the last row of a sibling that is earlier in the flow, and after what that one
    supervises. It is indented by the number of its supervisors, but at most by one more than the
    row before it.
    """
    supervisors = _supervisors_by_agent(system)
    flow_order = list(system.specs_by_name)
    place = flow_order.index(agent)
    previous = -1
    for position in _sibling_positions(rows, agent, supervisors):
        sibling = agent_of_key(rows[position].key)
        if flow_order.index(sibling) < place:
            previous = position

    depth = 0
    if previous >= 0:
        depth = min(_supervisor_count(agent, supervisors), rows[previous].depth + 1)
    position = previous + 1
    while position < len(rows) and rows[position].depth > depth:
        position += 1
    rows.insert(position, TimelineRow(agent, None, depth))


def _supervisors_by_agent(system: System) -> dict[str, str]:
    """Return the name of the supervisor of each agent that has one, by agent."""
    supervisors = {}
    for supervisor, agents in system.supervisors.items():
        for agent in agents:
            supervisors[agent] = supervisor
    return supervisors


def _supervisor_count(agent: str, supervisors: Mapping[str, str]) -> int:
    """Return the number of supervisors above an agent: its own, that one's, and so on."""
    count = 0
    while agent in supervisors:
        agent = supervisors[agent]
        count += 1
    return count


def _sibling_positions(
    rows: Sequence[TimelineRow], agent: str, supervisors: Mapping[str, str]
) -> Sequence[int]:
    """Return the positions of an agent's supervisor and of all agents that have the same one.

    For an agent without a supervisor these are the agents without one. If the rows have none of
    them, all positions are returned.
    """
    supervisor = supervisors.get(agent)
    positions = []
    for position, row in enumerate(rows):
        other = agent_of_key(row.key)
        if supervisor in (other, supervisors.get(other)):
            positions.append(position)
    return positions or range(len(rows))


# The timeline


def render_timeline(state: RunState, selected: str, role: str = "") -> Html:
    """Render a line for each step: breakpoint, icon, name, outcome, and its time as a bar.

    ``selected`` is the key of the step that is shown. With a ``role`` there are only the steps of
    the agents that it plays, and supervisors. The lines above and below it have keyboard
    shortcuts. Where the run has not ended, a cursor is drawn below the last step that is done.
    """
    rows = timeline_rows(state)
    if role:
        rows = _rows_of_role(rows, role, state.run.system)
    supervisors = {step.parent for step in state.steps.values()}
    supervisors.update(state.run.system.supervisors)
    longest_s = _longest_step_s(rows, supervisors)
    shortcuts = _shortcuts(rows, selected)
    lines = []
    previous_role = role
    for position, row in enumerate(rows):
        row_role = state.run.system.role_of(agent_of_key(row.key))
        role_caption = ""
        if row_role != previous_role:
            role_caption = display_name(row_role)
        previous_role = row_role
        line = _timeline_line(
            state,
            row,
            role_caption=role_caption,
            is_selected=row.key == selected,
            shortcut=shortcuts.get(position, ""),
            supervises=row.key in supervisors,
            longest_s=longest_s,
        )
        lines.append(line)
    return render_template(
        "show/templates/timeline.html",
        lines=lines,
        paused_position=_paused_position(state, rows),
        is_read_only=state.run.read_only,
    )


def _rows_of_role(rows: Sequence[TimelineRow], role: str, system: System) -> list[TimelineRow]:
    """Return the rows of the agents that a role plays, and those of supervisors, in their order."""
    kept = []
    for row in rows:
        agent = agent_of_key(row.key)
        if agent in system.supervisors or system.role_of(agent) == role:
            kept.append(row)
    return kept


def _longest_step_s(rows: Sequence[TimelineRow], supervisors: Collection[str]) -> float:
    """Return the seconds of the longest step that does not supervise others; 1 if all are 0.

    A replayed step has the recorded seconds.
    """
    longest_s = 0.0
    for row in rows:
        if row.step and row.key not in supervisors:
            longest_s = max(longest_s, row.step.live_seconds)
    return longest_s or 1.0


def _shortcuts(rows: Sequence[TimelineRow], selected: str) -> dict[int, str]:
    """Return the keys that choose the lines above and below the selected one, by position.

    Without a selected line these are the lines around the first. The keys are "k" or up, and "j" or
    down. A position may lie outside of the lines.
    """
    keys = [row.key for row in rows]
    position = 0
    if selected in keys:
        position = keys.index(selected)
    return {position - 1: "k ArrowUp", position + 1: "j ArrowDown"}


def _paused_position(state: RunState, rows: Sequence[TimelineRow]) -> int:
    """Return the position of the last row that the latest execution reached, without stale ones.

    -1 if it has reached none, or if the run has ended.
    """
    if state.has_ended:
        return -1
    reached = {step.key for step in state.run.steps}
    last = -1
    for position, row in enumerate(rows):
        if row.key in reached and state.step_state(row.key) != "stale":
            last = position
    return last


def _timeline_line(
    state: RunState,
    row: TimelineRow,
    *,
    role_caption: str,
    is_selected: bool,
    shortcut: str,
    supervises: bool,
    longest_s: float,
) -> SimpleNamespace:
    """Return what the template shows of a row: badges, texts, classes, and the bar of its time.

    ``longest_s`` is the time of the longest bar, in seconds, and ``shortcut`` has the keys on the
    keyboard that choose the row. ``role_caption`` is "" if the role is that of the row above. The
    full name has the subject and the number of the occurrence, which tell the steps of one agent
    apart.
    """
    step = row.step
    step_state = state.step_state(row.key)
    agent = agent_of_key(row.key)
    name = display_name(agent)
    kind = displayed_agent_kind(state.run, agent)
    full_name = name
    if step is not None and step.subject:
        full_name = f"{name} {subject_text(step)}"
    _, _, occurrence = row.key.rpartition("#")
    if occurrence.isdigit():
        full_name = f"{full_name}, {occurrence}"
    return SimpleNamespace(
        row=row,
        is_selected=is_selected,
        shortcut=shortcut,
        has_breakpoint=not state.run.breakpoints.isdisjoint([row.key, agent]),
        name=name,
        full_name=full_name,
        role=role_caption,
        state=step_state,
        supervises=supervises,
        kind_badge=agent_kind_badge(kind, small=True, outlined=skipped_model(step, kind)),
        state_badge=render_row_badge(step, step_state, supervises),
        outcome=_outcome_text(row, step_state, supervises),
        time_bar=_render_time_bar(step, kind, longest_s, supervises),
    )


def _outcome_text(row: TimelineRow, step_state: str, supervises: bool) -> str:
    """Return the outcome that a line shows; "" if its step is not done, has failed, or is stale.

    An agent without a step shows "not needed", if the run has ended without it. A supervisor shows
    its outcome only if its step has a subject, which comes first: "subject: outcome".
    """
    step = row.step
    if step is None:
        if step_state == "not needed":
            return step_state
        return ""
    if not step.done or step_state in ("stale", "failed"):
        return ""
    if not supervises:
        return step.outcome
    if not step.subject:
        return ""
    return f"{subject_text(step)}: {step.outcome}"


def _render_time_bar(step: Step | None, kind: str, longest_s: float, supervises: bool) -> Html:
    """Render the time of a step, and a bar as long as its share of the longest step's time.

    Of a replayed step this is the recorded time; the tooltip names both times. A bar has at least
    MIN_BAR_PERCENT. Supervisors, steps that were set by hand, and steps that
    were not executed have neither time nor bar.
    """
    if step is None or supervises or step.origin == "by hand":
        return span("ms")
    if not step.done and not step.error:
        return span("ms")
    share = step.live_seconds / longest_s * 100
    percent = min(100.0, max(MIN_BAR_PERCENT, share))
    bar = tag("i", class_=kind, style=f"right:0;width:{percent:.1f}%")
    track = span(f"track {kind}", bar)
    return span("ms", render_step_time(step), track)


def render_step_time(step: Step) -> Html:
    """Render how long a step took; for a replayed step, how long it took when its calls were made.

    Both times of a replayed step are in the tooltip.
    """
    duration = format_seconds(step.live_seconds)
    if step.recorded_seconds is None:
        return span("", duration)
    both = ", ".join(time_texts(step.seconds, step.recorded_seconds))
    return span("rec", duration, title=both)


def render_row_badge(step: Step | None, step_state: str, supervises: bool) -> Html:
    """Render a badge for a step that has failed, is stale, is running, waits, or was set by hand.

    Nothing is rendered for other steps. A supervisor has a badge only if it was set by hand.
    """
    if step_state in ("failed", "stale", "waiting", "running") and not supervises:
        return state_badge(*STEP_STATES[step_state])
    if step is not None and step.origin == "by hand":
        return state_badge("hand", "by hand")
    return Html()


def skipped_model(step: Step | None, kind: str) -> bool:
    """Return whether a step of an agent with a model was done without asking the model.

    False for a step with attempts, model calls or a value put in, and for another kind of agent.
    """
    if step is None or kind != "model" or not step.done:
        return False
    if step.attempts or step.origin == "by hand":
        return False
    return not step.model_calls


CALL_KINDS_WITHOUT_GRAPH = ("model", "similarity")
"""Kinds of calls that ask no graph. All others do."""
TIME_CLASSES = {"model": "model", "graph": "sparql", "rest": "code"}
"""The kinds of time in the order of their bars, with the CSS classes of their colours."""


def render_waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """Render a bar for each step, end to end, in model time, graph time and the rest.

    Calls from the record count with the time they took when they were made. Nothing is rendered if
    no time was spent. All times are in seconds. A supervisor's bar is without the time of its
    steps.
    """
    total = dict.fromkeys(TIME_CLASSES, 0.0)
    rows = []
    for step, time in _step_times(steps, calls):
        seconds_before = sum(total.values())
        rows.append((step, seconds_before, time, _step_time_text(step, time, calls)))
        for kind, seconds in time.items():
            total[kind] += seconds
    total_s = sum(total.values())
    if not total_s:
        return Html()
    return render_template(
        "show/templates/waterfall.html",
        rows=rows,
        depths=step_depths(steps),
        total_s=total_s,
        classes=TIME_CLASSES,
        total=f"{format_seconds(total_s)} in all: {_time_text(total)}.",
    )


def _time_text(time: Mapping[str, float]) -> str:
    """Return seconds by kind of time as text: "model 1.2 s, rest 3 ms"."""
    return ", ".join(f"{kind} {format_seconds(seconds)}" for kind, seconds in time.items())


def _step_time_text(step: Step, time: Mapping[str, float], calls: Mapping[str, Call]) -> str:
    """Return the kinds of a step's time: "model 1.2 s, rest 3 ms (recorded)".

    A step is recorded if it made calls, and all of them came from the record.
    """
    text = _time_text(time)
    has_known_calls = any(key in calls for key in step.calls)
    if step.origin == "record" and has_known_calls:
        return f"{text} (recorded)"
    return text


def _step_times(
    steps: Sequence[Step], calls: Mapping[str, Call]
) -> Iterable[tuple[Step, dict[str, float]]]:
    """Yield each step with its seconds by kind of time, without those of the steps below it.

    They are not negative: steps that were executed at the same time may take more than their
    supervisor.
    """
    supervised_s: dict[str, float] = defaultdict(float)
    for step in steps:
        supervised_s[step.parent] += step.seconds
    for step in steps:
        own_s = max(0.0, step.seconds - supervised_s[step.key])
        yield step, _step_time(step, own_s, calls)


def _step_time(step: Step, own_s: float, calls: Mapping[str, Call]) -> dict[str, float]:
    """Divide the seconds of a step among its model calls, its calls to the graph, and the rest.

    The result has the kinds of TIME_CLASSES on which time was spent. ``own_s`` are the seconds of
    the step without those of the steps below it. They are the rest, if the calls came from the
    record; if the calls were live, their time is subtracted. Calls have the time that they took
    when they were made.
    """
    time = dict.fromkeys(TIME_CLASSES, 0.0)
    for key in step.calls:
        if key not in calls:
            continue
        call = calls[key]
        if call.kind == "model":
            time["model"] += call.seconds
        elif call.kind not in CALL_KINDS_WITHOUT_GRAPH:
            time["graph"] += call.seconds
    time["rest"] = own_s
    if step.origin == "live":  # else the calls took no time in this execution
        time["rest"] = max(0.0, own_s - time["model"] - time["graph"])
    return {kind: seconds for kind, seconds in time.items() if seconds}
