"""A model that answers from a script: for tests, demonstrations and exercises."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgwb.deprecated import RenamedAttribute
from kgwb.errors import Cancelled, ModelError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest

ScriptedReply = str | Mapping[str, Any] | ChatReply | BaseException
"""One scripted answer: text, data to send as JSON, a whole reply, or an exception to raise."""
Script = (
    Callable[[ChatRequest], ScriptedReply] | Mapping[str, ScriptedReply | Sequence[ScriptedReply]]
)
"""A function of the request; or by task one line for every call, or a list of lines for one call each."""


class Scripted(ChatModel):
    """Answers from a script, and keeps what it was asked.

    >>> Scripted({"chatty_kg/classifier": [{"kind": "follow-up"}, {"kind": "independent"}]})
    Scripted('scripted')
    """

    def __init__(
        self, script: Script, *, name: str = "scripted", remote: bool = False, delay_s: float = 0.0
    ) -> None:
        """``delay_s`` is waited before each answer, unless the call is cancelled."""
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
        """All requests so far in the order they came, also those that failed; a copy."""
        with self._lock:
            return list(self._requests)

    def call_count(self, task: str | None = None) -> int:
        """How many requests came, for one task or for all."""
        return sum(task is None or request.task == task for request in self.requests)

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """The next scripted answer; raises what the script says, ModelError if it has none, Cancelled."""
        started = time.perf_counter()
        with self._lock:
            self._requests.append(request)
        if cancel.wait(self._delay_s):
            raise Cancelled
        script, task = self._script, request.task
        if callable(script):
            line: ScriptedReply | Sequence[ScriptedReply] = script(request)
        elif task in script:
            line = script[task]
        else:
            hint = f"it has {', '.join(script) or 'no task at all'}"
            raise ModelError(f"the script has nothing for task {task!r}", hint=hint)
        if not isinstance(line, str | Mapping | ChatReply | BaseException):
            with self._lock:
                used = self._reply_counts[task]
                self._reply_counts[task] += 1
            if used >= len(line):
                raise ModelError(
                    f"the script has {len(line)} answers for task {task!r}, and this is call {used + 1}",
                    hint="add an answer, or give one that is not in a list: it serves every call",
                )
            line = line[used]
        if isinstance(line, BaseException):
            raise line
        if not isinstance(line, ChatReply):
            text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
            line = ChatReply(text, model=self.name)
        return replace(line, seconds=time.perf_counter() - started)

    calls = RenamedAttribute("calls", "call_count")
