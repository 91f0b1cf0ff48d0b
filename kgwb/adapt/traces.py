"""Traces of other programs, read from files of OTLP JSON, and shown as runs that can only be read.

Such a file is one JSON object with ``resourceSpans``, a list of these, or one on each line, as
OpenTelemetry's collector writes it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
What each span is about is found under the NAMES of ``kgwb.run.spans``. Secrets in the texts are masked
when they are read. Each span is a step. Their queries can be executed again on a graph.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import rdflib

from kgwb import disk
from kgwb.errors import GraphError, InputError
from kgwb.kg import GraphSource, open_kg
from kgwb.kg.base import Graph, ResultSet, Vocabulary
from kgwb.kg.queries import find_support_by_row
from kgwb.kg.sparql import is_query, without_fence
from kgwb.llm.base import ChatReply, parse_token_count
from kgwb.records import JsonObject, Record, Sparql, frozen, one_line
from kgwb.run import Run
from kgwb.run.answers import Answer, Dialogue, Value, with_display_names
from kgwb.run.ask import execute_sparql
from kgwb.run.record import DAMAGED_FILE_ERRORS, End, Header, SavedRun
from kgwb.run.run import read_only_run_of
from kgwb.run.spans import NAMES
from kgwb.run.steps import RESULT_TYPES, TRACED_QUERY, Call, Totals, call_key
from kgwb.terms import Term
from kgwb.text import list_first, mask_data, mask_text, shorten, single_line, text_or_json

HINT = "name a file of OTLP JSON, as kgwb export and OpenTelemetry's file exporters write it"
ERROR_CODES = (2, "STATUS_CODE_ERROR")
"""The status of a span that failed, as a number or by its name."""


@frozen
class Span:
    """One span of a trace. Texts and names are without secrets."""

    trace_id: str
    span_id: str
    parent_id: str
    """Empty for a span at the top."""
    name: str
    start_ns: int
    """Nanoseconds since 1970."""
    end_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """JSON data by name."""
    error: str = ""
    """Why it failed; empty if it did not."""

    @property
    def seconds(self) -> float:
        """How long it took; 0 if the times contradict each other."""
        return max(0, self.end_ns - self.start_ns) / 1e9

    @property
    def started_at(self) -> str:
        """When it began: UTC, ISO 8601 with milliseconds."""
        time = datetime.fromtimestamp(self.start_ns / 1e9, UTC)
        return time.isoformat(timespec="milliseconds")


def read_spans(path: Path) -> list[Span]:
    """Return the spans of a file by their begin, those that end later first if it is the same.

    Of two spans with the same ids the last one counts. Raises InputError if the file cannot be
    read, is not OTLP JSON, or has no spans.
    """
    spans: dict[tuple[str, str], Span] = {}
    try:
        entries = _read_json(path)
        for data in _spans_data(entries):
            span = _read_span(data)
            spans[span.trace_id, span.span_id] = span
    except DAMAGED_FILE_ERRORS as exc:
        raise InputError(f"{path} is not a trace that kgwb can read: {exc!r}", hint=HINT) from exc
    if not spans:
        raise InputError(f"the trace {path} contains no spans", hint=HINT)
    return sorted(spans.values(), key=lambda span: (span.start_ns, -span.end_ns))


def _read_json(path: Path) -> list[Any]:
    """Return the JSON values of a file: one for all, or one for each line (also gzipped).

    Raises InputError if the file cannot be read, or is not JSON.
    """
    with disk.os_errors_as_input_error(f"cannot read the trace {path}", "check the path"):
        try:
            return [json.loads(disk.read_text(path, "utf-8-sig"))]
        except (ValueError, RecursionError):
            pass  # it may have a value on each line, or be gzipped
        try:
            return [entry for _, entry in disk.read_json_lines(path)]
        except disk.NotJsonError as exc:
            raise InputError(f"the trace {path} is not JSON", hint=HINT) from exc


def _spans_data(entries: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the data of each span in the entries of a file, or in lists of entries.

    Raises ValueError for an entry that is not an object with "resourceSpans".
    """
    for entry in entries:
        if isinstance(entry, list):
            yield from _spans_data(entry)
        elif not isinstance(entry, dict) or "resourceSpans" not in entry:
            raise ValueError("an entry has no resourceSpans")
        else:
            for resource in entry["resourceSpans"]:
                for scope in resource.get("scopeSpans", ()):
                    yield from scope.get("spans", ())


