"""A run as spans under the names of OpenInference: the run, its steps, and what they asked.

https://arize-ai.github.io/openinference/spec/semantic_conventions.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from openinference.semconv.trace import (
    DocumentAttributes,
    MessageAttributes,
    OpenInferenceMimeTypeValues,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)

from kgwb.records import JsonObject, to_data
from kgwb.run.calls import QUERY_KINDS, Call, encode_canonical
from kgwb.run.engine import Engine
from kgwb.run.steps import Step, group_by_supervisor
from kgwb.text import mask_data, mask_text, shorten

MAX_VALUE_CHARS = 200_000
"""Characters of one input or output: the survey of a graph may have more."""
STEP_KEY = "kgwb.step"
"""The attribute with the key of a step. It is kgwb's own: names of spans need not be unique."""
RETRIEVER_KINDS = ("search", "exact", "nearest")
Kind = OpenInferenceSpanKindValues
Attributes = dict[str, Any]


@dataclass
class ExportedSpan:
    """A span with all that is known of it; its id is made when it is sent or written."""

    place: str
    """What tells it apart within its run: "run", "step KEY" or "call KEY"."""
    parent: str
    """The place of the span that it is below; empty for the run."""
    name: str
    attributes: Attributes
    start: datetime
    end: datetime
    error: str = ""


def spans_of_run(run: Engine) -> list[ExportedSpan]:
    """Return the spans of a run's latest execution: of the run, of each step and each call.

    A parent comes before its children. The run's span is the first, and has the run's error. Steps
    are below their supervisors, or below the run. A call that several steps used is one span, below
    the first of them. Calls have the times at which they were made, steps those of their calls; a
    step without calls begins where the one before it ends. Secrets in texts are masked.
    """
    started = datetime.fromisoformat(run.created)
    root = ExportedSpan("run", "", run.system.name, _run_attributes(run), started, started)
    if run.error is not None:
        root.error = mask_text(run.error.message)
    groups = group_by_supervisor(run.steps)
    collector = _Collector(run.calls, groups, [root], set())
    end = collector.add_calls(root, run.own_calls, started)
    end = collector.add_steps(root, None, end)
    _span_time(root, collector.spans[1:], end)
    return collector.spans


def trace_id_of(run: Engine, spans: Sequence[ExportedSpan]) -> int:
    """Return the id of a run's trace, 128 bits, a hash of the run's id and of the spans' content.

    So a run that is sent twice is shown once, and an edited run is another trace.
    """
    content = []
    for span in spans:
        content.append([span.place, span.name, _inputs_and_outputs(span)])
    text = encode_canonical([run.id, content])
    return _hash(text, 16)


def span_id_of(trace_id: int, place: str) -> int:
    """Return the id of a span within its trace, 64 bits."""
    return _hash(f"{trace_id} {place}", 8)


def _hash(text: str, byte_count: int) -> int:
    """Return so many bytes of a hash of a text as a number; it is never 0, which means no id."""
    content = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(content).digest()
    return int.from_bytes(digest[:byte_count], "big") or 1


def _inputs_and_outputs(span: ExportedSpan) -> list[Any]:
    """Return the attributes "input.value" and "output.value" of a span; None for one it lacks."""
    attributes = span.attributes
    return [attributes.get(SpanAttributes.INPUT_VALUE), attributes.get(SpanAttributes.OUTPUT_VALUE)]


@dataclass
class _Collector:
    """The spans of a run while they are made."""

    calls: Mapping[str, Call]
    groups: Mapping[str | None, Sequence[Step]]
    """The steps below each supervisor, by its key."""
    spans: list[ExportedSpan]
    known_calls: set[str]
    """Keys of the calls that have a span."""

    def add_steps(self, parent: ExportedSpan, supervisor: str | None, start: datetime) -> datetime:
        """Add the spans of the steps below a supervisor, and return when the last of them ended.

        ``supervisor`` is a step's key, or None for the steps at the top. ``start`` is when the
        first of them begins if it made no calls.
        """
        end = start
        for step in self.groups.get(supervisor, ()):
            place = f"step {step.key}"
            span = ExportedSpan(place, parent.place, step.key, _step_attributes(step), end, end)
            span.error = mask_text(step.error)
            position = len(self.spans)
            self.spans.append(span)
            self.add_calls(span, step.calls, end)
            self.add_steps(span, step.key, end)
            _span_time(span, self.spans[position + 1 :], end)
            duration = timedelta(seconds=step.seconds)
            span.end = max(span.end, span.start + duration)
            end = span.end
        return end

    def add_calls(self, parent: ExportedSpan, keys: Sequence[str], start: datetime) -> datetime:
        """Add the spans of those calls that have none yet, and return when the last of them ended.

        ``start`` is returned if there are none.
        """
        end = start
        for key in keys:
            call = self.calls.get(key)
            if call is None or key in self.known_calls:
                continue
            self.known_calls.add(key)
            begun = datetime.fromisoformat(call.taken_at)
            if begun.tzinfo is None:
                begun = begun.replace(tzinfo=UTC)
            ended = begun + timedelta(seconds=call.seconds)
            attributes = _call_attributes(call)
            name = call.request.get("task", call.kind)
            self.spans.append(
                ExportedSpan(f"call {key}", parent.place, str(name), attributes, begun, ended)
            )
            end = max(end, ended)
        return end


