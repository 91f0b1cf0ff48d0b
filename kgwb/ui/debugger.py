"""Step through any system: steps as a timeline, breakpoints, one step in full, where the time went."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from kgwb.llm.human import Human
from kgwb.record import Step
from kgwb.render.html import Html, aside, badges, join, tag
from kgwb.render.records import shortened
from kgwb.render.text import outcome
from kgwb.render.views import run_html
from kgwb.render.waterfall import STYLE as WATERFALL_STYLE
from kgwb.render.waterfall import spent, waterfall
from kgwb.render.words import clean, totals_text
from kgwb.ui.cell import AgentCell
from kgwb.ui.comparison import ComparisonPanel
from kgwb.ui.human import HumanPanel
from kgwb.ui.kit import Panel, body, dim, markup, row
from kgwb.ui.session import Session, State
from kgwb.ui.subgraph import SubgraphPanel

MARKS: dict[State, str] = {
    "not run": "○",
    "running": "▶",
    "stale": "↻ stale:",
    "failed": "✗ failed:",
    "unfinished": "◐",
    "done": "✓",
    "ahead": "◌",
}
"""How each state of a step looks on the timeline; told in words beside it where it is no success."""
VIEWS = ("One step", "Answer", "Subgraph", "Time", "Compare")


class Debugger(Panel):
    """One run of any system: step, go on, stop at breakpoints, go back, edit, cancel."""

    def __init__(self, session: Session) -> None:
        super().__init__(markup())
        self.session = session
        self._lock = threading.RLock()
        self._seen: object = None
        self._rows: dict[str, _Row] = {}
        self._followed = True
        self._head = markup()
        self._controls = self._make_controls()
        self._timeline = widgets.VBox(
            layout=widgets.Layout(flex="1 1 20em", min_width="18em", max_width="34em")
        )
        self._cell = AgentCell(session, self._agents[0], inside=True)
        self._views = widgets.ToggleButtons(options=VIEWS)
        self._made: dict[str, widgets.Widget] = {"One step": self._cell}
        self._view = widgets.VBox((self._cell,))
        right = widgets.VBox(
            (self._views, self._view), layout=widgets.Layout(flex="3 1 30em", min_width="20em")
        )
        split = widgets.HBox(
            (self._timeline, right), layout=widgets.Layout(flex_flow="row wrap", grid_gap="10px")
        )
        style = widgets.HTML(
            f"<style>{WATERFALL_STYLE}{STYLE}</style>", layout=widgets.Layout(display="none")
        )
        humans = {model for model in session.run.models.values() if isinstance(model, Human)}
        played = (HumanPanel(human, session) for human in humans)
        self.show(style, self._head, row(*self._controls.values()), *played, split)
        self.add_class("kgwb-debugger")
        self.watch(self._views, lambda _: self._draw())
        session.listeners.append(self.refresh)
        self.refresh()
        self._draw()

    def choose(self, key: str) -> None:
        """Show a step, or an agent that was not reached, in full."""
        self._followed = False
        self._show_step(key)
        self._views.value = "One step"

    def refresh(self) -> None:
        """Show the run as it stands."""
        with self._lock, self.message.guarding():
            run, steps = self.session.run, self.session.steps
            stale = self.session.stale
            seen = ([id(step) for step in steps.values()], stale, self.session.busy, run.status, run.position)
            if seen == self._seen:
                return
            self._seen = seen
            self._head.value = body(self._told())
            self._show_controls()
            self._show_timeline()
            if self._followed and run.steps:
                self._show_step(_latest(run.steps))
            if self._views.value in ("Answer", "Time"):
                self._draw()
            failure = self.session.failure
            if failure is not None and not self.session.busy:
                self.message.fail(failure)
            else:
                self.message.clear()

    def static(self) -> str:
        return run_html(self.session.run)

    def __repr__(self) -> str:
        return repr(self.session.run)

    # --- head and controls ----------------------------------------------------------------------------------

    @property
    def _agents(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.session.run.system.agents)

    def _told(self) -> Html:
        run = self.session.run
        models = ", ".join(
            f"{name}: {model.name}" if name else model.name for name, model in run.models.items()
        )
        status = self.session.busy or run.status
        facts = (run.system.name, models or "recorded replies", f"profile {run.settings.profile}", status)
        answered = run.answer is not None and run.status == "done"
        return join(
            tag("div", run.question, class_="kgwb-head"),
            tag("div", f"Answer: {shortened(str(run.answer))}") if answered else "",
            badges(facts),
            tag("div", aside(totals_text(run.totals))),
        )

    def _make_controls(self) -> dict[str, widgets.Button]:
        actions: dict[str, tuple[str, Callable[[], Any], str]] = {
            "step": ("Step", self._step, "run until one more step is done"),
            "go": ("Continue", self.session.go, "run to the next breakpoint, or to the end"),
            "back": ("Back", self.session.back, "go back to where one step less was done"),
            "start": ("To the start", lambda: self.session.go(0), "go back to where nothing was done"),
            "cancel": ("Cancel", self.session.cancel, "stop; what is recorded stays"),
        }
        made = {}
        for name, (text, action, tip) in actions.items():
            made[name] = self.button(text, self._following(action), tooltip=tip)
        made["step"].button_style = "primary"
        return made

    def _step(self) -> None:
        if self.session.run.status != "done" or self.session.stale:
            self.session.step()

    def _following(self, action: Callable[[], Any]) -> Callable[[], Any]:
        def act() -> None:
            self._followed = True
            action()

        return act

    def _show_controls(self) -> None:
        run, busy = self.session.run, bool(self.session.busy)
        ended = run.status == "done" and not self.session.stale
        idle = {"step": ended, "go": ended, "back": not run.position, "start": not run.position}
        for name, button in self._controls.items():
            dim(button, not busy if name == "cancel" else busy or idle[name])

    # --- timeline -------------------------------------------------------------------------------------------

    def _show_timeline(self) -> None:
        steps = self.session.steps
        reached = {step.agent for step in steps.values()}
        above = {step.parent for step in steps.values()}
        wanted = [*steps, *(name for name in self._agents if name not in reached)]
        depth = {one.key: one.depth for one in spent(tuple(steps.values()), self.session.run.calls)}
        for key in wanted:
            if key not in self._rows:
                self._rows[key] = _Row(self, key)
            self._rows[key].update(
                steps.get(key), self.session.state(key), depth.get(key, 0), supervises=key in above
            )
            self._rows[key].mark(key == self._cell.key)
        children = tuple(self._rows[key] for key in wanted)
        if self._timeline.children[1:] != children:
            self._timeline.children = (
                markup(aside("Tick a step to stop after it; press it to see it in full.")),
                *children,
            )

    def show_breakpoints(self) -> None:
        """Tick every step of an agent that the run stops after."""
        for line in self._rows.values():
            line.tick()

    def _show_step(self, key: str) -> None:
        if key != self._cell.key:
            self._cell.choose(key)
        for name, line in self._rows.items():
            line.mark(name == key)

    def _draw(self) -> None:
        """Show the chosen view; the others stay as they are, hidden, so that a frame is not loaded again."""
        view, run = self._views.value, self.session.run
        if view not in self._made:
            made: dict[str, Callable[[], widgets.Widget]] = {
                "Answer": markup,
                "Time": markup,
                "Subgraph": lambda: SubgraphPanel(self.session),
                "Compare": lambda: ComparisonPanel.of(self.session),
            }
            self._made[view] = made[view]()
            self._view.children = tuple(self._made.values())
        if view == "Answer":
            self._made[view].value = run_html(run)
        elif view == "Time":
            drawn = waterfall(tuple(self.session.steps.values()), run.calls)
            self._made[view].value = body(drawn or "Nothing was run yet.")
        for name, widget in self._made.items():
            widget.layout.display = "" if name == view else "none"


class _Row(widgets.HBox):
    """A step on the timeline: a breakpoint, and a button that shows it in full."""

    def __init__(self, debugger: Debugger, key: str) -> None:
        self.key, self.agent = key, key.partition("[")[0].partition("#")[0]
        self._debugger = debugger
        stops = debugger.session.run.breakpoints
        self._stop = widgets.Checkbox(
            value=not stops.isdisjoint((key, self.agent)),
            indent=False,
            tooltip=f"stop after {self.agent}",
            layout=widgets.Layout(width="22px"),
        )
        self._open = debugger.button("", lambda: debugger.choose(key))
        self._open.layout = widgets.Layout(flex="1 1 auto", min_width="0")
        super().__init__((self._stop, self._open))
        debugger.watch(self._stop, self._break)

    def update(self, step: Step | None, state: State, depth: int, *, supervises: bool) -> None:
        """Show where the step stands, and what it yielded unless that is the work of steps below it."""
        told = clean(outcome(step)) if step is not None else "not reached"
        said = f": {told[:80]}" if state in ("done", "stale", "ahead") and not supervises else ""
        self._open.description = f"{MARKS[state]} {clean(self.key)}{said}"
        self._open.tooltip = f"{clean(self.key)}: {told[:300]}"
        self._open.layout.margin = f"1px 0 1px {depth * 14}px"
        dim = "var(--jp-ui-font-color2, inherit)"
        self._open.style.text_color = dim if state in ("not run", "ahead") else None
        self.tick()

    def mark(self, shown: bool) -> None:
        """Show whether this is the step shown in full."""
        (self._open.add_class if shown else self._open.remove_class)("kgwb-shown")

    def tick(self) -> None:
        """Show whether the run stops after this step."""
        self._stop.value = not self._debugger.session.run.breakpoints.isdisjoint((self.key, self.agent))

    def _break(self, wanted: bool) -> None:
        stops = self._debugger.session.run.breakpoints
        if wanted and self.key not in stops:
            stops.add(self.agent)
        elif not wanted:
            stops.difference_update((self.key, self.agent))
        self._debugger.show_breakpoints()


def _latest(steps: list[Step]) -> str:
    """Key of the step that ended or failed last: the last one, but for supervisors it is inside of."""
    return steps[-1].key


STYLE = """
.kgwb-debugger .kgwb-shown { font-weight: 600; box-shadow: inset 3px 0 0 var(--jp-brand-color1, #3b82c4) }
.kgwb-debugger .widget-button { text-align: left; overflow: hidden; text-overflow: ellipsis }
"""
