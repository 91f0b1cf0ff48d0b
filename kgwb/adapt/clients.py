"""What pipelines share besides requests: options of clients as JSON data, and thread pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from kgwb.errors import SettingError
from kgwb.records import JsonObject
from kgwb.run.steps import current_run


def json_options(options: Mapping[str, Any]) -> JsonObject:
    """Return options of a client as JSON data. What has no JSON form is the name of its class.

    An object in memory, such as a callback, has no text that is the same the next time.
    """
    return {name: _json_value(value) for name, value in options.items()}


def _json_value(value: Any) -> Any:
    """Return a value of a request as JSON data that identifies it.

    A class with a JSON schema becomes that schema, an object of pydantic its fields, and another
    object the name of its type.
    """
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return value.model_json_schema()
    if isinstance(value, Mapping):
        return json_options(value)
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return type(value).__qualname__


T = TypeVar("T")


def wrap_executor(executor: Executor) -> Executor:
    """Return an executor that inside a run executes what is submitted at once, on this thread.

    So the branches of a pipeline belong to the run, and their steps have the same order each time.
    Outside of a run it is the plain executor, such as a ThreadPoolExecutor.

    Raises SettingError for what is no executor.
    """
    if not isinstance(executor, Executor):
        raise SettingError(
            f"wrap_executor got a {type(executor).__name__}, which is not a ThreadPoolExecutor",
            hint="pass a concurrent.futures.ThreadPoolExecutor()",
        )
    return RunExecutor(executor)


class NumberedFuture(Future[T]):
    """A future whose place in a set depends on its number, and not on its address in memory.

    ``concurrent.futures.as_completed`` and ``wait`` keep futures in sets. So a pipeline that uses
    them sees the results of done futures in the same order in each execution of a run.
    """

    def __init__(self, number: int) -> None:
        """``number`` is how many futures were made before in the execution of the run."""
        super().__init__()
        self._number = number

    def __hash__(self) -> int:
        """Return a number that makes ``as_completed``, which takes the last first, keep the order."""
        return -2 - self._number


class RunExecutor(Executor):
    """Executes by another executor outside of a run, and at once inside. See ``wrap_executor``."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call the function, and return a future with its result or its exception.

        Inside a run it is called here and now, so the future is done. Outside, the plain executor
        calls it.
        """
        run = current_run()
        if run is None:
            return self._executor.submit(function, *args, **kwargs)
        future: Future[T] = NumberedFuture(run.execution.next_branch_number())
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future raises it where it is asked
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the plain executor down."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)
