"""The dialogue of a workbench with its worker: ask, reword, resume, or ask another system. It works without widgets."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple, Protocol

from kgwb.errors import SettingError
from kgwb.kg import Graph
from kgwb.llm.base import DataNotice
from kgwb.run import Run, Setup
from kgwb.run.answers import CANNOT_EXPRESS, Dialogue
from kgwb.run.record import KeptConversation
from kgwb.run.run import check_question
from kgwb.run.systems import resolve_system
from kgwb.text import shorten, single_line
from kgwb.ui.session import Session, session_of
from kgwb.ui.worker import Worker

MAX_LABEL_CHARS = 80


class DialogueWorkbench(Protocol):
    """What a conversation uses of a ``kgwb.workbench.Workbench``."""

    kg: Graph
    setup: Setup
    runs: list[Run]
    conversation_id: str

    @property
    def conversations(self) -> tuple[KeptConversation, ...]: ...
    @property
    def dialogue(self) -> Dialogue: ...
    def begin(self, question: str) -> Run: ...
    def new_dialogue(self) -> None: ...
    def continue_dialogue(self, dialogue: Dialogue) -> None: ...
    def open_conversation(self, id_: str) -> None: ...
    def keep_turns(self) -> None: ...


class EndedDialogue(NamedTuple):
    """A dialogue that was held before the present one, and can be recalled."""

    id: str
    """Its id in a file of conversations."""
    before: Dialogue
    """The turns that came before its runs."""
    runs: tuple[Run, ...]


class Conversation(Worker):
    """The turns of a workbench's dialogue. One is executed at a time, and the others are queued.

    Turns are numbered from 0. ``failure`` is an error that kept a turn from being executed; the
    error of a run is in the run's own session.
    """

    def __init__(self, workbench: DialogueWorkbench) -> None:
        """Follow the runs that the workbench has already."""
        super().__init__()
        self.workbench = workbench
        self.replaced_runs: dict[str, Run] = {}
        """The run that was in a turn before, by the id of the run that replaced it."""
        self.ended: list[EndedDialogue] = []
        """The earlier dialogues, the oldest first."""
        self._current_session: Session | None = None
        """Of the turn that is being executed."""
        self._subscribed_ids: set[str] = set()
        """Ids of the runs whose sessions notify this worker."""
        self.subscribe_to_runs()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of every turn, oldest first."""
        return tuple(self.workbench.runs)

    @property
    def notices_of_runs(self) -> tuple[DataNotice, ...]:
        """What left the machine in the turns of this dialogue, as far as it was not shown before."""
        notices: list[DataNotice] = []
        for run in self.runs:
            notices.extend(session_of(run).notices)
        return tuple(notices)

    def dialogue_before(self, number: int) -> Dialogue:
        """Return the present dialogue before a turn.

        Turns that are not finished are not in it.
        """
        turns = self.workbench.dialogue.turns
        finished_later = [run for run in self.runs[number:] if run.turn is not None]
        return Dialogue(turns[: len(turns) - len(finished_later)])

    def is_stale(self, number: int) -> bool:
        """Return whether the dialogue before a turn has changed since the turn was executed."""
        return self.runs[number].dialogue != self.dialogue_before(number)

    def ask(self, question: str) -> Future[None]:
        """Submit a question as the next turn, to be asked when the turns before it are answered.

        Returns a future that is done when the question was answered; errors are in ``failure``.

        Raises QuestionError for an empty or far too long question.
        """
        check_question(question, self.workbench.setup.settings)

        def ask() -> None:
            """Begin a run of the question as the newest turn, and execute it."""
            run = self.workbench.begin(question)
            self._execute_turn(len(self.runs) - 1, run)

        shown_question = shorten(single_line(question), MAX_LABEL_CHARS)
        return self.submit(f"answering “{shown_question}”", ask)

    def reword(self, number: int, question: str) -> Future[None]:
        """Submit another question for a turn. Its new run has none of the old one's overrides.

        The question is asked with the dialogue before the turn. Later turns may become stale by it.

        Raises QuestionError for an empty or far too long question.
        """
        check_question(question, self.workbench.setup.settings)

        def ask() -> None:
            """Execute a fork with the new question in the place of the turn's run.

            It has the dialogue before the turn, and no values put in.
            """
            dialogue = self.dialogue_before(number)
            run = self.runs[number].fork(question=question, dialogue=dialogue)
            run.overrides.clear()
            self._execute_turn(number, run)

        return self.submit(f"answering turn {number + 1} again", ask)

    def hand_over(self, number: int) -> Future[None]:
        """Submit the question of a turn to the system that can express it.

        Its run takes the place of the turn's run. Returns a future that is done when the question
        was answered. Raises SettingError if there is no such system.
        """
        run = hand_over(self.runs[number])
        execute = partial(self._execute_turn, number, run)
        return self.submit(f"asking {run.system.name} turn {number + 1}", execute)

    def read_as(self, number: int, reading: int) -> Future[None]:
        """Submit the question of a turn as one of its other readings has it, in the turn's place.

        Raises SettingError if there is no such reading.
        """
        run = self.runs[number].read_as(reading)
        execute = partial(self._execute_turn, number, run)
        return self.submit(f"reading turn {number + 1} in another way", execute)

    def resume(self, number: int) -> Future[None]:
        """Submit the rest of a turn that failed, was cancelled, or is paused."""
        resume = partial(self._resume_turn, number)
        return self.submit(f"resuming turn {number + 1}", resume)

    def rerun_stale(self) -> Future[None]:
        """Submit an execution of every stale turn, each with the dialogue before it then.

        They are executed in order. Recorded calls are used where their content is the same. A turn
        that fails is not in the dialogue of those after it. Returns a future that is done when all
        were executed.
        """

        def rerun() -> None:
            """Execute the stale turns in order, until a cancel."""
            for number in range(len(self.runs)):
                if self.is_stale(number) and not self.cancelled:
                    self._resume_turn(number)

        return self.submit("running the later turns again", rerun)

    def cancel(self) -> None:
        """Cancel the turn that is being executed, and drop the queue."""
        super().cancel()
        if self._current_session is not None:
            self._current_session.cancel()

    def begin_new(self) -> None:
        """Begin a new dialogue, and keep the old one in ``ended``.

        Nothing is deleted from a disk.

        Raises SettingError if a turn is being executed.
        """
        self.require_idle()
        self.ended.append(self._present_dialogue())
        self.workbench.new_dialogue()
        self.notify()

    def recall_ended(self) -> None:
        """Go on with the dialogue that was ended last. The present one must not have a turn.

        Raises SettingError if it has, if no dialogue was ended, or if a turn is being executed.
        """
        self.require_idle()
        if self.runs or not self.ended:
            raise SettingError(
                "there is no earlier dialogue to go back to",
                hint="ask a question, or begin a new dialogue",
            )
        ended = self.ended.pop()
        self.workbench.continue_dialogue(ended.before)
        self.workbench.conversation_id = ended.id
        self.workbench.runs.extend(ended.runs)
        self.notify()

    def open_kept(self, id_: str) -> None:
        """Go on with a conversation of the workbench's file; the present one can be recalled.

        Raises SettingError if a turn is being executed, or the conversation was held over another
        graph, and InputError if the file does not have it.
        """
        self.require_idle()
        present = self._present_dialogue()
        self.workbench.open_conversation(id_)
        if present.runs:
            self.ended.append(present)
        self.notify()

    def _present_dialogue(self) -> EndedDialogue:
        """Return the present dialogue, to be kept in ``ended`` when another one begins."""
        return EndedDialogue(self.workbench.conversation_id, self.dialogue_before(0), self.runs)

    def subscribe_to_runs(self) -> None:
        """Notify the listeners of changes in any turn from now on, also in other widgets.

        A run that was subscribed to before is skipped.
        """
        for run in self.runs:
            if run.id not in self._subscribed_ids:
                self._subscribed_ids.add(run.id)
                session_of(run).subscribe(self.notify)

    def _resume_turn(self, number: int) -> None:
        """Execute the run of a turn, and wait for its end.

        If the turn is stale, it is a fork with the present dialogue, which takes the place of the
        run.
        """
        run = self.runs[number]
        if self.is_stale(number):
            run = run.fork(dialogue=self.dialogue_before(number))
        self._execute_turn(number, run)

    def _execute_turn(self, number: int, run: Run) -> None:
        """Put a run in the place of a turn's run, execute it in its session, and wait for its end.

        It is not executed if the conversation was cancelled meanwhile. The run that was there
        before is kept in ``replaced_runs``. An error of the run is kept in its session, and not
        raised.
        """
        previous = self.runs[number]
        if previous is not run:
            self.replaced_runs[run.id] = previous
            self.workbench.runs[number] = run
        self.subscribe_to_runs()
        session = session_of(run)
        self._current_session = session
        try:
            if not self.cancelled:
                session.go().result()
                self.workbench.keep_turns()
        finally:
            self._current_session = None


