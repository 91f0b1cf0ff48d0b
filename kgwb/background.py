"""Work that takes long: on threads that the caller can stop waiting for, and with progress bars."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
POLL_INTERVAL_S = 0.05
"""How often ``poll`` is called at first while work runs."""
MAX_POLL_INTERVAL_S = 0.5
"""How often ``poll`` is called after a long wait."""
POLLED_SHARE = 0.1
"""The interval is this share of the wait so far. Many workers that wait for a slow model cost little then."""
ABANDON_TIMEOUT_S = 2.0
"""How long an interrupted caller waits for the work to end after ``on_abandon``."""
EXIT_TIMEOUT_S = 30.0
"""How long the process waits at its exit for abandoned work."""
IDLE_TIMEOUT_S = 2.0
"""How long a thread without work waits for more before it ends."""

_idle_queues: deque[SimpleQueue[_Task]] = deque()
"""The task queue of each thread that waits for work. Starting a thread takes 0.1 ms."""

if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_idle_queues.clear)  # no thread survives a fork


def poll_interval_s(waited_s: float) -> float:
    """Return how long to wait until ``poll`` is called again, after so long a wait."""
    return min(max(POLL_INTERVAL_S, POLLED_SHARE * waited_s), MAX_POLL_INTERVAL_S)


def run_in_thread(
    work: Callable[[], T],
    *,
    poll: Callable[[], None] | None = None,
    timeout_s: float = inf,
    on_abandon: Callable[[], object] | None = None,
) -> T:
    """Run work on a background thread and return its result; the caller can stop waiting for it.

    The work sees the context variables of the caller. ``poll`` is called every POLL_INTERVAL_S, and
    less often the longer the work runs (``poll_interval_s``). If it raises, or after ``timeout_s``,
    or at an interrupt, the work is abandoned: it goes on, and its result is dropped. ``on_abandon``
    is called then, once; it should make the work end soon, and ABANDON_TIMEOUT_S are waited for that.

    Raises what the work raises, what ``poll`` raises, and TimeoutError.
    """
    task = _Task(partial(copy_context().run, work))
    if on_abandon is not None:
        on_abandon = partial(_do_first, iter([on_abandon]))
    try:
        _start(task)
        started = time.monotonic()
        waited_s = 0.0
        while not task.wait(min(poll_interval_s(waited_s), max(0.0, timeout_s - waited_s))):
            waited_s = time.monotonic() - started
            if waited_s >= timeout_s:
                raise TimeoutError
            if poll is not None:
                poll()
    except BaseException:
        while True:
            try:
                _abandon(task, on_abandon)
                break
            except KeyboardInterrupt:  # another one, perhaps before the work was told
                continue
        if on_abandon is not None:
            task.wait(ABANDON_TIMEOUT_S)
        raise
    if task.error is None:
        return task.value  # type: ignore[no-any-return]
    try:
        raise task.error
    finally:
        del task  # it would be in a cycle with the traceback


def _do_first(works: Iterator[Callable[[], object]]) -> None:
    """Do the next work of some, if one is left. Of several threads, each gets another one."""
    next(works, lambda: None)()


def _abandon(task: _Task, on_abandon: Callable[[], object] | None) -> None:
    """Mark a task as abandoned, and have ``on_abandon`` called, which should make it end soon."""
    task.abandoned = True
    if on_abandon is not None:
        _abandoned_tasks.add(task)
        _start(_Task(on_abandon))  # on a thread, where an interrupt cannot hit it


def shielded(work: Callable[[], T], on_abandon: Callable[[], object] = lambda: None) -> T:
    """Run work where no KeyboardInterrupt can hit it, and return its result.

    Python raises KeyboardInterrupt on the main thread, between any two instructions. A lock could
    stay taken, and a library could turn the interrupt into an error of its own. So the main thread
    has the work done on another one, and only waits; other threads do it themselves. An interrupt
    calls ``on_abandon``, which should make the work end soon, and is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    return run_in_thread(work, on_abandon=on_abandon)


