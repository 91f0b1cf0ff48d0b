"""Calls: what a run asked of models, graphs and embeddings, each with its result.

A call is found again by its content. That is what makes a run repeatable: executing a system again
takes every recorded result from the record. ``RecordedGraph`` makes a call of everything that a
system asks of its graph.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

from rdflib import URIRef

from kgwb.errors import SettingError
from kgwb.kg.base import Graph, ResultSet, SearchResult, Vocabulary
from kgwb.llm.base import ChatReply
from kgwb.records import JsonObject, encode_data, from_data, to_data, to_json
from kgwb.terms import Iri, Triple, Triples

RESULT_TYPES: JsonObject = {
    "model": ChatReply,
    "select": ResultSet,
    "ask": bool,
    "construct": tuple[Triple, ...],
    "search": SearchResult,
    "exact": dict[str, tuple[Iri, ...]],
    "names": dict[Iri, str],
    "similarity": tuple[float, ...],
    "nearest": tuple[tuple[int, float], ...],
}
"""The type of the result of each kind of call.

Systems have further kinds. They give the types of these to ``Run.call``.
"""
TRACED_QUERY = "query"
"""The kind of a query in the trace of another program. Its reply is JSON data of any form."""
HTTP_KIND = "http"
"""The kind of a request of a pipeline over HTTP that is neither a model call nor a query."""
QUERY_KINDS = frozenset({"select", "ask", "construct", TRACED_QUERY})
"""Kinds that count as queries in the cost of a step."""
SEARCH_KINDS = frozenset({"search", "exact"})
"""Kinds that count as label searches in the cost of a step."""
TEXT_KINDS = frozenset({"select", "ask", "construct", "exact", "names"})
"""Kinds with no fractions in the result. ``to_json``, which writes infinity as null, may write it."""

Recorder = Callable[..., Any]
"""``Run.call``, or a function with its parameters."""
encode_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
).encode


class Sent(NamedTuple):
    """The result of a call that was made over HTTP."""

    result: Any
    response: JsonObject
    """What the server sent: see ``Call.response``."""


class CallIdentity(NamedTuple):
    """What decides whether a recorded result is used for a call."""

    key: str
    """See ``call_key``; made of kind, request and repeat."""
    kind: str
    request: JsonObject
    repeat: int
    request_json: str
    """The request as canonical JSON text.

    Encoding a long prompt takes as long as all else that a call costs, so it is done once: the key is
    the hash of this text, and the run's file gets it as it is.
    """

    @classmethod
    def of(cls, kind: str, request: JsonObject, repeat: int) -> CallIdentity:
        """Return the identity of a call, with its key."""
        request_json = encode_canonical(request)
        key = hash_call(kind, request_json, repeat)
        return cls(key, kind, request, repeat, request_json)

    def with_repeat(self, repeat: int) -> CallIdentity:
        """Return the identity of the call that sends the same request with this repeat number."""
        key = hash_call(self.kind, self.request_json, repeat)
        return self._replace(key=key, repeat=repeat)


@dataclass(slots=True)
class Call:
    """One request to a model, a graph or embeddings, with its result.

    Everything is a call that costs something, varies, or can fail.
    """

    key: str
    """See ``call_key``."""
    kind: str
    step: str
    """Key of the step that made the call; empty outside of all steps."""
    request: JsonObject
    """JSON data. With ``kind`` and ``repeat`` it decides whether the result may be used again."""
    repeat: int
    """How often the same agent had sent the same request for its subject before, in one execution.

    It is 0 for all but model calls.
    """
    result: Any
    taken_at: str
    """When the call was begun: UTC, ISO 8601."""
    seconds: float
    """How long the call took."""
    result_type: Any = None
    """None for the result of a system's own kind of call that was read from a file: JSON data."""
    response: JsonObject | None = None
    """For the query of a pipeline: status, headers and body of the endpoint's reply, as JSON data."""

    def to_data(self) -> JsonObject:
        """Return the call as JSON data, in the form of a run file.

        The result, of the type ``result_type``, is named "reply". Seconds are rounded to
        microseconds.
        """
        data = {
            "key": self.key,
            "kind": self.kind,
            "step": self.step,
            "request": self.request,
            "repeat": self.repeat,
            "reply": to_data(self.result, self.result_type),
            "taken_at": self.taken_at,
            "seconds": round(self.seconds, 6),
        }
        if self.response is not None:
            data["response"] = self.response
        return data

    def to_json(self, request_json: str = "") -> str:
        """Return the data of ``to_data`` as JSON text; request and reply stand last.

        ``request_json`` is the canonical JSON text of the request, if it is known.
        """
        others = {
            "key": self.key,
            "kind": self.kind,
            "step": self.step,
            "repeat": self.repeat,
            "taken_at": self.taken_at,
            "seconds": round(self.seconds, 6),
        }
        if self.response is not None:
            others["response"] = self.response
        start = encode_data(others).removesuffix("}")
        request_json = request_json or encode_canonical(self.request)
        return f'{start},"request":{request_json},"reply":{self._reply_to_json()}}}'

    def _reply_to_json(self) -> str:
        """Return the result as JSON text.

        For a kind of TEXT_KINDS, as most calls are, it is made without the data: in half the time.
        """
        if self.kind in TEXT_KINDS:
            return to_json(self.result, self.result_type)
        return encode_data(to_data(self.result, self.result_type))

    @classmethod
    def from_data(cls, data: JsonObject) -> Call:
        """Return the call that JSON data of a run file describes.

        The result of a kind that is not in RESULT_TYPES stays JSON data.

        Raises ValueError if the key is not the hash of the content, and KeyError, TypeError or
        ValueError for data of another form.
        """
        kind = data["kind"]
        repeat = from_data(data["repeat"], int)
        key = call_key(kind, data["request"], repeat)
        if key != data["key"]:
            raise ValueError(f"the content of call {data['key']} does not match its key")
        result_type = RESULT_TYPES.get(kind)
        return cls(
            key=key,
            kind=kind,
            step=from_data(data["step"], str),
            request=from_data(data["request"], JsonObject),
            repeat=repeat,
            result=from_data(data["reply"], result_type or Any),
            taken_at=from_data(data["taken_at"], str),
            seconds=from_data(data["seconds"], float),
            result_type=result_type,
            response=from_data(data.get("response"), JsonObject | None),
        )


