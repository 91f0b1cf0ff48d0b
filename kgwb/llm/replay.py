"""A model that answers from recorded replies: no key, no network, the same words every time."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgwb import disk
from kgwb.errors import NotRecordedError, RunFileError
from kgwb.flow import from_data
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest

if TYPE_CHECKING:
    from kgwb.kg.base import Graph

_REPLY_FIELDS = frozenset(field.name for field in fields(ChatReply))


class Replay(ChatModel):
    """Answers with the replies recorded for the same content, in their order, the last one ever after."""

    remote = False

    def __init__(self, replies: Iterable[tuple[str, ChatReply]], *, name: str = "replay") -> None:
        """``replies`` pairs each reply with the ``request_key`` of its request."""
        self.name = name
        self._lock = threading.Lock()
        self._replies: defaultdict[str, list[ChatReply]] = defaultdict(list)
        for key, reply in replies:
            self._replies[key].append(reply)
        self._handed_out: defaultdict[str, int] = defaultdict(int)

    @classmethod
    def from_file(cls, path: str | Path) -> Replay:
        """The replies of a run file; raises RunFileError if it cannot be read."""
        return cls(read_replies(path), name=f"replay:{Path(path).name}")

    def __repr__(self) -> str:
        return f"Replay({self.name!r}, {sum(map(len, self._replies.values()))} replies)"

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The recorded reply, with its recorded cost; raises NotRecordedError if there is none."""
        key = request_key(request)
        with self._lock:
            if key not in self._replies:
                raise NotRecordedError(
                    f"{self.name} holds no reply to this request of {request.task}",
                    hint="its prompt, schema or settings differ from the recorded ones; run it with a model",
                )
            replies = self._replies[key]
            reply = replies[min(self._handed_out[key], len(replies) - 1)]
            self._handed_out[key] += 1
            return reply


def request_key(request: ChatRequest) -> str:
    """SHA-256, as hex digits, of what decides whether a recorded reply may answer a request."""
    return content_key(request.content())


def content_key(content: Mapping[str, Any]) -> str:
    """The same for ``ChatRequest.content()`` as it stands in a run file."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=dict)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def read_replies(path: str | Path) -> Iterator[tuple[str, ChatReply]]:
    """The answered model calls of a run file, as pairs of request key and reply, in the order of the file.

    Other lines are passed over, and a last line that was cut off too. Raises RunFileError.
    """
    torn = 0
    try:
        # A line may be cut inside a character
        with disk.plain(Path(path)).open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if torn:
                    raise RunFileError(f"line {torn} of {path} is no JSON", hint="take an undamaged copy")
                try:
                    entry = json.loads(line) if line.strip() else None
                except (ValueError, RecursionError):
                    torn = number
                    continue
                if (call := _answered_model_call(entry)) is not None:
                    yield _key_and_reply(call, f"line {number} of {path}")
    except OSError as exc:
        raise RunFileError(f"{path} cannot be read: {exc.strerror}", hint="name a run file") from exc


def _answered_model_call(entry: Any) -> Mapping[str, Any] | None:
    call = entry.get("call") if isinstance(entry, dict) else None
    if not isinstance(call, dict) or call.get("kind") != "model" or call.get("reply") is None:
        return None
    return call


def _key_and_reply(call: Mapping[str, Any], where: str) -> tuple[str, ChatReply]:
    try:
        known = {name: value for name, value in call["reply"].items() if name in _REPLY_FIELDS}
        return content_key(call["request"]["content"]), from_data(known, ChatReply)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as exc:
        raise RunFileError(
            f"{where} is no model call of this version of kgwb",
            hint="replay it with the version that wrote it",
        ) from exc
