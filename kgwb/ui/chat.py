"""The widget of a dialogue. A turn opens to its supporting triples, and to the debugger."""

from __future__ import annotations

from collections.abc import Mapping

from IPython import get_ipython

from kgwb.bench.formats import DEFAULT_FILE, keep_as_gold
from kgwb.run import Run
from kgwb.run.record import KeptConversation
from kgwb.show.answers import render_texts
from kgwb.show.explain import render_questions, render_reasons, things_of_refusal
from kgwb.show.html import Html
from kgwb.show.run import render_notices
from kgwb.show.run_state import answer_view
from kgwb.show.terms import context_of, render_omitted_triples, render_triples
from kgwb.text import MAX_LABEL_CHARS, pluralize, shorten, single_line, source_name
from kgwb.ui.choosers import Glance, overview_of
from kgwb.ui.conversation import Conversation, DialogueWorkbench, find_able_system, offered_readings
from kgwb.ui.debugger import Debugger
from kgwb.ui.live import (
    Event,
    Live,
    Part,
    argument_of,
    form_of,
    render_page,
    render_progress,
)
from kgwb.ui.session import session_of

MAX_TRIPLES = 8
"""Supporting triples shown of an open turn; the debugger shows all."""
MAX_CONVERSATIONS = 30
"""Conversations of a file that are listed."""


