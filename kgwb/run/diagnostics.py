"""What a run finds about the code of a system: an output of another type than promised, an error that
is none of kgwb's, a request over the network that goes past the run, and a step that asks something else
when it is executed again.
"""

from __future__ import annotations

import sysconfig
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from kgwb.errors import AgentFailedError, KgwbError
from kgwb.records import JsonObject
from kgwb.run.differences import describe_difference
from kgwb.run.steps import Call, Frame, Step, current_frame
from kgwb.text import shorten, single_line

MAX_SHOWN_CHARS = 80


def matches_type(value: Any, promised: Any) -> bool:
    """Return whether a value has the type of an annotation; True for types that cannot be judged.

    The items of a tuple are judged too, those of other collections are not. A class that was
    defined again, by a cell or a reload, is the same class. A whole number may stand for a float.
    """
    if isinstance(promised, type):  # as most outputs: a class without brackets
        return _is_instance(value, promised)
    origin = get_origin(promised)
    arguments = get_args(promised)
    if origin is Annotated:
        return matches_type(value, arguments[0])
    if origin in (Union, types.UnionType):
        return any(matches_type(value, choice) for choice in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and _items_match(value, arguments)
    return _is_instance(value, origin or promised)


def _is_instance(value: Any, promised: Any) -> bool:
    """Return whether a value has a type that has no brackets.

    A class of the same module and name counts as the same, and a whole number as a float. True for
    Any and for what is no class, such as a type variable. None stands for the type of None.
    """
    if promised is None:
        return value is None
    if promised is float:
        return isinstance(value, int | float)
    if promised is Any or not isinstance(promised, type):
        return True
    return isinstance(value, promised) or _is_same_class(type(value), promised)


def _items_match(items: Sequence[Any], promised: Sequence[Any]) -> bool:
    """Return whether the items of a tuple have the types in the brackets of its annotation.

    ``promised`` are these types; "..." as the second allows any number of the first.
    """
    if len(promised) == 2 and promised[1] is Ellipsis:
        return all(matches_type(item, promised[0]) for item in items)
    if len(items) != len(promised):
        return False
    return all(map(matches_type, items, promised))


def _is_same_class(actual: type, promised: type) -> bool:
    """Return whether a class, or one that it derives from, has the name and module of another."""
    place = (promised.__module__, promised.__qualname__)
    return any((base.__module__, base.__qualname__) == place for base in actual.__mro__)


def type_text(promised: Any) -> str:
    """Return a type as text: the name of a class, else as in "tuple[kgwb.run.answers.Link, ...]"."""
    if isinstance(promised, type) and not get_args(promised):
        return promised.__name__
    return str(promised).replace("typing.", "")


def value_text(value: Any) -> str:
    """Return a value with its type, in one line: "str 'Arrival'"; "None" for None.

    The value's ``repr`` is cut at MAX_SHOWN_CHARS characters.
    """
    if value is None:
        return "None"
    shown = shorten(repr(value), MAX_SHOWN_CHARS)
    return single_line(f"{type(value).__name__} {shown}")


PACKAGE_FOLDER = Path(__file__).parent.parent
"""The folder of kgwb's own modules."""


def explain_failure(error: Exception, agent: str = "") -> AgentFailedError:
    """Return an AgentFailedError with type and message of an error, and where it was raised.

    ``agent`` is the key of the step that raised it; "" if it was raised outside of all steps. The
    place is ``own_place``.
    """
    message = f"{type(error).__name__}: {error}"
    if agent:
        message += f" (in the agent {agent})"
    return AgentFailedError(message, place=own_place(error))


def own_place(error: Exception) -> str:
    """Return file and line of the deepest place in the person's own code: "/home/me/tog.py, line 7".

    If none is the person's own (``last_own_frame``), it is the deepest of all.
    """
    frame = last_own_frame(error)
    if frame is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}"


