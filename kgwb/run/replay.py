"""Answering from recorded calls: the graph of a run, and a model that replays a run file."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rdflib import URIRef

from kgwb.errors import NotRecordedError, RunFileError
from kgwb.kg.base import Graph, ResultSet, SearchResult, Vocabulary
from kgwb.kg.muting import add_muted, rewrite_without
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.records import to_data
from kgwb.run.calls import Call, call_key
from kgwb.run.run_file import DAMAGED_FILE_ERRORS, RunFile
from kgwb.terms import Triple, Triples

T = TypeVar("T")
Recorder = Callable[[str, Mapping[str, Any], Callable[[], Any] | None], Any]
"""``Run.call``: kind, request and how to make the call, or None if it cannot be made."""


class RecordedGraph:
    """The graph that systems see: everything asked of it goes through the record of a run.

    A recorded result is used if and only if the identity of the graph and the text of the query (or
    the text and limit of the search) are equal. A graph with muted triples records each query as it
    was rewritten, and each search together with the muted triples.

    Without ``inner``, the graph itself, only recorded results are known.
    """

    def __init__(
        self,
        inner: Graph | None,
        recorder: Recorder,
        *,
        identity: str = "",
        vocabulary: Vocabulary | None = None,
        muted: Triples = (),
    ) -> None:
        self.inner = inner
        self._record = recorder
        self.identity = inner.identity if inner else identity
        self.source = inner.source if inner else "recording"
        self.vocabulary = inner.vocabulary if inner else vocabulary or Vocabulary()
        self.remote = inner.remote if inner else False
        self.muted = inner.muted if inner else muted
        self._muted_request = {"muted": to_data(self.muted, Triples)} if self.muted else {}

    def with_recorder(self, record: Recorder) -> RecordedGraph:
        """Return the same graph for another run."""
        return RecordedGraph(
            self.inner,
            record,
            identity=self.identity,
            vocabulary=self.vocabulary,
            muted=self.muted,
        )

    @property
    def whole_graph(self) -> Graph:
        """See Graph."""
        return self.inner.whole_graph if self.inner else self

    def without(self, *triples: Triple) -> RecordedGraph:
        """See Graph."""
        return RecordedGraph(
            self.inner.without(*triples) if self.inner else None,
            self._record,
            identity=self.identity,
            vocabulary=self.vocabulary,
            muted=add_muted(self.muted, triples),
        )

    def _call(self, kind: str, request: Mapping[str, Any], ask: Callable[[Graph], T]) -> T:
        """Return the recorded result of a request, else what the graph itself answers."""
        graph = self.inner
        make = None if graph is None else lambda: ask(graph)
        result: T = self._record(kind, {"graph": self.identity, **request}, make)
        return result

    def _query_request(self, query: str) -> dict[str, Any]:
        return {"query": rewrite_without(query, self.muted)}

    def select(self, query: str) -> ResultSet:
        return self._call("select", self._query_request(query), lambda kg: kg.select(query))

    def ask(self, query: str) -> bool:
        return self._call("ask", self._query_request(query), lambda kg: kg.ask(query))

    def construct(self, query: str) -> tuple[Triple, ...]:
        return self._call("construct", self._query_request(query), lambda kg: kg.construct(query))

    def search(self, text: str, limit: int) -> SearchResult:
        request = {"text": text, "limit": limit, **self._muted_request}
        return self._call("search", request, lambda kg: kg.search(text, limit))

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        wanted = sorted(set(labels))
        request = {"labels": wanted, **self._muted_request}
        return self._call("exact", request, lambda kg: kg.exact(wanted))

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        by_text = {str(iri): iri for iri in iris}
        if not by_text:
            return {}
        texts = sorted(by_text)  # comparing texts is far faster than comparing URIRefs
        wanted = [by_text[text] for text in texts]
        request = {"names": texts, **self._muted_request}
        return self._call("names", request, lambda kg: kg.names(wanted))


class Replay(ChatModel):
    """A model that answers with recorded replies.

    Equal requests get their replies in the order of recording, and then the last one again.
    """

    remote = False

    def __init__(
        self, replies: Iterable[tuple[Mapping[str, Any], ChatReply]], *, name: str = "replay"
    ) -> None:
        """``replies`` are pairs of the ``ChatRequest.content()`` of a request and its reply."""
        self.name = name
        self._lock = threading.Lock()
        self._replies: defaultdict[str, list[ChatReply]] = defaultdict(list)
        for content, reply in replies:
            self._replies[_content_key(content)].append(reply)
        self._use_counts: Counter[str] = Counter()

    @classmethod
    def from_file(cls, path: str | Path) -> Replay:
        """Return a model with the replies of a run file. Raises RunFileError if it is damaged."""
        entries = [entry["call"] for entry in RunFile(Path(path)).entries() if "call" in entry]
        try:
            calls = [Call.from_data(entry) for entry in entries if entry["kind"] == "model"]
            replies = [(call.request["content"], call.result) for call in calls]
            return cls(replies, name=f"replay:{Path(path).name}")
        except DAMAGED_FILE_ERRORS as exc:
            raise RunFileError(
                f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
            ) from exc

    def __repr__(self) -> str:
        number = sum(len(replies) for replies in self._replies.values())
        return f"Replay({self.name!r}, {number} replies)"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the recorded reply, with its recorded cost.

        Raises NotRecordedError if there is none.
        """
        key = _content_key(request.recorded_content())
        with self._lock:
            if key not in self._replies:
                raise NotRecordedError(
                    f"{self.name} holds no reply to this request of {request.task}",
                    hint="its prompt, schema or settings differ from the recorded ones; "
                    "run it with a model",
                )
            replies = self._replies[key]
            position = min(self._use_counts[key], len(replies) - 1)
            self._use_counts[key] += 1
            return replies[position]


def _content_key(content: Mapping[str, Any]) -> str:
    """Return a key of a request that does not depend on the model or the agent."""
    return call_key("model", content, 0)