class Chat(Live):
    """The widget of a workbench's dialogue: ask, open a turn, reword it, run later turns again."""

    def __init__(self, workbench: DialogueWorkbench) -> None:
        """Follow the dialogue of a workbench, and begin the overview of its graph.

        A remote graph has no overview: surveying an endpoint would cost its owner many queries. In
        Jupyter, the widget is also drawn again after each cell was run.
        """
        self.conversation = Conversation(workbench)
        self.open_turn: int | None = None
        """The number of the open turn."""
        self.reworded_turn: int | None = None
        """The number of the turn whose wording is being edited."""
        self.debuggers: dict[str, Debugger] = {}
        """The debugger of every turn that was opened in one, by the id of the run.

        They are kept, so that nothing that was typed in them is lost.
        """
        self.debugger_is_open = False
        self.draft = ""
        """The text in the field for the next question."""
        self.revision = 0
        """Increased whenever the field must take over ``draft``."""
        self.shows_conversations = False
        """Whether the conversations in the workbench's file are listed."""
        self.overview: Glance | None = None
        """Of the graph; None if it is a remote one."""
        super().__init__(self.conversation)
        if not workbench.kg.remote:
            self.overview = overview_of(workbench.kg)
            self.subscribe_to(self.overview)
        shell = get_ipython()
        if shell is not None:
            # The code of a cell may have asked a question, and a workbench has no listeners.
            shell.events.register("post_run_cell", lambda _result: self.redraw())

    @property
    def is_busy(self) -> bool:
        """Whether a turn is being executed."""
        return bool(self.conversation.current_task)

    def __repr__(self) -> str:
        turns = pluralize(len(self.conversation.runs), "turn")
        source = source_name(self.conversation.workbench.kg.source)
        return f"Chat({turns} on {source})"

    def children(self) -> Mapping[str, Part | None]:
        """Return the debugger of the open turn under "debugger"; {} if no debugger is open.

        It is made when it is first opened, and kept for each run.
        """
        run = self._opened_run()
        if run is None or not self.debugger_is_open:
            return {}
        if run.id not in self.debuggers:
            debugger = Debugger(session_of(run))
            debugger.parent = self
            self.debuggers[run.id] = debugger
        return {"debugger": self.debuggers[run.id]}

    def _opened_run(self) -> Run | None:
        """Return the run of the open turn; None if no turn is open or there is no such turn."""
        number = self.open_turn
        runs = self.conversation.runs
        if number is None or not 0 <= number < len(runs):
            return None
        return runs[number]

    # The page

    def view(self) -> Html:
        """Render the dialogue, the progress, the field for a question, and an open debugger.

        The chat subscribes to changes in all turns. Stale turns can be run again while nothing is
        executed. Example questions that were not asked yet are offered.
        """
        conversation = self.conversation
        conversation.subscribe_to_runs()
        turn_count = len(conversation.runs)
        run = self._opened_run()
        return self._render(
            is_interactive=True,
            notices=render_notices(conversation.notices_of_runs),
            progress=render_progress(conversation),
            has_stale_turns=any(map(conversation.is_stale, range(turn_count))),
            newest_turn=turn_count + len(conversation.queued_tasks),
            examples=self._unasked_examples(),
            conversations=self._other_conversations(),
            debugger=self.render_child("debugger", focus=f"debugger-{run.id}" if run else ""),
        )

    def render_static(self) -> Html:
        return self._render(is_interactive=False)

    def _render(self, *, is_interactive: bool, **values: object) -> Html:
        """Render the template chat.html with the header and the turns of the dialogue.

        The header names the graph, the system and each model once. If interactive, the rest of the
        page is rendered too, from ``values``.
        """
        workbench = self.conversation.workbench
        models = workbench.setup.models.values()
        runs = self.conversation.runs
        return render_page(
            "chat.html",
            chat=self,
            source=source_name(workbench.kg.source),
            source_in_full=workbench.kg.source,
            system=workbench.setup.system,
            model_names=dict.fromkeys(model.name for model in models),
            earlier_turns=self.conversation.dialogue_before(0).turns,
            turns=[self._render_turn(number, run) for number, run in enumerate(runs)],
            is_interactive=is_interactive,
            **values,
        )

    def _render_turn(self, number: int, run: Run) -> Html:
        """Render a turn. What only an open turn shows is rendered only for this turn.

        An open turn has the triples and texts that support its answer, or why there is none. Below
        a question that was not answered stand predicates of what it is about, if the turn is open
        or the newest: one click puts a question for one.
        """
        is_open = number == self.open_turn
        support = Html()
        reasons = Html()
        if is_open:
            support = _render_support(run)
            reasons = render_reasons(run.answer, run.steps, run.unrecorded_graph)
        things = Html()
        if is_open or run is self.conversation.runs[-1]:
            found = things_of_refusal(run.answer, run.question, run.steps, run.unrecorded_graph)
            things = render_questions(found)
        return render_page(
            "chat_turn.html",
            chat=self,
            run=run,
            number=number,
            answer=answer_view(session_of(run).run_state()),
            max_label_chars=MAX_LABEL_CHARS,
            worked={step.agent for step in run.steps},
            previous_answer=self._previous_answer(run),
            able_system=find_able_system(run),
            readings=offered_readings(run),
            is_stale=self.conversation.is_stale(number) and run.status != "running",
            is_open=is_open,
            support=support,
            reasons=reasons,
            things=things,
        )

    def _previous_answer(self, run: Run) -> str:
        """Return the answer of the run that this one replaced; "" if it replaced none.

        If that run had another question, the question stands before the answer.
        """
        previous = self.conversation.replaced_runs.get(run.id)
        if previous is None:
            return ""
        text = str(previous.answer)
        if previous.question != run.question:
            text = f"“{previous.question}”: {text}"
        return shorten(single_line(text))

    def _unasked_examples(self) -> list[str]:
        """Return the example questions of the graph that are not in the dialogue yet.

        They are in the order of the overview; empty before the graph was surveyed.
        """
        if self.overview is None:
            return []
        examples = list(self.overview.example_answers)  # the worker may add one meanwhile
        asked = {run.question for run in self.conversation.runs}
        return [question for question in examples if question not in asked]

    def _other_conversations(self) -> list[KeptConversation]:
        """Return the conversations in the workbench's file but the present one, newest first.

        At most MAX_CONVERSATIONS are returned.
        """
        workbench = self.conversation.workbench
        others = [kept for kept in workbench.conversations if kept.id != workbench.conversation_id]
        return others[-MAX_CONVERSATIONS:][::-1]

    # Events

    def do_conversations(self, event: Event) -> None:
        """List the conversations in the file, or hide the list."""
        self.shows_conversations = not self.shows_conversations

    def do_open_conversation(self, event: Event) -> None:
        """Go on with a conversation of the file. The event's ``arg`` is its id.

        Raises SettingError while a turn is executed or for one over another graph, and InputError
        if the file does not have it.
        """
        self.conversation.open_kept(argument_of(event))
        self.shows_conversations = False
        self.open_turn = None
        self.reworded_turn = None
        self.debugger_is_open = False

    def do_ask(self, event: Event) -> None:
        """Ask the typed question, and close the open turn. The text stays if it cannot be asked.

        The question is submitted to the worker and answered later. Raises QuestionError if it is
        empty or too long.
        """
        self.draft = str(form_of(event).get("question", ""))
        self.conversation.ask(self.draft)
        self.draft = ""
        self.revision += 1
        self.open_turn = None
        self.debugger_is_open = False

    def do_fill(self, event: Event) -> None:
        """Put the question of the event's ``arg`` into the field, so that the person can ask it."""
        self.draft = argument_of(event)
        self.revision += 1

    def do_open(self, event: Event) -> None:
        """Open a turn, or close it if it is open. The debugger is closed in any case."""
        number = int(event["arg"])
        self.open_turn = _toggle(self.open_turn, number)
        self.debugger_is_open = False

    def do_debug(self, event: Event) -> None:
        """Open the debugger of the open turn, or close it."""
        self.debugger_is_open = not self.debugger_is_open

    def do_gold(self, event: Event) -> str:
        """Write the answer of the open turn to DEFAULT_FILE as gold. Returns a message.

        Nothing is written, and "" returned, if no turn is open. Raises InputError if the turn has
        no answer, or the file cannot be used.
        """
        run = self._opened_run()
        if run is None:
            return ""
        entry = keep_as_gold(run)
        return f"kept as question {entry['id']} of {DEFAULT_FILE}; the debugger can correct it"

    def do_graph(self, event: Event) -> None:
        """Open the debugger of the open turn, with the subgraph selected."""
        self.debugger_is_open = True
        debugger = self.children().get("debugger")
        if isinstance(debugger, Debugger):
            debugger.selected_view = "graph"

    def do_reword(self, event: Event) -> None:
        """Open the field for another wording of a turn, or close it if it is open.

        The event's ``arg`` is the number of the turn.
        """
        number = int(event["arg"])
        self.reworded_turn = _toggle(self.reworded_turn, number)

    def do_correct(self, event: Event) -> None:
        """Ask another wording of a turn's question, and close the field for it.

        The event has the number of the turn, and the question in its form. Raises QuestionError if
        it is empty or too long; the field stays open then.
        """
        number = int(event["arg"])
        question = str(event["form"]["question"])
        self.conversation.reword(number, question)
        self.reworded_turn = None

    def do_handover(self, event: Event) -> None:
        """Ask the system that can express the question of a turn, in its place."""
        self.conversation.hand_over(int(event["arg"]))

    def do_reading(self, event: Event) -> None:
        """Read the question of a turn in another way, in its place.

        The event has the numbers of the turn and of the reading. Raises SettingError if there is no
        such reading.
        """
        turn, reading = map(int, argument_of(event).split())
        self.conversation.read_as(turn, reading)

    def do_resume(self, event: Event) -> None:
        """Submit the rest of the turn whose number is the event's ``arg``."""
        self.conversation.resume(int(event["arg"]))

    def do_rerun(self, event: Event) -> None:
        """Submit an execution of all stale turns."""
        self.conversation.rerun_stale()

    def do_cancel(self, event: Event) -> None:
        """Cancel the turn that is being executed, and drop the queue."""
        self.conversation.cancel()

    def do_forget(self, event: Event) -> str:
        """Begin a new dialogue, and return a message that says so. ``do_recall`` undoes it.

        Raises SettingError while a turn is executed.
        """
        self.conversation.begin_new()
        self.open_turn = None
        self.reworded_turn = None
        self.debugger_is_open = False
        return "A new dialogue has begun."

    def do_recall(self, event: Event) -> None:
        """Bring back the dialogue that was ended last, in place of one without turns.

        Raises SettingError if there is none, if the new dialogue has turns, or while one is executed.
        """
        self.conversation.recall_ended()


def _toggle(selected: int | None, number: int) -> int | None:
    """Return the number, to be selected; None if it is selected already."""
    if number == selected:
        return None
    return number


def _render_support(run: Run) -> Html:
    """Render the first MAX_TRIPLES supporting triples of the answer, in which its values stand out.

    Below them are how many more there are, and the texts beside the graph that support the answer.
    Nothing is rendered without an answer.
    """
    answer = run.answer
    if answer is None:
        return Html()
    context = context_of(run).with_names(answer.names)
    terms = [value.term for value in answer.values]
    return render_page(
        "chat_support.html",
        answer=answer,
        triples=render_triples(answer.support[:MAX_TRIPLES], context, terms),
        omitted=render_omitted_triples(len(answer.support) - MAX_TRIPLES),
        texts=render_texts(answer.texts),
    )
