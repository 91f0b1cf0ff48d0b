"""Progress bars, in a terminal and in a notebook."""

from __future__ import annotations

import sys
from typing import Any

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