def _read_span(data: Mapping[str, Any]) -> Span:
    """Return the span that JSON data of OTLP describes, with secrets in its texts masked.

    Its attributes include those of its events; the span's own win. Raises one of
    DAMAGED_FILE_ERRORS for data of another form.
    """
    attributes: JsonObject = {}
    for event in data.get("events", ()):
        if str(event.get("name", "")).startswith("gen_ai."):  # it tells about a model call
            attributes |= _read_attributes(event)
    attributes |= _read_attributes(data)
    span = Span(
        trace_id=str(data["traceId"]),
        span_id=str(data["spanId"]),
        parent_id=str(data.get("parentSpanId") or ""),
        name=mask_text(str(data["name"])),
        start_ns=int(data.get("startTimeUnixNano", 0)),
        end_ns=int(data.get("endTimeUnixNano", 0)),
        attributes=attributes,
        error=mask_text(_read_error(data)),
    )
    _ = span.started_at  # raises if it is no time
    return span


def _read_error(data: Mapping[str, Any]) -> str:
    """Return why a span failed; "" if its status is not an error.

    It is the message of the status, else that of the exception among its events, else "failed".
    """
    status = data.get("status") or {}
    if status.get("code") not in ERROR_CODES:
        return ""
    if status.get("message"):
        return str(status["message"])
    for event in data.get("events", ()):
        if event.get("name") == "exception":
            return str(_read_attributes(event).get("exception.message", "failed"))
    return "failed"


def _read_attributes(data: Mapping[str, Any]) -> JsonObject:
    """Return the attributes of a span or an event by name, as JSON data without secrets."""
    masked: JsonObject = mask_data(_read_pairs(data.get("attributes", ())))
    return masked


def _read_value(value: Mapping[str, Any]) -> Any:
    """Return the JSON data of a value of OTLP ({"intValue": "3"}); None for unknown kinds."""
    for kind, content in value.items():
        if kind == "intValue":  # 64 bits are written as a text
            return int(content)
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return content
        if kind == "arrayValue":
            return [_read_value(item) for item in content.get("values", ())]
        if kind == "kvlistValue":
            return _read_pairs(content.get("values", ()))
    return None


def _read_pairs(pairs: Any) -> JsonObject:
    """Return a list of {"key", "value"} of OTLP as a dict of JSON data."""
    data = {}
    for pair in pairs:
        key = str(pair["key"])
        data[key] = _read_value(pair.get("value") or {})
    return data


SpanKind = Literal["model", "search", "sparql", "code"]
"""The kinds of agents that spans become."""

FORMS: Mapping[str, Sequence[str]] = disk.read_table("adapt/trace_forms.toml")
"""Kinds of spans, and names of fields in their texts."""
REQUEST_MODEL = "gen_ai.request.model"
TOOL_SCHEMA = "tool.json_schema"
LANGCHAIN_ROLES = {"human": "user", "ai": "assistant"}
ChatMessages = list[list[str]]
"""Role and text of each message."""


def _value_of(span: Span, meaning: str) -> Any:
    """Return what a span says under the first of the NAMES of a meaning that it has; else None.

    An empty text says nothing, except as an input or an output.
    """
    for name in NAMES[meaning]:
        value = span.attributes.get(name)
        is_empty = value == "" and meaning not in ("input", "output")
        if value is not None and not is_empty:
            return value
    return None


def kind_of(span: Span) -> SpanKind:
    """Return what a span does: "model", "sparql", "search" or "code".

    It is "model" by the span's kind or operation, or if it names a requested model; "sparql" if it
    executes a query; "search" by its kind; otherwise "code".
    """
    kind = _value_of(span, "kind")
    has_request = REQUEST_MODEL in span.attributes and kind is None
    if kind in FORMS["model_kinds"] or has_request:
        return "model"
    if query_of(span):
        return "sparql"
    if kind in FORMS["search_kinds"]:
        return "search"
    return "code"


