"""A person in the place of a model: sees the filled prompt, and is judged by the same checks."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kgwb.aside import LOOK_S
from kgwb.errors import Cancelled, ModelError
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest

if TYPE_CHECKING:
    from kgwb.kg.base import Graph

ALONE_S = 1.0
"""How long a request waits for somebody to listen; a panel learns of a run shortly after it began."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for the person."""

    number: int
    """Counted from 1 over all requests; tells equal requests apart."""
    request: ChatRequest


class Human(ChatModel):
    """Hands requests to whoever listens, and waits for the reply as long as it takes.

    Requests may come side by side; a cancel ends the waiting.
    """

    name = "human"
    remote = True  # so that a cancel leaves the waiting behind

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []
        """Called whenever ``waiting`` has changed, on any thread. Who is here can answer."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Asked] = {}
        self._replies: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"Human({len(self.waiting)} waiting)"

    @property
    def waiting(self) -> tuple[Asked, ...]:
        """The requests without a reply, oldest first."""
        with self._lock:
            return tuple(self._waiting.values())

    def reply(self, text: str, asked: Asked | None = None) -> None:
        """Answer a request, or the oldest. Raises ModelError if it does not wait, or not any more."""
        with self._lock:
            number = asked.number if asked else next(iter(self._waiting), 0)
            if self._waiting.pop(number, None) is None:
                raise ModelError("nobody waits for this reply", hint="run the agent again, then reply")
            self._replies[number] = text
        self._tell()

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """What the person replies; ``timeout_s`` of the request does not apply.

        Raises Cancelled, and ModelError if nobody listens.
        """
        started = time.perf_counter()
        with self._lock:
            asked = Asked(next(self._numbers), request)
            self._waiting[asked.number] = asked
        self._tell()
        try:
            text = self._wait(asked, cancel)
        finally:
            with self._lock:
                self._waiting.pop(asked.number, None)
                self._replies.pop(asked.number, None)
            self._tell()
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)

    def _wait(self, asked: Asked, cancel: threading.Event) -> str:
        listened = time.monotonic()
        while asked.number not in self._replies:
            if cancel.wait(LOOK_S):
                raise Cancelled
            now = time.monotonic()
            listened = now if self.listeners else listened
            if now - listened > ALONE_S:
                raise ModelError(
                    f"nobody is here to answer {asked.request.task} in the place of a model",
                    hint="the model human needs a notebook: open workbench.cell(AGENT) or "
                    "workbench.debug(QUESTION) and run from there; or take another model",
                )
        return self._replies[asked.number]

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()


@cache
def person() -> Human:
    """The person at this machine: one, whatever number of agents is played."""
    return Human()
