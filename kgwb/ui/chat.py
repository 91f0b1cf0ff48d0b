"""A dialogue in a notebook: its turns, the newest in view; each opens to its triples and to the debugger."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol

from IPython import get_ipython

from kgwb.flow import Dialogue
from kgwb.kg import Graph
from kgwb.run import Run, Setup
from kgwb.run.run import check_question
from kgwb.show import html as h
from kgwb.show.explain import render_reasons
from kgwb.show.html import Html
from kgwb.show.run_state import answer_state
from kgwb.show.terms import context_of, render_triples
from kgwb.text import display_name, pluralize, shorten, single_line
from kgwb.ui.choosers import survey_of
from kgwb.ui.debugger import Debugger
from kgwb.ui.live import Event, Live, Part, progress, text_field
from kgwb.ui.session import Session, Worker, session_of

MOST_TRIPLES = 8
"""Triples shown of an opened turn; the debugger has them all."""


class Turns(Protocol):
    """The workbench, as far as a dialogue needs it."""

    kg: Graph
    setup: Setup
    runs: list[Run]

    @property
    def dialogue(self) -> Dialogue: ...
    def begin(self, question: str) -> Run: ...
    def forget(self) -> None: ...


class Conversation(Worker):
    """The dialogue of a workbench; one turn is executed at a time, and what is asked meanwhile waits.

    ``failure`` is what kept a turn from being run; what stops a turn is its own session's.
    """

    def __init__(self, workbench: Turns) -> None:
        super().__init__()
        self.workbench = workbench
        self.replaced: dict[str, Run] = {}
        """The run that stood in a turn before, by the id of the run that stands there now."""
        self.ended: list[tuple[Run, ...]] = []  # the runs of earlier dialogues
        self._now: Session | None = None
        self._heard: set[str] = set()
        self.hear()

    @property
    def turns(self) -> tuple[Run, ...]:
        """The run of every turn, oldest first."""
        return tuple(self.workbench.runs)

    def before(self, number: int) -> Dialogue:
        """What turn ``number``, counted from 0, has before it as things stand: the finished turns."""
        turns = self.workbench.dialogue.turns
        late = sum(run.turn is not None for run in self.turns[number:])
        return Dialogue(turns[: len(turns) - late])

    def stale(self, number: int) -> bool:
        """Whether the dialogue before a turn has changed since it was run."""
        return self.turns[number].dialogue != self.before(number)

    def ask(self, question: str) -> Future[None]:
        """The next turn, asked when those before it are answered. Raises QuestionError."""
        check_question(question, self.workbench.setup.settings)
        label = f"answering “{shorten(single_line(question), 80)}”"
        return self.do(label, lambda: self._go(-1, self.workbench.begin(question)))

    def correct(self, number: int, question: str) -> Future[None]:
        """Ask a turn in other words; what was put in by hand for the old words is left out. Raises as ask."""
        check_question(question, self.workbench.setup.settings)

        def correct() -> None:
            run = self.turns[number].fork(question=question, dialogue=self.before(number))
            run.overrides.clear()
            self._go(number, run)

        return self.do(f"answering turn {number + 1} again", correct)

    def resume(self, number: int) -> Future[None]:
        """Go on with a turn that failed, was cancelled or waits."""
        return self.do(f"going on with turn {number + 1}", lambda: self._again(number))

    def rerun(self) -> Future[None]:
        """Run each turn that is stale again, after the dialogue before it as it is now.

        Only what that changes is asked again. A turn that fails is left out of the dialogue.
        """

        def rerun() -> None:
            for number in range(len(self.turns)):
                if self.stale(number) and not self.cancelled:
                    self._again(number)

        return self.do("running the later turns again", rerun)

    def cancel(self) -> None:
        """Stop what is done now, and drop what waits."""
        super().cancel()
        if self._now is not None:
            self._now.cancel()

    def end(self) -> None:
        """Begin a new dialogue; the old one's runs are in ``ended``. Raises SettingError if busy."""
        self.free()
        self.ended.append(self.turns)
        self.workbench.forget()
        self.tell()

    def hear(self) -> None:
        """Follow what is done to any turn, wherever that is."""
        for run in self.turns:
            if run.id not in self._heard:
                self._heard.add(run.id)
                session_of(run).listen(self.tell)

    def _again(self, number: int) -> None:
        run = self.turns[number]
        self._go(number, run.fork(dialogue=self.before(number)) if self.stale(number) else run)

    def _go(self, number: int, run: Run) -> None:
        """Run a turn, in the place of the run that stood there."""
        if (before := self.turns[number]) is not run:
            self.replaced[run.id], self.workbench.runs[number] = before, run
        self.hear()
        self._now = session_of(run)
        try:
            if not self.cancelled:
                self._now.go().result()
        finally:
            self._now = None