def input_of(span: Span) -> Any:
    """Return the input of a span as JSON data, else its messages to a model; None without both.

    The input is a recorded input, the arguments of a tool, or the query of a database. A text that
    is a JSON object or list is read.
    """
    value = _value_of(span, "input")
    if value is not None:
        return _from_json(value)
    return messages_of(span) or None


def output_of(span: Span) -> Any:
    """Return the output of a span as JSON data; None without one.

    The output of a model call is the text of its reply. That of another span is its recorded
    output, else the documents that it retrieved, else the reply of a model that it has.
    """
    if kind_of(span) == "model":
        return _reply_of(span)
    value = _value_of(span, "output")
    if value is not None:
        return _from_json(value)
    documents = []
    for name in NAMES["documents"]:
        for item in _items_below(span.attributes, name):
            documents.append(_without_prefix("document.", item))
    return documents or _reply_of(span) or None


def query_of(span: Span) -> str:
    """Return the SPARQL query that a span executes, without a code fence; "" if it executes none.

    The first text that is a query is taken, in the input and the parameters of tools, retrievers
    and databases.
    """
    for name in NAMES["kind"]:
        if (span.attributes.get(name) or "") not in FORMS["querying_kinds"]:
            return ""
    for name in (*NAMES["input"], *NAMES["tool_parameters"]):
        for text in _texts_in(_from_json(span.attributes.get(name))):
            if is_query(text):
                return without_fence(text)
    return ""


def queries_of(spans: Iterable[Span]) -> dict[str, str]:
    """Return the SPARQL query of each span that executes one, by the span's id.

    If no span of a tool, retriever or database has any, they are the queries that stand in outputs
    of chains. A chain repeats what those inside it return: the innermost counts.
    """
    executed = {}
    returned = {}
    for span in spans:
        sparql = query_of(span)
        if sparql:
            executed[span.span_id] = sparql
        elif kind_of(span) == "code":
            for text in _texts_in(output_of(span)):
                if is_query(text):
                    returned[without_fence(text).strip()] = span.span_id
    return executed or {span_id: sparql for sparql, span_id in returned.items()}


def model_of(span: Span) -> str:
    """Return the model that answered or was asked; "unknown model" if the trace does not say."""
    return str(_value_of(span, "model") or "unknown model")


def request_content_of(span: Span) -> JsonObject:
    """Return what a model call sent, as a run records it; a parameter that is not known is None."""
    parameters = _from_json(_value_of(span, "parameters"))
    if not isinstance(parameters, dict):
        parameters = {}
    numbers = {}
    for name in ("temperature", "seed", "max_tokens"):
        numbers[name] = _number(parameters.get(name, _value_of(span, name)))
    temperature = numbers["temperature"]
    if temperature is not None:
        temperature = float(temperature)

    listed, definitions = NAMES["tools"]
    schemas = [item.get(TOOL_SCHEMA) for item in _items_below(span.attributes, listed)]
    tools = _objects_in(list(map(_from_json, schemas)))
    tools = tools or _objects_in(span.attributes.get(definitions))
    return {
        "messages": messages_of(span),
        "tools": tools or _objects_in(parameters.get("tools")),
        "schema": None,
        "temperature": temperature,
        "seed": _whole(numbers["seed"]),
        "max_output_tokens": _whole(numbers["max_tokens"]),
    }


def chat_reply_of(span: Span) -> ChatReply:
    """Return the reply of a model call; a number of tokens that is not known is 0."""
    return ChatReply(
        _reply_of(span),
        model=model_of(span),
        prompt_tokens=parse_token_count(_value_of(span, "prompt_tokens")),
        completion_tokens=parse_token_count(_value_of(span, "completion_tokens")),
        seconds=span.seconds,
    )


