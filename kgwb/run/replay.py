"""Answering from recorded calls: the graph of a run, and a model that replays a run file."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

from rdflib import URIRef

from kgwb.errors import NotRecordedError, QueryError
from kgwb.kg.base import Graph, ResultSet, SearchResult, Vocabulary
from kgwb.kg.muting import add_muted, rewrite_without
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.records import JsonObject, to_data
from kgwb.run.calls import Call, call_key, encode_canonical
from kgwb.run.run_file import RunFile, damage_errors
from kgwb.run.varying import describe_difference
from kgwb.terms import Triple, Triples
from kgwb.text import common_prefix_length

Recorder = Callable[..., Any]
"""``Run.call``, or a function with its parameters."""


class RecordedGraph:
    """The graph that systems see: everything asked of it goes through the record of a run.

    A recorded result is used if and only if the identity of the graph and the text of the query (or
    the text and limit of the search) are equal. A graph with muted triples records each query as it
    was rewritten, and each search together with the muted triples.

    Without ``inner``, the graph itself, only recorded results are known. Identity, vocabulary and
    muted triples are then those of the recording.
    """

    def __init__(self, inner: Graph | None, recorder: Recorder) -> None:
        self.inner = inner
        self._record = recorder
        if inner is None:
            self.identity = ""
            self.source = "recording"
            self.vocabulary = Vocabulary()
            self.remote = False
            self.muted: Triples = ()
        else:
            self.identity = inner.identity
            self.source = inner.source
            self.vocabulary = inner.vocabulary
            self.remote = inner.remote
            self.muted = inner.muted

    def __repr__(self) -> str:
        return f"RecordedGraph({self.source!r})"

    def with_recorder(self, record: Recorder) -> RecordedGraph:
        """Return the same graph for another run."""
        graph = copy(self)
        graph._record = record
        return graph

    @property
    def whole_graph(self) -> Graph:
        """The graph without muting, see Graph; in a replay this one."""
        if self.inner is None:
            return self
        return self.inner.whole_graph

    def without(self, *triples: Triple) -> RecordedGraph:
        """Return this graph, read as if it did not have these triples either; see Graph.

        This graph does not change. The new one records in the same record.
        """
        graph = copy(self)
        graph.muted = add_muted(self.muted, triples)
        if self.inner is not None:
            graph.inner = self.inner.without(*triples)
        return graph

    @property
    def muted_data(self) -> JsonObject:
        """The muted triples as JSON data of a request or a header; without any, no data."""
        if not self.muted:
            return {}
        return {"muted": to_data(self.muted, Triples)}

    def _call(self, kind: str, request: JsonObject, *arguments: Any) -> Any:
        """Return the recorded result of a request, else ask the graph, and record what it returns.

        ``kind`` is also the name of the graph's method, which is called with the arguments. The
        identity of the graph is added to the request. Raises NotRecordedError if there is neither a
        recorded result nor a graph.
        """
        make = None
        if self.inner is not None:
            method = getattr(self.inner, kind)
            make = partial(method, *arguments)
        recorded_request = {"graph": self.identity, **request}
        return self._record(kind, recorded_request, make)

    def _query(self, kind: str, query: str) -> Any:
        """Return the result of a query of this kind, from the record or from the graph.

        It is recorded under the text that leaves out the muted triples. A query that cannot be
        rewritten without knowing the graph is recorded under its own text and the muted triples.
        """
        request = {"query": query}
        if self.muted:
            try:
                request = {"query": rewrite_without(query, self.muted)}
            except QueryError:
                request = {"query": query, **self.muted_data}
        return self._call(kind, request, query)

    def select(self, query: str) -> ResultSet:
        """Return the rows of a SELECT, recorded or from the graph; see ``Graph.select``."""
        result: ResultSet = self._query("select", query)
        return result

    def ask(self, query: str) -> bool:
        """Return the truth value of an ASK, recorded or from the graph; see ``Graph.ask``."""
        result: bool = self._query("ask", query)
        return result

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Return the triples of a CONSTRUCT or DESCRIBE, recorded or from the graph."""
        result: tuple[Triple, ...] = self._query("construct", query)
        return result

    def search(self, text: str, limit: int) -> SearchResult:
        """Return the hits of a label search, recorded or from the graph; see ``Graph.search``."""
        request = {"text": text, "limit": limit, **self.muted_data}
        result: SearchResult = self._call("search", request, text, limit)
        return result

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """Return the vertices by label, see Graph. The labels are recorded sorted, each once."""
        wanted = sorted(set(labels))
        request = {"labels": wanted, **self.muted_data}
        result: Mapping[str, tuple[URIRef, ...]] = self._call("exact", request, wanted)
        return result

    def names(self, iris: Sequence[URIRef]) -> Mapping[URIRef, str]:
        """Return the display names by IRI, see Graph. The IRIs are recorded sorted, each once.

        Without any IRI the graph is not asked, and nothing is recorded.
        """
        by_text = {str(iri): iri for iri in iris}
        if not by_text:
            return {}
        texts = sorted(by_text)  # comparing texts is far faster than comparing URIRefs
        wanted = [by_text[text] for text in texts]
        request = {"names": texts, **self.muted_data}
        result: Mapping[URIRef, str] = self._call("names", request, wanted)
        return result


