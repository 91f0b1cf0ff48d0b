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

from kgwb import disk
from kgwb.records import JsonObject, to_data
from kgwb.run.engine import Engine
from kgwb.run.steps import QUERY_KINDS, Call, Step, encode_canonical, group_by_supervisor
from kgwb.text import mask_data, mask_text, shorten

MAX_VALUE_CHARS = 200_000
"""Characters of one input or output: the survey of a graph may have more."""
STEP_KEY = "kgwb.step"
"""The attribute with the key of a step. It is kgwb's own: names of spans need not be unique."""
Attributes = dict[str, Any]
NAMES: Mapping[str, Sequence[str]] = disk.read_table("run/span_names.toml")
"""The names under which spans say something, from ``span_names.toml``.

The first one is that of OpenInference, under which kgwb writes it. It reads all: those of
OpenTelemetry for generative AI and databases, too, and their older ones.
"""
DOCUMENTS, RERANKED = NAMES["documents"]
TEXT_TYPE, JSON_TYPE = "text/plain", "application/json"


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
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:byte_count], "big") or 1


def _inputs_and_outputs(span: ExportedSpan) -> list[Any]:
    """Return the input and the output of a span; None for one it lacks."""
    return [span.attributes.get(NAMES[side][0]) for side in ("input", "output")]


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
            name = str(call.request.get("task", call.kind))
            attributes = _call_attributes(call)
            self.spans.append(
                ExportedSpan(f"call {key}", parent.place, name, attributes, begun, ended)
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
    answer = "" if run.answer is None else str(run.answer)
    about = {
        "id": run.id,
        "status": run.status,
        "graph": run.kg.source,
        "settings": run.settings.to_data(),
    }
    return {
        **_kind("AGENT"),
        **_value("input", run.question),
        **_value("output", answer),
        "agent.name": run.system.name,
        "metadata": _json(about),
    }


def _step_attributes(step: Step) -> Attributes:
    """Return the attributes of the span of a step: inputs, notes, and the output if it is done.

    Secrets are masked, and long values cut.
    """
    data = step.to_data()
    about = {"notes": step.notes, "by_hand": step.origin == "by hand"}
    attributes = {
        **_kind("AGENT"),
        **_value("input", data["inputs"]),
        "agent.name": step.agent,
        "metadata": _json(about),
        STEP_KEY: step.key,
    }
    if step.done:
        attributes |= _value("output", data["output"])
    return attributes


def _call_attributes(call: Call) -> Attributes:
    """Return the attributes of the span of a call.

    A model call is an LLM span, a search a retriever, a similarity a reranker, any other a tool.
    """
    match call.kind:
        case "model":
            return _model_attributes(call)
        case "search" | "exact" | "nearest":
            return _retriever_attributes(call)
        case "similarity":
            return _reranker_attributes(call)
    return _tool_attributes(call)


def _model_attributes(call: Call) -> Attributes:
    """Return the attributes of a model call: messages, reply, parameters and token counts.

    The model is the one that the reply names, else the one that was asked. Secrets in texts are
    masked.
    """
    content = call.request["content"]
    reply = call.result
    messages = [_message(role, text) for role, text in content["messages"]]
    return {
        **_kind("LLM"),
        **_value("input", content["messages"]),
        **_value("output", reply.text),
        NAMES["model"][0]: reply.model or call.request["model"],
        NAMES["parameters"][0]: _json(_invocation_parameters(content)),
        NAMES["prompt_tokens"][0]: reply.prompt_tokens,
        NAMES["completion_tokens"][0]: reply.completion_tokens,
        "llm.token_count.total": reply.prompt_tokens + reply.completion_tokens,
        **_flattened(NAMES["messages"][0], messages),
        **_flattened(NAMES["reply"][0], [_message("assistant", reply.text)]),
    }


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


def _message(role: str, text: str) -> Attributes:
    """Return the attributes of one message, with secrets masked."""
    return {"message.role": role, "message.content": mask_text(text)}


def _retriever_attributes(call: Call) -> Attributes:
    """Return the attributes of a search: what was searched for, and each thing found.

    A thing has id, text and score as far as they are known.
    """
    request = call.request
    sought = str(request.get("text") or request.get("phrase") or "")
    if call.kind == "exact":
        sought = ", ".join(request["labels"])
    found = list(_found_documents(call))
    return {
        **_kind("RETRIEVER"),
        **_value("input", sought),
        **_flattened(DOCUMENTS, found),
    }


def _found_documents(call: Call) -> Iterator[Attributes]:
    """Yield the attributes of what a search found, in its order.

    A label search has id, label and score of each hit; an exact one has IRI and label; a search by
    embeddings has position and cosine.
    """
    if call.kind == "search":
        for hit in call.result.hits:
            yield _document(id=str(hit.iri), content=hit.label, score=hit.score)
    elif call.kind == "exact":
        for label, iris in call.result.items():
            for iri in iris:
                yield _document(id=str(iri), content=label)
    else:
        for place, cosine in call.result:
            yield _document(id=str(place), score=float(cosine))


def _document(**fields: Any) -> Attributes:
    """Return the attributes of something that was found."""
    return {f"document.{name}": value for name, value in fields.items()}


def _reranker_attributes(call: Call) -> Attributes:
    """Return the attributes of a similarity call: the phrase, and each name with its similarity."""
    phrase = mask_text(call.request["phrase"])
    scored = zip(call.request["names"], call.result, strict=True)
    ranked = [_document(content=name, score=float(similarity)) for name, similarity in scored]
    return {
        **_kind("RERANKER"),
        **_value("input", phrase),
        "reranker.query": phrase,
        "reranker.model_name": call.request["embeddings"],
        **_flattened(RERANKED, ranked),
    }


def _tool_attributes(call: Call) -> Attributes:
    """Return the attributes of any other call: its kind as the tool's name, parameters and result.

    The input of a query is its SPARQL alone.
    """
    request: Any = call.request
    parameters = request
    if call.kind in QUERY_KINDS:
        request = call.request["query"]
        parameters = {"query": request}
    return {
        **_kind("TOOL"),
        **_value("input", request),
        **_value("output", to_data(call.result, call.result_type)),
        "tool.name": call.kind,
        NAMES["tool_parameters"][0]: _json(parameters),
    }


# Values


def _kind(kind: str) -> Attributes:
    """Return the kind of a span as an attribute."""
    return {NAMES["kind"][0]: kind}


def _value(side: str, data: Any) -> Attributes:
    """Return data as the "input" or the "output" of a span: the value and its MIME type.

    A text has the type of text, and so has JSON longer than MAX_VALUE_CHARS, which is cut. Secrets
    are masked.
    """
    is_text = isinstance(data, str)
    encoded = mask_text(data) if is_text else _json(data)
    is_text = is_text or len(encoded) > MAX_VALUE_CHARS
    return {
        NAMES[side][0]: shorten(encoded, MAX_VALUE_CHARS),
        f"{side}.mime_type": TEXT_TYPE if is_text else JSON_TYPE,
    }


def _flattened(name: str, items: Sequence[Attributes]) -> Attributes:
    """Return a list of items as attributes NAME.0.FIELD, NAME.1.FIELD, ..."""
    attributes: Attributes = {}
    for number, item in enumerate(items):
        for field, value in item.items():
            attributes[f"{name}.{number}.{field}"] = value
    return attributes


def _json(data: Any) -> str:
    """Return data as JSON in one line, with secrets masked."""
    return json.dumps(mask_data(data), ensure_ascii=False)
