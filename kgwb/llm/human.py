"""A person in the place of a model: sees the prompts, and replies under the same checks."""

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
"""How long a request waits for a listener. A widget begins to listen shortly after a run begins."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingRequest:
    """A request that waits for the person's reply. Equal requests are different objects."""

    request: ChatRequest
    cancel: threading.Event
    """The cancel event of the run that asks. Each run has its own."""


class Human(ChatModel):
    """A model whose replies are given by a person, who is shown the requests by a listener.

    Several requests can wait at the same time, also those of several runs. They wait without a time
    limit, until the person replies or the run is cancelled.
    """

    name = "human"
    remote = True  # so that a waiting request can be cancelled

    def __init__(self) -> None:
        """Begin without listeners and requests."""
        self.listeners: dict[Callable[[], None], threading.Event | None] = {}
        """Functions that are called, on any thread, whenever ``pending_requests`` has changed.

        The value is the cancel event of the run that the listener answers, None if it answers all.
        """
        self._lock = threading.Lock()
        self._replies: dict[PendingRequest, str | None] = {}

    def __repr__(self) -> str:
        return f"Human({len(self.pending_requests)} waiting)"

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """The requests without a reply, oldest first."""
        waiting = []
        with self._lock:
            for pending, reply in self._replies.items():
                if reply is None:
                    waiting.append(pending)
        return tuple(waiting)

    def reply(self, text: str, pending: PendingRequest) -> None:
        """Give a request the person's reply, and call the listeners.

        Raises ModelError if the request has a reply already, or is not waiting any more.
        """
        with self._lock:
            if pending not in self._replies or self._replies[pending] is not None:
                raise ModelError(
                    "the reply was not taken: this request is no longer waiting for one",
                    hint="run the agent again, then reply",
                )
            self._replies[pending] = text
        self._notify_listeners()

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Wait for the person's reply, and return it.

        The listeners are called when the request begins and ends to wait. ``kg`` and the timeout of
        the request are not used.

        Raises Cancelled if ``cancel`` is set, and ModelError if there has been no listener for this
        run for LISTENER_TIMEOUT_S.
        """
        pending = PendingRequest(request, cancel)
        started = time.perf_counter()
        with self._lock:
            self._replies[pending] = None
        self._notify_listeners()
        try:
            text = self._wait_for_reply(pending)
        finally:
            with self._lock:
                del self._replies[pending]
            self._notify_listeners()
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)

    def _wait_for_reply(self, pending: PendingRequest) -> str:
        """Wait for the reply to a request, and return it. It is looked for every POLL_INTERVAL_S.

        Raises Cancelled if the run is cancelled. Raises ModelError if for LISTENER_TIMEOUT_S no
        listener was registered for this run or for all runs: no widget shows the request then.
        """
        last_listened = time.monotonic()
        while True:
            text = self._replies[pending]
            if text is not None:
                return text
            if pending.cancel.wait(POLL_INTERVAL_S):
                raise Cancelled
            answered_runs = list(self.listeners.values())
            if None in answered_runs or pending.cancel in answered_runs:
                last_listened = time.monotonic()
            elif time.monotonic() - last_listened > LISTENER_TIMEOUT_S:
                raise ModelError(
                    f"the model human cannot reply to {pending.request.task}: no widget shows this run",
                    hint="a person types the reply in a notebook: open workbench.cell(AGENT) or "
                    "workbench.debug(QUESTION) and run from there; or choose another model",
                )

    def _notify_listeners(self) -> None:
        """Call all listeners, without arguments, on the calling thread."""
        for listener in list(self.listeners):
            listener()


@cache
def shared_human() -> Human:
    """Return the one ``Human`` of this process, which plays any number of agents."""
    return Human()