def _number(value: Any) -> float | None:
    """Return a number as it is; None for anything else.

    None also for a truth value, and for a whole number that is too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        float(value)
    except OverflowError:
        return None
    return value


def _whole(number: float | None) -> int | None:
    """Return a number if it is an int; else None."""
    return number if isinstance(number, int) else None


# Messages


def messages_of(span: Span) -> ChatMessages:
    """Return the messages that a span sent to a model, as pairs of role and text; [] without any.

    Instructions come first, as a message of the system, except with OpenInference's messages, which
    have them already. The input of a model call without messages is one message of the user.
    """
    instructions: list[Any] = []
    if not _items_below(span.attributes, NAMES["messages"][0]):
        instructions = _as_list(_value_of(span, "instructions"))
    messages = [["system", _part_text(part)] for part in instructions]
    messages += _listed_messages(span, "messages", "user")
    if not messages and _value_of(span, "kind") == "LLM":
        given = span.attributes.get(NAMES["input"][0])
        data = _from_json(given)
        listed = None
        if isinstance(data, dict):
            listed = data.get("messages")
        if isinstance(listed, list) and listed:
            if isinstance(listed[0], list):  # LangChain has a list for each of several prompts
                listed = listed[0]
            messages += [_message_of(item, "user") for item in listed]
        elif given is not None:
            messages.append(["user", str(given)])
    return messages


def _reply_of(span: Span) -> str:
    """Return the text of a model's reply; "" if the trace does not have it.

    The texts of several messages are joined by an empty line. A model call without messages of a
    reply has its output as the reply.
    """
    messages = _listed_messages(span, "reply", "assistant")
    if not messages and _value_of(span, "kind") == "LLM":
        output = span.attributes.get(NAMES["output"][0], "")
        return str(output)
    texts = [text for _, text in messages]
    return "\n\n".join(texts)


def _listed_messages(span: Span, meaning: str, usual_role: str) -> ChatMessages:
    """Return the messages under the first of the NAMES of a meaning that has some; else [].

    They are a list that is flattened into attributes, the JSON of a list, or one text.
    ``usual_role`` is that of a message without a role.
    """
    for name in NAMES[meaning]:
        given = span.attributes.get(name)
        items: list[Any] = _items_below(span.attributes, name)
        if name not in FORMS["plain_texts"]:
            items = items or _as_list(given)
        elif isinstance(given, str):
            items = items or [given]
        if items:
            return [_message_of(item, usual_role) for item in items]
    return []


def _message_of(item: Any, usual_role: str) -> list[str]:
    """Return role and text of a message.

    The text joins in lines the content, or its parts, and calls of tools.
    """
    if not isinstance(item, dict):
        return [usual_role, str(item)]
    fields = _langchain_message(item) or _without_prefix("message.", item)
    given: Any = fields.get("parts", fields.get("content", ""))
    if not isinstance(given, list):
        given = [given]
    parts = [part for part in given if part is not None]  # beside a call of a tool
    for content in _items_below(fields, "contents"):
        parts.append(str(content.get("message_content.text", "")))

    calls = _items_below(fields, "tool_calls")
    for call in calls or _objects_in(fields.get("tool_calls")):
        called = _without_prefix("tool_call.function.", call)
        part = {
            "type": "tool_call",
            "name": called.get("name"),
            "arguments": called.get("arguments", called.get("args")),
        }
        parts.append(part)
    texts = map(_part_text, parts)
    role = str(fields.get("role", usual_role))
    return [role, "\n".join(filter(None, texts))]


def _langchain_message(item: Mapping[str, Any]) -> JsonObject | None:
    """Return the fields of a message of LangChain, with its role; None for another form.

    Where the fields are "kwargs", its type is the name of its class, the last part of "id".
    """
    for name in FORMS["langchain_fields"]:
        if isinstance(item.get(name), dict):
            kind = str(item.get("type"))
            path = item.get("id")
            if isinstance(path, list) and path:
                class_name = str(path[-1])
                kind = class_name.removesuffix("Message").lower()
            role = LANGCHAIN_ROLES.get(kind, kind)
            return {"role": role, **item[name]}
    return None


def _part_text(part: Any) -> str:
    """Return the text of one part of a message.

    A text is returned as it is, and a call of a tool like this: sparql({"query": "..."}). Of
    another part the first of its fields content, text, response and result is returned, else its
    JSON.
    """
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "tool_call":
        return f"{part.get('name')}({text_or_json(part.get('arguments'))})"
    for name in ("content", "text", "response", "result"):
        if name in part:
            return text_or_json(part[name])
    return text_or_json(part)


def _items_below(attributes: Mapping[str, Any], name: str) -> list[JsonObject]:
    """Return the items of a list that is flattened into attributes NAME.0.FIELD, NAME.1.FIELD, ...

    They are in the order of their numbers, each as a dict of its fields.
    """
    items: dict[int, JsonObject] = {}
    prefix = f"{name}."
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        number, _, field = key.removeprefix(prefix).partition(".")
        if number.isdecimal() and field:
            item = items.setdefault(int(number), {})
            item[field] = value
    return [items[number] for number in sorted(items)]


def _without_prefix(prefix: str, fields: Mapping[str, Any]) -> JsonObject:
    """Return fields by their names without a prefix."""
    return {name.removeprefix(prefix): value for name, value in fields.items()}


# Values


def _from_json(value: Any) -> Any:
    """Return the data of a text that is a JSON object or list, with secrets masked.

    Any other value, and a text that does not parse, is returned as it is.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return mask_data(json.loads(value))
    except (ValueError, RecursionError):
        return value


