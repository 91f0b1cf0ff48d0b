"""Requests over the network that an agent makes past its run: they are noticed and counted.

Such a request is not recorded, so every execution makes it again. Requests of the libraries httpx
and httpx2 (of which openai uses one, by its version) and http.client (which urllib, requests and
SPARQLWrapper use) are noticed, also on a thread that an agent starts by itself.
"""

from __future__ import annotations

import http.client
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

from kgwb.run.execution import Frame, current_frame

T = TypeVar("T")
_is_in_call: ContextVar[bool] = ContextVar("kgwb_is_in_call", default=False)
"""Whether a recorded call is being made here, whose requests are the run's own."""
_lock = threading.Lock()
_watched: set[str] = set()
"""The libraries that are watched already."""
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


def watch_requests() -> None:
    """Begin to count the HTTP requests of this process that http.client, httpx and httpx2 send.

    Each library is patched once for the life of the process. httpx and httpx2 are patched only if
    they are imported already; so each execution calls this again.
    """
    with _lock:
        if "http.client" not in _watched:
            _watched.add("http.client")
            connection = http.client.HTTPConnection
            _watch(connection, "putrequest", lambda self, *_, **__: str(self.host))
            _watch_threads()
        for name in ("httpx", "httpx2"):
            library = sys.modules.get(name)
            client = getattr(library, "Client", None)
            async_client = getattr(library, "AsyncClient", None)
            if client is None or async_client is None or name in _watched:
                continue
            _watched.add(name)
            _watch(client, "send", _host_of_httpx_request)
            _watch(async_client, "send", _host_of_httpx_request)


def _watch(owner: Any, name: str, host_of: Callable[..., str]) -> None:
    """Replace a method of a class, for good, by one that first counts the request that it sends.

    ``host_of`` gets the method's arguments and returns the host.
    """
    method = getattr(owner, name)

    @wraps(method)
    def counted(*args: Any, **kwargs: Any) -> Any:
        """Count the request, unless it is recorded, and send it."""
        _count_request(host_of(*args, **kwargs))
        return method(*args, **kwargs)

    setattr(owner, name, counted)


def _watch_threads() -> None:
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


def _host_of_httpx_request(_client: Any, request: Any, **_options: Any) -> str:
    return str(request.url.host)


def _count_request(host: str) -> None:
    """Count a request on the step that is being executed here, unless it is part of a call.

    On a thread that does not know its run, that is the step at which the thread was started.
    """
    frame = current_frame.get(None) or _frames.get(threading.current_thread())
    if frame is not None and not _is_in_call.get():
        counts = frame.step.past_calls
        counts[host] = counts.get(host, 0) + 1
