"""Errors of the code of a system that are none of kgwb's: which agent failed, with what, and where."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from kgwb.errors import AgentFailedError, KgwbError

PACKAGE_FOLDER = Path(__file__).parent.parent
"""The folder of kgwb's own modules."""


class _FailingRun(Protocol):
    """What is needed of a run here: the error of its latest execution."""

    error: KgwbError | None


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
    frames = traceback.extract_tb(error.__traceback__)
    folders = sysconfig.get_paths()
    foreign = (
        folders["stdlib"],
        folders["purelib"],
        folders["platlib"],
        str(PACKAGE_FOLDER),
        "<",
    )
    for frame in reversed(frames):
        if not frame.filename.startswith(foreign):
            return frame
    return None


@contextmanager
def explained_failure(run: _FailingRun) -> Iterator[None]:
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
