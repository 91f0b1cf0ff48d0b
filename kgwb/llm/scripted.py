"""A model that answers from a script: for tests, demonstrations and exercises."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgwb.errors import Cancelled, ModelError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.text import pluralize

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
