"""Models without a server: a function, a script, and a person who is shown the prompts."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kgwb.background import POLL_INTERVAL_S
from kgwb.errors import Cancelled, ModelError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.text import pluralize

ChatFunction = Callable[[Sequence[dict[str, str]]], str]
"""Takes messages of the form {"role": ..., "content": ...}, and returns the text of the reply."""


class FunctionModel(ChatModel):
    """A model that is a function of a person: a request is passed on as messages."""

    remote = True
    """It may take long, so it runs on a thread of its own."""

    def __init__(self, function: ChatFunction, *, name: str = "") -> None:
        """Wrap a function. ``name`` is part of the key of its calls; by default the function's."""
        own_name = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = name or f"function:{own_name}"
        self._function = function

    def __repr__(self) -> str:
        return f"FunctionModel({self.name!r})"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return what the function replies to the messages.

        The messages are given as a list of dictionaries with "role" and "content". ``kg``,
        ``cancel`` and the schema are not used.

        Raises ModelError if it returns no text, and what the function raises.
        """
        started = time.perf_counter()
        messages = []
        for message in request.messages:
            messages.append({"role": message.role, "content": message.content})
        text = self._function(messages)
        if not isinstance(text, str):
            raise ModelError(
                f"the model {self.name} returned {type(text).__name__}, not a text",
                hint="correct the function of this model: it must return the text of the reply",
            )
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)


ScriptedReply = str | Mapping[str, Any] | ChatReply | BaseException
"""One scripted answer: text, data to send as JSON, a whole reply, or an exception to raise."""
ScriptedReplies = ScriptedReply | Sequence[ScriptedReply]
"""One answer for every call, or a list with one answer for each call."""
ScriptFunction = Callable[[ChatRequest], ScriptedReplies]
"""Returns the answers to a request, which has ``task`` and ``messages``; each has ``content``."""
Script = ScriptFunction | Mapping[str, ScriptedReplies | ScriptFunction]
"""A function of the request, or by task the answers or such a function."""


class Scripted(ChatModel):
    """Answers from a script, and keeps the requests.

    >>> Scripted({"chatty_kg/classifier": [{"kind": "follow-up"}, {"kind": "independent"}]})
    Scripted('scripted')
    """

    def __init__(
        self, script: Script, *, name: str = "scripted", remote: bool = False, delay_s: float = 0.0
    ) -> None:
        """Set the script; ``delay_s`` is how long each answer takes, unless it is cancelled."""
        self.name = name
        self.remote = remote
        self._script = script
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self._requests: list[ChatRequest] = []
        self._reply_counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Scripted({self.name!r})"

    @property
    def requests(self) -> list[ChatRequest]:
        """A copy of the list of all requests so far, in order, also of those that failed."""
        with self._lock:
            return list(self._requests)

    def call_count(self, task: str | None = None) -> int:
        """Return how many requests came, for one task or for all."""
        tasks = [request.task for request in self.requests]
        if task is None:
            return len(tasks)
        return tasks.count(task)

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the next scripted answer, after the delay.

        An answer that is a dictionary becomes JSON text. Every request is kept. ``kg`` is not used.

        Raises the exception that the script has as the answer, ModelError if it has no answer, and
        Cancelled if ``cancel`` is set during the delay.
        """
        started = time.perf_counter()
        with self._lock:
            self._requests.append(request)
        if cancel.wait(self._delay_s):
            raise Cancelled
        reply = self._next_reply(request)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Mapping):
            reply = json.dumps(reply, ensure_ascii=False)
        if isinstance(reply, str):
            reply = ChatReply(reply, model=self.name)
        return replace(reply, seconds=time.perf_counter() - started)

    def _next_reply(self, request: ChatRequest) -> ScriptedReply:
        """Return what the script has for a request; of a list of replies, the next one of its task.

        A function in the script, or in place of it, is called with the request. Raises ModelError
        if the script does not have the task, if its list is used up, or if what it has is no reply.
        """
        task = request.task
        replies: ScriptedReplies | ScriptFunction
        if callable(self._script):
            replies = self._script
        elif task in self._script:
            replies = self._script[task]
        else:
            tasks = ", ".join(self._script) or "no task at all"
            raise ModelError(
                f"the script has no reply for the prompt {task!r}",
                hint=f"add a reply for it to the script, which has replies for: {tasks}",
            )
        if callable(replies):
            replies = replies(request)
        if isinstance(replies, str | Mapping | ChatReply | BaseException):
            return replies
        if not isinstance(replies, Sequence):
            raise ModelError(
                f"what the script has for the prompt {task!r} is no reply: {replies!r}",
                hint="give a text, a dictionary, a list of them, or a function of the request",
            )

        with self._lock:
            position = self._reply_counts[task]
            self._reply_counts[task] += 1
        if position >= len(replies):
            raise ModelError(
                f"the script has no reply for call {position + 1} of the prompt {task!r}: "
                f"it has {pluralize(len(replies), 'reply')}",
                hint="add a reply, or give one reply that is not in a list: it is used for every call",
            )
        return replies[position]


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