def _span_time(span: ExportedSpan, inside: Sequence[ExportedSpan], end: datetime) -> None:
    """Set begin and end of a span to those of the spans inside; without any, both to ``end``."""
    starts = [other.start for other in inside]
    ends = [other.end for other in inside]
    span.start = min(starts, default=end)
    span.end = max(ends, default=end)


# Attributes


def _run_attributes(run: Engine) -> Attributes:
    """Return the attributes of the span of a whole run.

    Its input is the question, its output the text of the answer ("" without one). The metadata are
    id, status, graph and settings. Secrets are masked.
    """
    answer = ""
    if run.answer is not None:
        answer = str(run.answer)
    about = {
        "id": run.id,
        "status": run.status,
        "graph": run.kg.source,
        "settings": run.settings.to_data(),
    }
    return {
        **_kind(Kind.AGENT),
        **_text(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, run.question),
        **_text(SpanAttributes.OUTPUT_VALUE, SpanAttributes.OUTPUT_MIME_TYPE, answer),
        SpanAttributes.AGENT_NAME: run.system.name,
        SpanAttributes.METADATA: _json(about),
    }


def _step_attributes(step: Step) -> Attributes:
    """Return the attributes of the span of a step: inputs, notes, and the output if it is done.

    Secrets are masked, and long values cut.
    """
    data = step.to_data()
    about = {"notes": step.notes, "by_hand": step.origin == "by hand"}
    attributes = {
        **_kind(Kind.AGENT),
        **_value(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, data["inputs"]),
        SpanAttributes.AGENT_NAME: step.agent,
        SpanAttributes.METADATA: _json(about),
        STEP_KEY: step.key,
    }
    if step.done:
        output = data["output"]
        attributes |= _value(SpanAttributes.OUTPUT_VALUE, SpanAttributes.OUTPUT_MIME_TYPE, output)
    return attributes


def _call_attributes(call: Call) -> Attributes:
    """Return the attributes of the span of a call.

    A model call is an LLM span, a search a retriever, a similarity a reranker, any other a tool.
    """
    if call.kind == "model":
        return _model_attributes(call)
    if call.kind in RETRIEVER_KINDS:
        return _retriever_attributes(call)
    if call.kind == "similarity":
        return _reranker_attributes(call)
    return _tool_attributes(call)


def _model_attributes(call: Call) -> Attributes:
    """Return the attributes of a model call: messages, reply, parameters and token counts.

    The model is the one that the reply names, else the one that was asked. Secrets in texts are
    masked.
    """
    content = call.request["content"]
    reply = call.result
    attributes = {
        **_kind(Kind.LLM),
        **_value(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, content["messages"]),
        **_text(SpanAttributes.OUTPUT_VALUE, SpanAttributes.OUTPUT_MIME_TYPE, reply.text),
        SpanAttributes.LLM_MODEL_NAME: reply.model or call.request["model"],
        SpanAttributes.LLM_INVOCATION_PARAMETERS: _json(_invocation_parameters(content)),
        SpanAttributes.LLM_TOKEN_COUNT_PROMPT: reply.prompt_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: reply.completion_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_TOTAL: reply.prompt_tokens + reply.completion_tokens,
    }
    for number, (role, text) in enumerate(content["messages"]):
        attributes |= _message(SpanAttributes.LLM_INPUT_MESSAGES, number, role, text)
    attributes |= _message(SpanAttributes.LLM_OUTPUT_MESSAGES, 0, "assistant", reply.text)
    return attributes


def _invocation_parameters(content: JsonObject) -> JsonObject:
    """Return the parameters of a recorded request to a model; the schema is one if there is one.

    A request of a wrapped client has the options that its pipeline gave, under their own names.
    """
    if "options" in content:
        options: JsonObject = content["options"]
        return options
    parameters = {
        "temperature": content["temperature"],
        "seed": content["seed"],
        "max_tokens": content["max_output_tokens"],
    }
    if content["schema"]:
        parameters["response_format"] = content["schema"]
    return parameters


