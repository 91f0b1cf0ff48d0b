"""A worker executes tasks one after another, and notifies listeners of every change."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from kgwb.background import shielded
from kgwb.errors import KgwbError, SettingError
from kgwb.llm.base import DataNotice, presenter
from kgwb.records import frozen

NOTIFY_DELAY_S = 0.05
"""Changes within this time are notified together.

A task that ends within it is not shown as running.
"""
PRIORITY_DELAY_S = 0.02
"""How long the other listeners wait after those with priority.

Widgets are drawn by listeners. Drawing the others at once would keep the widget that the person
looks at from being sent to the page.
"""
Work = Callable[[], Any]
Listener = Callable[[], None]


@frozen
class Task:
    """Work with a label for people."""

    label: str
    work: Work
    future: Future[None]
    """Done when the work has ended, or when it was dropped from the queue."""


class Worker:
    """Executes tasks one after another on a background thread.

    Everything in a widget that can take long is a task of a worker.
    """

    def __init__(self) -> None:
        """Begin without a thread. The first task starts one."""
        self.current_task = ""
        """The label of the task that is being executed; empty if the worker is idle."""
        self.failure: KgwbError | None = None
        """The error of the latest task; None if it succeeded."""
        self.cancelled = False
        """Whether the current task was cancelled. A task that takes long checks it."""
        self.notices: tuple[DataNotice, ...] = ()
        """What left the machine in the tasks of this worker, as far as it was not shown before."""
        self.listeners: list[Listener] = []
        """Called after every change, on any thread.

        The list is replaced and never changed in place, since other threads iterate over it.
        """
        self.thread: threading.Thread | None = None
        """The latest thread; None before the first task."""
        self._priority_count = 0
        """How many listeners, from the first, are called before the others."""
        self._queue: deque[Task] = deque()
        self._timer: threading.Timer | None = None
        """Calls ``notify`` after NOTIFY_DELAY_S; None if it is not to be called."""
        self._lock = threading.RLock()

    @property
    def queued_tasks(self) -> tuple[str, ...]:
        """The labels of the tasks that wait for their turn."""
        waiting = tuple(self._queue)  # another thread may take a task at any time
        return tuple(task.label for task in waiting)

    def submit(self, label: str, work: Work) -> Future[None]:
        """Execute work on the worker's thread: now, or after the tasks submitted before.

        Returns a future that is done, with the result None, when the work has ended. An error of
        the work is not in the future but in ``failure``. If an earlier task fails or is cancelled,
        the work is dropped, and the future is done, too. Raises RuntimeError if the process can
        start no more threads.
        """
        task = Task(label, work, Future())
        # An interrupt in the middle of this would leave the worker busy forever.
        shielded(partial(self._start_or_queue, task))
        return task.future

    def _start_or_queue(self, task: Task) -> None:
        """Start a thread with the task if the worker is idle; else append it to the queue.

        A start clears the failure and the cancel of the task before. Listeners are called soon in
        both cases. Raises RuntimeError if the process can start no more threads; the worker is idle
        then.
        """
        with self._lock:
            if self.current_task:
                self._queue.append(task)
                self.notify_soon()
                return
            self.current_task = task.label
            self.cancelled = False
            self.failure = None
            self.notify_soon()
            self.thread = threading.Thread(
                target=self._execute_tasks, args=(task,), name="kgwb-worker", daemon=True
            )
            try:
                self.thread.start()
            except RuntimeError:  # the process may have too many threads
                self.current_task = ""
                raise

    def _execute_tasks(self, first_task: Task) -> None:
        """Execute a task, and then those of the queue until it is empty.

        A failure is kept in ``failure``, and drops the queue. Each future is done after the
        listeners were called. An exception that is no KgwbError becomes one that asks to report it
        as a bug.
        """
        presenter.set(self._show_notice)  # this thread has a context of its own
        next_task: Task | None = first_task
        while next_task is not None:
            task = next_task
            try:
                task.work()
            except KgwbError as exc:
                self.failure = exc
            except BaseException as exc:  # noqa: BLE001  # a bug must not leave the worker busy; it is shown
                self.failure = KgwbError(
                    f"{type(exc).__name__}: {exc}",
                    hint="this is an error of kgwb itself: please report this, with what you did",
                )
            with self._lock:
                if self.failure is not None:
                    self._clear_queue()
                next_task = self._take_next_task()
                self.cancelled = False
            try:
                self.notify()
            finally:
                task.future.set_result(None)

    def _show_notice(self, notice: DataNotice) -> None:
        """Add a notice to ``notices``, and call the listeners before the request is sent."""
        self.notices = (*self.notices, notice)
        self.notify()

    def _take_next_task(self) -> Task | None:
        """Take the first task out of the queue and make it the current one.

        Returns None if the queue is empty; the worker is idle then.
        """
        if not self._queue:
            self.current_task = ""
            return None
        task = self._queue.popleft()
        self.current_task = task.label
        return task

    def _clear_queue(self) -> None:
        """Drop all tasks of the queue, and set their futures done."""
        while self._queue:
            self._queue.popleft().future.set_result(None)

    def cancel(self) -> None:
        """Mark the current task as cancelled, and drop the queue.

        The task ends when it checks ``cancelled``.
        """
        with self._lock:
            self.cancelled = bool(self.current_task)
            self._clear_queue()

    def require_idle(self) -> None:
        """Raise SettingError if a task is being executed."""
        if self.current_task:
            raise SettingError(
                f"busy: {self.current_task}", hint="wait until this has ended, or cancel it"
            )

    def notify(self) -> None:
        """Call every listener now, on this thread, those with priority first.

        The others are called PRIORITY_DELAY_S later. A pending notification of ``notify_soon`` is
        dropped.
        """
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            first = self.listeners[: self._priority_count]
            others = self.listeners[self._priority_count :]
        for listener in first:
            listener()
        if first and others:
            time.sleep(PRIORITY_DELAY_S)
        for listener in others:
            listener()

    def notify_soon(self) -> None:
        """Call every listener after NOTIFY_DELAY_S, on another thread.

        Changes until then are covered by the same notification.
        """
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(NOTIFY_DELAY_S, self.notify)
                self._timer.daemon = True
                self._timer.start()

    @property
    def has_pending_notification(self) -> bool:
        """Whether ``notify_soon`` was called, and the listeners were not called since."""
        return self._timer is not None

    def subscribe(self, listener: Listener) -> None:
        """Call a listener after every change from now on."""
        with self._lock:
            self.listeners = [*self.listeners, listener]

    def unsubscribe(self, listener: Listener) -> None:
        """Stop calling a listener. No other listener has priority afterwards."""
        with self._lock:
            self.listeners = [other for other in self.listeners if other != listener]
            self._priority_count = 0

    def prioritize(self, *listeners: Listener) -> None:
        """Let ``notify`` call these listeners first, since the person looks at what they draw.

        Those that had priority before lose it. A listener that is not subscribed is ignored.
        """
        with self._lock:
            first = [listener for listener in self.listeners if listener in listeners]
            others = [listener for listener in self.listeners if listener not in listeners]
            self.listeners = [*first, *others]
            self._priority_count = len(first)
