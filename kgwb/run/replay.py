"""A model that answers from recorded replies: no key, no network, the same words every time."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgwb.errors import NotRecordedError, RunFileError
from kgwb.kg.base import Graph
from kgwb.llm import KINDS
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.run.record import DAMAGED, Call, RunFile, call_key


class Replay(ChatModel):
    """Answers with the replies recorded for the same content, in their order, the last one ever after."""

    remote = False

    def __init__(
        self, replies: Iterable[tuple[Mapping[str, Any], ChatReply]], *, name: str = "replay"
    ) -> None:
        """``replies`` pairs the ``ChatRequest.content()`` of each request with its reply."""
        self.name = name
        self._lock = threading.Lock()
        self._replies: defaultdict[str, list[ChatReply]] = defaultdict(list)
        for content, reply in replies:
            self._replies[_key(content)].append(reply)
        self._used: Counter[str] = Counter()

    @classmethod
    def from_file(cls, path: str | Path) -> Replay:
        """The replies of a run file; raises RunFileError if it cannot be read."""
        entries = [entry["call"] for entry in RunFile(Path(path)).lines() if "call" in entry]
        try:
            calls = [Call.from_data(entry) for entry in entries if entry["kind"] == "model"]
            replies = [(call.request["content"], call.result) for call in calls]
            return cls(replies, name=f"replay:{Path(path).name}")
        except DAMAGED as exc:
            raise RunFileError(f"{path} is damaged: {exc!r}", hint="restore the file from a copy") from exc

    def __repr__(self) -> str:
        return f"Replay({self.name!r}, {sum(map(len, self._replies.values()))} replies)"

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The recorded reply, with its recorded cost; raises NotRecordedError if there is none."""
        key = _key(request.content())
        with self._lock:
            if key not in self._replies:
                raise NotRecordedError(
                    f"{self.name} holds no reply to this request of {request.task}",
                    hint="its prompt, schema or settings differ from the recorded ones; run it with a model",
                )
            replies = self._replies[key]
            reply = replies[min(self._used[key], len(replies) - 1)]
            self._used[key] += 1
            return reply


def _key(content: Mapping[str, Any]) -> str:
    """The same whichever model was asked, and for whichever agent."""
    return call_key("model", content, 0)


KINDS["replay"] = Replay.from_file
