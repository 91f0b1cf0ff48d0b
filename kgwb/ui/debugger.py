"""Step through any system: the answer, the agents in their stages, the steps, and one of them in full."""

from __future__ import annotations

from typing import Any

from kgwb import llm
from kgwb.errors import SettingError
from kgwb.settings import PROFILES
from kgwb.show.compare import Side, comparison
from kgwb.show.html import Html, aside, button, div, fold, join, note, span, tabs, tag
from kgwb.show.run import Standing, answer_banner, flow_strip, head, run_body, timeline, waterfall
from kgwb.show.tell import answer_parts
from kgwb.show.terms import around
from kgwb.ui.cell import StepPanel
from kgwb.ui.live import Event, Live, inside, typed_name
from kgwb.ui.session import Session, Version, session_of
from kgwb.ui.subgraph import SubgraphPanel

VIEWS = ("step", "answer", "graph", "compare")
LABELS = {"step": "Step", "answer": "Answer", "graph": "Subgraph", "compare": "Compare"}
KEYS = (("j", ""), ("k", "move"), ("b", "stop here"), ("s", "step"), ("c", "continue"))


class Debugger(StepPanel):
    """One run of any system: step, go on, stop at breakpoints, go back, edit, cancel."""

    inside = True

    def __init__(self, session: Session, *, chosen: str = "", gold: str = "") -> None:
        """``chosen`` is the key of a step to show, else the one done last; ``gold`` the right answer."""
        self.gold = gold
        self.shown = "step"
        """The view that is open."""
        self.followed = not chosen
        """Whether the step that was done last is the one shown."""
        self.others: list[tuple[str, Session]] = []
        """The same question put otherwise."""
        self.subgraph: SubgraphPanel | None = None
        super().__init__(session, chosen)

    @property
    def key(self) -> str:
        if self.followed or not self.wanted:
            steps = self.run.steps
            return steps[-1].key if steps else self.run.system.agents[0].name
        return super().key

    def choose(self, key: str) -> None:
        """Show a step, or an agent that was not reached, in full."""
        self.followed, self.wanted, self.shown, self.section = False, key, "step", ""
        self.redraw()

    def close(self) -> None:
        if self.subgraph is not None:
            self.subgraph.close()
        super().close()

    def view(self) -> Html:
        standing, chosen = self.session.standing(), self.key
        busy, ended, begun = self.working, standing.ended, bool(self.run.steps)
        transport = div(
            "group",
            button("To the start", "start", "start", "square", off=busy or not begun),
            button("Back", "back", "back", "square", off=busy or not begun),
            button("Step", "step", "step", off=busy or ended, key="s", title="run one more step"),
            button(
                "Continue",
                "go",
                "run",
                "" if ended else "primary",
                off=busy or ended,
                key="c",
                title="to the next stop, or the end",
            ),
        )
        number = len(self.session.versions) + len(self.others)
        options = [
            (name, label, number if name == "compare" and number else "") for name, label in LABELS.items()
        ]
        stop = button("Cancel", "cancel", "stop") if self.session.busy else ""
        controls = div(
            "band row controls", transport, stop, span("grow"), tabs(options, self.shown, "view", bare=True)
        )
        views: dict[str, Any] = {
            "step": self.panel,
            "answer": self._answer,
            "graph": self._graph,
            "compare": self._compare,
        }
        keys = (join(tag("kbd", key), f" {word} " if word else " ") for key, word in KEYS)
        side = div("side", timeline(standing, chosen), div("foot controls", *keys))
        return join(
            head(self.run),
            answer_banner(standing, self._gold()),
            self.person.view(self.revision),
            controls,
            flow_strip(standing, chosen),
            div("split", side, div("main", views[self.shown]())),
        )

    def static_view(self) -> Html:
        return run_body(self.run)

    def __repr__(self) -> str:
        return repr(self.run)

    def _gold(self) -> Html:
        return div("", aside("the right answer is "), tag("b", self.gold)) if self.gold else Html()

    # --- the other views ------------------------------------------------------------------------------------

    def _answer(self) -> Html:
        answer, run = self.run.answer, self.run
        parts = (
            answer_parts(answer, around(run))
            if answer is not None and run.status == "done"
            else [aside("No answer yet.")]
        )
        time = fold(
            aside("Where the time went"), waterfall(tuple(self.session.steps.values()), run.calls), key="time"
        )
        return div("body stack", *parts, time)

    def part(self, name: str) -> Live | None:
        return self.subgraph if name == "graph" else None

    def _graph(self) -> Html:
        if self.subgraph is None:
            self.subgraph = SubgraphPanel(self.session, inside=True)
            self.take_in(self.subgraph)
        return inside("graph", self.subgraph)

    def _compare(self) -> Html:
        """The run before the latest edit, or put otherwise, beside the run as it stands."""
        ask = [button(f"The same under profile {name}", "profile", arg=name) for name in PROFILES]
        typed = tag(
            "input",
            type="text",
            name="model",
            placeholder="openai:gpt-4o",
            aria_label="another model",
            id="other-model",
        )
        model = tag("form", typed, button("The same with this model", "model"), class_="row", data_do="model")
        more = div("band stack controls", div("row", *ask), model)
        now = Side("as it stands", self.session.standing())
        if self.others:
            name, other = self.others[-1]
            if other.busy:
                return join(div("body soft", f"{name}: {other.busy} …"), more)
            return join(comparison(now, Side(name, other.standing())), more)
        if not self.session.versions:
            return join(
                div(
                    "body soft",
                    "Nothing to compare yet: edit a step, then continue; or put the question otherwise.",
                ),
                more,
            )
        stale = (
            div("body notes", note("Some steps are stale: continue to the end to compare them too."))
            if self.session.stale
            else ""
        )
        return join(
            stale,
            comparison(Side("as it was", standing_of(self.session.versions[-1], self.session)), now),
            more,
        )

    # --- what the person does -------------------------------------------------------------------------------

    def do_choose(self, event: Event) -> None:
        self.choose(self._known(event))

    def do_view(self, event: Event) -> None:
        self.shown = event["arg"] if event["arg"] in VIEWS else "step"

    def do_stop(self, event: Event) -> None:
        """Stop after every step of an agent, or no longer after that step or any of its agent."""
        key = self._known(event)
        agent, stops = key.partition("[")[0].partition("#")[0], self.run.breakpoints
        if stops.isdisjoint((key, agent)):
            stops.add(agent)
        else:
            stops.difference_update((key, agent))

    def _follow(self) -> None:
        self.followed, self.section, self.shown = True, "", "step"

    def do_step(self, event: Event) -> None:
        self._free_to_go()
        self._follow()
        self.session.step()

    def do_go(self, event: Event) -> None:
        self._free_to_go()
        self._follow()
        self.session.go()

    def _free_to_go(self) -> None:
        if self.session.standing().ended:
            raise SettingError("the run has come to its end", hint="go back, edit a step, or ask anew")

    def do_back(self, event: Event) -> None:
        self._follow()
        self.session.back()

    def do_start(self, event: Event) -> None:
        self._follow()
        self.session.go(0)

    def do_profile(self, event: Event) -> None:
        name = str(event["arg"])
        self.fork(f"under profile {name}", settings=PROFILES[name])

    def do_model(self, event: Event) -> None:
        spec = typed_name(event, "model")
        self.fork(f"with model {spec}", models=llm.model(spec))

    def fork(self, name: str, **changes: Any) -> None:
        """Put the same question with changes, those of Run.fork, and show both. Raises SettingError."""
        other = session_of(self.run.fork(**changes))
        other.listeners.append(self.redraw)
        self.others.append((name, other))
        self.shown = "compare"
        other.go()


def standing_of(version: Version, session: Session) -> Standing:
    """A version of a run as it stood then."""
    return Standing(session.run, version.steps, answer=version.answer, totals=version.totals)


__all__ = ["VIEWS", "Debugger"]
