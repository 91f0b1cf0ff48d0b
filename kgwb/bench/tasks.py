"""Calls that are made in parallel, by threads or by any executor, and that an interrupt cancels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any

from kgwb.background import shielded
from kgwb.errors import Cancelled, GraphUnreachableError, KgwbError, ModelUnreachableError
from kgwb.run import Run

Task = Generator[tuple[Any, ...], Any, None]
"""Yields calls, each a function with its arguments, one after another, and is sent each result."""


class RunCanceller:
    """Knows the runs that this process is executing, so that an interrupt can cancel them.

    When it is sent to another process, it becomes a new one there.
    """

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.running_runs: set[Run] = set()

    def __reduce__(self) -> tuple[type[RunCanceller], tuple[()]]:
        return RunCanceller, ()

    def cancel_all(self) -> None:
        """Cancel the runs that are being executed, and all that would be executed later."""
        self.cancelled.set()
        for run in list(self.running_runs):
            run.cancel()

    def execute(self, run: Run) -> str | None:
        """Execute a run to its end, and return the message of the error that it ended in, or None.

        Exceptions other than KgwbError are bugs, and are returned as an error of this run, so that
        the other questions are still asked. Raises Cancelled if the run or all runs were cancelled.
        """
        self.running_runs.add(run)
        try:
            if self.cancelled.is_set():
                raise Cancelled
            run.go_explained()
        except KgwbError as exc:
            return exc.without_hint
        except Exception as exc:  # noqa: BLE001  # see above
            return f"{type(exc).__name__}: {exc}"
        finally:
            self.running_runs.discard(run)
        if run.status == "cancelled":
            raise Cancelled
        return None


def is_unreachable(error: BaseException | None) -> bool:
    """Return whether an error says that the model or the graph could not be reached.

    Such an error says nothing about the decisions of a run's agents.
    """
    return isinstance(error, ModelUnreachableError | GraphUnreachableError)


def raise_if_unreachable(run: Run) -> None:
    """Raise the run's error if the model or the graph could not be reached."""
    if run.error is not None and is_unreachable(run.error):
        raise run.error


def run_tasks(
    tasks: Iterable[Task],
    executor: Executor | int,
    canceller: RunCanceller,
    should_stop: Callable[[], object] = lambda: False,
    max_pending: int | None = None,
) -> None:
    """Make the calls of all tasks on an executor, or on a number of threads, and return when all are done.

    A task is a generator: it yields the function to call with its arguments, and is sent the
    result. The calls of one task are made one after another, and the tasks themselves are executed
    on one thread. At most ``max_pending`` calls are made at the same time. Once ``should_stop()``
    is true, no further call begins, and the function returns when the pending ones are done. Raises
    the first error of a call or a task; before that, waiting calls and the runs of the canceller
    are cancelled.
    """
    waiting_tasks = iter(tasks)
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    pending: dict[Future[Any], Task] = {}

    def submit_next_call(pool: Executor, task: Task, result: Any = None) -> None:
        """Send a task the result of its last call, and submit the call that it yields next to the pool.

        Nothing is submitted if the task has ended or ``should_stop()`` is true. ``result`` is None
        at first.
        """
        try:
            call = task.send(result)
        except StopIteration:
            return
        if not should_stop():
            future = pool.submit(*call)
            pending[future] = task
            future.add_done_callback(finished.put)

    def submit_waiting_tasks(pool: Executor) -> None:
        """Start tasks until none is left, or ``max_pending`` calls are pending."""
        while max_pending is None or len(pending) < max_pending:
            task = next(waiting_tasks, None)
            if task is None:
                return
            submit_next_call(pool, task)

    def run_on(pool: Executor) -> None:
        """Start tasks and continue each when its call ends, until no call is pending."""
        submit_waiting_tasks(pool)
        while pending:
            future = finished.get()
            submit_next_call(pool, pending.pop(future), future.result())
            submit_waiting_tasks(pool)

    def run_or_cancel() -> None:
        """Run all tasks on a pool. After any exception, cancel waiting calls and running runs, and raise it."""
        with _pool_of(executor) as pool:
            try:
                run_on(pool)
            except BaseException:
                for future in list(pending):
                    future.cancel()
                canceller.cancel_all()
                raise

    shielded(run_or_cancel, on_abandon=canceller.cancel_all)


def _pool_of(executor: Executor | int) -> AbstractContextManager[Executor]:
    """Return a context manager with a pool: new threads, which end with the block, or the given executor.

    The given executor is not shut down.
    """
    if isinstance(executor, int):
        return ThreadPoolExecutor(executor, "kgwb-bench")
    return nullcontext(executor)