def find_able_system(run: Run) -> str:
    """Return the name of the system that can answer what a run could not express; "" for none.

    "" unless the answer has no values and says CANNOT_EXPRESS, if the run's system names no other
    one, if a model is ``rules``, which other systems cannot use, or if it is a replay, which has no
    graph to ask.
    """
    answer = run.answer
    if answer is None or run.unrecorded_graph is None:
        return ""
    if any(model.name == "rules" for model in run.models.values()):
        return ""
    is_refused = not answer.values and answer.reason.startswith(CANNOT_EXPRESS)
    return run.system.handover if is_refused else ""


def offered_readings(run: Run) -> tuple[tuple[int, str, str], ...]:
    """Return the other readings of a question that can be asked now: number, text, what was taken.

    Where several are worded alike, the text has what was taken, too. Behind what was taken stand the
    first rows of the reading, where they are known. There are none while the run
    has no answer or is executed, and in a replay, which has no graph.
    """
    if run.unrecorded_graph is None or run.status != "done":
        return ()
    wordings = Counter(reading.other for reading in run.readings)
    offered = []
    for number, reading in enumerate(run.readings, 1):
        text = reading.other
        if wordings[text] > 1:
            text = f"{reading.other} (taken: {reading.taken})"
        taken = reading.taken
        if reading.rows:
            taken += f"; this one begins with {'; '.join(reading.rows)}"
        offered.append((number, text, taken))
    return tuple(offered)


def hand_over(run: Run) -> Run:
    """Return a run of the same question in the system of ``find_able_system``, not executed yet.

    It has the graph, the models, and those of the settings and prompts that the other system knows.
    Raises SettingError if there is no such system, or no graph.
    """
    name = find_able_system(run)
    graph = run.unrecorded_graph
    if graph is None:
        raise SettingError(
            "this run has no graph, so no other system can be asked",
            hint="open the run with its graph: kgwb.load_run(path, kg=...)",
        )
    if not name:
        raise SettingError(
            "no other system is offered: the present one did not say that it cannot express the question",
            hint="ask another one yourself: kgwb.Workbench(kg, model, system='surveyor')",
        )
    setup = Setup(graph, run.system, run.models, run.settings, run.prompts, run.embeddings)
    able = setup.of_system(resolve_system(name))
    return able.begin(run.question, run.dialogue)
