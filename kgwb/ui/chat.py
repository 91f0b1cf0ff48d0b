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
from kgwb.ui.choosers import overview_of
from kgwb.ui.debugger import Debugger
from kgwb.ui.live import Event, Live, Part, render_progress, text_input
from kgwb.ui.session import Session, Worker, session_of

MAX_TRIPLES = 8
"""Triples shown of an opened turn; the debugger has them all."""


class Turns(Protocol):
    """The workbench, as far as a dialogue needs it."""

    kg: Graph
    setup: Setup
    runs: list[Run]

    @property
    def dialogue(self) -> Dialogue: ...
    def begin(self, question: str) -> Run: ...
    def new_dialogue(self) -> None: ...


class Conversation(Worker):
    """The dialogue of a workbench; one turn is executed at a time, and what is asked meanwhile waits.

    ``failure`` is what kept a turn from being run; what stops a turn is its own session's.
    """

    def __init__(self, workbench: Turns) -> None:
        super().__init__()
        self.workbench = workbench
        self.replaced_runs: dict[str, Run] = {}
        """The run that stood in a turn before, by the id of the run that stands there now."""
        self.ended: list[tuple[Run, ...]] = []  # the runs of earlier dialogues
        self._current_session: Session | None = None
        self._subscribed_ids: set[str] = set()
        self.subscribe_to_runs()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of every turn, oldest first."""
        return tuple(self.workbench.runs)

    def dialogue_before(self, number: int) -> Dialogue:
        """What turn ``number``, counted from 0, has before it as things stand: the finished turns."""
        turns = self.workbench.dialogue.turns
        late = sum(run.turn is not None for run in self.runs[number:])
        return Dialogue(turns[: len(turns) - late])

    def is_stale(self, number: int) -> bool:
        """Whether the dialogue before a turn has changed since it was run."""
        return self.runs[number].dialogue != self.dialogue_before(number)

    def ask(self, question: str) -> Future[None]:
        """The next turn, asked when those before it are answered. Raises QuestionError."""
        check_question(question, self.workbench.setup.settings)
        label = f"answering “{shorten(single_line(question), 80)}”"
        return self.submit(label, lambda: self._run_turn(-1, self.workbench.begin(question)))

    def reword(self, number: int, question: str) -> Future[None]:
        """Ask a turn in other words; what was put in by hand for the old words is left out. Raises as ask."""
        check_question(question, self.workbench.setup.settings)

        def correct() -> None:
            run = self.runs[number].fork(question=question, dialogue=self.dialogue_before(number))
            run.overrides.clear()
            self._run_turn(number, run)

        return self.submit(f"answering turn {number + 1} again", correct)

    def resume(self, number: int) -> Future[None]:
        """Go on with a turn that failed, was cancelled or waits."""
        return self.submit(f"going on with turn {number + 1}", lambda: self._resume_turn(number))

    def rerun_stale(self) -> Future[None]:
        """Run each turn that is stale again, after the dialogue before it as it is now.

        Only what that changes is asked again. A turn that fails is left out of the dialogue.
        """

        def rerun() -> None:
            for number in range(len(self.runs)):
                if self.is_stale(number) and not self.cancelled:
                    self._resume_turn(number)

        return self.submit("running the later turns again", rerun)

    def cancel(self) -> None:
        """Stop what is done now, and drop what waits."""
        super().cancel()
        if self._current_session is not None:
            self._current_session.cancel()

    def begin_new(self) -> None:
        """Begin a new dialogue; the old one's runs are in ``ended``. Raises SettingError if busy."""
        self.require_idle()
        self.ended.append(self.runs)
        self.workbench.new_dialogue()
        self.notify()

    def subscribe_to_runs(self) -> None:
        """Follow what is done to any turn, wherever that is."""
        for run in self.runs:
            if run.id not in self._subscribed_ids:
                self._subscribed_ids.add(run.id)
                session_of(run).subscribe(self.notify)

    def _resume_turn(self, number: int) -> None:
        run = self.runs[number]
        self._run_turn(
            number,
            run.fork(dialogue=self.dialogue_before(number)) if self.is_stale(number) else run,
        )

    def _run_turn(self, number: int, run: Run) -> None:
        """Run a turn, in the place of the run that stood there."""
        if (before := self.runs[number]) is not run:
            self.replaced_runs[run.id], self.workbench.runs[number] = before, run
        self.subscribe_to_runs()
        self._current_session = session_of(run)
        try:
            if not self.cancelled:
                self._current_session.go().result()
        finally:
            self._current_session = None


