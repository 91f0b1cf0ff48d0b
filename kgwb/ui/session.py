"""What a person does to one run, without a widget: commands on a worker, what is stale, what was before.

Every widget of a run shares its session, whichever thread a click arrives on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kgwb.aside import undisturbed
from kgwb.errors import EmbeddingError, KgwbError, SettingError
from kgwb.flow import Answer
from kgwb.llm.base import ChatRequest
from kgwb.run import Run
from kgwb.run.record import Differences, Step, Totals, difference
from kgwb.show.html import spoken
from kgwb.show.run import Standing, agent_of

TELL_S = 0.05
"""Steps that begin and end within this time are shown together."""


class Worker:
    """Does one thing at a time on a thread of its own; every widget that waits for something has one."""

    def __init__(self, *listeners: Callable[[], None]) -> None:
        self.busy = ""
        """What is done now; empty if nothing."""
        self.failure: KgwbError | None = None
        """What stopped the latest work."""
        self.listeners: list[Callable[[], None]] = list(listeners)
        """Called after every change, on the thread that made it."""
        self.worker: threading.Thread | None = None
        """The latest thread."""
        self.cancelled = False
        self._lock = threading.RLock()

    def do(self, label: str, work: Callable[[], Any]) -> Future[None]:
        """Have the work done. Raises SettingError while other work is done."""
        promise = Future[None]()

        def begin() -> None:
            with self._lock:
                self.free()
                self.busy, self.cancelled, self.failure = label, False, None
                self.worker = threading.Thread(
                    target=self._work, args=(work, promise), name="kgwb-worker", daemon=True
                )
                try:
                    self.worker.start()
                except RuntimeError:  # the process may have no more threads
                    self.busy = ""
                    raise

        undisturbed(begin)  # an interrupt in the middle would leave it busy for good
        self.tell()
        return promise

    def cancel(self) -> None:
        """Stop what is done; whoever works looks at ``cancelled``."""
        self.cancelled = bool(self.busy)

    def free(self) -> None:
        """Raise SettingError while something is done."""
        if self.busy:
            raise SettingError(f"this run is busy: {self.busy}", hint="wait for it, or cancel it")

    def tell(self) -> None:
        """Tell every listener that something changed."""
        for listener in list(self.listeners):
            listener()

    def _work(self, work: Callable[[], Any], promise: Future[None]) -> None:
        try:
            work()
        except KgwbError as exc:
            self.failure = exc
        except BaseException as exc:  # noqa: BLE001  # a bug must not leave the worker busy; it is shown
            self.failure = KgwbError(f"{type(exc).__name__}: {exc}", hint="please report this as a bug")
        finally:
            with self._lock:
                self.busy = ""
            try:
                self.tell()
            finally:
                promise.set_result(None)


@dataclass(frozen=True, slots=True)
class Version:
    """A run as it stood at some time."""

    label: str
    """What came next: "before qir was put in by hand"."""
    steps: Mapping[str, Step]
    totals: Totals
    answer: Answer | None


class Session(Worker):
    """One run, and what the person does to it; commands are executed one at a time."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.versions: list[Version] = []
        """The run before each edit, oldest first."""
        self._steps: dict[str, Step] = run.by_key
        self._reached: set[str] = set(self._steps)
        """Keys of the steps of the latest execution."""
        self._stale: set[str] = set()
        self._whole = run.totals, run.answer
        """Of the execution that reached furthest, as the steps are."""
        self._told = 0.0
        self._later: threading.Timer | None = None
        self._loading = threading.Thread(target=self._load, name="kgwb-embeddings", daemon=True)
        if run.graph is not None:
            self._loading.start()
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

    def standing(self) -> Standing:
        """Where the run stands.

        Stale are an edited step and all after it until they are run again; ahead is what was done before, and
        lies beyond where the run stands now.
        """
        with self._lock:
            states = {}
            for key, step in self._steps.items():
                if key in self._stale:
                    states[key] = "stale"
                elif not step.error and key not in self._reached:
                    states[key] = "ahead"
                elif not (step.done or step.error):
                    states[key] = "running" if self.busy else "unfinished"
            before = self.versions[-1].answer if self.versions else None
            run = self.run
            done = run.answer, run.status, run.totals
            return Standing(run, dict(self._steps), states, self.busy, self.failure, before, *done)

    def state(self, key: str) -> str:
        """Where a step stands, see Standing."""
        return self.standing().state(key)

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
        return difference(self.versions[-1].steps, self.steps) if self.versions else None

    # --- what the person does -------------------------------------------------------------------------------

    def go(self, until: str | int | None = None, *, before: str | None = None) -> Future[None]:
        """See Run.go."""
        where = spoken(agent_of(str(until or before or "the end")))
        label = "going back to the start" if until == 0 else f"running to {where}"
        return self._execute(label, lambda: self.run.go(until, before=before))

    def step(self) -> Future[None]:
        """Run until one more agent that works has done so; the end of one that supervises is no step."""

        def step() -> None:
            self.run.step()
            while (
                self.run.status == "paused"
                and not self.cancelled
                and self._supervises(_ended(self.run.steps)[-1:])
            ):
                self.run.step()

        return self._execute("running one step", step)

    def back(self) -> Future[None]:
        """Go back to before the latest agent that works."""
        ended = _ended(self.run.steps)
        while ended and self._supervises(ended[-1:]):
            ended.pop()
        steps = self.run.position - max(len(ended) - 1, 0)
        return self._execute("going back one step", lambda: self.run.back(steps))

    def _supervises(self, steps: Sequence[Step]) -> bool:
        return any(other.parent == step.key for step in steps for other in self.run.steps)

    def run_to(self, key: str) -> Future[None]:
        """Run up to the end of a step or agent; if that is done, again, so that the run stands there."""
        ended = [step.key for step in _ended(self.run.steps)]
        if key not in ended or self.state(key) != "done":
            return self.go(key)
        steps = self.run.position - ended.index(key) - 1
        return self._execute(f"running to {spoken(agent_of(key))}", lambda: self.run.back(steps))

    def replace(self, key: str, value: Any) -> Future[None]:
        """Put a value in by hand, and run up to there. Raises OverrideError."""
        with self._editing(f"before {spoken(agent_of(key))} was put in by hand", key):
            self.run.replace(key, value)
        return self.go(key)

    def restore(self, key: str) -> Future[None]:
        """Take a value put in by hand out again, and run up to there."""
        with self._editing(f"before {spoken(agent_of(key))} was taken out again", key):
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
        self.free()
        used = self.run.prompts.text(name)
        path = self.run.prompts.save(name, text)
        if used != text:
            self.edit_prompt(name, text)
        return str(path)

    def refresh(self, key: str) -> Future[None]:
        """Have a step's calls made anew."""
        with self._editing(f"before {spoken(agent_of(key))} was asked anew", key):
            self.run.refresh(key)

        def ask() -> None:
            try:
                self.run.go(key)
            finally:
                if self.run.status not in ("paused", "done"):
                    self.run.keep()  # what was recorded is better than nothing

        return self._execute(f"asking {spoken(agent_of(key))} anew", ask)

    def cancel(self) -> None:
        """Stop what the worker does; a slow call is left behind."""
        super().cancel()
        self.run.cancel()

    # --- the mechanism --------------------------------------------------------------------------------------

    def free(self) -> None:
        """See Worker; code may execute the run too."""
        super().free()
        if self.run.status == "running":
            raise SettingError("this run is busy: code executes it", hint="wait for it, or cancel it")

    def tell(self) -> None:
        """See Worker."""
        self._told = time.monotonic()
        super().tell()

    def _load(self) -> None:
        """Load the embeddings from the start, so that no agent is charged with it."""
        try:
            self.run.embeddings.load()
        except EmbeddingError:
            return  # the agent that needs them says so

    def _execute(self, label: str, work: Callable[[], Any]) -> Future[None]:
        def execute() -> None:
            try:
                if self._loading.is_alive():
                    self.busy = "loading the embeddings, once"
                    self.tell()
                    while self._loading.is_alive() and not self.cancelled:
                        self._loading.join(TELL_S)
                    self.busy = label
                if not self.cancelled:
                    work()
            finally:
                self._take()

        return self.do(label, execute)

    def _on_step(self, event: str, step: Step) -> None:
        if self.cancelled and self.busy:
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
            known = self._steps
            changed = any(
                step.done and key in known and known[key].done and known[key].output != step.output
                for key, step in made.items()
            )
            later = {key: step for key, step in known.items() if key not in made}
            if changed:
                self._stale.update(later)
            self._stale.difference_update(made)
            self._steps = {**made, **later}
            if not later:
                self._whole = self.run.totals, self.run.answer

    @contextmanager
    def _editing(self, label: str, *keys: str) -> Iterator[None]:
        """An edit of the run, refused while it is busy; what was before is kept, what follows is stale."""
        with self._lock:
            self.free()
            version = Version(label, self.steps, *self._whole)
            yield
            if version.steps and not self._stale:
                self.versions.append(version)
            self._overtake(keys)

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


def _ended(steps: Sequence[Step]) -> list[Step]:
    """The steps that are done, in the order in which they ended: those below a supervisor before it."""

    def below(parent: str) -> Iterator[Step]:
        for step in steps:
            if (step.parent if step.parent in known else "") == parent:
                yield from below(step.key)
                yield step

    known = {step.key for step in steps}
    return [step for step in below("") if step.done]


_ATTACHING = threading.Lock()


def session_of(run: Run) -> Session:
    """The one session of a run."""
    with _ATTACHING:
        if not isinstance(run.attached, Session):
            run.attached = Session(run)
        return run.attached
