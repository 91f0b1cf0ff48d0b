"""Waiting for a coroutine in code that is not asynchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine, which is executed on a thread of its own.

    All such coroutines share one event loop: the connections of a client belong to a loop, and
    outlive an execution of a run. Raises what the coroutine raises.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _client_loop()).result()


async def await_on_client_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that is executed as by ``wait_for``, without blocking."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _client_loop())
    return await asyncio.wrap_future(future)


@lru_cache(maxsize=1)
def _client_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the clients, which a background thread executes."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kgwb-clients", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_client_loop.cache_clear)  # no thread survives a fork
