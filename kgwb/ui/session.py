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

NOTIFY_DELAY_S = 0.05
"""Changes within this time are shown together: what ends so soon is not shown as begun."""
PRIORITY_DELAY_S = 0.02
"""How long what the person looks at is drawn before the rest, whose drawing would keep it from being sent."""
Work = Callable[[], Any]


class Worker:
    """Does one thing after another on a thread of its own; whatever takes long in a widget has one."""

    def __init__(self) -> None:
        self.current_task = ""  # what is done now; empty if nothing
        self.failure: KgwbError | None = None  # what stopped the latest work
        self.cancelled = False
        self.listeners: list[Callable[[], None]] = []
        """Called after every change, on any thread; never changed in place."""
        self._priority_count = 0  # how many of them are called before the others
        self.thread: threading.Thread | None = None  # the latest thread
        self._queue: deque[tuple[str, Work, Future[None]]] = deque()
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()

    @property
    def queued_tasks(self) -> tuple[str, ...]:
        """What waits for its turn."""
        return tuple(label for label, _, _ in tuple(self._queue))

    def submit(self, label: str, work: Work) -> Future[None]:
        """Have the work done, now or when its turn comes; a failure before it, or a cancel, drops it."""
        promise = Future[None]()

        def begin() -> None:
            with self._lock:
                if self.current_task:
                    self._queue.append((label, work, promise))
                    return self.notify_soon()
                self.current_task, self.cancelled, self.failure = label, False, None
                self.notify_soon()
                self.thread = threading.Thread(
                    target=self._run_tasks, args=(work, promise), name="kgwb-worker", daemon=True
                )
                try:
                    self.thread.start()
                except RuntimeError:  # the process may have no more threads
                    self.current_task = ""
                    raise

        shielded(begin)  # an interrupt in the middle would leave it busy for good
        return promise

    def cancel(self) -> None:
        """Stop what is done, and drop what waits; whoever works looks at ``cancelled``."""
        with self._lock:
            self.cancelled = bool(self.current_task)
            self._clear_queue()

    def require_idle(self) -> None:
        """Raise SettingError while something is done."""
        if self.current_task:
            raise SettingError(f"busy: {self.current_task}", hint="wait for it, or cancel it")

    def _run_tasks(self, work: Work | None, promise: Future[None]) -> None:
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
                    self._clear_queue()
                self.current_task, work, promise = (
                    self._queue.popleft() if self._queue else ("", None, ended)
                )
                self.cancelled = False
            try:
                self.notify()
            finally:
                ended.set_result(None)

    def _clear_queue(self) -> None:
        while self._queue:
            self._queue.popleft()[2].set_result(None)

    def notify(self) -> None:
        """Call every listener: something changed."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            first, rest = (
                self.listeners[: self._priority_count],
                self.listeners[self._priority_count :],
            )
        for listener in first:
            listener()
        if first and rest:
            time.sleep(PRIORITY_DELAY_S)
        for listener in rest:
            listener()

    def notify_soon(self) -> None:
        """Call them in TELL_S, once for all that changes until then."""
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(NOTIFY_DELAY_S, self.notify)
                self._timer.daemon = True
                self._timer.start()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call it after every change."""
        with self._lock:
            self.listeners = [*self.listeners, listener]

    @property
    def has_pending_notification(self) -> bool:
        """Whether the listeners will be called within TELL_S."""
        return self._timer is not None

    def prioritize(self, *listeners: Callable[[], None]) -> None:
        """Call these of the listeners first: the person looks at them."""
        with self._lock:
            self.listeners = sorted(self.listeners, key=lambda listener: listener not in listeners)
            self._priority_count = sum(listener in listeners for listener in self.listeners)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        """Call a listener no more."""
        with self._lock:
            self.listeners = [other for other in self.listeners if other != listener]
            self._priority_count = 0


