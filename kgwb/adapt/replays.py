"""Replays of a pipeline that catches errors of its own clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kgwb.errors import NotRecordedError
from kgwb.run import Run

NOT_RECORDED_NOTE = (
    "a request is not in this recording, as it failed or was never sent; if the pipeline caught that "
    "error, what follows may differ from the recorded run"
)


@contextmanager
def missing_calls_noted(run: Run) -> Iterator[None]:
    """Leave a note on the step if the code inside raises NotRecordedError.

    A pipeline often catches every error, to try again or to go on without a reply. A replay would
    then come to its end, perhaps with another answer, and nothing would say why.
    """
    try:
        yield
    except NotRecordedError:
        run.note(NOT_RECORDED_NOTE)
        raise
