"""A dialogue as runs, without a widget: ask, correct a turn, run the later ones again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from kgwb.errors import KgwbError, SettingError
from kgwb.flow import Dialogue
from kgwb.run import Run
from kgwb.ui.session import Session, session_of

if TYPE_CHECKING:
    from kgwb.workbench import Workbench


class Conversation:
    """The dialogue of a workbench; one turn is executed at a time, on a thread of its own."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.busy = ""
        """What is done now; empty if nothing."""
        self.failure: KgwbError | None = None
        """What kept a turn from being run; what stops a turn is its own session's."""
        self.replaced: dict[str, Run] = {}
        """The run that stood in a turn before, by the id of the run that stands there now."""
        self.ended: list[tuple[Run, ...]] = []
        """The runs of earlier dialogues."""
        self.listeners: list[Callable[[], None]] = []
        """Called after every change, on the thread that made it."""
        self._lock = threading.RLock()
        self._cancelled = False
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
        self._free()
        run = self.workbench.begin(question)
        return self._do("answering", lambda: self._go(run))

    def correct(self, number: int, question: str) -> Future[None]:
        """Ask a turn in other words; what was put in by hand for the old words is left out. Raises as ask."""
        self._free()
        run = self.turns[number].fork(question=question, dialogue=self.before(number))
        run.overrides.clear()
        self._put(number, run)
        return self._do(f"answering turn {number + 1} again", lambda: self._go(run))

    def resume(self, number: int) -> Future[None]:
        """Go on with a turn that failed, was cancelled or waits. Raises as ask."""
        return self._do(f"going on with turn {number + 1}", lambda: self._again(number))

    def rerun(self, number: int = 0) -> Future[None]:
        """Run each turn from ``number`` on that is stale again, after what is said before it now.

        Only what that changes is asked again. A turn that fails is left out of what is said; a cancel ends
        it. Raises SettingError while another turn is run.
        """
        return self._do("running the later turns again", lambda: self._rerun(number))

    def cancel(self) -> None:
        """Stop what is done now."""
        self._cancelled = True
        if self._now is not None:
            self._now.cancel()

    def forget(self) -> None:
        """Begin a new dialogue; the old one's runs are in ``ended``. Raises SettingError if busy."""
        self._free()
        self.ended.append(self.turns)
        self.workbench.forget()
        self.tell()

    def tell(self) -> None:
        """Tell every listener that something changed."""
        for listener in list(self.listeners):
            listener()

    def listen(self) -> None:
        """Hear of what is done to any turn, wherever that is."""
        for run in self.turns:
            if run.id not in self._heard:
                self._heard.add(run.id)
                session_of(run).listeners.append(self.tell)

    def _rerun(self, number: int) -> None:
        for place in range(number, len(self.turns)):
            if self.stale(place) and not self._cancelled:
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
        if not self._cancelled:
            self._now.go().result()

    def _free(self) -> None:
        if self.busy:
            raise SettingError(f"the dialogue is busy: {self.busy}", hint="wait for it, or cancel it")

    def _do(self, label: str, work: Callable[[], None]) -> Future[None]:
        with self._lock:
            self._free()
            self.busy, self._cancelled, self.failure = label, False, None
        promise = Future[None]()

        def execute() -> None:
            try:
                work()
            except KgwbError as exc:
                self.failure = exc
            finally:
                self.busy, self._now = "", None
                try:
                    self.tell()
                finally:
                    promise.set_result(None)

        threading.Thread(target=execute, name="kgwb-dialogue", daemon=True).start()
        self.tell()
        return promise
