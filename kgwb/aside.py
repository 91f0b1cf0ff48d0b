"""Work on threads of its own, so that whoever waits for it can leave it behind."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
LOOK_S = 0.05
"""How often ``watch`` is called."""
ENDING_S = 2.0
"""How long an interrupt waits for the work to end before it is raised."""
EXIT_S = 30.0
"""How long the process waits at its exit for work that an interrupt left behind."""
IDLE_S = 2.0
"""How long a thread without work waits for more."""
_idle: deque[SimpleQueue[_Task]] = deque()
"""For each thread without work, the queue it takes its next task from. Starting one takes 0.1 ms."""
os.register_at_fork(after_in_child=_idle.clear)  # no thread survives a fork


def aside(
    work: Callable[[], T],
    *,
    watch: Callable[[], None] | None = None,
    most_s: float = inf,
    leave: Callable[[], object] | None = None,
) -> T:
    """What ``work`` returns or raises; it sees the context variables of here.

    ``watch`` is called while it lasts, and leaves it behind by raising. Raises TimeoutError after ``most_s``
    seconds. With ``leave`` whoever gives up calls that, and gives the work a moment to end.
    """
    task = _Task(partial(copy_context().run, work))
    try:
        _hand_over(task)
        until = time.monotonic() + most_s
        while not task.ended_within(max(0.0, min(LOOK_S, until - time.monotonic()))):
            if time.monotonic() >= until:
                raise TimeoutError
            if watch is not None:
                watch()
    except BaseException:
        task.left = True
        if leave is not None:
            _left.add(task)
            _hand_over(_Task(leave))  # not here, where a second interrupt could hit it
            task.ended_within(ENDING_S)
        raise
    if task.error is None:
        return task.value  # type: ignore[no-any-return]
    try:
        raise task.error
    finally:
        del task  # a cycle with the traceback


def undisturbed(work: Callable[[], T], leave: Callable[[], object] = lambda: None) -> T:
    """What ``work`` returns or raises, done where no KeyboardInterrupt can hit it.

    Python raises those on the main thread alone, between any two instructions, so that a lock may stay taken
    and a library may turn them into errors of its own. Hence that thread only waits; an interrupt calls
    ``leave``, which should make the work end soon, and is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    return aside(work, leave=leave)


class _Task:
    """Work for another thread. Only single C calls wait and wake, so that an interrupt leaves it whole."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.value: Any = None
        self.error: BaseException | None = None
        self.left = False
        """Nobody waits for it any more; if it has not begun, it does not."""
        self.ended = False
        self.running = threading.Lock()
        self.running.acquire()

    def ended_within(self, seconds: float) -> bool:
        return self.ended or self.running.acquire(timeout=seconds)


_left: WeakSet[_Task] = WeakSet()
os.register_at_fork(after_in_child=_left.clear)


@atexit.register
def _let_end() -> None:
    """Native code, as of an import of torch, aborts the process if its thread is killed in the middle."""
    until = time.monotonic() + EXIT_S
    for task in list(_left):
        task.ended_within(max(0.0, until - time.monotonic()))


def _hand_over(task: _Task) -> None:
    try:
        tasks = _idle.pop()
    except IndexError:
        tasks = SimpleQueue()
        threading.Thread(target=_serve, args=(tasks,), name="kgwb-aside", daemon=True).start()
    tasks.put(task)


def _serve(tasks: SimpleQueue[_Task]) -> None:
    while True:
        try:
            task = tasks.get(timeout=IDLE_S)
        except Empty:
            try:
                _idle.remove(tasks)
            except ValueError:  # somebody has taken it, to put a task in
                continue
            return
        try:
            task.value = None if task.left else task.work()
        except BaseException as error:  # noqa: BLE001  # raised again by the one who waits
            task.error = error
        task.ended = True
        _idle.append(tasks)
        task.running.release()
        del task
