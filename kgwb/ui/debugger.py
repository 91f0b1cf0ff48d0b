"""Step through any system: its agents, steps and answer, one step in full; and two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgwb.bench.report import Report
from kgwb.errors import SettingError
from kgwb.flow import Answer
from kgwb.records import nested_records
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.differences import compare_steps
from kgwb.run.models import open_model
from kgwb.show.comparison import ComparedRun, render_comparison
from kgwb.show.explain import render_reasons
from kgwb.show.html import Html, button, collapsible, div, join, muted_text, note, span, tabs, tag
from kgwb.show.records import render, render_answer_parts
from kgwb.show.run import render_answer_banner, render_question_header, render_run, render_waterfall
from kgwb.show.run_state import RunState
from kgwb.show.terms import context_of, triple_key
from kgwb.show.timeline import render_pipeline, render_timeline
from kgwb.text import single_line
from kgwb.ui.cell import StepPanel
from kgwb.ui.live import Event, Live, Part, read_name, text_input
from kgwb.ui.session import Session, session_of
from kgwb.ui.subgraph import SubgraphPanel

VIEW_LABELS = {"step": "Step", "answer": "Answer", "graph": "Subgraph", "compare": "Compare"}
"""The views, with their labels."""
SHORTCUTS = (("j", ""), ("k", "move"), ("b", "stop here"), ("s", "step"), ("c", "continue"))


class Debugger(StepPanel):
    """One run of any system: step, go on, stop at breakpoints, go back, edit, cancel."""

    is_in_debugger = True

    def __init__(self, session: Session, *, step_key: str = "", gold_answer: str = "") -> None:
        """``chosen`` is the key of a step to show, else the one done last; ``gold`` the right answer."""
        self.gold_answer = gold_answer
        self.selected_view = "step"  # the view that is open
        self.follows_latest_step = (
            not step_key
        )  # whether the step that was done last is the one shown
        self.forks: list[tuple[str, Session]] = []  # the same question put otherwise
        self.subgraph_panel: SubgraphPanel | None = None
        super().__init__(session, step_key)

    def children(self) -> Mapping[str, Part]:
        return {
            **super().children(),
            **({"graph": self.subgraph_panel} if self.subgraph_panel else {}),
        }

    @property
    def key(self) -> str:
        if self.follows_latest_step or not self.requested_key:
            steps = self.run.steps
            return steps[-1].key if steps else self.run.system.agents[0].name
        return super().key

    def view(self) -> Html:
        standing, chosen, busy = self.session.run_state(), self.key, self.session.current_task
        gold = (
            div("", muted_text("the right answer is "), tag("b", self.gold_answer))
            if self.gold_answer
            else ""
        )
        number = len(self.session.history) + len(self.forks)
        options = [
            (name, label, number if name == "compare" else "")
            for name, label in VIEW_LABELS.items()
        ]
        stop = button("Cancel", "cancel", "stop") if busy else ""
        loading = self.session.embeddings_loader.current_task
        waits = [muted_text(f"{loading} …")] if loading and not busy else []
        waits += [muted_text(f"waits its turn: {label}") for label in self.session.queued_tasks]
        views = tabs(options, self.selected_view, "view", borderless=True)
        ended, working, begun = standing.has_ended, self.is_busy, bool(self.run.steps)
        primary, until = "" if ended else "primary", "to the next stop, or the end"
        transport = div(
            "group",
            button("To the start", "start", "start", "square", disabled=working or not begun),
            button("Back", "back", "back", "square", disabled=working or not begun),
            button(
                "Step",
                "step",
                "step",
                disabled=working or ended,
                shortcut="s",
                title="run one more step",
            ),
            button(
                "Continue",
                "go",
                "run",
                primary,
                disabled=working or ended,
                shortcut="c",
                title=until,
            ),
        )
        controls = (transport, stop, *waits, span("grow"), views)
        keys = (join(tag("kbd", key), f" {word} " if word else " ") for key, word in SHORTCUTS)
        side = div("side", render_timeline(standing, chosen), div("foot controls", *keys))
        contents = {
            "answer": self._render_answer,
            "graph": self._render_subgraph,
            "compare": self._render_comparison,
        }
        return join(
            render_question_header(self.run),
            render_answer_banner(standing, gold),
            self.render_child("person"),
            div("band row controls", *controls),
            render_pipeline(standing, chosen),
            div("split", side, div("main", contents.get(self.selected_view, self.render_panel)())),
        )

    def render_static(self) -> Html:
        return render_run(self.run)

    def __repr__(self) -> str:
        return repr(self.run)

    def _render_answer(self) -> Html:
        answer, run, steps = self.run.answer, self.run, tuple(self.session.steps.values())
        parts = [muted_text("No answer yet.")]
        if answer is not None and run.status == "done":
            parts = render_answer_parts(answer, context_of(run, can_mute=self.can_mute))
            parts.append(render_reasons(answer, steps))
            if last := next(
                (step for step in steps[::-1] if step.done and step.output == answer), None
            ):
                known = self._context_of(last)
                parts += [
                    render(known.graph_results[name], known)
                    for name in known.graph_results
                    if name.startswith("why")
                ]
        bars = render_waterfall(steps, run.calls)
        return div(
            "body stack", *parts, collapsible(muted_text("Where the time went"), bars, key="time")
        )

    def _render_subgraph(self) -> Html:
        if self.subgraph_panel is None:
            self.subgraph_panel = SubgraphPanel(self.session, outer=self)
        return self.render_child("graph")

    def _render_comparison(self) -> Html:
        """The run before the latest edit, or put otherwise, beside the run as it stands."""
        now = ComparedRun("as it stands", self.session.run_state())
        shown: Html
        if self.forks:
            name, other = self.forks[-1]
            side = ComparedRun(name, other.run_state())
            shown = (
                div("body soft", f"{name}: {other.current_task} …")
                if other.current_task
                else render_comparison(now, side)
            )
        elif self.session.history:
            stale = note("Some steps are stale: continue to the end to compare them too.")
            sides = render_comparison(ComparedRun("as it was", self.session.history[-1]), now)
            shown = join(div("body notes", stale) if now.state.has_stale_steps else "", sides)
        else:
            hint = (
                "Nothing to compare yet: edit a step, then continue; or put the question otherwise."
            )
            shown = div("body soft", hint)
        names = ("fast", "paper")
        profiles = (button(f"The same under profile {name}", "profile", arg=name) for name in names)
        model = text_input("model", "another model", placeholder="openai:gpt-4o", id="other-model")
        form = tag(
            "form",
            model,
            button("The same with this model", "model"),
            class_="row",
            data_do="model",
        )
        return join(shown, div("band stack controls", div("row", *profiles), form))

    def do_choose(self, event: Event) -> None:
        self.follows_latest_step, self.requested_key, self.selected_view, self.selected_section = (
            False,
            self._checked_key(event),
            "step",
            "",
        )

    def do_view(self, event: Event) -> None:
        self.selected_view = event["arg"] if event["arg"] in VIEW_LABELS else "step"

    def do_stop(self, event: Event) -> None:
        """Stop after every step of an agent, or no longer after that step or any of its agent."""
        key = self._checked_key(event)
        agent, stops = agent_of_key(key), self.run.breakpoints
        if stops.isdisjoint((key, agent)):
            stops.add(agent)
        else:
            stops.difference_update((key, agent))

    def do_step(self, event: Event) -> None:
        """Step, continue, or go back, and show the step that is done last. Raises SettingError at the end."""
        name, session = event["do"], self.session
        if name in ("step", "go") and session.run_state().has_ended:
            raise SettingError(
                "the run has come to its end", hint="go back, edit a step, or ask anew"
            )
        self.follows_latest_step, self.selected_section, self.selected_view = True, "", "step"
        moves = {"step": session.step, "go": session.go, "back": session.back}
        moves.get(name, lambda: session.go(0))()

    do_go = do_back = do_start = do_step

    def do_profile(self, event: Event) -> None:
        name = str(event["arg"])
        self.run_fork(f"under profile {name}", settings=self.run.system.settings.of_profile(name))

    def do_model(self, event: Event) -> None:
        spec = read_name(event, "model")
        self.run_fork(f"with model {spec}", models=open_model(spec))

    def do_mute(self, event: Event) -> None:
        """Ask the same of the graph without a triple that an answer stands on."""
        outputs = [step.output for step in self.run.steps if step.done]
        answers = [
            record for record in nested_records(tuple(outputs)) if isinstance(record, Answer)
        ]
        known = {triple_key(triple): triple for answer in answers for triple in answer.support}
        if (triple := known.get(str(event["arg"]))) is None or self.run.unrecorded_graph is None:
            raise SettingError(
                "no answer stands on this triple any more", hint="mute one that is shown"
            )
        self.run_fork("one triple muted", kg=self.run.unrecorded_graph.without(triple))

    def run_fork(self, name: str, **changes: Any) -> None:
        """Put the same question with changes, those of Run.fork, and show both. Raises SettingError."""
        other = session_of(self.run.fork(**changes))
        self.subscribe_to(other)
        self.forks.append((name, other))
        self.selected_view = "compare"
        other.go()


class ComparisonPanel(Live):
    """Two executions, each a run or a session, side by side by step; it follows what is done to them."""

    def __init__(
        self,
        first: Run | Session,
        second: Run | Session,
        names: tuple[str, str] = ("first", "second"),
    ) -> None:
        self.runs, self.names = (first, second), names
        super().__init__(*(run for run in self.runs if isinstance(run, Session)))

    def _compared_runs(self) -> list[ComparedRun]:
        compared = []
        for name, run in zip(self.names, self.runs, strict=True):
            state = run.run_state() if isinstance(run, Session) else RunState.of(run)
            compared.append(ComparedRun(name, state))
        return compared

    def view(self) -> Html:
        return render_comparison(*self._compared_runs())

    def __repr__(self) -> str:
        first, second = self._compared_runs()
        text = str(compare_steps(first.state.steps, second.state.steps))
        return f"{type(self).__name__}({single_line(first.name)} and {single_line(second.name)}: {text})"


def debug_question(report: Report, question: str, **options: Any) -> Debugger:
    """Open the debugger on a question of a report, at the step to blame, with the gold answer.

    ``options`` are those of ``Report.measured_run``. Raises what that raises.
    """
    measured = report.measured_run(question, **options)
    return Debugger(
        session_of(measured.run), step_key=measured.blamed_step, gold_answer=measured.gold
    )
