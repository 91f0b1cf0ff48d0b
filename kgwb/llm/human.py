"""A person in the place of a model: sees the filled prompt, and is judged by the same checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from kgwb.errors import Cancelled, ModelError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.threads import POLL_INTERVAL_S

LISTENER_TIMEOUT_S = 1.0
"""How long a request waits for somebody to listen; a panel learns of a run shortly after it began."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingRequest:
    """A request that waits for the person; equal requests are kept apart."""

    request: ChatRequest
    cancel: threading.Event
    """Of the run that asks: each run has its own."""


class Human(ChatModel):
    """Hands requests to whoever listens, and waits for the reply as long as it takes.

    Requests may come side by side, also from several runs; a cancel ends the waiting.
    """

    name = "human"
    remote = True  # so that a cancel leaves the waiting behind

    def __init__(self) -> None:
        self.listeners: dict[Callable[[], None], threading.Event | None] = {}
        """Who is here, called on any thread whenever ``waiting`` has changed.

        Each answers the run whose cancel it names, or all runs.
        """
        self._lock = threading.Lock()
        self._replies: dict[PendingRequest, str | None] = {}

    def __repr__(self) -> str:
        return f"Human({len(self.pending_requests)} waiting)"

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """The requests without a reply, oldest first."""
        with self._lock:
            return tuple(asked for asked, reply in self._replies.items() if reply is None)

    def reply(self, text: str, pending: PendingRequest) -> None:
        """Answer a request. Raises ModelError if it does not wait any more."""
        with self._lock:
            if self._replies.get(pending, "") is not None:
                raise ModelError(
                    "nobody waits for this reply", hint="run the agent again, then reply"
                )
            self._replies[pending] = text
        self._notify_listeners()

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """What the person replies; ``timeout_s`` of the request does not apply.

        Raises Cancelled, and ModelError if nobody listens.
        """
        asked, started = PendingRequest(request, cancel), time.perf_counter()
        with self._lock:
            self._replies[asked] = None
        self._notify_listeners()
        heard = time.monotonic()
        try:
            while (text := self._replies[asked]) is None:
                if cancel.wait(POLL_INTERVAL_S):
                    raise Cancelled
                if any(run in (None, cancel) for run in list(self.listeners.values())):
                    heard = time.monotonic()
                elif time.monotonic() - heard > LISTENER_TIMEOUT_S:
                    raise ModelError(
                        f"nobody is here to answer {request.task} in the place of a model",
                        hint="the model human needs a notebook: open workbench.cell(AGENT) or "
                        "workbench.debug(QUESTION) and run from there; or take another model",
                    )
        finally:
            with self._lock:
                del self._replies[asked]
            self._notify_listeners()
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)

    def _notify_listeners(self) -> None:
        for listener in list(self.listeners):
            listener()


@cache
def shared_human() -> Human:
    """The person at this machine: one, whatever number of agents is played."""
    return Human()
