"""The notice of what leaves the machine: shown before the first request to a hosted model.

It is shown once for each graph and model. It informs, and never keeps a request from being sent.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgwb.disk import cache_dir
from kgwb.kg.base import Graph
from kgwb.network import is_loopback_host
from kgwb.records import Record

SENT = (
    "your questions, with the earlier questions and answers of their dialogue",
    "labels, descriptions and IRIs of the graph",
    "rows of query results",
    "the survey of the graph",
    "texts of documents",
    "what you or your students write into prompts, questions and replies",
)
"""What kgwb's prompts may hold. Which of it is sent depends on the system and the question."""
SWITCH = "KGWB_HOSTED_NOTICE"
"""The environment variable that acknowledges the notice: "off" leaves it out."""
SHOWN_ONCE = f"This is said once for each graph and model; {SWITCH}=off leaves it out."
"""What is said below a notice."""
NOTICES_FOLDER = "notices"
"""The folder in the cache folder that says for which graphs and models the notice was shown, and when."""


@dataclass(frozen=True, slots=True)
class DataNotice(Record):
    """What leaves the machine with one model and one graph, and where it goes."""

    model: str
    """The name of the model, such as "openai:gpt-4o"."""
    host: str
    """The host of its server. No key is part of it."""
    graph: str
    """The identity of the graph; empty for a request without one."""
    sent: tuple[str, ...] = SENT
    shown: str = ""
    """When it was first shown: UTC, ISO 8601. Empty if SWITCH acknowledges it."""

    def __str__(self) -> str:
        """Return in one line which model is asked where, and what leaves the machine with its prompts."""
        listed = "; ".join(self.sent)
        return f"The prompts of {self.model} leave this machine, to {self.host}. They may hold: {listed}."


Present = Callable[[DataNotice], None]
Collect = Callable[[DataNotice], None]


def show_notice(notice: DataNotice) -> None:
    """Show a notice to the person: in a notebook below the cell, else on the error output.

    Nothing is raised if there is nowhere to show it.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if hasattr(shell, "kernel"):
        from IPython.display import display

        display(notice)
        return
    with suppress(
        OSError, ValueError, AttributeError
    ):  # the error output is closed, or there is none
        sys.stderr.write(f"kgwb: {notice}\n  {SHOWN_ONCE}\n")
        sys.stderr.flush()


presenter: ContextVar[Present] = ContextVar("presenter", default=show_notice)
"""How a notice is shown. A widget shows it in itself."""
collector: ContextVar[Collect | None] = ContextVar("collector", default=None)
"""What keeps the notices of the requests that are sent; None for nothing."""
_lock = threading.Lock()
"""Held while a notice is shown, so that no other thread sends a request before."""
_shown_here: dict[Path, str] = {}
"""When a notice was shown, by its file: the folder may not be writable."""


@contextmanager
def notices_collected_by(collect: Collect) -> Iterator[None]:
    """Give the notice of each request that the code inside sends to a hosted model to ``collect``."""
    token = collector.set(collect)
    try:
        yield
    finally:
        collector.reset(token)


def announce(model: str, url: str, graph: Graph | None) -> None:
    """Show what leaves the machine with the requests of a model, unless it was shown before.

    Every model behind an address calls it before each request. ``url`` is the address. For a server
    on this machine nothing happens. The notice is also given to the ``collector``, whether it is new
    or not.
    """
    host = urlsplit(url).hostname or ""
    if not host or is_loopback_host(host):
        return
    identity = graph.identity if graph is not None else ""
    notice = DataNotice(model, host, identity)
    switch = os.environ.get(SWITCH, "").strip()
    if switch.lower() != "off":
        with _lock:
            notice = _show_once(notice)
    collect = collector.get()
    if collect is not None:
        collect(notice)


def _show_once(notice: DataNotice) -> DataNotice:
    """Show a notice if it was not shown yet, and return it with the time at which it was first shown.

    The time is kept in a file for each graph and model. A file that cannot be read has none, and
    nothing is raised if it cannot be written: the notice is then shown again another time.
    """
    identity = f"{notice.graph}\n{notice.model}".encode("utf-8", "replace")
    file = cache_dir() / NOTICES_FOLDER / hashlib.sha256(identity).hexdigest()
    if file not in _shown_here:
        try:
            shown = file.read_text("ascii")
            datetime.fromisoformat(shown)
        except (OSError, ValueError):
            shown = datetime.now(UTC).isoformat(timespec="milliseconds")
            show = presenter.get()
            show(replace(notice, shown=shown))
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(shown, "ascii")
        _shown_here[file] = shown
    return replace(notice, shown=_shown_here[file])