class CallSource(Protocol):
    """Where calls of other runs are found and kept: see ``kgwb.run.store.CallStore``."""

    def find(self, key: str) -> Call | None: ...

    def find_or_make(
        self, key: str, kind: str, make: Callable[[], Call], poll: Callable[[], object]
    ) -> Call: ...

    def make(self, make: Callable[[], Call]) -> Call: ...


class RecordedGraph:
    """The graph that systems see: everything asked of it goes through the record of a run.

    A recorded result is used if and only if the identity of the graph and the text of the query (or
    the text and limit of the search) are equal. A graph with muted triples records each query and
    each search together with the muted triples.

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
    def is_virtuoso(self) -> bool:
        """Whether it is an endpoint of Virtuoso, as far as that is known; False in a replay."""
        return getattr(self.inner, "is_virtuoso", False)

    @property
    def whole_graph(self) -> Graph:
        """The graph without muting, see Graph; in a replay this one."""
        if self.inner is None:
            return self
        return self.inner.whole_graph

    def without(self, *triples: Triple) -> RecordedGraph:
        """Return this graph, read as if it did not have these triples either; see Graph.

        This graph does not change. The new one records in the same record. Raises SettingError in
        a replay, which has no graph, and what ``Graph.without`` raises.
        """
        if self.inner is None:
            raise SettingError(
                "no triple can be muted: this run is a replay, which has no graph to ask",
                hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
            )
        graph = copy(self)
        graph.inner = self.inner.without(*triples)
        graph.muted = graph.inner.muted
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
        identity of the graph and the muted triples are added to the request. Raises
        NotRecordedError if there is neither a recorded result nor a graph.
        """
        make = None
        if self.inner is not None:
            method = getattr(self.inner, kind)
            make = partial(method, *arguments)
        recorded_request = {"graph": self.identity, **request, **self.muted_data}
        return self._record(kind, recorded_request, make)

    def select(self, query: str) -> ResultSet:
        """Return the rows of a SELECT, recorded or from the graph; see ``Graph.select``."""
        result: ResultSet = self._call("select", {"query": query}, query)
        return result

    def ask(self, query: str) -> bool:
        """Return the truth value of an ASK, recorded or from the graph; see ``Graph.ask``."""
        result: bool = self._call("ask", {"query": query}, query)
        return result

    def construct(self, query: str) -> tuple[Triple, ...]:
        """Return the triples of a CONSTRUCT or DESCRIBE, recorded or from the graph."""
        result: tuple[Triple, ...] = self._call("construct", {"query": query}, query)
        return result

    def search(self, text: str, limit: int) -> SearchResult:
        """Return the hits of a label search, recorded or from the graph; see ``Graph.search``."""
        request = {"text": text, "limit": limit}
        result: SearchResult = self._call("search", request, text, limit)
        return result

    def exact(self, labels: Sequence[str]) -> Mapping[str, tuple[URIRef, ...]]:
        """Return the vertices by label, see Graph. The labels are recorded sorted, each once."""
        wanted = sorted(set(labels))
        result: Mapping[str, tuple[URIRef, ...]] = self._call("exact", {"labels": wanted}, wanted)
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
        result: Mapping[URIRef, str] = self._call("names", {"names": texts}, wanted)
        return result


def call_key(kind: str, request: JsonObject, repeat: int) -> str:
    """Return the SHA-256 hash, in hexadecimal digits, of the content of a call.

    The content is hashed as the canonical JSON text of ``[kind, request, repeat]``: object keys are
    sorted, there are no spaces, and characters outside ASCII are not escaped.
    """
    return hash_call(kind, encode_canonical(request), repeat)


def hash_call(kind: str, request_json: str, repeat: int) -> str:
    """Return the key of a call whose request is given as canonical JSON text; see ``call_key``."""
    text = f"[{encode_canonical(kind)},{request_json},{repeat}]"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def utc_now() -> str:
    """Return the present time: UTC, ISO 8601 with milliseconds."""
    milliseconds = time.time_ns() // 1_000_000
    second, millisecond = divmod(milliseconds, 1000)
    return f"{_second_to_text(second)}.{millisecond:03d}+00:00"


@lru_cache(maxsize=1)
def _second_to_text(second: int) -> str:
    """Return a second since 1970 as "2026-11-21T21:24:43": UTC, ISO 8601.

    The latest one is kept: most calls begin in the same second as the one before.
    """
    time_of_day = datetime.fromtimestamp(second, UTC)
    return time_of_day.strftime("%Y-%m-%dT%H:%M:%S")


def names_in_calls(calls: Iterable[Call]) -> dict[str, str]:
    """Return the display names in the results of calls of the kind "names", by IRI.

    If several calls name an IRI, the name of the last one is returned.
    """
    names: dict[str, str] = {}
    for call in calls:
        if call.kind == "names":
            for iri, name in call.result.items():
                names[str(iri)] = name
    return names
