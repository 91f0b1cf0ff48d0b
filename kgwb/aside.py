"""Slow work on a thread of its own, so that whoever waits for it can leave it behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
LOOK_S = 0.05
"""How often ``watch`` is called."""


def aside(
    work: Callable[[], T], *, watch: Callable[[], None] | None = None, most_s: float | None = None
) -> T:
    """What ``work`` returns or raises.

    ``watch`` is called while it lasts, and leaves it behind by raising. Raises TimeoutError after ``most_s``
    seconds.
    """
    box: Future[T] = Future()

    def run() -> None:
        try:
            box.set_result(work())
        except BaseException as exc:  # noqa: BLE001  # raised again by the one who waits
            box.set_exception(exc)

    threading.Thread(target=run, name="kgwb-aside", daemon=True).start()
    until = None if most_s is None else time.monotonic() + most_s
    while True:
        try:
            return box.result(timeout=LOOK_S)
        except TimeoutError:
            if box.done():
                return box.result()
            if until is not None and time.monotonic() > until:
                raise
            if watch is not None:
                watch()
