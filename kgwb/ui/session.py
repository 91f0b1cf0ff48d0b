"""What a person does to one run, without a widget: commands on a worker, what is stale, what was before.

Every widget of a run shares its session, whichever thread a click arrives on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from kgwb.errors import EmbeddingError, KgwbError, SettingError
from kgwb.llm.base import ChatRequest
from kgwb.run import Run
from kgwb.run.agents import agent_of_key
from kgwb.run.steps import Step, group_by_supervisor
from kgwb.show.run_state import RunState
from kgwb.text import display_name
from kgwb.threads import shielded

TELL_S = 0.05
"""Changes within this time are shown together: what ends so soon is not shown as begun."""
AHEAD_S = 0.02
"""How long what the person looks at is drawn before the rest, whose drawing would keep it from being sent."""
Work = Callable[[], Any]


class Worker:
    """Does one thing after another on a thread of its own; whatever takes long in a widget has one."""

    def __init__(self) -> None:
        self.busy = ""  # what is done now; empty if nothing
        self.failure: KgwbError | None = None  # what stopped the latest work
        self.cancelled = False
        self.listeners: list[Callable[[], None]] = []
        """Called after every change, on any thread; never changed in place."""
        self._first = 0  # how many of them are called before the others
        self.worker: threading.Thread | None = None  # the latest thread
        self._tasks: deque[tuple[str, Work, Future[None]]] = deque()
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()

    @property
    def waiting(self) -> tuple[str, ...]:
        """What waits for its turn."""
        return tuple(label for label, _, _ in tuple(self._tasks))

    def do(self, label: str, work: Work) -> Future[None]:
        """Have the work done, now or when its turn comes; a failure before it, or a cancel, drops it."""
        promise = Future[None]()

        def begin() -> None:
            with self._lock:
                if self.busy:
                    self._tasks.append((label, work, promise))
                    return self.tell_soon()
                self.busy, self.cancelled, self.failure = label, False, None
                self.tell_soon()
                self.worker = threading.Thread(
                    target=self._work, args=(work, promise), name="kgwb-worker", daemon=True
                )
                try:
                    self.worker.start()
                except RuntimeError:  # the process may have no more threads
                    self.busy = ""
                    raise

        shielded(begin)  # an interrupt in the middle would leave it busy for good
        return promise

    def cancel(self) -> None:
        """Stop what is done, and drop what waits; whoever works looks at ``cancelled``."""
        with self._lock:
            self.cancelled = bool(self.busy)
            self._drop()

    def free(self) -> None:
        """Raise SettingError while something is done."""
        if self.busy:
            raise SettingError(f"busy: {self.busy}", hint="wait for it, or cancel it")

    def _work(self, work: Work | None, promise: Future[None]) -> None:
        while work is not None:
            try:
                work()
            except KgwbError as exc:
                self.failure = exc
            except BaseException as exc:  # noqa: BLE001  # a bug must not leave the worker busy; it is shown
                self.failure = KgwbError(
                    f"{type(exc).__name__}: {exc}", hint="please report this as a bug"
                )
            ended = promise
            with self._lock:
                if self.failure is not None:
                    self._drop()
                self.busy, work, promise = (
                    self._tasks.popleft() if self._tasks else ("", None, ended)
                )
                self.cancelled = False
            try:
                self.tell()
            finally:
                ended.set_result(None)

    def _drop(self) -> None:
        while self._tasks:
            self._tasks.popleft()[2].set_result(None)

    def tell(self) -> None:
        """Call every listener: something changed."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            first, rest = self.listeners[: self._first], self.listeners[self._first :]
        for listener in first:
            listener()
        if first and rest:
            time.sleep(AHEAD_S)
        for listener in rest:
            listener()

    def tell_soon(self) -> None:
        """Call them in TELL_S, once for all that changes until then."""
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(TELL_S, self.tell)
                self._timer.daemon = True
                self._timer.start()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it after every change."""
        with self._lock:
            self.listeners = [*self.listeners, listener]

    @property
    def due(self) -> bool:
        """Whether the listeners will be called within TELL_S."""
        return self._timer is not None

    def prefer(self, *listeners: Callable[[], None]) -> None:
        """Call these of the listeners first: the person looks at them."""
        with self._lock:
            self.listeners = sorted(self.listeners, key=lambda listener: listener not in listeners)
            self._first = sum(listener in listeners for listener in self.listeners)

    def forget(self, listener: Callable[[], None]) -> None:
        """Call a listener no more."""
        with self._lock:
            self.listeners = [other for other in self.listeners if other != listener]
            self._first = 0


class Session(Worker):
    """One run, and what the person does to it; commands are executed one at a time."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.versions: list[RunState] = []  # the run before each edit, oldest first
        self.loading = (
            Worker()
        )  # loads the embeddings from the start, so that no agent is charged with it
        self._steps: dict[str, Step] = run.by_key
        self._reached: set[str] = set(self._steps)  # keys of the steps of the latest execution
        self._stale: set[str] = set()
        self._whole = (
            run.totals,
            run.answer,
        )  # of the execution that reached furthest, as the steps are
        self._moved = False  # whether the run has gone on since its steps were taken over
        self._peeked: dict[tuple[str, str, str], ChatRequest | None] = {}
        if run.graph is not None:
            self.loading.do("loading the embeddings, once", self._load)
            self.loading.listen(self.tell)
        run.listeners.append(self._on_step)  # code may run it too

    @property
    def steps(self) -> Mapping[str, Step]:
        """The latest known step of every key in flow order, also those that are stale."""
        with self._lock:
            return dict(self._steps)

    def steps_of(self, agent: str) -> tuple[Step, ...]:
        """The steps of an agent, or the step of that key."""
        return tuple(step for step in self.steps.values() if agent in (step.agent, step.key))

    def run_state(self) -> RunState:
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
            return RunState(run, dict(self._steps), states, self.busy, self.failure, before, *done)

    def state(self, key: str) -> str:
        """Where a step stands, see Standing."""
        return self.run_state().step_state(key)

    def peek(self, step: str, name: str = "", text: str = "") -> ChatRequest | None:
        """See Run.peek; with the prompt ``name`` as ``text``. It is made once, until something changes."""
        place = (step, name, text)
        if place not in self._peeked:
            prompts = self.run.prompts.with_text(name, text) if name else None
            self._peeked[place] = self.run.peek(step, prompts=prompts)
        return self._peeked[place]

    def go(self, until: str | int | None = None) -> Future[None]:
        """See Run.go."""
        where = display_name(agent_of_key(str(until or "the end")))
        label = "going back to the start" if until == 0 else f"running to {where}"
        return self._execute(label, lambda: self.run.go(until))

    def step(self) -> Future[None]:
        """Run until one more agent that works has done so; the end of one that supervises is no step."""

        def step() -> None:
            self.run.step()
            while self.run.status == "paused" and not self.cancelled and self._done()[-1][1]:
                self.run.step()

        return self._execute("running one step", step)

    def back(self) -> Future[None]:
        """Go back to before the latest agent that works."""

        def back() -> None:
            done = self._done()
            while done and done[-1][1]:
                done.pop()
            self.run.back(self.run.position - max(len(done) - 1, 0))

        return self._execute("going back one step", back)

    def _done(self) -> list[tuple[str, bool]]:
        """The keys of the steps that are done, as they ended, and whether each supervises others."""
        steps = group_by_supervisor(self.run.steps)

        def ended(parent: str | None) -> Iterator[Step]:
            for step in steps.get(parent, ()):
                yield from ended(step.key)
                yield step

        return [(step.key, step.key in steps) for step in ended(None) if step.done]

    def run_to(self, key: str) -> Future[None]:
        """Run up to the end of a step or agent; if that is done, again, so that the run stands there."""

        def run_to() -> None:
            done = [ended for ended, _ in self._done()]
            if key in done and self.state(key) == "done":
                self.run.back(self.run.position - done.index(key) - 1)
            else:
                self.run.go(key)

        return self._execute(f"running to {display_name(agent_of_key(key))}", run_to)

    def replace(self, key: str, value: Any) -> Future[None]:
        """Put a value in by hand, and run up to there. Raises OverrideError."""
        with self._editing(key):
            self.run.replace(key, value)
        return self.go(key)

    def restore(self, key: str) -> Future[None]:
        """Take a value put in by hand out again, and run up to there."""
        with self._editing(key):
            self.run.restore(key)
        return self.go(key)

    def edit_prompt(self, name: str, text: str) -> None:
        """Use a text for a prompt in this run; the steps that used it are stale. Raises PromptError."""
        with self._editing(*(step.key for step in self.steps.values() if name in step.prompts)):
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
        with self._editing(key):
            self.run.refresh(key)

        def ask() -> None:
            try:
                self.run.go(key)
            finally:
                if self.run.status not in ("paused", "done"):
                    self.run.keep()  # what was recorded is better than nothing

        return self._execute(f"asking {display_name(agent_of_key(key))} anew", ask)

    def cancel(self) -> None:
        """Stop what the worker does; a slow call is left behind."""
        super().cancel()
        self.run.cancel()

    def free(self) -> None:
        """See Worker; code may execute the run too."""
        super().free()
        if self.run.status == "running":
            raise SettingError("busy: code executes this run", hint="wait for it, or cancel it")

    def tell(self) -> None:
        """See Worker; of a run that code executes, until it has ended."""
        if self._moved:
            self._take()
        super().tell()
        if not self.busy and self.run.status == "running":
            self.tell_soon()

    def _load(self) -> None:
        with suppress(EmbeddingError):  # the agent that needs them raises it
            self.run.embeddings.load()

    def _execute(self, label: str, work: Work) -> Future[None]:
        def execute() -> None:
            try:
                while (
                    (loading := self.loading.worker) and loading.is_alive() and not self.cancelled
                ):
                    self.busy = self.loading.busy or self.busy
                    loading.join(TELL_S)
                if not self.cancelled:
                    self.busy = label
                    work()
            finally:
                self._take()

        if not self.busy:
            self.free()
        return self.do(label, execute)

    def _on_step(self, event: str, step: Step) -> None:
        if self.cancelled and self.busy:
            self.run.cancel()  # it came before the execution had begun
        self._moved = True
        self.tell_soon()

    def _take(self) -> None:
        """Take over what was reached; later steps stay as they were, stale if what they saw changed."""
        with self._lock:
            self._moved = False
            self._peeked.clear()
            latest = self.run.by_key
            known = {} if self.run.status == "done" else self._steps
            later = {key: step for key, step in known.items() if key not in latest}
            changed = any(
                step.done and key in known and known[key].done and known[key].output != step.output
                for key, step in latest.items()
            )
            self._stale = set(later) if changed else self._stale & later.keys()
            self._steps, self._reached = {**latest, **later}, set(latest)
            if not later:
                self._whole = self.run.totals, self.run.answer

    @contextmanager
    def _editing(self, *keys: str) -> Iterator[None]:
        """An edit of the run, refused while it is busy; what was before is kept, what follows is stale."""
        with self._lock:
            self.free()
            if self._moved:
                self._take()
            self._peeked.clear()
            totals, answer = self._whole
            version = RunState(self.run, self.steps, answer=answer, totals=totals)
            yield
            if version.steps and not self._stale:
                self.versions.append(version)
            order = list(self._steps)
            first = min((order.index(key) for key in keys if key in order), default=len(order))
            self._stale.update(
                order[first:]
            )  # the edited steps and all after them, and their supervisors
            above = self._steps[order[first]].parent if order[first:] else ""
            while above in self._steps:
                self._stale.add(above)
                above = self._steps[above].parent


_ATTACHING = threading.Lock()


def session_of(run: Run) -> Session:
    """The one session of a run."""
    with _ATTACHING:
        if not isinstance(run.attached, Session):
            run.attached = Session(run)
        return run.attached