class _Task:
    """Work for another thread.

    Only single C calls wait and notify, so that an interrupt cannot leave it half changed.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.value: Any = None
        self.error: BaseException | None = None
        self.abandoned = False
        """Whether the caller has stopped waiting. Work that has not begun then does not begin."""
        self.ended = False
        self.running = threading.Lock()
        """Held until the work has ended."""
        self.running.acquire()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the work, and return whether it has ended."""
        return self.ended or self.running.acquire(timeout=seconds)


_abandoned_tasks: WeakSet[_Task] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandoned_tasks.clear)


@atexit.register
def _wait_for_abandoned_tasks() -> None:
    """Wait at the exit of the process until abandoned work has ended, at most EXIT_TIMEOUT_S.

    Native code aborts the process if its thread is killed in the middle, as an import of torch is.
    """
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    for task in list(_abandoned_tasks):
        task.wait(max(0.0, deadline - time.monotonic()))


def _start(task: _Task) -> None:
    """Give the task to a background thread that waits for work; if there is none, start one.

    Raises RuntimeError if the process can start no more threads.
    """
    try:
        queue = _idle_queues.pop()
    except IndexError:
        queue = SimpleQueue()
        threading.Thread(
            target=_run_tasks, args=(queue,), name="kgwb-background", daemon=True
        ).start()
    queue.put(task)


def _run_tasks(queue: SimpleQueue[_Task]) -> None:
    """Run the tasks of a queue, one after another, until none has come for IDLE_TIMEOUT_S.

    It is what a background thread runs. While it waits, its queue is among the idle ones, from
    which ``_start`` takes one. A task that was abandoned before is not run. Errors are kept in the
    task.
    """
    while True:
        try:
            task = queue.get(timeout=IDLE_TIMEOUT_S)
        except Empty:
            try:
                _idle_queues.remove(queue)
            except ValueError:  # another thread has taken the queue, and will put a task in
                continue
            return
        try:
            task.value = None if task.abandoned else task.work()
        except BaseException as error:  # noqa: BLE001  # raised again by the caller that waits
            task.error = error
        task.ended = True
        _idle_queues.append(queue)
        task.running.release()
        del task  # the thread must not keep the result while it waits


DELAY_S = 1.0
"""Work that takes less is not shown."""
INTERVAL_S = 0.5
"""How often a bar is redrawn."""


def progress_bar(**options: Any) -> Any:
    """Return a progress bar of tqdm with these of its options.

    It is shown on the error output only if the work takes more than DELAY_S, and redrawn every
    INTERVAL_S.
    """
    from tqdm import tqdm

    bar = _without_monitor(tqdm)
    return bar(mininterval=INTERVAL_S, delay=DELAY_S, **options)


def transient_bar(**options: Any) -> Any:
    """Return a progress bar that is removed at its end, with these of tqdm's options.

    In a notebook it is a widget, and in a terminal like ``progress_bar``. It is shown nowhere else,
    such as where the error output is a file.
    """
    if "ipykernel" in sys.modules:
        from tqdm.notebook import tqdm

        class Bar(_without_monitor(tqdm)):  # type: ignore[misc]
            """A bar that is removed in any case.

            tqdm leaves a red one if the work ended before the total, as work does that failed, and
            work whose last part was not told.
            """

            def close(self) -> None:
                """Remove the bar."""
                self.total = None
                super().close()

        return Bar(mininterval=INTERVAL_S, delay=DELAY_S, leave=False, **options)
    return progress_bar(leave=False, disable=None, **options)


def _without_monitor(bar_class: type) -> Any:
    """Return a class of bars that starts no thread.

    The first bar of tqdm starts a thread that watches all bars until the process ends. Bars here are
    updated often enough without it.
    """
    attributes = {"monitor_interval": 0}
    return type(bar_class.__name__, (bar_class,), attributes)
