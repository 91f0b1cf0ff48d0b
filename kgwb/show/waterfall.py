"""Where the time of a run went, as HTML: bars of model time, graph time and the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgwb.run.calls import Call
from kgwb.run.steps import Step
from kgwb.show.html import Html, render_template
from kgwb.show.timeline import step_depths
from kgwb.text import format_seconds, single_line

CALL_KINDS_WITHOUT_GRAPH = ("model", "similarity")
"""Kinds of calls that ask no graph. All others do."""


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


class Part(NamedTuple):
    """A kind of time that was spent in a step."""

    label: str
    css_class: str
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
    def parts(self) -> list[Part]:
        """The kinds of time, without those of zero seconds.

        They come as model, graph, and rest. Empty if no time was spent.
        """
        parts = [
            Part("model", "model", self.model_s),
            Part("graph", "sparql", self.graph_s),
            Part("rest", "code", self.other_s),
        ]
        return [part for part in parts if part.seconds]


def render_waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """Render a bar for each step, end to end, in model time, graph time and the rest.

    Calls from the record count with the time they took when they were made. Nothing is rendered if
    no time was spent. All times are in seconds. A supervisor's bar is without the time of its
    steps.
    """
    times = _step_times(steps, calls)
    total = _sum_of_times(times.values())
    if not total.total_s:
        return Html()
    depths = step_depths(steps)
    elapsed_s = 0.0
    rows = []
    for step in steps:
        time = times[step.key]
        gap = ""
        if elapsed_s:
            gap = _width(elapsed_s, total)
        row = WaterfallRow(
            key=single_line(step.key),
            depth=depths[step.key],
            gap=gap,
            bars=_bars(time, total),
            figures=_step_time_text(step, time, calls),
        )
        rows.append(row)
        elapsed_s += time.total_s
    return render_template(
        "show/templates/waterfall.html",
        rows=rows,
        total=_total_time_text(total),
    )


def _bars(time: StepTime, total: StepTime) -> list[Bar]:
    """Return the bars of a step, one for each kind of time that was spent.

    Their widths are shares of the time of the whole run.
    """
    bars = []
    for part in time.parts:
        width = _width(part.seconds, total)
        bars.append(Bar(part.css_class, width))
    return bars


def _width(seconds: float, total: StepTime) -> str:
    """Return seconds as a share of the whole run's time, as a CSS width: "12.50%"."""
    percent = seconds / total.total_s * 100
    return f"{percent:.2f}%"


def _step_time_text(step: Step, time: StepTime, calls: Mapping[str, Call]) -> str:
    """Return the parts of a step's time: "model 1.2 s, rest 3 ms (recorded)".

    A step is recorded if it made calls, and all of them came from the record.
    """
    parts = []
    for part in time.parts:
        duration = format_seconds(part.seconds)
        parts.append(f"{part.label} {duration}")
    text = ", ".join(parts)
    has_known_calls = any(key in calls for key in step.calls)
    if step.origin == "record" and has_known_calls:
        return f"{text} (recorded)"
    return text


def _total_time_text(time: StepTime) -> str:
    """Return the time of a run with its parts, also those that are zero.

    For example "2.1 s in all: model 1.8 s, graph 40 ms, rest 260 ms.".
    """
    total = format_seconds(time.total_s)
    model = format_seconds(time.model_s)
    graph = format_seconds(time.graph_s)
    rest = format_seconds(time.other_s)
    return f"{total} in all: model {model}, graph {graph}, rest {rest}."


def _sum_of_times(times: Collection[StepTime]) -> StepTime:
    """Return the time of all steps together, kind by kind: model, graph and rest, in seconds."""
    return StepTime(
        model_s=sum(time.model_s for time in times),
        graph_s=sum(time.graph_s for time in times),
        other_s=sum(time.other_s for time in times),
    )


def _step_times(steps: Sequence[Step], calls: Mapping[str, Call]) -> dict[str, StepTime]:
    """Return the time spent in each step by key, without that in the steps below it.

    It is not negative: steps that were executed at the same time may take more than their
    supervisor.
    """
    supervised_s: dict[str, float] = defaultdict(float)
    for step in steps:
        supervised_s[step.parent] += step.seconds
    times = {}
    for step in steps:
        own_s = max(0.0, step.seconds - supervised_s[step.key])
        times[step.key] = _step_time(step, own_s, calls)
    return times


def _step_time(step: Step, own_s: float, calls: Mapping[str, Call]) -> StepTime:
    """Divide the seconds of a step among its model calls, its calls to the graph, and the rest.

    ``own_s`` are the seconds of the step without those of the steps below it. They are the rest, if
    the calls came from the record; if the calls were live, their time is subtracted. Calls have the
    time that they took when they were made.
    """
    model_s = 0.0
    graph_s = 0.0
    for key in step.calls:
        if key not in calls:
            continue
        call = calls[key]
        if call.kind == "model":
            model_s += call.seconds
        elif call.kind not in CALL_KINDS_WITHOUT_GRAPH:
            graph_s += call.seconds
    other_s = own_s
    if step.origin == "live":  # else the calls took no time in this execution
        other_s = max(0.0, own_s - model_s - graph_s)
    return StepTime(model_s, graph_s, other_s)
