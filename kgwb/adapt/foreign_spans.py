"""Files of OTLP JSON: the spans in them. Secrets in their texts are masked when they are read.

Such a file is one JSON object with ``resourceSpans``, a list of these, or one on each line, as
OpenTelemetry's collector writes it. https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from kgwb import disk
from kgwb.errors import InputError
from kgwb.kg.sparql import is_query, without_fence
from kgwb.run.run_file import DAMAGED_FILE_ERRORS
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

OPENINFERENCE = {
    "kind": "openinference.span.kind",
    "input": "input.value",
    "output": "output.value",
    "model": "llm.model_name",
    "messages": "llm.input_messages",
    "reply": "llm.output_messages",
    "parameters": "llm.invocation_parameters",
    "prompt_tokens": "llm.token_count.prompt",
    "completion_tokens": "llm.token_count.completion",
    "cost": "llm.cost.total",
    "documents": "retrieval.documents",
    "reranked": "reranker.output_documents",
    "tool_parameters": "tool.parameters",
}
GEN_AI = {
    "kind": "gen_ai.operation.name",
    "request_model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "instructions": "gen_ai.system_instructions",
    "messages": "gen_ai.input.messages",
    "reply": "gen_ai.output.messages",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "old_prompt_tokens": "gen_ai.usage.prompt_tokens",
    "old_completion_tokens": "gen_ai.usage.completion_tokens",
    "old_messages": "gen_ai.prompt",
    "old_reply": "gen_ai.completion",
    "temperature": "gen_ai.request.temperature",
    "seed": "gen_ai.request.seed",
    "max_tokens": "gen_ai.request.max_tokens",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
}
DATABASE_QUERIES = ("db.query.text", "db.statement")
MODEL_OPERATIONS = ("chat", "text_completion", "generate_content")
SEARCH_KINDS = ("RETRIEVER", "RERANKER", "EMBEDDING", "embeddings", "retrieval")
QUESTION_NAMES = ("question", "query", "input", "user_input", "text")
ANSWER_NAMES = ("answer", "output", "result", "response", "text", "content")
ChatMessages = list[list[str]]
"""Role and text of each message."""


@dataclass(frozen=True)
class ModelUse:
    """A model call of a trace."""

    model: str
    messages: ChatMessages
    reply: str
    temperature: float | None
    """None if the trace does not say, as for the next two."""
    seed: int | None
    max_tokens: int | None
    prompt_tokens: int
    completion_tokens: int


def kind_of(span: Span) -> SpanKind:
    """Return what a span does: "model", "sparql", "search" or "code".

    It is "model" by the span's kind or operation, or if it names a requested model; "sparql" if it
    executes a query; "search" by its kind; otherwise "code".
    """
    kind = span.attributes.get(OPENINFERENCE["kind"]) or span.attributes.get(GEN_AI["kind"])
    has_request = GEN_AI["request_model"] in span.attributes and kind is None
    if kind == "LLM" or kind in MODEL_OPERATIONS or has_request:
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
    attributes = span.attributes
    for name in (OPENINFERENCE["input"], GEN_AI["arguments"], *DATABASE_QUERIES):
        if name in attributes:
            return _from_json(attributes[name])
    messages = _messages_of(span)
    return messages or None


def output_of(span: Span) -> Any:
    """Return the output of a span as JSON data; None without one.

    The output of a model call is the text of its reply. That of another span is its recorded
    output, else the documents that it retrieved, else the reply of a model that it has.
    """
    if kind_of(span) == "model":
        return model_use_of(span).reply
    for name in (OPENINFERENCE["output"], GEN_AI["result"]):
        if name in span.attributes:
            return _from_json(span.attributes[name])
    documents = []
    items = _items_below(span.attributes, OPENINFERENCE["documents"])
    items += _items_below(span.attributes, OPENINFERENCE["reranked"])
    for item in items:
        document = {}
        for name, value in item.items():
            short_name = name.removeprefix("document.")
            document[short_name] = value
        documents.append(document)
    if documents:
        return documents
    return _reply_of(span) or None


def query_of(span: Span) -> str:
    """Return the SPARQL query that a span executes, without a code fence; "" if it executes none.

    The first text that is a query is taken, in the input and the parameters of tools, retrievers
    and databases. Chains and agents are not looked at, since their texts repeat those of their
    tools.
    """
    attributes = span.attributes
    is_chain = attributes.get(OPENINFERENCE["kind"], "TOOL") not in ("TOOL", "RETRIEVER")
    is_agent = attributes.get(GEN_AI["kind"], "execute_tool") not in ("execute_tool", "retrieval")
    if is_chain or is_agent:
        return ""
    names = (
        OPENINFERENCE["input"],
        OPENINFERENCE["tool_parameters"],
        GEN_AI["arguments"],
        *DATABASE_QUERIES,
    )
    for name in names:
        for text in _texts_in(_from_json(attributes.get(name))):
            if is_query(text):
                return without_fence(text)
    return ""


def cost_of(span: Span) -> float | None:
    """Return what a model call cost, in the currency of the trace; None if it does not say."""
    cost = span.attributes.get(OPENINFERENCE["cost"])
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return float(cost)
    return None


def model_use_of(span: Span) -> ModelUse:
    """Return what a model call was: model, messages, reply, parameters and numbers of tokens.

    What the trace does not have is None or empty; a number of tokens is 0, and the model "unknown
    model".
    """
    attributes = span.attributes
    parameters = _from_json(attributes.get(OPENINFERENCE["parameters"]))
    if not isinstance(parameters, dict):
        parameters = {}
    model = (
        attributes.get(OPENINFERENCE["model"])
        or attributes.get(GEN_AI["response_model"])
        or attributes.get(GEN_AI["request_model"])
        or "unknown model"
    )
    values = {}
    for name in ("temperature", "seed", "max_tokens"):
        values[name] = parameters.get(name, attributes.get(GEN_AI[name]))
    return ModelUse(
        model=str(model),
        messages=_messages_of(span),
        reply=_reply_of(span),
        temperature=_number(values["temperature"]),
        seed=_whole_number(values["seed"]),
        max_tokens=_whole_number(values["max_tokens"]),
        prompt_tokens=_tokens(attributes, "prompt_tokens"),
        completion_tokens=_tokens(attributes, "completion_tokens"),
    )


def _tokens(attributes: Mapping[str, Any], name: str) -> int:
    """Return a number of tokens, such as "prompt_tokens", under its name in either convention.

    0 if it is missing or not a whole number from 0 on.
    """
    keys = (OPENINFERENCE[name], GEN_AI[name], GEN_AI[f"old_{name}"])
    for key in keys:
        number = _whole_number(attributes.get(key))
        if number is not None and number >= 0:
            return number
    return 0


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


def _messages_of(span: Span) -> ChatMessages:
    """Return the messages that a span sent to a model, as pairs of role and text; [] without any.

    They are looked for under the names of OpenInference, then of OpenTelemetry, then of its older
    versions. The input of a model call without messages is one message of the user.
    """
    attributes = span.attributes
    messages = _openinference_messages(attributes, OPENINFERENCE["messages"])
    if messages:
        return messages
    for part in _as_list(attributes.get(GEN_AI["instructions"])):
        messages.append(["system", _part_text(part)])
    for message in _as_list(attributes.get(GEN_AI["messages"])):
        messages.append(_gen_ai_message(message))
    if not messages:
        messages = _old_messages(attributes, GEN_AI["old_messages"])
    if not messages and OPENINFERENCE["input"] in attributes and kind_is_model(span):
        messages = [["user", str(attributes[OPENINFERENCE["input"]])]]
    return messages


def kind_is_model(span: Span) -> bool:
    """Return whether a span says by itself that it is a model call."""
    return span.attributes.get(OPENINFERENCE["kind"]) == "LLM"


def _reply_of(span: Span) -> str:
    """Return the text of a model's reply; "" if the trace does not have it.

    The texts of several messages are joined by an empty line. A model call without messages of a
    reply has its output as the reply.
    """
    attributes = span.attributes
    messages = _openinference_messages(attributes, OPENINFERENCE["reply"])
    if not messages:
        replies = _as_list(attributes.get(GEN_AI["reply"]))
        messages = [_gen_ai_message(message) for message in replies]
    if not messages:
        messages = _old_messages(attributes, GEN_AI["old_reply"])
    if messages:
        return "\n\n".join(text for _, text in messages)
    if kind_is_model(span):
        return str(attributes.get(OPENINFERENCE["output"], ""))
    return ""


def _openinference_messages(attributes: Mapping[str, Any], name: str) -> ChatMessages:
    """Return the messages under a name of OpenInference, as pairs of role and text.

    The text joins the contents, and calls of tools as JSON, in lines. A missing role is "user".
    """
    messages = []
    for item in _items_below(attributes, name):
        texts = []
        if isinstance(item.get("message.content"), str):
            texts.append(item["message.content"])
        for content in _items_below(item, "message.contents"):
            texts.append(str(content.get("message_content.text", "")))
        for call in _items_below(item, "message.tool_calls"):
            name_of_tool = call.get("tool_call.function.name")
            arguments = call.get("tool_call.function.arguments")
            texts.append(_call_text(name_of_tool, arguments))
        text = "\n".join(filter(None, texts))
        messages.append([str(item.get("message.role", "user")), text])
    return messages


def _gen_ai_message(message: Any) -> list[str]:
    """Return role and text of a message in OpenTelemetry's form, {"role", "parts"}.

    The texts of its parts are joined in lines. A missing role is "user", and so is that of a plain
    text.
    """
    if not isinstance(message, dict):
        return ["user", str(message)]
    parts: Any = message.get("parts", message.get("content", ""))
    if not isinstance(parts, list):
        parts = [parts]
    text = "\n".join(filter(None, map(_part_text, parts)))
    return [str(message.get("role", "user")), text]


def _part_text(part: Any) -> str:
    """Return the text of one part of a message.

    A text is returned as it is, and a call of a tool like this: sparql({"query": "..."}). Of
    another part the first of its fields content, text, response and result is returned, else its
    JSON.
    """
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "tool_call":
        return _call_text(part.get("name"), part.get("arguments"))
    for name in ("content", "text", "response", "result"):
        if name in part:
            return _to_text(part[name])
    return _to_text(part)


def _old_messages(attributes: Mapping[str, Any], name: str) -> ChatMessages:
    """Return messages written as NAME.0.role and NAME.0.content, or as one text under NAME.

    A missing role is "user" for the messages sent, "assistant" for the reply.
    """
    messages = []
    usual_role = "assistant"
    if name == GEN_AI["old_messages"]:
        usual_role = "user"
    for item in _items_below(attributes, name):
        role = str(item.get("role", usual_role))
        content = str(item.get("content", ""))
        messages.append([role, content])
    if not messages and isinstance(attributes.get(name), str):
        messages.append([usual_role, attributes[name]])
    return messages


def _call_text(name: Any, arguments: Any) -> str:
    """Return a call of a tool as text: sparql({"query": "..."})."""
    return f"{name}({_to_text(arguments)})"


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
    """Return the answer in the output of a program, as ``question_text`` does the question."""
    return _text_in_fields(data, ANSWER_NAMES)


def _text_in_fields(data: Any, names: tuple[str, ...]) -> str:
    """Return the text that JSON data stands for; "" if it has none.

    That is a text itself, or the first field of an object that is in ``names``, else its only field
    or its messages; of a list, that of its last item.
    """
    if isinstance(data, dict):
        return _text_in_object(data, names)
    if isinstance(data, list):
        if not data:
            return ""
        return _text_in_fields(data[-1], (*names, "content"))
    if data is None:
        return ""
    return str(data)


def _text_in_object(data: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the text of an object: its first field in ``names`` that is a text, else one inside.

    Inside is looked at in "kwargs", "messages", or its only field, where "content" counts as well.
    """
    for name in names:
        if isinstance(data.get(name), str):
            return str(data[name])
    inner = None
    if len(data) == 1:
        inner = next(iter(data.values()))
    for name in ("messages", "kwargs"):  # LangChain has the content of a message in "kwargs"
        inner = data.get(name, inner)
    return _text_in_fields(inner, (*names, "content"))
