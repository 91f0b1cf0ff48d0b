"""Calls and steps: what a run asked, and each execution of an agent.

A call is what a run asked of a model, a graph or embeddings, with its result. It is found again by its
content. That is what makes a run repeatable: executing a system again takes every recorded result from
the record. ``RecordedGraph`` makes a call of everything that a system asks of its graph.

A step is an execution of an agent, with its inputs, output, calls and attempts, and as text. ``Frame``
says which step is being executed, and ``StopCondition`` at which one an execution stops.
"""

from __future__ import annotations

import hashlib
import importlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from json.encoder import JSONEncoder, encode_basestring
from json.encoder import c_make_encoder as make_encoder  # type: ignore[attr-defined]
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError
from rdflib import URIRef

from kgwb.errors import SettingError
from kgwb.kg.base import Graph, ResultSet, SearchResult, Vocabulary
from kgwb.llm.base import ChatReply
from kgwb.records import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    JsonObject,
    Record,
    encode_data,
    from_data,
    frozen,
    one_line,
    summarize,
    to_data,
    to_json,
)
from kgwb.run.answers import Link
from kgwb.terms import DisplayNames, Iri, Triple, Triples
from kgwb.text import format_seconds, pluralize, shorten, single_line

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
GRAPH_KINDS = QUERY_KINDS | SEARCH_KINDS | {"names"}
"""Kinds whose time is that of the graph."""
TEXT_KINDS = frozenset({"model", "select", "ask", "construct", "exact", "names"})
"""Kinds whose result has no number but times. ``to_json``, which writes infinity as null, may write it."""

Recorder = Callable[..., Any]
"""``Run.call``, or a function with its parameters."""
_canonical_parts = make_encoder(
    None, JSONEncoder().default, encode_basestring, None, ":", ",", True, False, True
)
"""Returns the parts of JSON text with sorted keys. ``JSONEncoder.encode`` makes this anew for each text."""


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

    def __copy__(self) -> Call:
        """Return another object for the same call. ``copy`` would take ten times as long by itself."""
        return Call(*_values_of_call(self))

    def reply_to_data(self) -> Any:
        """Return the result as JSON data."""
        return to_data(self.result, self.result_type)

    def to_json(self, request_json: str = "") -> str:
        """Return the call as JSON text, in the form of a run file; request and reply stand last.

        The result, of the type ``result_type``, is named "reply". Seconds are rounded to
        microseconds. ``request_json`` is the canonical JSON text of the request, if it is known:
        its numbers are written as in the text that the key is the hash of.
        """
        kind, step, taken_at = map(encode_basestring, (self.kind, self.step, self.taken_at))
        response = ""
        if self.response is not None:
            response = f'"response":{encode_data(self.response)},'
        request_json = request_json or encode_canonical(self.request)
        if self.kind in TEXT_KINDS:  # as most calls: without the data it takes half the time
            reply = to_json(self.result, self.result_type)
        else:
            reply = encode_data(self.reply_to_data())
        return (
            f'{{"key":"{self.key}","kind":{kind},"step":{step},"repeat":{self.repeat},'
            f'"taken_at":{taken_at},"seconds":{round(self.seconds, 6)},{response}'
            f'"request":{request_json},"reply":{reply}}}'
        )

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


_values_of_call = attrgetter(*Call.__slots__)


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

    def __init__(self, inner: Graph | None, recorder: Recorder | None = None) -> None:
        """Without a recorder nothing can be asked of the graph: ``with_recorder`` gives it one."""
        self.inner = inner
        self._record: Any = recorder
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

    def with_recorder(self, recorder: Recorder | None) -> RecordedGraph:
        """Return the same graph for another run."""
        graph = copy(self)
        graph._record = recorder
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
            make = partial(getattr(self.inner, kind), *arguments)
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


def encode_canonical(data: Any) -> str:
    """Return JSON data as canonical JSON text, as ``call_key`` describes it."""
    return "".join(_canonical_parts(data, 0))


