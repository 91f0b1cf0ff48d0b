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
from kgwb.show.html import Html, aside, button, div, fold, join, note, span, tabs, tag
from kgwb.show.records import answer_parts, render
from kgwb.show.run import answer_banner, render_run, run_head, waterfall
from kgwb.show.run_state import RunState
from kgwb.show.terms import context_of, triple_key
from kgwb.show.timeline import flow_strip, timeline
from kgwb.text import single_line
from kgwb.ui.cell import StepPanel
from kgwb.ui.live import Event, Live, Part, text_field, typed_name
from kgwb.ui.session import Session, session_of
from kgwb.ui.subgraph import SubgraphPanel

VIEWS = {"step": "Step", "answer": "Answer", "graph": "Subgraph", "compare": "Compare"}
"""The views, with their labels."""
KEYS = (("j", ""), ("k", "move"), ("b", "stop here"), ("s", "step"), ("c", "continue"))


class Debugger(StepPanel):
    """One run of any system: step, go on, stop at breakpoints, go back, edit, cancel."""

    framed = True

    def __init__(self, session: Session, *, chosen: str = "", gold: str = "") -> None:
        """``chosen`` is the key of a step to show, else the one done last; ``gold`` the right answer."""
        self.gold = gold
        self.shown = "step"  # the view that is open
        self.followed = not chosen  # whether the step that was done last is the one shown
        self.others: list[tuple[str, Session]] = []  # the same question put otherwise
        self.subgraph: SubgraphPanel | None = None
        super().__init__(session, chosen)

    def parts(self) -> Mapping[str, Part]:
        return {**super().parts(), **({"graph": self.subgraph} if self.subgraph else {})}

    @property
    def key(self) -> str:
        if self.followed or not self.wanted:
            steps = self.run.steps
            return steps[-1].key if steps else self.run.system.agents[0].name
        return super().key

    def view(self) -> Html:
        standing, chosen, busy = self.session.run_state(), self.key, self.session.busy
        gold = div("", aside("the right answer is "), tag("b", self.gold)) if self.gold else ""
        number = len(self.session.versions) + len(self.others)
        options = [
            (name, label, number if name == "compare" else "") for name, label in VIEWS.items()
        ]
        stop = button("Cancel", "cancel", "stop") if busy else ""
        loading = self.session.loading.busy
        waits = [aside(f"{loading} …")] if loading and not busy else []
        waits += [aside(f"waits its turn: {label}") for label in self.session.waiting]
        views = tabs(options, self.shown, "view", bare=True)
        ended, working, begun = standing.has_ended, self.working, bool(self.run.steps)
        primary, until = "" if ended else "primary", "to the next stop, or the end"
        transport = div(
            "group",
            button("To the start", "start", "start", "square", off=working or not begun),
            button("Back", "back", "back", "square", off=working or not begun),
            button(
                "Step", "step", "step", off=working or ended, key="s", title="run one more step"
            ),
            button("Continue", "go", "run", primary, off=working or ended, key="c", title=until),
        )
        controls = (transport, stop, *waits, span("grow"), views)
        keys = (join(tag("kbd", key), f" {word} " if word else " ") for key, word in KEYS)
        side = div("side", timeline(standing, chosen), div("foot controls", *keys))
        contents = {"answer": self._answer, "graph": self._graph, "compare": self._compare}
        return join(
            run_head(self.run),
            answer_banner(standing, gold),
            self.inside("person"),
            div("band row controls", *controls),
            flow_strip(standing, chosen),
            div("split", side, div("main", contents.get(self.shown, self.panel)())),
        )

    def static_view(self) -> Html:
        return render_run(self.run)

    def __repr__(self) -> str:
        return repr(self.run)

    def _answer(self) -> Html:
        answer, run, steps = self.run.answer, self.run, tuple(self.session.steps.values())
        parts = [aside("No answer yet.")]
        if answer is not None and run.status == "done":
            parts = answer_parts(answer, context_of(run, can_mute=self.mutable))
            parts.append(render_reasons(answer, steps))
            if last := next(
                (step for step in steps[::-1] if step.done and step.output == answer), None
            ):
                known = self._around(last)
                parts += [
                    render(known.replies[name], known)
                    for name in known.replies
                    if name.startswith("why")
                ]
        bars = waterfall(steps, run.calls)
        return div("body stack", *parts, fold(aside("Where the time went"), bars, key="time"))

    def _graph(self) -> Html:
        if self.subgraph is None:
            self.subgraph = SubgraphPanel(self.session, outer=self)
        return self.inside("graph")

    def _compare(self) -> Html:
        """The run before the latest edit, or put otherwise, beside the run as it stands."""
        now = ComparedRun("as it stands", self.session.run_state())
        shown: Html
        if self.others:
            name, other = self.others[-1]
            side = ComparedRun(name, other.run_state())
            shown = (
                div("body soft", f"{name}: {other.busy} …")
                if other.busy
                else render_comparison(now, side)
            )
        elif self.session.versions:
            stale = note("Some steps are stale: continue to the end to compare them too.")
            sides = render_comparison(ComparedRun("as it was", self.session.versions[-1]), now)
            shown = join(div("body notes", stale) if now.state.is_stale else "", sides)
        else:
            hint = (
                "Nothing to compare yet: edit a step, then continue; or put the question otherwise."
            )
            shown = div("body soft", hint)
        names = ("fast", "paper")
        profiles = (button(f"The same under profile {name}", "profile", arg=name) for name in names)
        model = text_field("model", "another model", placeholder="openai:gpt-4o", id="other-model")
        form = tag(
            "form",
            model,
            button("The same with this model", "model"),
            class_="row",
            data_do="model",
        )
        return join(shown, div("band stack controls", div("row", *profiles), form))

    def do_choose(self, event: Event) -> None:
        self.followed, self.wanted, self.shown, self.section = False, self._known(event), "step", ""

    def do_view(self, event: Event) -> None:
        self.shown = event["arg"] if event["arg"] in VIEWS else "step"

    def do_stop(self, event: Event) -> None:
        """Stop after every step of an agent, or no longer after that step or any of its agent."""
        key = self._known(event)
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
        self.followed, self.section, self.shown = True, "", "step"
        moves = {"step": session.step, "go": session.go, "back": session.back}
        moves.get(name, lambda: session.go(0))()

    do_go = do_back = do_start = do_step

    def do_profile(self, event: Event) -> None:
        name = str(event["arg"])
        self.fork(f"under profile {name}", settings=self.run.system.settings.of_profile(name))

    def do_model(self, event: Event) -> None:
        spec = typed_name(event, "model")
        self.fork(f"with model {spec}", models=open_model(spec))

    def do_mute(self, event: Event) -> None:
        """Ask the same of the graph without a triple that an answer stands on."""
        outputs = [step.output for step in self.run.steps if step.done]
        answers = [
            record for record in nested_records(tuple(outputs)) if isinstance(record, Answer)
        ]
        known = {triple_key(triple): triple for answer in answers for triple in answer.support}
        if (triple := known.get(str(event["arg"]))) is None or self.run.graph is None:
            raise SettingError(
                "no answer stands on this triple any more", hint="mute one that is shown"
            )
        self.fork("one triple muted", kg=self.run.graph.without(triple))

    def fork(self, name: str, **changes: Any) -> None:
        """Put the same question with changes, those of Run.fork, and show both. Raises SettingError."""
        other = session_of(self.run.fork(**changes))
        self.follow(other)
        self.others.append((name, other))
        self.shown = "compare"
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

    def _sides(self) -> list[ComparedRun]:
        compared = []
        for name, run in zip(self.names, self.runs, strict=True):
            state = run.run_state() if isinstance(run, Session) else RunState.of(run)
            compared.append(ComparedRun(name, state))
        return compared

    def view(self) -> Html:
        return render_comparison(*self._sides())

    def __repr__(self) -> str:
        first, second = self._sides()
        text = str(compare_steps(first.state.steps, second.state.steps))
        return f"{type(self).__name__}({single_line(first.name)} and {single_line(second.name)}: {text})"


def debug_question(report: Report, question: str, **options: Any) -> Debugger:
    """Open the debugger on a question of a report, at the step to blame, with the gold answer.

    ``options`` are those of ``Report.measured_run``. Raises what that raises.
    """
    measured = report.measured_run(question, **options)
    return Debugger(session_of(measured.run), chosen=measured.blamed_step, gold=measured.gold)