def last_own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the deepest frame of an error's traceback in the person's own code; None without any.

    Frames of Python itself, of installed packages and of kgwb are not the person's own.
    """
    folders = sysconfig.get_paths()
    foreign = (
        folders["stdlib"],
        folders["purelib"],
        folders["platlib"],
        str(PACKAGE_FOLDER),
        "<",
    )
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if not frame.filename.startswith(foreign):
            return frame
    return None


@contextmanager
def explained_failure(run: Any) -> Iterator[None]:
    """Raise the run's AgentFailedError in place of the error of its system's code, for the code inside.

    The code inside executes the run. Where a person reads the message and not a traceback, as in
    the terminal, this says which agent failed and where. A KgwbError is raised as it is.
    """
    try:
        yield
    except KgwbError:
        raise
    except Exception as exc:
        if isinstance(run.error, AgentFailedError):
            raise run.error from exc
        raise


T = TypeVar("T")
_is_in_call: ContextVar[bool] = ContextVar("kgwb_is_in_call", default=False)
"""Whether a recorded call is being made here, whose requests are the run's own."""
_frames: weakref.WeakKeyDictionary[threading.Thread, Frame] = weakref.WeakKeyDictionary()
"""Where the execution was when it started a thread that does not know its run."""
OWN_THREADS = "kgwb"
"""How the names of kgwb's own threads begin. They know the run that they work for."""


def make_recorded(make: Callable[[], T]) -> T:
    """Return ``make()``, and let its HTTP requests count as recorded: no step gets a note.

    This holds for the calling thread.
    """
    token = _is_in_call.set(True)
    try:
        return make()
    finally:
        _is_in_call.reset(token)


def watch_threads() -> None:
    """Patch the start of threads, for good: a thread belongs to the step that started it.

    Threads of kgwb itself, and those of a recorded call, are left out.
    """
    start = threading.Thread.start

    @wraps(start)
    def remembering_start(thread: threading.Thread) -> None:
        """Start the thread; if an execution starts it, remember the step in ``_frames``.

        Threads of kgwb itself, and those of a recorded call, are not remembered.
        """
        frame = current_frame.get(None)
        is_own = thread.name.startswith(OWN_THREADS)
        if frame is not None and not is_own and not _is_in_call.get():
            _frames[thread] = frame
        start(thread)

    setattr(threading.Thread, "start", remembering_start)  # noqa: B010 - mypy refuses an assignment


def is_in_call() -> bool:
    """Return whether a recorded call is being made here, whose requests are the run's own."""
    return _is_in_call.get()


def executing_frame() -> Frame | None:
    """Return where the execution is here; on a thread that does not know its run, where it was started."""
    return current_frame.get(None) or _frames.get(threading.current_thread())


def count_past_call(host: str) -> None:
    """Count a request on the step that is being executed here, unless it is part of a call.

    On a thread that does not know its run, that is the step at which the thread was started.
    """
    frame = executing_frame()
    if frame is not None and not _is_in_call.get():
        counts = frame.step.past_calls
        counts[host] = counts.get(host, 0) + 1


VARYING_HINT = "get what varies through run.call, so that it is recorded"


def call_in_its_place(
    step: Step, kind: str, earlier: Step | None, calls: Mapping[str, Call]
) -> Call | None:
    """Return the call that an earlier execution made where a step is about to make a new one.

    ``earlier`` is the same step of that execution, and the place is the number of calls so far.
    Returns None if the earlier step was not done, had other inputs, made no call there, or one of
    another kind. ``calls`` are those of the run by key.
    """
    if earlier is None or not earlier.done or earlier.inputs != step.inputs:
        return None
    position = len(step.calls)
    if position >= len(earlier.calls):
        return None
    call = calls.get(earlier.calls[position])
    if call is None or call.kind != kind:
        return None
    return call


def recorded_call_of(step: Step, kind: str, calls: Iterable[Call]) -> Call | None:
    """Return the first recorded call of this step and kind that it has not used yet, or None."""
    for call in calls:
        if call.step == step.key and call.kind == kind and call.key not in step.calls:
            return call
    return None


def describe_change(step: Step, request: JsonObject, before: Call) -> str:
    """Return a text of where a step's request differs from the one before; "" if they are the same."""
    difference = describe_difference(request, before.request)
    if not difference:
        return ""
    return f"{step.key} asked something else the second time: {difference}"