def _message(messages: str, number: int, role: str, text: str) -> Attributes:
    """Return the attributes of one message: role, and content with secrets masked.

    ``messages`` is the attribute of the list of messages, in which it has this number.
    """
    return {
        f"{messages}.{number}.{MessageAttributes.MESSAGE_ROLE}": role,
        f"{messages}.{number}.{MessageAttributes.MESSAGE_CONTENT}": mask_text(text),
    }


def _retriever_attributes(call: Call) -> Attributes:
    """Return the attributes of a search: what was searched for, and each thing found.

    A thing has id, text and score as far as they are known; they are numbered from 0.
    """
    request = call.request
    sought = str(request.get("text") or request.get("phrase") or "")
    if call.kind == "exact":
        sought = ", ".join(request["labels"])
    attributes = {
        **_kind(Kind.RETRIEVER),
        **_text(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, sought),
    }
    for number, document in enumerate(_found_documents(call)):
        for name, value in document.items():
            attributes[f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{number}.{name}"] = value
    return attributes


def _found_documents(call: Call) -> Iterator[Attributes]:
    """Yield the attributes of what a search found, in its order.

    A label search has id, label and score of each hit; an exact one has IRI and label; a search by
    embeddings has position and cosine.
    """
    if call.kind == "search":
        for hit in call.result.hits:
            yield {
                DocumentAttributes.DOCUMENT_ID: str(hit.iri),
                DocumentAttributes.DOCUMENT_CONTENT: hit.label,
                DocumentAttributes.DOCUMENT_SCORE: hit.score,
            }
    elif call.kind == "exact":
        for label, iris in call.result.items():
            for iri in iris:
                yield {
                    DocumentAttributes.DOCUMENT_ID: str(iri),
                    DocumentAttributes.DOCUMENT_CONTENT: label,
                }
    else:
        for place, cosine in call.result:
            yield {
                DocumentAttributes.DOCUMENT_ID: str(place),
                DocumentAttributes.DOCUMENT_SCORE: float(cosine),
            }


def _reranker_attributes(call: Call) -> Attributes:
    """Return the attributes of a similarity call: the phrase, and each name with its similarity."""
    phrase = mask_text(call.request["phrase"])
    attributes = {
        **_kind(Kind.RERANKER),
        **_text(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, phrase),
        RerankerAttributes.RERANKER_QUERY: phrase,
        RerankerAttributes.RERANKER_MODEL_NAME: call.request["embeddings"],
    }
    pairs = zip(call.request["names"], call.result, strict=True)
    for number, (name, similarity) in enumerate(pairs):
        document = f"{RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS}.{number}"
        attributes[f"{document}.{DocumentAttributes.DOCUMENT_CONTENT}"] = name
        attributes[f"{document}.{DocumentAttributes.DOCUMENT_SCORE}"] = float(similarity)
    return attributes


def _tool_attributes(call: Call) -> Attributes:
    """Return the attributes of any other call: its kind as the tool's name, parameters and result.

    The input of a query is its SPARQL alone.
    """
    reply = to_data(call.result, call.result_type)
    attributes = {
        **_kind(Kind.TOOL),
        **_value(SpanAttributes.OUTPUT_VALUE, SpanAttributes.OUTPUT_MIME_TYPE, reply),
        SpanAttributes.TOOL_NAME: call.kind,
    }
    request: JsonObject = call.request
    if call.kind in QUERY_KINDS:
        query = request["query"]
        attributes |= _text(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, query)
        request = {"query": query}
    else:
        attributes |= _value(SpanAttributes.INPUT_VALUE, SpanAttributes.INPUT_MIME_TYPE, request)
    attributes[SpanAttributes.TOOL_PARAMETERS] = _json(request)
    return attributes


# Values


def _kind(kind: OpenInferenceSpanKindValues) -> Attributes:
    return {SpanAttributes.OPENINFERENCE_SPAN_KIND: kind.value}


def _text(value_name: str, type_name: str, text: str) -> Attributes:
    """Return a text as an input or an output."""
    cut = shorten(mask_text(text), MAX_VALUE_CHARS)
    return {value_name: cut, type_name: OpenInferenceMimeTypeValues.TEXT.value}


def _value(value_name: str, type_name: str, data: Any) -> Attributes:
    """Return JSON data as the attributes of an input or an output: the value and its MIME type.

    A text has the type of text, and so has JSON longer than MAX_VALUE_CHARS, which is cut. Secrets
    are masked.
    """
    if isinstance(data, str):
        return _text(value_name, type_name, data)
    encoded = _json(data)
    if len(encoded) > MAX_VALUE_CHARS:
        return _text(value_name, type_name, encoded)
    return {value_name: encoded, type_name: OpenInferenceMimeTypeValues.JSON.value}


def _json(data: Any) -> str:
    """Return data as JSON in one line, with secrets masked."""
    masked = mask_data(data)
    return json.dumps(masked, ensure_ascii=False)
