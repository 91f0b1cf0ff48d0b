"""Where the time of a run went: a bar a step, in model time, graph time and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgwb.record import Call, Step
from kgwb.render.html import Html, aside, join, tag

KINDS = (("model", "M"), ("graph", "G"), ("rest", "R"))


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of one step without that of the steps it supervises, in seconds."""

    key: str
    depth: int
    model: float
    graph: float
    rest: float
    recorded: bool
    """Whether its calls came from the record: their time is what they took when they were made."""

    @property
    def total(self) -> float:
        return self.model + self.graph + self.rest


def spent(steps: Sequence[Step], calls: Mapping[str, Call]) -> tuple[Spent, ...]:
    """What each step took; the time of calls from the record is counted as it was when they were made."""
    below: dict[str, float] = {}
    depth: dict[str, int] = {}
    for step in steps:
        below[step.parent] = below.get(step.parent, 0.0) + step.seconds
        depth[step.key] = depth.get(step.parent, -1) + 1 if step.parent else 0
    told = []
    for step in steps:
        made = [calls[key] for key in step.calls if key in calls]
        model = sum(call.seconds for call in made if call.kind == "model")
        graph = sum(call.seconds for call in made if call.kind not in ("model", "similarity"))
        own = max(0.0, step.seconds - below.get(step.key, 0.0))
        rest = max(0.0, own - model - graph) if step.origin == "live" else own
        recorded = bool(made) and step.origin == "record"
        told.append(Spent(step.key, depth[step.key], model, graph, rest, recorded))
    return tuple(told)


def waterfall(steps: Sequence[Step], calls: Mapping[str, Call]) -> Html:
    """A bar a step, laid end to end; M is model time, G graph time, R the rest. Nothing without steps."""
    rows = spent(steps, calls)
    whole = sum(row.total for row in rows)
    if not rows or not whole:
        return Html()
    begun, drawn = 0.0, []
    for row in rows:
        drawn.append(_row(row, begun, whole))
        begun += row.total
    sums = ", ".join(
        f"{kind} ({letter}) {seconds(sum(getattr(row, kind) for row in rows))}" for kind, letter in KINDS
    )
    told = f"{seconds(whole)} in all: {sums}. Steps are laid end to end, also those that ran side by side."
    return join(tag("div", *drawn, class_="kgwb-waterfall", role="table"), aside(told))


def _row(row: Spent, begun: float, whole: float) -> Html:
    parts = [(kind, letter, getattr(row, kind)) for kind, letter in KINDS if getattr(row, kind) > 0]
    said = ", ".join(f"{letter} {seconds(value)}" for _, letter, value in parts)
    bars = [
        tag("span", class_=f"kgwb-span kgwb-{kind}", style=f"width: {100 * value / whole:.3f}%")
        for kind, _, value in parts
    ]
    before = tag("span", class_="kgwb-span", style=f"width: {100 * begun / whole:.3f}%")
    recorded = " (recorded)" if row.recorded else ""
    return tag(
        "div",
        tag("span", row.key, class_="kgwb-step", style=f"padding-left: {row.depth}em", title=row.key),
        tag("span", before, *bars, class_="kgwb-track"),
        tag("span", said + recorded, class_="kgwb-aside"),
        class_="kgwb-row",
    )


def seconds(value: float) -> str:
    """A time as a person reads it: "0.4 ms", "38 ms", "1.20 s"."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"


STYLE = """
.kgwb-waterfall .kgwb-row { display: flex; gap: .6em; align-items: center; line-height: 1.5 }
.kgwb-waterfall .kgwb-step { flex: 0 0 17em; box-sizing: border-box; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap }
.kgwb-waterfall .kgwb-track { flex: 1 1 10em; min-width: 6em; display: flex; height: 1em;
  background: var(--jp-layout-color2, rgba(128,128,128,.14)) }
.kgwb-waterfall .kgwb-span { flex: 0 0 auto; box-sizing: border-box }
.kgwb-waterfall .kgwb-model { min-width: 2px; background: var(--jp-brand-color1, #3b82c4) }
.kgwb-waterfall .kgwb-graph { min-width: 2px; background: repeating-linear-gradient(45deg,
  var(--jp-success-color1, #2e9e44) 0 3px, transparent 3px 5px) }
.kgwb-waterfall .kgwb-rest { min-width: 2px; border: 1px solid var(--jp-ui-font-color2, #777) }
.kgwb-waterfall .kgwb-row > .kgwb-aside { flex: 0 0 15em; white-space: nowrap }
"""
