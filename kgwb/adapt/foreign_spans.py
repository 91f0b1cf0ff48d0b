"""Files of OTLP JSON: the spans in them, and what each is about, under the NAMES of ``kgwb.run.spans``.

Secrets in their texts are masked when they are read.

Such a file is one JSON object with ``resourceSpans``, a list of these, or one on each line, as
OpenTelemetry's collector writes it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kgwb import disk
from kgwb.errors import InputError
from kgwb.kg.sparql import is_query, without_fence
from kgwb.llm.base import ChatReply, parse_token_count
from kgwb.records import JsonObject
from kgwb.run.run_file import DAMAGED_FILE_ERRORS
from kgwb.run.spans import NAMES
from kgwb.text import mask_data, mask_text

HINT = "name a file of OTLP JSON, as kgwb export and OpenTelemetry's file exporters write it"
ERROR_CODES = (2, "STATUS_CODE_ERROR")
"""The status of a span that failed, as a number or by its name."""


@dataclass(frozen=True)
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
        for data in _spans_data(_read_json(path)):
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
    attributes = {}
    error = _read_error(data)
    for event in data.get("events", ()):
        attributes.update(_event_attributes(event))
    attributes.update(_read_attributes(data.get("attributes", ())))
    span = Span(
        trace_id=str(data["traceId"]),
        span_id=str(data["spanId"]),
        parent_id=str(data.get("parentSpanId") or ""),
        name=mask_text(str(data["name"])),
        start_ns=int(data.get("startTimeUnixNano", 0)),
        end_ns=int(data.get("endTimeUnixNano", 0)),
        attributes=attributes,
        error=mask_text(error),
    )
    _ = span.started_at  # raises if it is no time
    return span


def _event_attributes(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event that tells about a model call; none for other events."""
    if str(event.get("name", "")).startswith("gen_ai."):
        return _read_attributes(event.get("attributes", ()))
    return {}


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
            attributes = _read_attributes(event.get("attributes", ()))
            return str(attributes.get("exception.message", "failed"))
    return "failed"


def _read_attributes(pairs: Any) -> dict[str, Any]:
    """Return the attributes of a span by name, as JSON data without secrets."""
    masked: dict[str, Any] = mask_data(_read_pairs(pairs))
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


def _read_pairs(pairs: Any) -> dict[str, Any]:
    """Return a list of {"key", "value"} of OTLP as a dict of JSON data."""
    data = {}
    for pair in pairs:
        key = str(pair["key"])
        data[key] = _read_value(pair.get("value") or {})
    return data


SpanKind = Literal["model", "search", "sparql", "code"]
"""The kinds of agents that spans become."""

REQUEST_MODEL = "gen_ai.request.model"
TOOL_SCHEMA = "tool.json_schema"
PLAIN_TEXTS = ("gen_ai.prompt", "gen_ai.completion")
"""The names of messages whose value is a text, also if it looks like JSON."""
MODEL_OPERATIONS = ("chat", "text_completion", "generate_content")
MODEL_KINDS = ("LLM", *MODEL_OPERATIONS)
SEARCH_KINDS = ("RETRIEVER", "RERANKER", "EMBEDDING", "embeddings", "retrieval")
QUERYING_KINDS = (None, "TOOL", "RETRIEVER", "execute_tool", "retrieval")
"""The kinds of spans that execute queries. Texts of chains and agents repeat those of their tools."""
QUESTION_NAMES = ("question", "query", "input", "user_input", "text")
ANSWER_NAMES = ("answer", "final_answer", "output", "result", "response", "text", "content")
LANGCHAIN_FIELDS = ("kwargs", "data")
"""In which of its fields a message of LangChain has all others but its type."""
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
    if kind in MODEL_KINDS or has_request:
        return "model"
    if query_of(span):
        return "sparql"
    if kind in SEARCH_KINDS:
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
        if span.attributes.get(name) not in QUERYING_KINDS:
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


def cost_of(span: Span) -> float | None:
    """Return what a model call cost, in the currency of the trace; None if it does not say."""
    return _number(_value_of(span, "cost"))


def model_of(span: Span) -> str:
    """Return the model that answered or was asked; "unknown model" if the trace does not say."""
    return str(_value_of(span, "model") or "unknown model")


