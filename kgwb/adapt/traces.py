"""Traces of other programs, shown as runs that can only be read: each span is a step.

Their queries can be executed again on a graph.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rdflib import Literal

from kgwb.adapt.foreign_spans import (
    Span,
    answer_text,
    chat_reply_of,
    cost_of,
    input_of,
    kind_of,
    messages_of,
    model_of,
    output_of,
    queries_of,
    query_of,
    question_text,
    read_spans,
    request_content_of,
)
from kgwb.errors import GraphError, InputError
from kgwb.kg import GraphSource, open_kg
from kgwb.kg.base import Graph, ResultSet, Vocabulary
from kgwb.kg.queries import find_support_by_row
from kgwb.kg.sparql import validate_query
from kgwb.records import JsonObject, Record, Sparql, one_line
from kgwb.run import Run
from kgwb.run.answers import Answer, Dialogue, Value, with_display_names
from kgwb.run.calls import RESULT_TYPES, TRACED_QUERY, Call, call_key
from kgwb.run.run import read_only_run_of
from kgwb.run.run_file import End, Header, SavedRun
from kgwb.terms import Term, Triples
from kgwb.text import list_first, shorten, single_line

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
    run = read_only_run_of(saved_run_of(spans, Path(path).name), READ_ONLY, graph)
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
    raise InputError(
        problem,
        hint=f'choose one with trace=NUMBER, or all as one run with trace="all": '
        f"{_describe_traces(traces.values())}",
    )


def _with_trace_in_ids(span: Span) -> Span:
    """Return a span with ids that are its own among those of several traces."""
    parent = span.parent_id and f"{span.trace_id} {span.parent_id}"
    return replace(span, span_id=f"{span.trace_id} {span.span_id}", parent_id=parent)


def _describe_traces(traces: Iterable[list[Span]]) -> str:
    """Return the numbers of traces with the names of their first spans: "trace=1 (LangGraph)"."""
    texts = []
    for number, spans in enumerate(traces, 1):
        texts.append(f"trace={number} ({shorten(spans[0].name)})")
    return list_first(texts)


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
        step = _make_step(span, keys[span.span_id], keys.get(parent, ""))
        call = _make_call(span, step["key"], counts)
        if call is not None:
            step["calls"] = [call.key]
            saved.calls.append(call)
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
    if isinstance(data, dict) and data:
        return {str(name): value for name, value in data.items()}
    return {"input": data}


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
    telling = [span for span in tops if span.error or answer_text(output_of(span))]
    last = (telling or tops)[-1]
    text = answer_text(output_of(last)) or "the trace has no output"
    begin = min(span.start_ns for span in tops)
    end = max(span.end_ns for span in tops)
    totals = {"seconds": max(0, end - begin) / 1e9}
    if last.error:
        return End("failed", len(spans), None, last.error, totals)
    return End("done", len(spans), {"kind": "list", "text": text}, "", totals)


@dataclass(frozen=True, slots=True)
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
            result = one_line(_plain(step.output))
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


def _plain(output: Any) -> str:
    """Return the result of a query as text, or as JSON text."""
    if isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False)


def _execute(kg: Graph, sparql: str) -> Answer:
    """Execute a SELECT or ASK on a graph, and return the result as an answer with its support.

    Each row is a value: its first cell that is bound. Raises GraphError if the query is refused,
    rejected, too slow, or has another form.
    """
    if validate_query(sparql, "select", "ask").form == "ask":
        return _execute_ask(kg, sparql)
    result = kg.select(sparql)
    support = find_support_by_row(kg, sparql, result.variables, result.rows)
    values = []
    for row in result.rows:
        cells = [cell for cell in row if cell is not None]
        if cells:
            values.append(Value(cells[0], str(cells[0]), support.get(row, ()), row))
    return _with_labels(kg, _answer_of_rows(result, values, sparql))


def _answer_of_rows(result: ResultSet, values: Sequence[Value], sparql: str) -> Answer:
    """Return an answer of the kind "list" with these values; without any, the reason says so.

    It is a table with columns if the result has several variables.
    """
    columns: tuple[str, ...] = tuple(result.variables)
    if len(columns) == 1:
        values = [replace(value, row=()) for value in values]
        columns = ()
    reason = "" if values else "the query has no rows"
    return Answer("list", tuple(values), (sparql,), reason=reason, columns=columns)


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


def _execute_ask(kg: Graph, sparql: str) -> Answer:
    """Return the truth value of an ASK as an answer; if true, with one solution's triples."""
    is_true = kg.ask(sparql)
    support: Triples = ()
    if is_true:
        support = find_support_by_row(kg, sparql, (), ()).get((), ())
    label = str(is_true).lower()
    value = Value(Literal(is_true), label, support)
    return with_display_names(kg, Answer("boolean", (value,), (sparql,)))