class Chat(Live):
    """The dialogue of a workbench: ask, open a turn, word it otherwise, and run the later ones again."""

    def __init__(self, workbench: Turns) -> None:
        self.conversation = Conversation(workbench)
        self.opened = self.rewording = -1
        """The number of the turn that is open, and of the one that is worded otherwise; -1 for none."""
        self.debuggers: dict[str, Debugger] = {}
        """The debugger of every turn that was opened in one, by the run's id: nothing typed there is lost."""
        self.debugging = False
        self.draft = ""
        self.revision = 0
        self.survey = None if workbench.kg.remote else survey_of(workbench.kg)
        super().__init__(self.conversation, *([self.survey] if self.survey else []))
        if (
            shell := get_ipython()
        ) is not None:  # a cell may have asked: a workbench has no listeners
            shell.events.register("post_run_cell", lambda _: self.redraw())

    @property
    def working(self) -> bool:
        return bool(self.conversation.busy)

    def __repr__(self) -> str:
        workbench = self.conversation.workbench
        return f"Chat({pluralize(len(self.conversation.turns), 'turn')} on {workbench.kg.source})"

    def parts(self) -> Mapping[str, Part]:
        if not self.debugging or not 0 <= self.opened < len(self.conversation.turns):
            return {}
        run = self.conversation.turns[self.opened]
        if run.id not in self.debuggers:
            self.debuggers[run.id] = Debugger(session_of(run))
            self.debuggers[run.id].outer = self
        return {"debugger": self.debuggers[run.id]}

    def view(self) -> Html:
        talk = self.conversation
        talk.hear()
        stale = any(map(talk.stale, range(len(talk.turns)))) and not self.working
        rerun = h.button("Run the later turns again", "rerun", "stale")
        return h.join(
            self.static_view(),
            progress(talk),
            h.div("band", rerun) if stale else "",
            self._ask(),
            self.inside("debugger") if self.parts() else "",
        )

    def static_view(self) -> Html:
        bench = self.conversation.workbench
        models = ", ".join(dict.fromkeys(model.name for model in bench.setup.models.values()))
        about = f"about {single_line(bench.kg.source)} · {bench.setup.system.name} · {single_line(models)}"
        forget = h.button("New dialogue", "forget", class_="ghost", off=self.working)
        head = h.div(
            "head", h.tag("h2", "Chat", class_="title"), h.span("soft small grow", about), forget
        )
        turns = map(self._turn, range(len(self.conversation.turns)), self.conversation.turns)
        return h.join(head, h.tag("ol", *turns, class_="turns", aria_live="polite"))

    def _turn(self, number: int, run: Run) -> Html:
        """A turn: question, a dot for each agent, dim if it had nothing to do, the answer and its cost."""
        sign, word, big, under = answer_state(session_of(run).run_state())
        opened, heard = number == self.opened, run.turn.standalone if run.turn else ""
        waits = run.status not in ("done", "running") and not self.working
        buttons = (
            h.button("Go on", "resume", "run", "ghost", arg=number) if waits else "",
            h.button("Reword", "reword", "hand", "ghost", arg=number),
            h.button("Close" if opened else "Open", "open", "open", "ghost", arg=number),
        )
        question = h.span("q grow", shorten(single_line(run.question)))
        place, controls = h.span("num", number + 1), h.span("row controls", *buttons)
        worked = {step.agent for step in run.steps}
        dots = [
            h.tag(
                "i",
                class_=f"{run.system.agent_kind(agent)}{'' if agent in worked else ' dim'}",
                title=display_name(agent),
            )
            for _, agents in run.system.stages
            for agent in agents
        ]
        marks = h.span("dots", *dots, role="img", aria_label=f"{len(worked)} agents worked")
        parts = [h.div("row", place, question, marks, controls)]
        if heard:
            parts.append(h.div("inner", h.aside("understood as "), h.tag("b", heard)))
        parts.append(
            h.div(f"inner a {'run' if sign == 'wait' else sign}", h.tag("bdi", shorten(big)))
        )
        parts.append(
            h.div("inner meta row", h.dotted(h.state_sign(sign, word), h.span("", shorten(under))))
        )
        if self.conversation.stale(number) and run.status != "running":
            remark = h.aside(" what was said before it has changed since")
            parts.append(h.div("inner", h.state_sign("stale", "stale"), remark))
        if (before := self.conversation.replaced.get(run.id)) is not None:
            asked = f"“{before.question}”: " if before.question != run.question else ""
            parts.append(
                h.div("inner soft", f"before: {shorten(single_line(f'{asked}{before.answer}'))}")
            )
        if number == self.rewording:
            typed = text_field(
                "question", "The question in other words", run.question, id=f"words-{number}"
            )
            row = h.div("row", typed, h.button("Ask it so", "correct", "run", arg=number))
            parts.append(
                h.tag("form", row, data_do="correct", data_arg=number, class_="inner controls")
            )
        return h.tag("li", *parts, self._open(run) if opened else "", id=f"turn-{number}")

    def _open(self, run: Run) -> Html:
        """What an answer stands on, and the way to the debugger."""
        answer, parts = run.answer, []
        if answer is not None and answer.support:
            names, terms = (
                context_of(run).with_names(answer.names),
                [value.term for value in answer.values],
            )
            left = len(answer.support) - MOST_TRIPLES
            support = render_triples(answer.support[:MOST_TRIPLES], names, terms)
            more = h.aside(f"and {pluralize(left, 'more triple')}") if left > 0 else ""
            parts = [h.span("caption", "It stands on"), support, more]
        parts.append(render_reasons(answer, run.steps))
        label = "Close the debugger" if self.debugging else "Open in the debugger"
        graph = h.button("Subgraph", "graph", "sparql") if not self.debugging else ""
        controls = h.div("row controls", h.button(label, "debug", "step"), graph)
        return h.div("well inner stack", *parts, controls)

    def _ask(self) -> Html:
        source, turns = (
            shorten(single_line(self.conversation.workbench.kg.source), 40),
            self.conversation.turns,
        )
        about = {
            **{"name": "question", "id": "question", "rows": 2, "data_key": "Enter"},
            **{"data_rev": self.revision, "aria_label": "Your question"},
            "placeholder": f"Ask about {source}. “it”, “he” and “there” may mean what came before.",
        }
        asked = {run.question for run in turns}
        examples = [
            h.tag(
                "button", question, class_="chip", type="button", data_do="fill", data_arg=question
            )
            for question in (self.survey.answered if self.survey else ())
            if question not in asked
        ]
        keys = (h.tag("kbd", "Enter"), " asks, ", h.tag("kbd", "Shift"), "+", h.tag("kbd", "Enter"))
        row = h.div(
            "row",
            h.button("Ask", "ask", "run", "primary"),
            h.button("Cancel", "cancel", "stop") if self.working else "",
            h.span("hint", *keys, " begins a line"),
            h.span("grow"),
            *([h.aside("try"), *examples] if examples else []),
        )
        typed = h.tag("textarea", "\n", self.draft, **about)
        follow = len(turns) + len(self.conversation.waiting)
        return h.tag("form", typed, row, class_="ask stack", data_do="ask", data_follow=follow)

    def do_ask(self, event: Event) -> None:
        self.draft = str(event.get("form", {}).get("question", ""))
        self.conversation.ask(self.draft)
        self.draft, self.opened, self.debugging = "", -1, False
        self.revision += 1

    def do_fill(self, event: Event) -> None:
        self.draft = str(event["arg"])
        self.revision += 1

    def do_open(self, event: Event) -> None:
        number = int(event["arg"])
        self.opened, self.debugging = -1 if number == self.opened else number, False

    def do_debug(self, event: Event) -> None:
        self.debugging = not self.debugging

    def do_graph(self, event: Event) -> None:
        self.debugging = True
        if isinstance(debugger := self.parts().get("debugger"), Debugger):
            debugger.shown = "graph"

    def do_reword(self, event: Event) -> None:
        number = int(event["arg"])
        self.rewording = -1 if number == self.rewording else number

    def do_correct(self, event: Event) -> None:
        self.conversation.correct(int(event["arg"]), str(event["form"]["question"]))
        self.rewording = -1

    def do_resume(self, event: Event) -> None:
        self.conversation.resume(int(event["arg"]))

    def do_rerun(self, event: Event) -> None:
        self.conversation.rerun()

    def do_cancel(self, event: Event) -> None:
        self.conversation.cancel()

    def do_forget(self, event: Event) -> str:
        self.conversation.end()
        self.opened, self.rewording, self.debugging = -1, -1, False
        return "A new dialogue has begun; the runs of the old one are in chat.conversation.ended."