def call_key(kind: str, request: JsonObject, repeat: int) -> str:
    """Return the SHA-256 hash, in hexadecimal digits, of the content of a call.

    The content is hashed as the canonical JSON text of ``[kind, request, repeat]``: object keys are
    sorted, there are no spaces, and characters outside ASCII are not escaped.
    """
    return hash_call(kind, encode_canonical(request), repeat)


def hash_call(kind: str, request_json: str, repeat: int) -> str:
    """Return the key of a call whose request is given as canonical JSON text; see ``call_key``."""
    text = f"[{encode_basestring(kind)},{request_json},{repeat}]"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def utc_now() -> str:
    """Return the present time: UTC, ISO 8601 with milliseconds."""
    milliseconds = time.time_ns() // 1_000_000
    second = _format_second(milliseconds // 1000)
    return f"{second}.{milliseconds % 1000:03}+00:00"


@lru_cache(maxsize=1)
def _format_second(second: int) -> str:
    """Return a second since 1970 as UTC. ``datetime`` would format each of many calls of one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


# Steps


Origin = Literal["live", "record", "by hand"]
"""Where the output of a step came from: new calls, recorded calls only, or a person."""
Status = Literal["new", "running", "paused", "done", "failed", "cancelled"]
"""How far an execution is, or how it ended."""
MAX_OUTCOME_CHARS = 80
"""Characters of the output that the line of a step shows."""
Calls: TypeAlias = Mapping[str, Call]
"""The calls of a run by key."""
NO_CALLS: Calls = {}
Inputs: TypeAlias = Mapping[str, Any]
"""The arguments of an agent by parameter, without the run."""
TERMINAL_STYLES = {"key": "1", "aside": "2", "failure": "31", "note": "33"}
"""ANSI codes: bold, dim, red and yellow."""


@frozen
class CheckResult:
    """The result of one named check of one reply."""

    name: str
    problem: str = ""
    """Empty if the check passed."""


@frozen
class Attempt:
    """One reply of a model, and the checks that were made of it.

    Checks after one that failed may not have been made.
    """

    call: str
    """Key of the model call."""
    reply: str
    checks: tuple[CheckResult, ...]

    @property
    def accepted(self) -> bool:
        """Whether the reply passed all checks."""
        return not self.problems

    @property
    def problems(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.problem)


@dataclass(slots=True, repr=False)
class Step:
    """One execution of an agent."""

    key: str
    """Agent, subject and occurrence: "vertex_selection[Harry Potter]#2"."""
    agent: str
    subject: str
    """What distinguishes the steps of one agent, such as the mention it links; may be empty."""
    parent: str
    """Key of the supervising step; empty at the top."""
    inputs: Inputs
    output_type: Any = Any
    """The type that the agent's function returns, by its annotation."""
    output: Any = None
    done: bool = False
    """Whether the output is there. Without it the step has not ended, or has failed."""
    origin: Origin = "record"
    calls: list[str] = field(default_factory=list)
    """Keys of its calls in the order of use, without those of the steps it supervises."""
    live_calls: int = 0
    """How many model calls were made, and not taken from the record."""
    attempts: list[Attempt] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    """Names of the prompts it used."""
    notes: list[str] = field(default_factory=list)
    """Remarks of the agent for the person: a result was cut, a fallback was taken."""
    seconds: float = 0.0
    """How long the latest execution took."""
    recorded_seconds: float | None = None
    """How long the execution took that made its calls; None unless the latest took recorded ones."""
    error: str = ""
    """The message of the error that stopped it; empty if there was none."""
    past_calls: dict[str, int] = field(default_factory=dict, compare=False)
    """Requests that it made past the run, which are made again each time: their number, by host."""
    role: str = field(default="", compare=False)
    """The role that plays the agent, by the system; empty if it has none."""
    varying: Sequence[str] = field(default=(), compare=False)
    """What does not count when it is compared, see ``System``."""
    known_calls: Calls = field(default_factory=dict, compare=False)
    """The calls of the run by key. A step on its own needs them to show prompts, cost and names."""
    views_source: Mapping[type, Any] | str = field(default_factory=dict, compare=False)
    """The views of the system, or their module. A step on its own needs them to show its output."""

    @property
    def views(self) -> Mapping[type, Any]:
        """The views of the system, by record class."""
        return load_mapping(self.views_source, "VIEWS")

    @property
    def live_seconds(self) -> float:
        """How long it takes with its calls made: the recorded seconds, if it was replayed."""
        if self.recorded_seconds is None:
            return self.seconds
        return self.recorded_seconds

    @property
    def model_calls(self) -> list[Call]:
        """Its calls that asked a model, in order, as far as it knows them."""
        calls = [self.known_calls[key] for key in self.calls if key in self.known_calls]
        return [call for call in calls if call.kind == "model"]

    @property
    def replies(self) -> list[str]:
        """The texts of its attempts."""
        return [attempt.reply for attempt in self.attempts]

    @property
    def outcome(self) -> str:
        """The output in one line of at most MAX_OUTCOME_CHARS characters, or why there is none.

        Without output it is "failed: " with the error, or "not done".
        """
        if self.done:
            return shorten(one_line(self.output), MAX_OUTCOME_CHARS)
        if self.error:
            return single_line(f"failed: {self.error}")
        return "not done"

    def output_lines(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> list[str]:
        """Return the output as at least one line of text, or one line that says why there is none.

        ``names`` and ``limit`` are those of ``Record.summary``.
        """
        if not self.done:
            return [self.outcome]
        return summarize(self.output, names, limit=limit).splitlines() or [""]

    def to_data(self) -> JsonObject:
        """Return the step as JSON data, in the form of a run file: a value for each field.

        The output is None unless the step is done. Calls are their keys. Seconds are rounded to
        microseconds. "recorded_seconds" is there only if the step was replayed.
        """
        data: JsonObject = {name: getattr(self, name) for name in SAVED_FIELDS}
        data["inputs"] = {name: _to_saved_data(value) for name, value in self.inputs.items()}
        data["output"] = None
        if self.done:
            data["output"] = _to_saved_data(self.output, self.output_type)
        data["attempts"] = [to_data(attempt) for attempt in self.attempts]
        data["seconds"] = round(self.seconds, 6)
        if self.recorded_seconds is None:
            del data["recorded_seconds"]
        else:
            data["recorded_seconds"] = round(self.recorded_seconds, 6)
        return data

    @classmethod
    def from_data(cls, data: JsonObject, calls: Calls) -> Step:
        """Return the step that JSON data of a run file describes, with its output and inputs as data.

        ``calls`` are those of the run by key: an output may be stored as the key of the call whose
        reply it is (``output_of_call``). A list becomes a tuple, as agents return several records.
        Raises KeyError or ValueError for data of another form.
        """
        output = data["output"]
        if "output_of_call" in data:
            output = calls[data["output_of_call"]].reply_to_data()
        if isinstance(output, list):
            output = tuple(output)
        saved = {name: data[name] for name in SAVED_FIELDS if name in data}
        step: Step = from_data({**saved, "output": output}, cls)
        step.known_calls = calls
        return step

    def __str__(self) -> str:
        return single_line(f"{self.key}: {self.outcome}")

    def summary(self) -> str:
        """Return the output with its parts, the cost, failed attempts and notes as lines."""
        return format_tree([self], self.known_calls)

    def __repr__(self) -> str:
        return self.summary()


def load_mapping(source: Mapping[Any, Any] | str, name: str) -> Mapping[Any, Any]:
    """Return a mapping; ``source`` may be the module that has it under a name, which is imported."""
    if isinstance(source, str):
        mapping: Mapping[Any, Any] = getattr(importlib.import_module(source), name)
        return mapping
    return source


UNSAVED_FIELDS = ("output_type", "past_calls", "role", "varying", "known_calls", "views_source")
SAVED_FIELDS = [field.name for field in fields(Step) if field.name not in UNSAVED_FIELDS]
"""The fields of a step that a run file has."""


@frozen
class Totals:
    """What one execution of a run used, from the record or live."""

    model_calls: int = 0
    live_model_calls: int = 0
    """The model calls among them that were not taken from the record."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted_calls: int = 0
    """The model calls whose tokens the server did not report, or not all of them."""
    queries: int = 0
    searches: int = 0
    seconds: float = 0.0
    """How long the latest execution took."""
    recorded_seconds: float | None = None
    """How long it took as its calls were made; None unless the latest took recorded ones."""
    model_seconds: float = 0.0
    graph_seconds: float = 0.0

    @property
    def live_seconds(self) -> float:
        """How long it took with its calls made, also if the latest execution took recorded ones."""
        return self.recorded_seconds or self.seconds

    @classmethod
    def of(
        cls,
        calls: Iterable[Call],
        live_model_calls: int,
        seconds: float,
        recorded_seconds: float | None = None,
    ) -> Totals:
        """Return the totals of the calls of one execution: numbers of calls, tokens, and seconds.

        ``live_model_calls`` is how many model calls were made in it, and ``seconds`` how long it
        took. The seconds of the graph are those of queries, label searches and names.
        ``recorded_seconds`` are given for an execution that took calls from the record.
        """
        model_calls = prompt_tokens = completion_tokens = uncounted_calls = 0
        queries = searches = 0
        model_seconds = graph_seconds = 0.0
        for call in calls:
            if call.kind == "model":
                reply = call.result
                model_calls += 1
                model_seconds += call.seconds
                prompt_tokens += reply.prompt_tokens
                completion_tokens += reply.completion_tokens
                uncounted_calls += not reply.is_counted(call.request["model"])
            elif call.kind in GRAPH_KINDS:
                queries += call.kind in QUERY_KINDS
                searches += call.kind in SEARCH_KINDS
                graph_seconds += call.seconds
        return cls(
            model_calls,
            live_model_calls,
            prompt_tokens,
            completion_tokens,
            uncounted_calls,
            queries,
            searches,
            seconds,
            recorded_seconds,
            model_seconds,
            graph_seconds,
        )

    def __str__(self) -> str:
        """Return "2 model calls (1 live), 1,528 tokens, 3 queries, 1 label search, 31 ms".

        Before tokens that are known in part stands "at least".
        """
        model_calls = pluralize(self.model_calls, "model call")
        tokens = self.prompt_tokens + self.completion_tokens
        at_least = "at least " if tokens and self.uncounted_calls else ""
        parts = [
            f"{model_calls} ({self.live_model_calls} live)",
            f"{at_least}{tokens:,} tokens",
            pluralize(self.queries, "query"),
            pluralize(self.searches, "label search"),
            *time_texts(self.seconds, self.recorded_seconds),
        ]
        return ", ".join(parts)


def _to_saved_data(value: Any, value_type: Any = None) -> Any:
    """Return a value of a step as JSON data; as one line of text if it cannot be JSON.

    A client that a function is given cannot be, for example. Executing the run again does not need
    it.
    """
    try:
        return to_data(value, value_type)
    except (PydanticUserError, PydanticSerializationError):
        return one_line(value)


def group_by_supervisor(steps: Collection[Step]) -> dict[str | None, list[Step]]:
    """Return for each supervisor's key the steps directly below it, in their order.

    Steps whose supervisor is not among the given ones, or that have none, stand under None. A
    supervisor without steps below it has no entry.
    """
    keys = {step.key for step in steps if step.key}  # the root of an execution has no key
    groups: dict[str | None, list[Step]] = {}
    for step in steps:
        supervisor = step.parent if step.parent in keys else None
        groups.setdefault(supervisor, []).append(step)
    return groups


def used_calls(steps: Iterable[Step], calls: Calls) -> list[Call]:
    """Return the recorded calls that some steps used, in order, each once."""
    keys: dict[str, None] = {}
    for step in steps:
        keys |= dict.fromkeys(step.calls)
    return [calls[key] for key in keys if key in calls]


def names_in_steps(steps: Iterable[Step], calls: Calls) -> dict[str, str]:
    """Return every display name that a run's record holds, by IRI.

    Names come from the calls and from the vertices in the outputs of linking steps. Those that
    another output has (``Record.fallback_names``) are used for other IRIs only. Of two names for an
    IRI in calls or links, the later one is used.
    """
    names: dict[str, str] = {}
    for call in list(calls.values()):  # a run that is executing adds calls meanwhile
        if call.kind == "names":
            for iri, name in call.result.items():
                names[str(iri)] = name
    for step in steps:
        output = step.output
        if isinstance(output, Link):
            for vertex in output.vertices:
                names[str(vertex.iri)] = vertex.label
        elif isinstance(output, Record):
            for iri, name in output.fallback_names().items():
                names.setdefault(iri, name)
    return names


# Text for a terminal


def format_tree(
    steps: Sequence[Step],
    calls: Calls = NO_CALLS,
    *,
    names: DisplayNames | None = None,
    color: bool = False,
) -> str:
    """Return steps as a tree of lines: each below its supervisor, with output, cost and notes.

    ``calls`` are those of the run (``Run.calls``). They give the cost, and display names unless
    ``names`` has them. ``color`` adds ANSI codes.
    """
    if names is None:
        names = names_in_steps(steps, calls)
    groups = group_by_supervisor(steps)
    tree = _Tree(groups, calls, names, color)
    lines = tree.branch(None, "")
    return "\n".join(lines)


@frozen
class _Tree:
    """Steps that are formatted as a tree."""

    groups: Mapping[str | None, Sequence[Step]]
    """The steps below each supervisor."""
    calls: Calls
    names: DisplayNames
    color: bool

    def branch(self, supervisor: str | None, indent: str) -> Iterator[str]:
        """Yield the lines of the steps below a supervisor, each followed by the steps below it.

        ``None`` is the top. ``indent`` stands before each line; "├─" or "└─" marks a step.
        """
        siblings = self.groups.get(supervisor, [])
        for step in siblings:
            connector = "├─ "
            child_indent = indent + "│  "
            if step is siblings[-1]:
                connector = "└─ "
                child_indent = indent + "   "
            detail_indent = child_indent + "   "
            if step.key in self.groups:
                detail_indent = child_indent + "│  "
            head, *details = self.step_lines(step)
            yield indent + connector + head
            for line in details:
                yield detail_indent + line
            yield from self.branch(step.key, child_indent)

    def step_lines(self, step: Step) -> Iterator[str]:
        """Yield the lines of one step: key, output and cost, then failed attempts and notes.

        An output of several lines has them all, except for a supervisor, whose steps show the rest.
        An attempt that was accepted has no line.
        """
        output, *parts = step.output_lines(self.names)
        if step.error:
            output = add_color(output, "failure", self.color)
        key = add_color(single_line(step.key), "key", self.color)
        costs = ", ".join(_role_origin_and_costs(step, self.calls))
        aside = add_color(f"({costs})", "aside", self.color)
        yield f"{key}: {output}  {aside}"
        if step.key not in self.groups:
            for part in parts:
                yield single_line(part)
        for number, attempt in enumerate(step.attempts, 1):
            if attempt.accepted:
                continue
            problems = [f"{check.name}: {check.problem}" for check in attempt.problems]
            texts = [
                f"attempt {number} failed",
                "; ".join(problems),
                shorten(single_line(attempt.reply)),
            ]
            line = single_line(": ".join(filter(None, texts)))
            yield add_color(line, "failure", self.color)
        for note in step.notes:
            yield add_color(single_line(f"note: {note}"), "note", self.color)


def _role_origin_and_costs(step: Step, calls: Calls) -> list[str]:
    """Return texts for the role of a step, the origin of its output and its costs, in this order.

    The origin is "live", "by hand" or "from the record". It is left out for a step that made no
    calls and was not edited. The costs are those of ``step_costs``.
    """
    texts = []
    if step.role:
        texts.append(step.role)
    if step.origin != "record":
        texts.append(step.origin)
    elif step.calls:
        texts.append("from the record")
    return texts + step_costs(step, calls)


def step_costs(step: Step, calls: Calls) -> list[str]:
    """Return what a step cost: ["1 model call", "2 queries", "1 label search", "31 ms"].

    ``calls`` are those of the run. Without any, the attempts are counted as model calls. A count of
    0 is left out, and calls of other kinds are not counted. The time always comes last, see
    ``time_texts``.
    """
    kinds = Counter(calls[key].kind for key in step.calls if key in calls)
    counts = {
        "model call": kinds["model"] if calls else len(step.attempts),
        "query": sum(kinds[kind] for kind in QUERY_KINDS),
        "label search": sum(kinds[kind] for kind in SEARCH_KINDS),
    }
    costs = []
    for noun, count in counts.items():
        if count:
            costs.append(pluralize(count, noun))
    return costs + time_texts(step.seconds, step.recorded_seconds)


def time_texts(seconds: float, recorded_seconds: float | None) -> list[str]:
    """Return how long something took: ["31 ms"], or ["335 ms recorded", "replayed in 4.9 ms"].

    The second form is used if ``recorded_seconds`` is given: how long the calls took when they were
    made, while the latest execution took them from the record in ``seconds``.
    """
    if recorded_seconds is None:
        return [format_seconds(seconds)]
    return [
        f"{format_seconds(recorded_seconds)} recorded",
        f"replayed in {format_seconds(seconds)}",
    ]


def add_color(text: str, style: str, color: bool) -> str:
    """Return the text in one of TERMINAL_STYLES, or as it is without ``color``."""
    if not color:
        return text
    return f"\x1b[{TERMINAL_STYLES[style]}m{text}\x1b[0m"


class Frame(NamedTuple):
    """The position of the execution on one thread."""

    step: Step
    """The step that is being executed. Outside of all steps, one without a key."""
    steps: list[Step]
    """The list that the next step is added to."""
    run: Any
    """The run that is executed; an ``Engine``."""


current_frame: ContextVar[Frame] = ContextVar("kgwb_frame")
"""The position of the execution on this thread or task; not set outside of executions."""


def current_run() -> Any:
    """Return the run that is being executed here; None outside of an execution."""
    frame = current_frame.get(None)
    if frame is None:
        return None
    return frame.run


def the_frame() -> Frame:
    """Return the Frame of the execution here: the current step and the list of steps.

    Raises SettingError outside of an execution.
    """
    frame = current_frame.get(None)
    if frame is None:
        raise SettingError(
            "an agent was called outside of a run, and it works only inside one",
            hint="ask a question with Workbench.ask, or continue a run with Run.go",
        )
    return frame


@frozen
class StopCondition:
    """Where an execution stops. By default it does not stop before its end."""

    count: int | None = None
    """Stop when so many steps are done."""
    after: frozenset[str] = frozenset()
    """Stop after a step with one of these keys, or of one of these agents."""
    after_position: int = 0
    """Steps up to this position do not count for ``after``: the run has paused there before."""
    before: frozenset[str] = frozenset()
    """Stop before a step with one of these keys, or of one of these agents."""
    begun: frozenset[str] = frozenset()
    """Keys of steps that had begun when the run paused; they do not count for ``before``."""
    preview_of: str = ""
    """Stop where this agent or step would ask its model, or at any call that is not recorded."""

    @property
    def is_stepping(self) -> bool:
        """Whether the execution is to stop at certain steps, so that their order matters."""
        return self.count is not None or bool(self.after or self.before)

    def stops_before(self, step: Step) -> bool:
        """Return whether the execution stops before it executes this step."""
        if step.key in self.begun:
            return False
        return step.key in self.before or step.agent in self.before

    def stops_after(self, step: Step, position: int) -> bool:
        """Return whether the execution stops after this step; ``position`` steps are done with it.

        It does once ``count`` steps are done, or if ``after`` has the key or the agent of the step
        and the step lies beyond ``after_position``, where a paused execution goes on.
        """
        if self.count is not None and position >= self.count:
            return True
        if position <= self.after_position:
            return False
        return step.key in self.after or step.agent in self.after

    def is_preview(self, step: Step) -> bool:
        """Return whether it is the request of this step to its model that is previewed."""
        return bool(self.preview_of) and self.preview_of in (step.agent, step.key)


NO_STOP = StopCondition()
"""That of an execution to its end."""
