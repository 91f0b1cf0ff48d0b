"""The notice of what leaves the machine: shown before the first request to a hosted model.

It is shown once for each graph and model. It informs, and never keeps a request from being sent.
"""

from __future__ import annotations

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

from kgwb import disk
from kgwb.disk import cache_dir
from kgwb.kg.base import Graph
from kgwb.network import is_loopback_host
from kgwb.records import Record, from_data

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
NOTICES_FILE = "notices.jsonl"
"""The file in the cache folder that says for which graphs and models the notice was shown."""
MAX_KEPT = 1000
"""Graphs and models that the file keeps. From then on the older half is forgotten, and shown again."""


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
_shown_here: dict[tuple[Path, str, str], str] = {}
"""When a notice was shown, by cache folder, graph and model: the folder may not be writable."""


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
    """Show a notice if it was not shown yet, and return it with the time at which it was first shown."""
    folder = cache_dir()
    place = (folder, notice.graph, notice.model)
    if place not in _shown_here:
        known = _read_shown(folder / NOTICES_FILE)
        key = (notice.graph, notice.model)
        if key in known:
            _shown_here[place] = known[key]
        else:
            now = datetime.now(UTC)
            new = replace(notice, shown=now.isoformat(timespec="milliseconds"))
            show = presenter.get()
            show(new)
            _shown_here[place] = new.shown
            _keep_shown(folder / NOTICES_FILE, known, new)
    return replace(notice, shown=_shown_here[place])


def _read_shown(file: Path) -> dict[tuple[str, str], str]:
    """Return when notices were first shown, by graph and model, the oldest first.

    A file that is missing or cannot be read has none, and a line of another form is passed over.
    """
    known = {}
    with suppress(OSError, disk.NotJsonError):
        for _, entry in disk.read_json_lines(file):
            with suppress(KeyError, TypeError, ValueError):
                graph = from_data(entry["graph"], str)
                model = from_data(entry["model"], str)
                known[graph, model] = from_data(entry["shown"], str)
    return known


def _keep_shown(file: Path, known: dict[tuple[str, str], str], notice: DataNotice) -> None:
    """Add a notice to the file; if it has MAX_KEPT already, replace the file by its newer half.

    Nothing is raised if the file cannot be written: the notice is then shown again another time.
    """
    entry = {"graph": notice.graph, "model": notice.model, "shown": notice.shown}
    with suppress(OSError):
        if len(known) >= MAX_KEPT:
            newer = list(known.items())[MAX_KEPT // 2 :]
            entries = []
            for (graph, model), shown in newer:
                entries.append({"graph": graph, "model": model, "shown": shown})
            entries.append(entry)
            disk.write_json_lines(file, entries)
        else:
            disk.append_json_line(file, entry)
