"""What a person does to one run, without a widget: commands on a worker, what is stale, what was before.

Every widget of a run shares its session, whichever thread a click arrives on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

from kgwb.errors import KgwbError, SettingError
from kgwb.flow import Answer
from kgwb.llm.base import ChatRequest
from kgwb.record import Differences, Step, Totals, difference
from kgwb.run import Run

TELL_S = 0.05
"""Steps that begin and end within this time are told of together."""

State = Literal["not run", "running", "stale", "failed", "unfinished", "done", "ahead"]


@dataclass(frozen=True, slots=True)
class Version:
    """A run as it stood at some time."""

    label: str
    """What came next: "before qir was put in by hand"."""
    steps: Mapping[str, Step]
    totals: Totals
    answer: Answer | None


class Session:
    """One run, and what the person does to it; commands are executed one at a time on a worker thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.busy = ""
        """What the worker does now; empty if nothing."""
        self.failure: KgwbError | None = None
        """What stopped the latest execution."""
        self.versions: list[Version] = []
        """The run before each edit, oldest first."""
        self.listeners: list[Callable[[], None]] = []
        """Called after every change, on the thread that made it."""
        self.worker: threading.Thread | None = None
        """The latest worker."""
        self._steps: dict[str, Step] = run.by_key
        self._reached: set[str] = set(self._steps)
        """Keys of the steps of the latest execution."""
        self._stale: set[str] = set()
        self._whole = run.totals, run.answer
        """Of the execution that reached furthest, as the steps are."""
        self._lock = threading.RLock()
        self._told = 0.0
        self._cancelled = False
        self._later: threading.Timer | None = None
        run.listeners.append(self._on_step)  # code may run it too

    # --- what is there --------------------------------------------------------------------------------------

    @property
    def steps(self) -> Mapping[str, Step]:
        """The latest known step of every key in flow order, also those that are stale."""
        with self._lock:
            return dict(self._steps)

    def steps_of(self, agent: str) -> tuple[Step, ...]:
        """The steps of an agent, or the step of that key."""
        return tuple(step for step in self.steps.values() if agent in (step.agent, step.key))

    def state(self, key: str) -> State:
        """Where a step stands.

        Stale are an edited step and all after it until they are run again; ahead is what was done before, and
        lies beyond where the run stands now.
        """
        with self._lock:
            step = self._steps.get(key)
            if step is None:
                return "not run"
            if key in self._stale:
                return "stale"
            if step.error:
                return "failed"
            if key not in self._reached:
                return "ahead"
            if step.done:
                return "done"
            return "running" if self.busy else "unfinished"

    @property
    def stale(self) -> frozenset[str]:
        """Keys of the steps that an edit has overtaken."""
        with self._lock:
            return frozenset(self._stale)

    def peek(self, step: str, name: str = "", text: str = "") -> ChatRequest | None:
        """See Run.peek; with the prompt ``name`` as ``text``."""
        prompts = self.run.prompts.with_text(name, text) if name else None
        return self.run.peek(step, prompts=prompts)

    def compared(self) -> Differences | None:
        """The run before the latest edit beside the run as it stands; None if nothing was edited."""
        if not self.versions:
            return None
        return difference(self.versions[-1].steps, self.steps)

    # --- what the person does -------------------------------------------------------------------------------

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Future[None]:
        """See Run.go."""
        return self._execute(_told(until, before), lambda: self.run.go(until, before=before))

    def step(self) -> Future[None]:
        """See Run.step."""
        return self._execute("running one step", self.run.step)

    def back(self) -> Future[None]:
        """See Run.back."""
        return self._execute("going back one step", self.run.back)

    def run_agent(self, agent: str) -> Future[None]:
        """Run up to the end of an agent, or of all its steps if it has several."""
        keys = [step.key for step in self.steps_of(agent)]
        return self.go(keys[-1] if keys else agent)

    def replace(self, key: str, value: Any) -> Future[None]:
        """Put a value in by hand, and run up to there. Raises OverrideError."""
        with self._editing(f"before {key} was put in by hand", key):
            self.run.replace(key, value)
        return self.go(key)

    def restore(self, key: str) -> Future[None]:
        """Take a value put in by hand out again, and run up to there."""
        with self._editing(f"before {key} was taken out again", key):
            self.run.restore(key)
        return self.go(key)

    def edit_prompt(self, name: str, text: str) -> None:
        """Use a text for a prompt in this run; the steps that used it are stale. Raises PromptError."""
        users = [step.key for step in self.steps.values() if name in step.prompts]
        with self._editing(f"before the prompt {name} was edited", *users):
            self.run.edit_prompt(name, text)
        self.tell()

    def save_prompt(self, name: str, text: str) -> str:
        """Write a prompt to its file and use it; where it was written. Raises PromptError."""
        self._free()
        used = self.run.prompts.text(name)
        path = self.run.prompts.save(name, text)
        if used != text:
            self.edit_prompt(name, text)
        return str(path)

    def refresh(self, key: str) -> Future[None]:
        """Have a step's calls made anew."""
        with self._editing(f"before {key} was asked anew", key):
            self.run.refresh(key)

        def ask() -> None:
            try:
                self.run.go(key)
            finally:
                if self.run.status not in ("paused", "done"):
                    self.run.keep()  # what was recorded is better than nothing

        return self._execute(f"asking {key} anew", ask)

    def cancel(self) -> None:
        """Stop what the worker does; a slow call is left behind."""
        self._cancelled = bool(self.busy)
        self.run.cancel()

    # --- the mechanism --------------------------------------------------------------------------------------

    def do(self, label: str, work: Callable[[], Any]) -> Future[None]:
        """Have the worker do something. Raises SettingError if it is at work already."""
        with self._lock:
            self._free()
            self.busy, self._cancelled = label, False
        promise = Future[None]()
        self.worker = threading.Thread(
            target=self._work, args=(work, promise), name="kgwb-session", daemon=True
        )
        self.worker.start()
        self.tell()
        return promise

    def _free(self) -> None:
        code = "code executes it" if self.run.status == "running" else ""
        if self.busy or code:
            hint = "wait for it, or cancel it"
            raise SettingError(f"this run is busy: {self.busy or code}", hint=hint)

    def tell(self) -> None:
        """Tell every listener that something changed."""
        self._told = time.monotonic()
        for listener in list(self.listeners):
            listener()

    def _work(self, work: Callable[[], Any], promise: Future[None]) -> None:
        try:
            work()
        except KgwbError as exc:
            self.failure = exc
        except BaseException as exc:  # noqa: BLE001  # a bug must not leave the session busy; it is shown
            self.failure = KgwbError(f"{type(exc).__name__}: {exc}", hint="please report this as a bug")
        finally:
            with self._lock:
                self.busy = ""
            try:
                self.tell()
            finally:
                promise.set_result(None)

    def _execute(self, label: str, work: Callable[[], Any]) -> Future[None]:
        def execute() -> None:
            self.failure = None
            try:
                if not self._cancelled:
                    work()
            finally:
                self._take()

        return self.do(label, execute)

    def _on_step(self, event: str, step: Step) -> None:
        if self._cancelled:
            self.run.cancel()  # it came before the execution had begun
        if self.busy and time.monotonic() - self._told > TELL_S:
            self._take()
            self.tell()
        elif self._later is None:
            self._tell_soon()

    def _tell_soon(self) -> None:
        self._later = threading.Timer(TELL_S, self._tell_later)
        self._later.daemon = True
        self._later.start()

    def _tell_later(self) -> None:
        """Tell of the steps that were held back, and of a run that code executes, until it has ended."""
        with self._lock:
            self._later = None
            if not self.busy and self.run.status == "running":
                self._tell_soon()
            self._take()
        self.tell()

    def _take(self) -> None:
        """Take over what was reached; later steps stay as they were, stale if what they saw changed."""
        with self._lock:
            made = {step.key: step for step in self.run.steps}
            self._reached = set(made)
            if self.run.status == "done":
                self._steps, self._stale = made, set()
                self._whole = self.run.totals, self.run.answer
                return
            changed = any(
                step.done
                and key in self._steps
                and self._steps[key].done
                and self._steps[key].output != step.output
                for key, step in made.items()
            )
            later = {key: step for key, step in self._steps.items() if key not in made}
            if changed:
                self._stale.update(later)
            self._stale.difference_update(made)
            self._steps = {**made, **later}
            if not later:
                self._whole = self.run.totals, self.run.answer

    def _editing(self, label: str, *keys: str) -> _Editing:
        return _Editing(self, label, keys)

    def _version(self, label: str) -> Version:
        return Version(label, self.steps, *self._whole)

    def _overtake(self, keys: tuple[str, ...]) -> None:
        """Mark the edited steps, their supervisors and everything after them as stale."""
        order = list(self._steps)
        places = [order.index(key) for key in keys if key in order]
        if not places:
            return
        first = order[min(places)]
        self._stale.update(order[min(places) :])
        above = self._steps[first].parent
        while above in self._steps:
            self._stale.add(above)
            above = self._steps[above].parent


class _Editing:
    """An edit of a run: refused while it is busy; what was before is kept, and what follows is stale."""

    def __init__(self, session: Session, label: str, keys: tuple[str, ...]) -> None:
        self.session, self.label, self.keys = session, label, keys

    def __enter__(self) -> None:
        self.session._lock.acquire()
        try:
            self.session._free()
        except SettingError:
            self.session._lock.release()
            raise
        self.version = self.session._version(self.label)

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                if self.version.steps and not self.session._stale:
                    self.session.versions.append(self.version)
                self.session._overtake(self.keys)
        finally:
            self.session._lock.release()


def _told(until: str | int | None, before: str | None) -> str:
    if until == 0:
        return "going back to the start"
    return f"running to {until or before or 'the end'}"


_ATTACHING = threading.Lock()


def session_of(run: Run) -> Session:
    """The one session of a run."""
    with _ATTACHING:
        if not isinstance(run.attached, Session):
            run.attached = Session(run)
        return run.attached
