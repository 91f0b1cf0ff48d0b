"""The spans of a trace as the entries of a run file: each span is a step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgwb.kg.base import Vocabulary
from kgwb.llm.base import ChatReply
from kgwb.records import JsonObject, to_data
from kgwb.run.calls import TRACED_QUERY, call_key
from kgwb.run.run_file import FORMAT_VERSION
from kgwb.text import shorten, single_line
from kgwb.traces.conventions import (
    answer_text,
    cost_of,
    input_of,
    kind_of,
    model_use_of,
    output_of,
    query_of,
    question_text,
)
from kgwb.traces.otlp_file import Span
from kgwb.version import __version__

MAX_NAME_CHARS = 60
MAX_DEPTH = 100
"""The number of spans below each other that are shown as such."""
MAX_QUESTION_CHARS = 1_000
"""A question longer than that is cut: it may be a whole document."""


def header_of_spans(spans: Sequence[Span], source: str) -> JsonObject:
    """Return the header of a run file for a trace.

    The question is in the first span's input, else the last message of a person to a model, else
    the first span's name; it is cut at MAX_QUESTION_CHARS. ``source`` is the name of the trace's
    file.
    """
    first = spans[0]
    question = question_text(input_of(first)) or _question_of_model_call(spans) or first.name
    models = dict.fromkeys(model_use_of(span).model for span in spans if kind_of(span) == "model")
    return {
        "kgwb_run": FORMAT_VERSION,
        "kgwb": __version__,
        "id": first.trace_id,
        "created": first.started_at,
        "system": f"{_agent_name(first)} (trace)",
        "question": shorten(single_line(question), MAX_QUESTION_CHARS),
        "dialogue": {"turns": []},
        "settings": {},
        "models": {"": ", ".join(models)},
        "embeddings": "",
        "graph": "",
        "source": source,
        "vocabulary": to_data(Vocabulary()),
        "prompts": {},
    }


def _question_of_model_call(spans: Sequence[Span]) -> str:
    """Return the last message of a person in the first model call that has one; else ""."""
    for span in spans:
        if kind_of(span) == "model":
            texts = [text for role, text in model_use_of(span).messages if role == "user"]
            if texts:
                return texts[-1]
    return ""


def entries_of_spans(spans: Sequence[Span]) -> list[JsonObject]:
    """Return a trace as entries of a run file: model calls and queries, then steps, then the end.

    A step comes before those below it; steps below the same one are in the order of their begin.
    """
    keys = step_keys(spans)
    calls = []
    steps = []
    counts: Counter[str] = Counter()
    for span, parent in walk(spans):
        step = _make_step(span, keys[span.span_id], keys.get(parent, ""))
        call = _make_call(span, step["key"], counts)
        if call is not None:
            step["calls"].append(call["key"])
            calls.append({"call": call})
        steps.append({"step": step})
    return [*calls, *steps, _make_end(spans)]


def walk(spans: Sequence[Span]) -> Iterator[tuple[Span, str]]:
    """Yield each span once, after its parent, with the parent's id; "" for one at the top.

    A span whose parent is not in the file is at the top, and one of a circle of parents. A span
    deeper than MAX_DEPTH gets a parent such that it is at that depth.
    """
    known = {span.span_id for span in spans}
    below: dict[str, list[Span]] = {}
    for span in spans:
        parent = span.parent_id if span.parent_id in known else ""
        below.setdefault(parent, []).append(span)
    seen: set[str] = set()
    tops = [*below.get("", ()), *spans]  # the second are for circles
    for top in tops:
        waiting = [(top, "", 1)]
        while waiting:
            span, parent, depth = waiting.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            yield span, parent
            parent_of_children = span.span_id if depth < MAX_DEPTH else parent
            for child in reversed(below.get(span.span_id, ())):
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
    cost = cost_of(span)
    if cost is not None:
        notes.append(f"cost in the trace: {cost:g}")
    output = output_of(span)
    agent_name, _, _ = key.partition("#")
    return {
        "key": key,
        "agent": agent_name,
        "kind": kind_of(span),
        "subject": "",
        "parent": parent,
        "inputs": _inputs(span),
        "output": output,
        "done": not span.error,
        "origin": "record",
        "calls": [],
        "live_calls": 0,
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
    if isinstance(data, dict) and data:
        return {str(name): value for name, value in data.items()}
    return {"input": data}


def _make_call(span: Span, step_key: str, counts: Counter[str]) -> JsonObject | None:
    """Return the call of a span, a model call or a query, as data of a run file; None for another.

    ``counts`` has how often each call was made so far, by its key, and is raised by one.
    """
    kind = kind_of(span)
    if kind == "model":
        kind_of_call = "model"
        request, reply = _model_call(span, step_key)
    elif kind == "sparql":
        kind_of_call = TRACED_QUERY
        request = {"query": query_of(span)}
        reply = output_of(span)
    else:
        return None
    first_key = call_key(kind_of_call, request, 0)
    repeat = counts[first_key]
    counts[first_key] += 1
    return {
        "key": call_key(kind_of_call, request, repeat),
        "kind": kind_of_call,
        "step": step_key,
        "request": request,
        "repeat": repeat,
        "reply": reply,
        "taken_at": span.started_at,
        "seconds": span.seconds,
    }


def _model_call(span: Span, step_key: str) -> tuple[JsonObject, JsonObject]:
    """Return the request and the reply of a model call, as a run file has them."""
    use = model_use_of(span)
    request = {
        "model": use.model,
        "task": step_key,
        "content": {
            "messages": use.messages,
            "schema": None,
            "temperature": use.temperature,
            "seed": use.seed,
            "max_output_tokens": use.max_tokens,
        },
    }
    reply = ChatReply(
        use.reply,
        model=use.model,
        prompt_tokens=use.prompt_tokens,
        completion_tokens=use.completion_tokens,
        seconds=span.seconds,
    )
    return request, to_data(reply)


def _make_end(spans: Sequence[Span]) -> JsonObject:
    """Return the "end" entry of a trace: "done" or "failed" by its first span, and the answer.

    The answer is a text in the first span's output, or says that there is none; None if the span
    failed.
    """
    first = spans[0]
    text = answer_text(output_of(first))
    answer: Any = None
    if not first.error:
        answer = {"kind": "list", "text": text or "the trace has no output"}
    return {
        "end": {
            "status": "failed" if first.error else "done",
            "position": len(spans),
            "answer": answer,
            "error": first.error,
            "totals": {"seconds": first.seconds},
        }
    }
