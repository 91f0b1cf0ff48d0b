"""What answers from recorded calls: the graph of a run, and a model that replays the replies of a file."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rdflib import URIRef

from kgwb.errors import NotRecordedError, RunFileError
from kgwb.flow import Triple, Triples, to_data
from kgwb.kg.base import Found, Graph, Rows, Vocabulary
from kgwb.kg.muting import hide, mute
from kgwb.llm import KINDS
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.run.record import DAMAGED, Call, RunFile, call_key

T = TypeVar("T")
Recorder = Callable[[str, Mapping[str, Any], Callable[[], Any] | None], Any]


class RecordedGraph:
    """The Graph that systems see. Without ``inner`` it can only repeat what is recorded.

    A recorded result is used iff graph identity and query text (or search text and limit) are equal. A graph
    with muted triples records each query as it was sent, and its searches with these triples.
    """

    def __init__(
        self,
        inner: Graph | None,
        record: Recorder,
        *,
        identity: str = "",
        vocabulary: Vocabulary | None = None,
        muted: Triples = (),
    ) -> None:
        self.inner = inner
        self._record = record
        self.identity = inner.identity if inner else identity
        self.source = inner.source if inner else "recording"
        self.vocabulary = inner.vocabulary if inner else vocabulary or Vocabulary()
        self.remote = inner.remote if inner else False
        self.muted = inner.muted if inner else muted
        self._without = {"muted": to_data(self.muted, Triples)} if self.muted else {}

    def recorded_by(self, record: Recorder) -> RecordedGraph:
        """The same graph in another run."""
        about: dict[str, Any] = {
            name: getattr(self, name) for name in ("identity", "vocabulary", "muted")
        }
        return RecordedGraph(self.inner, record, **about)

    @property
    def whole_graph(self) -> Graph:
        """See Graph."""
        return self.inner.whole_graph if self.inner else self

    def without(self, *triples: Triple) -> RecordedGraph:
        """See Graph."""
        inner = self.inner.without(*triples) if self.inner else None
        muted, record = mute(self.muted, triples), self._record
        return RecordedGraph(
            inner, record, identity=self.identity, vocabulary=self.vocabulary, muted=muted
        )

    def _call(self, kind: str, asked: Mapping[str, Any], make: Callable[[Graph], T]) -> T:
        inner = self.inner
        read = (lambda: make(inner)) if inner else None
        result: T = self._record(kind, {"graph": self.identity, **asked}, read)
        return result

    def select(self, query: str) -> Rows:
        return self._call("select", {"query": hide(query, self.muted)}, lambda kg: kg.select(query))

    def ask(self, query: str) -> bool:
        return self._call("ask", {"query": hide(query, self.muted)}, lambda kg: kg.ask(query))

    def construct(self, query: str) -> tuple[Triple, ...]:
        return self._call(
            "construct", {"query": hide(query, self.muted)}, lambda kg: kg.construct(query)
        )

    def search(self, text: str, limit: int) -> Found:
        asked = {"text": text, "limit": limit, **self._without}
        return self._call("search", asked, lambda kg: kg.search(text, limit))

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        wanted = sorted(set(labels))
        return self._call("exact", {"labels": wanted, **self._without}, lambda kg: kg.exact(wanted))

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        by_text = {str(iri): iri for iri in iris}
        if not by_text:
            return {}
        texts = sorted(by_text)  # comparing texts is far faster than comparing URIRefs
        wanted = [by_text[text] for text in texts]
        asked = {"names": texts, **self._without}
        return self._call("names", asked, lambda kg: kg.names(wanted))


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
            raise RunFileError(
                f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
            ) from exc

    def __repr__(self) -> str:
        return f"Replay({self.name!r}, {sum(map(len, self._replies.values()))} replies)"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
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