def _as_list(value: Any) -> list[Any]:
    """Return a list, also for the JSON text of one; [value] for a single value, [] for None."""
    data = _from_json(value)
    if data is None:
        return []
    if isinstance(data, list):
        return data
    return [data]


def _objects_in(value: Any) -> list[JsonObject]:
    """Return the objects in a list, or in the JSON text of one; other items are left out."""
    return [item for item in _as_list(value) if isinstance(item, dict)]


def _texts_in(data: Any) -> Iterator[str]:
    """Yield all texts in JSON data, in order and at any depth; keys of objects are left out."""
    if isinstance(data, str):
        yield data
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _texts_in(item)


def question_text(data: Any) -> str:
    """Return the question in the input of a program; "" if none is found in it.

    That is a text, the field of an object that is named like a question, the only text in it, or
    the last message of a person.
    """
    return _text_in_fields(data, FORMS["question_fields"])


def answer_text(data: Any) -> str:
    """Return the answer in the output of a program, as ``question_text`` does the question.

    An output in which none is found is the answer as a whole, as JSON.
    """
    text = _text_in_fields(data, FORMS["answer_fields"])
    if not text and data:
        return text_or_json(data)
    return text


def _text_in_fields(data: Any, names: Sequence[str]) -> str:
    """Return the text that JSON data stands for; "" if it has none.

    That is a text itself, or the first field of an object that is in ``names``, else its only field
    or its messages. Of a list it is that of its last item, but an answer may be several texts.
    """
    if isinstance(data, dict):
        return _text_in_object(data, names)
    if isinstance(data, list):
        if "answer" in names and all(isinstance(item, str) for item in data):
            return ", ".join(data)
        if not data:
            return ""
        return _text_in_fields(data[-1], (*names, "content"))
    if data is None:
        return ""
    return str(data)