class Session(Worker):
    """One run, and what the person does to it; commands are executed one at a time."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.history: list[RunState] = []  # the run before each edit, oldest first
        self.embeddings_loader = (
            Worker()
        )  # loads the embeddings from the start, so that no agent is charged with it
        self._steps: dict[str, Step] = run.steps_by_key
        self._executed_keys: set[str] = set(
            self._steps
        )  # keys of the steps of the latest execution
        self._stale: set[str] = set()
        self._complete_result = (
            run.totals,
            run.answer,
        )  # of the execution that reached furthest, as the steps are
        self._has_new_steps = False  # whether the run has gone on since its steps were taken over
        self._previews: dict[tuple[str, str, str], ChatRequest | None] = {}
        if run.unrecorded_graph is not None:
            self.embeddings_loader.submit("loading the embeddings, once", self._load_embeddings)
            self.embeddings_loader.subscribe(self.notify)
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
                elif not step.error and key not in self._executed_keys:
                    states[key] = "ahead"
                elif not (step.done or step.error):
                    states[key] = "running" if self.current_task else "unfinished"
            before = self.history[-1].answer if self.history else None
            run = self.run
            done = run.answer, run.status, run.totals
            return RunState(
                run, dict(self._steps), states, self.current_task, self.failure, before, *done
            )

    def step_state(self, key: str) -> str:
        """Where a step stands, see Standing."""
        return self.run_state().step_state(key)

    def peek(self, step: str, name: str = "", text: str = "") -> ChatRequest | None:
        """See Run.peek; with the prompt ``name`` as ``text``. It is made once, until something changes."""
        place = (step, name, text)
        if place not in self._previews:
            prompts = self.run.prompts.with_text(name, text) if name else None
            self._previews[place] = self.run.preview_request(step, prompts=prompts)
        return self._previews[place]

    def go(self, until: str | int | None = None) -> Future[None]:
        """See Run.go."""
        where = display_name(agent_of_key(str(until or "the end")))
        label = "going back to the start" if until == 0 else f"running to {where}"
        return self._execute(label, lambda: self.run.go(until))

    def step(self) -> Future[None]:
        """Run until one more agent that works has done so; the end of one that supervises is no step."""

        def step() -> None:
            self.run.step()
            while (
                self.run.status == "paused" and not self.cancelled and self._finished_steps()[-1][1]
            ):
                self.run.step()

        return self._execute("running one step", step)

    def back(self) -> Future[None]:
        """Go back to before the latest agent that works."""

        def back() -> None:
            done = self._finished_steps()
            while done and done[-1][1]:
                done.pop()
            self.run.step_back(self.run.position - max(len(done) - 1, 0))

        return self._execute("going back one step", back)

    def _finished_steps(self) -> list[tuple[str, bool]]:
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
            done = [ended for ended, _ in self._finished_steps()]
            if key in done and self.step_state(key) == "done":
                self.run.step_back(self.run.position - done.index(key) - 1)
            else:
                self.run.go(key)

        return self._execute(f"running to {display_name(agent_of_key(key))}", run_to)

    def replace(self, key: str, value: Any) -> Future[None]:
        """Put a value in by hand, and run up to there. Raises OverrideError."""
        with self._edit(key):
            self.run.override(key, value)
        return self.go(key)

    def restore(self, key: str) -> Future[None]:
        """Take a value put in by hand out again, and run up to there."""
        with self._edit(key):
            self.run.remove_override(key)
        return self.go(key)

    def edit_prompt(self, name: str, text: str) -> None:
        """Use a text for a prompt in this run; the steps that used it are stale. Raises PromptError."""
        with self._edit(*(step.key for step in self.steps.values() if name in step.prompts)):
            self.run.edit_prompt(name, text)
        self.notify()

    def save_prompt(self, name: str, text: str) -> str:
        """Write a prompt to its file and use it; where it was written. Raises PromptError."""
        self.require_idle()
        used = self.run.prompts.text(name)
        path = self.run.prompts.save(name, text)
        if used != text:
            self.edit_prompt(name, text)
        return str(path)

    def refresh(self, key: str) -> Future[None]:
        """Have a step's calls made anew."""
        with self._edit(key):
            self.run.refresh(key)

        def ask() -> None:
            try:
                self.run.go(key)
            finally:
                if self.run.status not in ("paused", "done"):
                    self.run.undo_refresh()  # what was recorded is better than nothing

        return self._execute(f"asking {display_name(agent_of_key(key))} anew", ask)

    def cancel(self) -> None:
        """Stop what the worker does; a slow call is left behind."""
        super().cancel()
        self.run.cancel()

    def require_idle(self) -> None:
        """See Worker; code may execute the run too."""
        super().require_idle()
        if self.run.status == "running":
            raise SettingError("busy: code executes this run", hint="wait for it, or cancel it")

    def notify(self) -> None:
        """See Worker; of a run that code executes, until it has ended."""
        if self._has_new_steps:
            self._update_steps()
        super().notify()
        if not self.current_task and self.run.status == "running":
            self.notify_soon()

    def _load_embeddings(self) -> None:
        with suppress(EmbeddingError):  # the agent that needs them raises it
            self.run.embeddings.load()

    def _execute(self, label: str, work: Work) -> Future[None]:
        def execute() -> None:
            try:
                while (
                    (loading := self.embeddings_loader.thread)
                    and loading.is_alive()
                    and not self.cancelled
                ):
                    self.current_task = self.embeddings_loader.current_task or self.current_task
                    loading.join(NOTIFY_DELAY_S)
                if not self.cancelled:
                    self.current_task = label
                    work()
            finally:
                self._update_steps()

        if not self.current_task:
            self.require_idle()
        return self.submit(label, execute)

    def _on_step(self, event: str, step: Step) -> None:
        if self.cancelled and self.current_task:
            self.run.cancel()  # it came before the execution had begun
        self._has_new_steps = True
        self.notify_soon()

    def _update_steps(self) -> None:
        """Take over what was reached; later steps stay as they were, stale if what they saw changed."""
        with self._lock:
            self._has_new_steps = False
            self._previews.clear()
            latest = self.run.steps_by_key
            known = {} if self.run.status == "done" else self._steps
            later = {key: step for key, step in known.items() if key not in latest}
            changed = any(
                step.done and key in known and known[key].done and known[key].output != step.output
                for key, step in latest.items()
            )
            self._stale = set(later) if changed else self._stale & later.keys()
            self._steps, self._executed_keys = {**latest, **later}, set(latest)
            if not later:
                self._complete_result = self.run.totals, self.run.answer

    @contextmanager
    def _edit(self, *keys: str) -> Iterator[None]:
        """An edit of the run, refused while it is busy; what was before is kept, what follows is stale."""
        with self._lock:
            self.require_idle()
            if self._has_new_steps:
                self._update_steps()
            self._previews.clear()
            totals, answer = self._complete_result
            version = RunState(self.run, self.steps, answer=answer, totals=totals)
            yield
            if version.steps and not self._stale:
                self.history.append(version)
            order = list(self._steps)
            first = min((order.index(key) for key in keys if key in order), default=len(order))
            self._stale.update(
                order[first:]
            )  # the edited steps and all after them, and their supervisors
            above = self._steps[order[first]].parent if order[first:] else ""
            while above in self._steps:
                self._stale.add(above)
                above = self._steps[above].parent


_ATTACH_LOCK = threading.Lock()


def session_of(run: Run) -> Session:
    """The one session of a run."""
    with _ATTACH_LOCK:
        if not isinstance(run.widget_state, Session):
            run.widget_state = Session(run)
        return run.widget_state
