"""A dialogue in a notebook: its turns, the newest in view; each opens to its triples and to the debugger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython import get_ipython

from kgwb.run import Run
from kgwb.show.html import (
    Html,
    aside,
    button,
    clean,
    count,
    div,
    dotted,
    join,
    short,
    span,
    spoken,
    state_sign,
    tag,
)
from kgwb.show.run import answer_state
from kgwb.show.terms import around, triples
from kgwb.ui.debugger import Debugger
from kgwb.ui.dialogue import Conversation
from kgwb.ui.glance import survey_of
from kgwb.ui.live import Event, Live, failure, inside
from kgwb.ui.session import session_of

if TYPE_CHECKING:
    from kgwb.workbench import Workbench

MOST_TRIPLES = 8
"""Triples shown of an opened turn; the debugger has them all."""


class Chat(Live):
    """The dialogue of a workbench: ask, open a turn, word it otherwise, and run the later ones again."""

    def __init__(self, workbench: Workbench) -> None:
        self.conversation = Conversation(workbench)
        self.opened = self.rewording = -1
        """The number of the turn that is open, and of the one that is worded otherwise; -1 for none."""
        self.debuggers: dict[str, Debugger] = {}
        """The debugger of every turn that was opened in one, by the run's id: nothing typed there is lost."""
        self.debugging = False
        self.draft = ""
        self.revision = 0
        self.survey = None if workbench.kg.remote else survey_of(workbench.kg)
        super().__init__()
        if self.survey is not None:
            self.survey.listeners.append(self.redraw)
        self.conversation.listeners.append(self.redraw)
        if (shell := get_ipython()) is not None:  # a cell may have asked: a workbench tells nobody
            shell.events.register("post_run_cell", lambda _: self.redraw())
        self.redraw()

    @property
    def working(self) -> bool:
        return bool(self.conversation.busy)

    def __repr__(self) -> str:
        workbench = self.conversation.workbench
        return f"Chat({count(len(self.conversation.turns), 'turn')} on {workbench.kg.source})"

    # --- what is shown --------------------------------------------------------------------------------------

    def view(self) -> Html:
        self.conversation.listen()
        turns = tuple(self._turn(number) for number in range(len(self.conversation.turns)))
        return join(
            self._head(),
            tag("ol", *turns, class_="turns", aria_live="polite"),
            self._remarks(),
            self._ask(),
            self._debugger(),
        )

    def static_view(self) -> Html:
        turns = (self._turn(number) for number in range(len(self.conversation.turns)))
        return join(self._head(), tag("ol", *turns, class_="turns"))

    def _head(self) -> Html:
        bench = self.conversation.workbench
        models = ", ".join(dict.fromkeys(model.name for model in bench.models.values()))
        about = f"about {clean(bench.kg.source)} · {bench.system.name} · {clean(models)}"
        forget = button("New dialogue", "forget", class_="ghost", off=self.working)
        return div("head", tag("h2", "Chat", class_="title"), span("soft small grow", about), forget)

    def _turn(self, number: int) -> Html:
        """A turn: question, understood as, answer in its colour, then what it stands on and cost."""
        run = self.conversation.turns[number]
        standing = session_of(run).standing()
        sign, word, big, under = answer_state(standing)
        opened = number == self.opened
        heard = run.turn.standalone if run.turn else ""
        buttons = span(
            "row controls",
            button("Go on", "resume", "run", "ghost", arg=number) if self._waits(run) else "",
            button("Reword", "reword", "hand", "ghost", arg=number),
            button("Close" if opened else "Open", "open", "open", "ghost", arg=number),
        )
        before = self.conversation.replaced.get(run.id)
        was = (
            ""
            if before is None
            else short(
                clean(
                    f"“{before.question}”: {before.answer}"
                    if before.question != run.question
                    else before.answer
                )
            )
        )
        stale = self.conversation.stale(number) and run.status != "running"
        return tag(
            "li",
            div(
                "row", span("num", number + 1), span("q grow", short(clean(run.question))), dots(run), buttons
            ),
            div("inner", aside("understood as "), tag("b", heard)) if heard else "",
            div(f"inner a {'run' if sign == 'wait' else sign}", tag("bdi", short(big))),
            div("inner meta row", dotted(state_sign(sign, word), span("", short(under)))),
            div("inner", state_sign("stale", "stale"), aside(" what was said before it has changed since"))
            if stale
            else "",
            div("inner soft", f"before: {was}") if was else "",
            self._reword_form(number, run) if number == self.rewording else "",
            self._open(run) if opened else "",
            id=f"turn-{number}",
        )

    def _waits(self, run: Run) -> bool:
        return run.status not in ("done", "running") and not self.working

    def _reword_form(self, number: int, run: Run) -> Html:
        label = "The question in other words"
        typed = tag(
            "input", type="text", name="question", value=run.question, aria_label=label, id=f"words-{number}"
        )
        return tag(
            "form",
            div("row", typed, button("Ask it so", "correct", "run", arg=number)),
            data_do="correct",
            data_arg=number,
            class_="inner controls",
        )

    def _open(self, run: Run) -> Html:
        """What an answer stands on, and the way to the debugger."""
        answer = run.answer
        parts = []
        if answer is not None and answer.support:
            support = triples(
                answer.support[:MOST_TRIPLES],
                around(run).named(answer.names),
                [one.term for one in answer.values],
            )
            left = len(answer.support) - MOST_TRIPLES
            parts = [
                span("caption", "It stands on"),
                support,
                aside(f"and {count(left, 'more triple')}") if left > 0 else "",
            ]
        label = "Close the debugger" if self.debugging else "Open in the debugger"
        graph = button("Subgraph", "graph", "sparql") if not self.debugging else ""
        return div("well inner stack", *parts, div("row controls", button(label, "debug", "step"), graph))

    def _remarks(self) -> Html:
        talk = self.conversation
        stale = any(talk.stale(number) for number in range(len(talk.turns)))
        rerun = button("Run the later turns again", "rerun", "stale") if stale and not self.working else ""
        failed = failure(talk.failure) if talk.failure is not None else ""
        busy = aside(f"{talk.busy} …") if talk.busy else ""
        return div("band stack", busy, rerun, failed) if busy or rerun or failed else Html()

    def _ask(self) -> Html:
        source = short(clean(self.conversation.workbench.kg.source), 40)
        typed = tag(
            "textarea",
            "\n",
            self.draft,
            name="question",
            rows=2,
            data_key="Enter",
            data_rev=self.revision,
            id="question",
            aria_label="Your question",
            placeholder=f"Ask about {source}. “it”, “he” and “there” may mean what came before.",
        )
        asked = {run.question for run in self.conversation.turns}
        examples = [
            tag("button", one, class_="chip", type="button", data_do="fill", data_arg=one)
            for one in (self.survey.answered if self.survey else ())
            if one not in asked
        ]
        hint = span(
            "hint",
            tag("kbd", "Enter"),
            " asks, ",
            tag("kbd", "Shift"),
            "+",
            tag("kbd", "Enter"),
            " begins a line",
        )
        ask = button("Ask", "ask", "run", "primary", off=self.working)
        stop = button("Cancel", "cancel", "stop") if self.working else ""
        row = div(
            "row",
            ask,
            stop,
            hint,
            span("grow"),
            *([aside("try"), *examples] if examples else []),
        )
        return tag(
            "form", typed, row, class_="ask stack", data_do="ask", data_follow=len(self.conversation.turns)
        )

    def _debugger(self) -> Html:
        """The debugger's own view of the opened turn; what is done in it is its own."""
        made = self._opened_debugger() if self.debugging else None
        return inside("debugger", made) if made else Html()

    def _opened_debugger(self) -> Debugger | None:
        if not 0 <= self.opened < len(self.conversation.turns):
            return None
        run = self.conversation.turns[self.opened]
        if run.id not in self.debuggers:
            made = self.debuggers[run.id] = Debugger(session_of(run))
            self.take_in(made)
        return self.debuggers[run.id]

    # --- what the person does -------------------------------------------------------------------------------

    def part(self, name: str) -> Live | None:
        made = self._opened_debugger() if self.debugging else None
        return made if made is None or name == "debugger" else made.part(name)

    def do_ask(self, event: Event) -> None:
        question = str(event.get("form", {}).get("question", ""))
        self.draft = question
        self.conversation.ask(question)
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
        if (made := self._opened_debugger()) is not None:
            made.shown = "graph"

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

    def do_forget(self, event: Event) -> None:
        self.conversation.forget()
        self.opened, self.rewording, self.debugging = -1, -1, False
        self.remark = "A new dialogue has begun; the runs of the old one are in chat.conversation.ended."


def dots(run: Run) -> Html:
    """A dot for each agent of the system, in the colour of its kind; empty where it had nothing to do."""
    worked = {step.agent for step in run.steps}
    agents = [agent for _, names in run.system.stages for agent in names]
    marks = (
        tag(
            "i",
            class_=f"{run.system.kind(agent)}{'' if agent in worked else ' dim'}",
            title=spoken(agent),
        )
        for agent in agents
    )
    return span("dots", *marks, role="img", aria_label=f"{len(worked)} agents worked")
