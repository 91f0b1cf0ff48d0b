"""A dialogue as runs, without a widget: ask, correct a turn, run the later ones again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from kgwb.errors import SettingError
from kgwb.flow import Dialogue
from kgwb.run import Run
from kgwb.ui.session import Session, Worker, session_of

if TYPE_CHECKING:
    from kgwb.workbench import Workbench


class Conversation(Worker):
    """The dialogue of a workbench; one turn is executed at a time.

    ``failure`` is what kept a turn from being run; what stops a turn is its own session's.
    """

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.workbench = workbench
        self.replaced: dict[str, Run] = {}
        """The run that stood in a turn before, by the id of the run that stands there now."""
        self.ended: list[tuple[Run, ...]] = []
        """The runs of earlier dialogues."""
        self._now: Session | None = None
        self._heard: set[str] = set()
        self.listen()

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
        """Whether what was said before a turn has changed since it was run."""
        return self.turns[number].dialogue != self.before(number)

    def ask(self, question: str) -> Future[None]:
        """The next turn. Raises QuestionError, and SettingError while another turn is run."""
        self.free()
        run = self.workbench.begin(question)
        return self._execute("answering", lambda: self._go(run))

    def correct(self, number: int, question: str) -> Future[None]:
        """Ask a turn in other words; what was put in by hand for the old words is left out. Raises as ask."""
        self.free()
        run = self.turns[number].fork(question=question, dialogue=self.before(number))
        run.overrides.clear()
        self._put(number, run)
        return self._execute(f"answering turn {number + 1} again", lambda: self._go(run))

    def resume(self, number: int) -> Future[None]:
        """Go on with a turn that failed, was cancelled or waits. Raises as ask."""
        return self._execute(f"going on with turn {number + 1}", lambda: self._again(number))

    def rerun(self, number: int = 0) -> Future[None]:
        """Run each turn from ``number`` on that is stale again, after what is said before it now.

        Only what that changes is asked again. A turn that fails is left out of what is said; a cancel ends
        it. Raises SettingError while another turn is run.
        """
        return self._execute("running the later turns again", lambda: self._rerun(number))

    def cancel(self) -> None:
        """Stop what is done now."""
        super().cancel()
        if self._now is not None:
            self._now.cancel()

    def forget(self) -> None:
        """Begin a new dialogue; the old one's runs are in ``ended``. Raises SettingError if busy."""
        self.free()
        self.ended.append(self.turns)
        self.workbench.forget()
        self.tell()

    def free(self) -> None:
        """See Worker."""
        if self.busy:
            raise SettingError(f"the dialogue is busy: {self.busy}", hint="wait for it, or cancel it")

    def listen(self) -> None:
        """Hear of what is done to any turn, wherever that is."""
        for run in self.turns:
            if run.id not in self._heard:
                self._heard.add(run.id)
                session_of(run).listeners.append(self.tell)

    def _rerun(self, number: int) -> None:
        for place in range(number, len(self.turns)):
            if self.stale(place) and not self.cancelled:
                self._again(place)

    def _again(self, number: int) -> None:
        run = self.turns[number]
        if self.stale(number):
            run = run.fork(dialogue=self.before(number))
            self._put(number, run)
        self._go(run)

    def _put(self, number: int, run: Run) -> None:
        self.replaced[run.id] = self.turns[number]
        self.workbench.runs[number] = run

    def _go(self, run: Run) -> None:
        self.listen()
        self._now = session_of(run)
        if not self.cancelled:
            self._now.go().result()

    def _execute(self, label: str, work: Callable[[], None]) -> Future[None]:
        def execute() -> None:
            try:
                work()
            finally:
                self._now = None

        return self.do(label, execute)