def _text_in_object(data: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the text of an object: its first field in ``names`` that holds one, else one inside.

    Inside is looked at in "messages", LangChain's forms of a message, or the only field, where
    "content" counts as well.
    """
    for name in names:
        text = _text_in_fields(data.get(name), names)
        if text:
            return text
    inner = None
    if len(data) == 1:
        inner = next(iter(data.values()))
    for name in ("messages", *FORMS["langchain_fields"]):
        inner = data.get(name, inner)
    return _text_in_fields(inner, (*names, "content"))


# Spans shown as runs


READ_ONLY = "it is the trace of another program"


def open_trace(path: str | Path, *, kg: GraphSource | None = None, trace: int | str = "") -> Run:
    """Return a trace in a file of OTLP JSON as a run that can only be read.

    The names of the spans may be OpenInference's or those of OpenTelemetry for generative AI. Each
    span is a step. The run shows itself in a notebook, and in ``kgwb.debug(run)``; a model call of
    it is asked again by ``run.ask_again(step, model)``. Secrets in texts are masked.

    With ``kg``, each SPARQL query of the trace is executed again on this graph, and the run's
    subgraph shows the triples that support its results. ``trace`` chooses one of several traces in
    the file, by its number from 1 on or by its id. "all" opens them as one run, in the order of their
    begin: a program without a span around its work makes a trace of each call.

    Raises InputError if the file is not OTLP JSON, if there is no such trace, or if there are
    several and none is chosen, and what opening the graph raises.
    """
    spans = _choose_trace(Path(path), trace)
    graph = None
    if kg is not None:
        graph = open_kg(kg)
    saved = saved_run_of(spans, Path(path).name)
    run = read_only_run_of(saved, READ_ONLY, graph)
    run.read_only_hint = "ask a model call of it again: run.ask_again(step, model)"
    add_queries(run, spans, graph)
    return run


def _choose_trace(path: Path, trace: int | str) -> list[Span]:
    """Return the spans of one trace in a file, by number or id, or of all; "" means the only one.

    Raises InputError, which lists the traces, if there is no such trace, or several for "".
    """
    spans = read_spans(path)
    if trace == "all":  # an id of a span is only its own within its trace
        return [_with_trace_in_ids(span) for span in spans]
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    ids = list(traces)
    if isinstance(trace, int) and 1 <= trace <= len(ids):
        trace = ids[trace - 1]
    if trace == "" and len(ids) == 1:
        trace = ids[0]
    if trace in traces:
        return traces[str(trace)]
    problem = f"{path} has {len(ids)} traces"
    if trace != "":
        problem = f"{path} has no trace {trace!r}, but {len(ids)}"
    listed = []
    for number, (first, *_) in enumerate(traces.values(), 1):
        listed.append(f"trace={number} ({shorten(first.name)})")
    raise InputError(
        problem,
        hint=f'choose one with trace=NUMBER, or all as one run with trace="all": {list_first(listed)}',
    )


def _with_trace_in_ids(span: Span) -> Span:
    """Return a span with ids that are its own among those of several traces."""
    parent = span.parent_id and f"{span.trace_id} {span.parent_id}"
    return replace(span, span_id=f"{span.trace_id} {span.span_id}", parent_id=parent)


MAX_NAME_CHARS = 60
MAX_DEPTH = 100
"""The number of spans below each other that are shown as such."""
MAX_QUESTION_CHARS = 1_000
"""A question longer than that is cut: it may be a whole document."""


def saved_run_of(spans: Sequence[Span], source: str) -> SavedRun:
    """Return what a run file would say of a trace: its model calls and queries, its steps, its end.

    A step comes before those below it; steps below the same one are in the order of their begin.
    ``source`` is the name of the trace's file.
    """
    saved = SavedRun(_make_header(spans, source), end=_make_end(spans))
    keys = step_keys(spans)
    counts: Counter[str] = Counter()
    for span, parent in walk(spans):
        key = keys[span.span_id]
        step = _make_step(span, key, keys.get(parent, ""))
        call = _make_call(span, key, counts)
        if call is not None:
            step["calls"] = [call.key]
            saved.record.calls[call.key] = call
        saved.steps.append(step)
    return saved


def _make_header(spans: Sequence[Span], source: str) -> Header:
    """Return the header of a run file for a trace.

    The question is in the first span's input, else the last message of a person to a model, else
    the first span's name; it is cut at MAX_QUESTION_CHARS.
    """
    first = spans[0]
    question = question_text(input_of(first)) or _question_of_model_call(spans) or first.name
    models = dict.fromkeys(model_of(span) for span in spans if kind_of(span) == "model")
    return Header(
        id=first.trace_id,
        created=first.started_at,
        system=f"{_agent_name(first)} (trace)",
        question=shorten(single_line(question), MAX_QUESTION_CHARS),
        dialogue=Dialogue(),
        settings={},
        models={"": ", ".join(models)},
        embeddings="",
        graph="",
        source=source,
        vocabulary=Vocabulary(),
        prompts={},
    )


def _question_of_model_call(spans: Sequence[Span]) -> str:
    """Return the last message of a person in the first model call that has one; else ""."""
    for span in spans:
        if kind_of(span) == "model":
            texts = [text for role, text in messages_of(span) if role == "user"]
            if texts:
                return texts[-1]
    return ""


def walk(spans: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    """Yield each span once, after its parent, with the parent's id; "" for one at the top.

    A span whose parent is not in the file is at the top, and one of a circle of parents. A span
    deeper than MAX_DEPTH gets a parent such that it is at that depth.
    """
    known = {span.span_id for span in spans}
    below: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        parent = span.parent_id if span.parent_id in known else ""
        below[parent].append(span)
    seen: set[str] = set()
    tops = [*below[""], *spans]  # the second are for circles
    for top in tops:
        waiting = [(top, "", 1)]
        while waiting:
            span, parent, depth = waiting.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            yield span, parent
            parent_of_children = span.span_id if depth < MAX_DEPTH else parent
            for child in reversed(below[span.span_id]):
                waiting.append((child, parent_of_children, depth + 1))


def step_keys(spans: Sequence[Span]) -> Mapping[str, str]:
    """Return the key of each span's step, by the id of the span.

    The key is the name of the agent, such as "draft"; the second of the same name is "draft#2".
    """
    kinds: dict[str, str] = {}
    counts: Counter[str] = Counter()
    keys = {}
    for span, _ in walk(spans):
        name = agent_of_span(span, kinds)
        counts[name] += 1
        key = name
        if counts[name] > 1:
            key = f"{name}#{counts[name]}"
        keys[span.span_id] = key
    return keys


def agent_of_span(span: Span, kinds: dict[str, str]) -> str:
    """Return the name of the agent that a span becomes.

    ``kinds`` has the kind of each name so far; this one is added. An agent has one kind, so "
    (KIND)" is added to a name that has another kind already.
    """
    name = _agent_name(span)
    kind = kind_of(span)
    if kinds.setdefault(name, kind) != kind:
        name = f"{name} ({kind})"
        kinds.setdefault(name, kind)
    return name


def _agent_name(span: Span) -> str:
    """Return the name of a span in one line, without the characters that keys are made of."""
    plain = re.sub(r"[\[\]#]+", " ", single_line(span.name))
    return shorten(" ".join(plain.split()), MAX_NAME_CHARS) or "span"


def _make_step(span: Span, key: str, parent: str) -> JsonObject:
    """Return the step of a span as data of a run file, without its calls.

    What the span cost, if the trace says so, is a note. It is done unless the span has an error.
    """
    notes = []
    cost = _number(_value_of(span, "cost"))
    if cost is not None:
        notes.append(f"cost in the trace: {cost:g}")
    agent_name, _, _ = key.partition("#")
    return {
        "key": key,
        "agent": agent_name,
        "kind": kind_of(span),
        "subject": "",
        "parent": parent,
        "inputs": _inputs(span),
        "output": output_of(span),
        "done": not span.error,
        "calls": [],
        "attempts": [],
        "prompts": [],
        "notes": notes,
        "seconds": span.seconds,
        "error": span.error,
    }


def _inputs(span: Span) -> JsonObject:
    """Return the inputs of a span by name: the fields of an object, else "input".

    A model call has none: its messages are shown as the prompt.
    """
    if kind_of(span) == "model":
        return {}
    data = input_of(span)
    if data is None:
        return {}
    if not isinstance(data, dict) or not data:
        return {"input": data}
    return {str(name): value for name, value in data.items()}


def _make_call(span: Span, step_key: str, counts: Counter[str]) -> Call | None:
    """Return the call of a span, a model call or a query; None for another span.

    ``counts`` has how often each call was made so far, by its key, and is raised by one.
    """
    result: Any
    match kind_of(span):
        case "model":
            kind, result = "model", chat_reply_of(span)
            content = request_content_of(span)
            request = {"model": model_of(span), "task": step_key, "content": content}
        case "sparql":
            kind, result = TRACED_QUERY, output_of(span)
            request = {"query": query_of(span)}
        case _:
            return None
    first_key = call_key(kind, request, 0)
    repeat = counts[first_key]
    counts[first_key] += 1
    return Call(
        call_key(kind, request, repeat),
        kind,
        step_key,
        request,
        repeat,
        result,
        span.started_at,
        span.seconds,
        RESULT_TYPES.get(kind),
    )


def _make_end(spans: Sequence[Span]) -> End:
    """Return the end of a trace: "done" or "failed" by the span at its top, and the answer.

    Of several spans at the top it is the last one that failed or has an output. The answer is a
    text in its output, or says that there is none; None if the span failed.
    """
    tops = [span for span, parent in walk(spans) if not parent]
    last = tops[-1]
    for span in tops:
        if span.error or answer_text(output_of(span)):
            last = span
    text = answer_text(output_of(last)) or "the trace has no output"
    begin = min(span.start_ns for span in tops)
    end = max(span.end_ns for span in tops)
    totals = Totals(seconds=max(0, end - begin) / 1e9)
    if last.error:
        return End("failed", len(spans), None, last.error, totals)
    answer = Answer("list", text=text)
    return End("done", len(spans), answer, "", totals)


@frozen
class TracedQuery(Record):
    """A query that a program executed."""

    result: str
    """Its result, as the trace has it."""
    sparql: Sparql
    run_again: Answer | None = None
    """What it returned when it was executed again; None if it was not."""

    def __str__(self) -> str:
        return self.result


def add_queries(run: Run, spans: Sequence[Span], kg: Graph | None) -> None:
    """Set the output of each step that executed a query to a TracedQuery.

    With a graph the queries are executed again; one that fails gets a note on its step. The answer
    of the run gets values and support of the last query that has values, and keeps its text.
    """
    keys = step_keys(spans)
    steps = run.steps_by_key
    by_id = {span.span_id: span for span in spans}
    for span_id, sparql in queries_of(spans).items():
        span = by_id[span_id]
        step = steps[keys[span.span_id]]
        result = "no result in the trace"
        if step.output is not None:
            result = one_line(text_or_json(step.output))
        traced = TracedQuery(result, sparql)
        if kg is not None:
            try:
                traced = replace(traced, run_again=_execute(kg, sparql))
            except GraphError as error:
                step.notes.append(f"it could not be executed again: {error.message}")
        step.output = traced
        found = traced.run_again
        if found and run.answer is not None:
            run.execution.answer = replace(found, text=run.answer.text)


def _execute(kg: Graph, sparql: str) -> Answer:
    """Execute a SELECT or ASK on a graph, and return the result as an answer with its support.

    Each row is a value: its first cell that is bound. The answer is a table with columns if there
    are several variables. A true ASK has the triples of one solution. Raises GraphError if the
    query is refused, rejected, too slow, or has another form.
    """
    result = execute_sparql(kg, sparql)
    if not isinstance(result, ResultSet):
        support = find_support_by_row(kg, sparql, (), ()) if result else {}
        truth = Value(rdflib.Literal(result), str(result).lower(), support.get((), ()))
        return with_display_names(kg, Answer("boolean", (truth,), (sparql,)))

    support = find_support_by_row(kg, sparql, result.variables, result.rows)
    columns = tuple(result.variables)
    if len(columns) == 1:
        columns = ()
    values = []
    for row in result.rows:
        cells = [cell for cell in row if cell is not None]
        if cells:
            kept_row = row if columns else ()
            values.append(Value(cells[0], str(cells[0]), support.get(row, ()), kept_row))
    reason = "" if values else "the query has no rows"
    answer = Answer("list", tuple(values), (sparql,), reason=reason, columns=columns)
    return _with_labels(kg, answer)


def _with_labels(kg: Graph, answer: Answer) -> Answer:
    """Return the answer with a display name for each IRI, which its values have as labels.

    The graph is asked for the names. Other values keep their labels.
    """
    named = with_display_names(kg, answer)
    names: dict[Term, str] = dict(named.names)
    values = []
    for value in named.values:
        label = names.get(value.term, value.label)
        values.append(replace(value, label=label))
    return replace(named, values=tuple(values))