def request_content_of(span: Span) -> JsonObject:
    """Return what a model call sent, as a run records it; a parameter that is not known is None."""
    parameters = _from_json(_value_of(span, "parameters"))
    if not isinstance(parameters, dict):
        parameters = {}
    values = {}
    for name in ("temperature", "seed", "max_tokens"):
        values[name] = parameters.get(name, _value_of(span, name))
    listed, definitions = NAMES["tools"]
    schemas = [item.get(TOOL_SCHEMA) for item in _items_below(span.attributes, listed)]
    tools = _objects_in(list(map(_from_json, schemas)))
    tools = tools or _objects_in(span.attributes.get(definitions))
    return {
        "messages": messages_of(span),
        "tools": tools or _objects_in(parameters.get("tools")),
        "schema": None,
        "temperature": _number(values["temperature"]),
        "seed": _whole_number(values["seed"]),
        "max_output_tokens": _whole_number(values["max_tokens"]),
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
    """Return a number as a float; None for anything else, also for a truth value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _whole_number(value: Any) -> int | None:
    """Return a whole number as it is; None for anything else, also for a truth value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


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
        listed = data.get("messages") if isinstance(data, dict) else None
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
        return str(span.attributes.get(NAMES["output"][0], ""))
    return "\n\n".join(text for _, text in messages)


def _listed_messages(span: Span, meaning: str, usual_role: str) -> ChatMessages:
    """Return the messages under the first of the NAMES of a meaning that has some; else [].

    They are a list that is flattened into attributes, the JSON of a list, or one text.
    ``usual_role`` is that of a message without a role.
    """
    for name in NAMES[meaning]:
        given = span.attributes.get(name)
        items: list[Any] = _items_below(span.attributes, name)
        if name not in PLAIN_TEXTS:
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
    parts: Any = fields.get("parts", fields.get("content", ""))
    parts = list(parts) if isinstance(parts, list) else [parts]
    parts = [part for part in parts if part is not None]  # beside a call of a tool
    for content in _items_below(fields, "contents"):
        parts.append(str(content.get("message_content.text", "")))
    for call in _items_below(fields, "tool_calls") or _objects_in(fields.get("tool_calls")):
        called = _without_prefix("tool_call.function.", call)
        arguments = called.get("arguments", called.get("args"))
        parts.append({"type": "tool_call", "name": called.get("name"), "arguments": arguments})
    text = "\n".join(filter(None, map(_part_text, parts)))
    return [str(fields.get("role", usual_role)), text]


def _langchain_message(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a message of LangChain, with its role; None for another form.

    Where the fields are "kwargs", its type is the name of its class, the last part of "id".
    """
    for name in LANGCHAIN_FIELDS:
        if isinstance(item.get(name), dict):
            kind = str(item.get("type"))
            path = item.get("id")
            if isinstance(path, list) and path:
                kind = str(path[-1]).removesuffix("Message").lower()
            return {"role": LANGCHAIN_ROLES.get(kind, kind), **item[name]}
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
        return f"{part.get('name')}({_to_text(part.get('arguments'))})"
    for name in ("content", "text", "response", "result"):
        if name in part:
            return _to_text(part[name])
    return _to_text(part)


def _items_below(attributes: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the items of a list that is flattened into attributes NAME.0.FIELD, NAME.1.FIELD, ...

    They are in the order of their numbers, each as a dict of its fields.
    """
    items: dict[int, dict[str, Any]] = {}
    prefix = f"{name}."
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        number, _, field = key.removeprefix(prefix).partition(".")
        if number.isdecimal() and field:
            item = items.setdefault(int(number), {})
            item[field] = value
    return [items[number] for number in sorted(items)]


def _without_prefix(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
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


def _to_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _as_list(value: Any) -> list[Any]:
    """Return a list, also for the JSON text of one; [value] for a single value, [] for None."""
    data = _from_json(value)
    if data is None:
        return []
    if isinstance(data, list):
        return data
    return [data]


def _objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or in the JSON text of one; other items are left out."""
    return [item for item in _as_list(value) if isinstance(item, dict)]


def _texts_in(data: Any) -> Iterator[str]:
    """Yield all texts in JSON data, in order and at any depth; keys of objects are left out."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _texts_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from _texts_in(value)


def question_text(data: Any) -> str:
    """Return the question in the input of a program; "" if none is found in it.

    That is a text, the field of an object that is named like a question, the only text in it, or
    the last message of a person.
    """
    return _text_in_fields(data, QUESTION_NAMES)


def answer_text(data: Any) -> str:
    """Return the answer in the output of a program, as ``question_text`` does the question.

    An output in which none is found is the answer as a whole, as JSON.
    """
    return _text_in_fields(data, ANSWER_NAMES) or (_to_text(data) if data else "")


def _text_in_fields(data: Any, names: tuple[str, ...]) -> str:
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


def _text_in_object(data: Mapping[str, Any], names: tuple[str, ...]) -> str:
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
    for name in ("messages", *LANGCHAIN_FIELDS):
        inner = data.get(name, inner)
    return _text_in_fields(inner, (*names, "content"))