class Chat(Live):
    """The dialogue of a workbench: ask, open a turn, word it otherwise, and run the later ones again."""

    def __init__(self, workbench: Turns) -> None:
        self.conversation = Conversation(workbench)
        self.open_turn = self.reworded_turn = -1
        """The number of the turn that is open, and of the one that is worded otherwise; -1 for none."""
        self.debuggers: dict[str, Debugger] = {}
        """The debugger of every turn that was opened in one, by the run's id: nothing typed there is lost."""
        self.debugger_is_open = False
        self.draft = ""
        self.revision = 0
        self.overview = None if workbench.kg.remote else overview_of(workbench.kg)
        super().__init__(self.conversation, *([self.overview] if self.overview else []))
        if (
            shell := get_ipython()
        ) is not None:  # a cell may have asked: a workbench has no listeners
            shell.events.register("post_run_cell", lambda _: self.redraw())

    @property
    def is_busy(self) -> bool:
        return bool(self.conversation.current_task)

    def __repr__(self) -> str:
        workbench = self.conversation.workbench
        return f"Chat({pluralize(len(self.conversation.runs), 'turn')} on {workbench.kg.source})"

    def children(self) -> Mapping[str, Part]:
        if not self.debugger_is_open or not 0 <= self.open_turn < len(self.conversation.runs):
            return {}
        run = self.conversation.runs[self.open_turn]
        if run.id not in self.debuggers:
            self.debuggers[run.id] = Debugger(session_of(run))
            self.debuggers[run.id].parent = self
        return {"debugger": self.debuggers[run.id]}

    def view(self) -> Html:
        talk = self.conversation
        talk.subscribe_to_runs()
        stale = any(map(talk.is_stale, range(len(talk.runs)))) and not self.is_busy
        rerun = h.button("Run the later turns again", "rerun", "stale")
        return h.join(
            self.render_static(),
            render_progress(talk),
            h.div("band", rerun) if stale else "",
            self._render_question_form(),
            self.render_child("debugger") if self.children() else "",
        )

    def render_static(self) -> Html:
        bench = self.conversation.workbench
        models = ", ".join(dict.fromkeys(model.name for model in bench.setup.models.values()))
        about = f"about {single_line(bench.kg.source)} · {bench.setup.system.name} · {single_line(models)}"
        forget = h.button("New dialogue", "forget", class_="ghost", disabled=self.is_busy)
        head = h.div(
            "head", h.tag("h2", "Chat", class_="title"), h.span("soft small grow", about), forget
        )
        turns = map(self._render_turn, range(len(self.conversation.runs)), self.conversation.runs)
        return h.join(head, h.tag("ol", *turns, class_="turns", aria_live="polite"))

    def _render_turn(self, number: int, run: Run) -> Html:
        """A turn: question, a dot for each agent, dim if it had nothing to do, the answer and its cost."""
        sign, word, big, under = answer_state(session_of(run).run_state())
        opened, heard = number == self.open_turn, run.turn.standalone if run.turn else ""
        waits = run.status not in ("done", "running") and not self.is_busy
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
            parts.append(h.div("inner", h.muted_text("understood as "), h.tag("b", heard)))
        parts.append(
            h.div(f"inner a {'run' if sign == 'wait' else sign}", h.tag("bdi", shorten(big)))
        )
        parts.append(
            h.div(
                "inner meta row",
                h.join_with_dots(h.state_badge(sign, word), h.span("", shorten(under))),
            )
        )
        if self.conversation.is_stale(number) and run.status != "running":
            remark = h.muted_text(" what was said before it has changed since")
            parts.append(h.div("inner", h.state_badge("stale", "stale"), remark))
        if (before := self.conversation.replaced_runs.get(run.id)) is not None:
            asked = f"“{before.question}”: " if before.question != run.question else ""
            parts.append(
                h.div("inner soft", f"before: {shorten(single_line(f'{asked}{before.answer}'))}")
            )
        if number == self.reworded_turn:
            typed = text_input(
                "question", "The question in other words", run.question, id=f"words-{number}"
            )
            row = h.div("row", typed, h.button("Ask it so", "correct", "run", arg=number))
            parts.append(
                h.tag("form", row, data_do="correct", data_arg=number, class_="inner controls")
            )
        return h.tag("li", *parts, self._render_support(run) if opened else "", id=f"turn-{number}")

    def _render_support(self, run: Run) -> Html:
        """What an answer stands on, and the way to the debugger."""
        answer, parts = run.answer, []
        if answer is not None and answer.support:
            names, terms = (
                context_of(run).with_names(answer.names),
                [value.term for value in answer.values],
            )
            left = len(answer.support) - MAX_TRIPLES
            support = render_triples(answer.support[:MAX_TRIPLES], names, terms)
            more = h.muted_text(f"and {pluralize(left, 'more triple')}") if left > 0 else ""
            parts = [h.span("caption", "It stands on"), support, more]
        parts.append(render_reasons(answer, run.steps))
        label = "Close the debugger" if self.debugger_is_open else "Open in the debugger"
        graph = h.button("Subgraph", "graph", "sparql") if not self.debugger_is_open else ""
        controls = h.div("row controls", h.button(label, "debug", "step"), graph)
        return h.div("well inner stack", *parts, controls)

    def _render_question_form(self) -> Html:
        source, turns = (
            shorten(single_line(self.conversation.workbench.kg.source), 40),
            self.conversation.runs,
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
            for question in (self.overview.example_answers if self.overview else ())
            if question not in asked
        ]
        keys = (h.tag("kbd", "Enter"), " asks, ", h.tag("kbd", "Shift"), "+", h.tag("kbd", "Enter"))
        row = h.div(
            "row",
            h.button("Ask", "ask", "run", "primary"),
            h.button("Cancel", "cancel", "stop") if self.is_busy else "",
            h.span("hint", *keys, " begins a line"),
            h.span("grow"),
            *([h.muted_text("try"), *examples] if examples else []),
        )
        typed = h.tag("textarea", "\n", self.draft, **about)
        follow = len(turns) + len(self.conversation.queued_tasks)
        return h.tag("form", typed, row, class_="ask stack", data_do="ask", data_follow=follow)

    def do_ask(self, event: Event) -> None:
        self.draft = str(event.get("form", {}).get("question", ""))
        self.conversation.ask(self.draft)
        self.draft, self.open_turn, self.debugger_is_open = "", -1, False
        self.revision += 1

    def do_fill(self, event: Event) -> None:
        self.draft = str(event["arg"])
        self.revision += 1

    def do_open(self, event: Event) -> None:
        number = int(event["arg"])
        self.open_turn, self.debugger_is_open = -1 if number == self.open_turn else number, False

    def do_debug(self, event: Event) -> None:
        self.debugger_is_open = not self.debugger_is_open

    def do_graph(self, event: Event) -> None:
        self.debugger_is_open = True
        if isinstance(debugger := self.children().get("debugger"), Debugger):
            debugger.selected_view = "graph"

    def do_reword(self, event: Event) -> None:
        number = int(event["arg"])
        self.reworded_turn = -1 if number == self.reworded_turn else number

    def do_correct(self, event: Event) -> None:
        self.conversation.reword(int(event["arg"]), str(event["form"]["question"]))
        self.reworded_turn = -1

    def do_resume(self, event: Event) -> None:
        self.conversation.resume(int(event["arg"]))

    def do_rerun(self, event: Event) -> None:
        self.conversation.rerun_stale()

    def do_cancel(self, event: Event) -> None:
        self.conversation.cancel()

    def do_forget(self, event: Event) -> str:
        self.conversation.begin_new()
        self.open_turn, self.reworded_turn, self.debugger_is_open = -1, -1, False
        return "A new dialogue has begun; the runs of the old one are in chat.conversation.ended."