class Replay(ChatModel):
    """A model that answers with recorded replies.

    Equal requests get their replies in the order of recording, and then the last one again.
    """

    remote = False

    def __init__(
        self, replies: Iterable[tuple[JsonObject, ChatReply]], *, name: str = "replay"
    ) -> None:
        """Keep the replies, each after the ``ChatRequest.recorded_content()`` of its request."""
        self.name = name
        self._lock = threading.Lock()
        self._replies: defaultdict[str, list[ChatReply]] = defaultdict(list)
        self._contents: dict[str, JsonObject] = {}
        """The recorded requests by their keys."""
        for content, reply in replies:
            key = _content_key(content)
            self._contents.setdefault(key, content)
            self._replies[key].append(reply)
        self._use_counts: Counter[str] = Counter()

    @classmethod
    def from_file(cls, path: str | Path) -> Replay:
        """Return a model with the replies of a run file; it is named "replay:" and the file's name.

        Raises RunFileError if the file cannot be read, is no run file, or is damaged.
        """
        path = Path(path)
        replies = []
        entries = RunFile(path).entries()
        with damage_errors(path):
            for entry in entries:
                if "call" not in entry:
                    continue
                data = entry["call"]
                if data["kind"] == "model":
                    call = Call.from_data(data)
                    replies.append((call.request["content"], call.result))
            return cls(replies, name=f"replay:{path.name}")

    def __repr__(self) -> str:
        number = sum(len(replies) for replies in self._replies.values())
        return f"Replay({self.name!r}, {number} replies)"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the recorded reply to a request with the same content, with its recorded cost.

        The prompt's name, the model and the timeout do not count. Replies to equal requests are
        returned in the order of the recording, and the last of them again and again. Graph and
        cancel event are ignored. Raises NotRecordedError if there is no such reply.
        """
        content = request.recorded_content()
        key = _content_key(content)
        with self._lock:
            if key not in self._replies:
                raise NotRecordedError(
                    f"the recording {self.name!r} has no reply to this request of {request.task}"
                    f"{self._describe_nearest(content)}",
                    hint="ask a model: model=kgwb.model(...) in Python, --model in the terminal",
                )
            replies = self._replies[key]
            position = min(self._use_counts[key], len(replies) - 1)
            self._use_counts[key] += 1
            return replies[position]

    def _describe_nearest(self, content: JsonObject) -> str:
        """Return in what a request differs from the recorded one that is most like it.

        That is the one with the fewest other parts, of equals the one whose JSON begins alike for
        longest. "" if there is no recorded request.
        """
        if not self._contents:
            return ""
        text = encode_canonical(content)

        def distance(recorded: JsonObject) -> tuple[int, int]:
            """Return how many parts differ, and minus the number of equal characters before that."""
            parts = [name for name in content if content[name] != recorded.get(name)]
            return len(parts), -common_prefix_length(text, encode_canonical(recorded))

        nearest = min(self._contents.values(), key=distance)
        return f"; it is most like one with {describe_difference(nearest, content)}"


def _content_key(content: JsonObject) -> str:
    """Return a key of a request that is the same for every model, agent and repeat."""
    return call_key("model", content, 0)
