"""Traces of foreign programs, shown as runs that can only be read.

``otlp_file`` reads the spans of a file, ``conventions`` what a span is about under the names of
OpenInference or OpenTelemetry, ``entries`` makes the entries of a run file of them, and
``traced_queries`` executes their queries on a graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kgwb.errors import InputError
from kgwb.kg import GraphSource, open_kg
from kgwb.run import Run
from kgwb.run.recorded import run_of_entries
from kgwb.text import list_first, shorten
from kgwb.traces.entries import entries_of_spans, header_of_spans
from kgwb.traces.otlp_file import Span, read_spans
from kgwb.traces.traced_queries import add_queries

READ_ONLY = "it is the trace of another program"


def open_trace(path: str | Path, *, kg: GraphSource | None = None, trace: int | str = "") -> Run:
    """Return a trace in a file of OTLP JSON as a run that can only be read.

    The names of the spans may be OpenInference's or those of OpenTelemetry for generative AI. Each
    span is a step. The run shows itself in a notebook, and in ``kgwb.debug(run)``; a model call of
    it is asked again by ``run.ask_again(step, model)``. Secrets in texts are masked.

    With ``kg``, each SPARQL query of the trace is executed again on this graph, and the run's
    subgraph shows the triples that support its results. ``trace`` chooses one of several traces in
    the file, by its number from 1 on or by its id.

    Raises InputError if the file is not OTLP JSON, if there is no such trace, or if there are
    several and none is chosen, and what opening the graph raises.
    """
    spans = _choose_trace(Path(path), trace)
    graph = None
    if kg is not None:
        graph = open_kg(kg)
    header = header_of_spans(spans, Path(path).name)
    run = run_of_entries(header, entries_of_spans(spans), READ_ONLY, graph)
    run.read_only_hint = "ask a model call of it again: run.ask_again(step, model)"
    add_queries(run, spans, graph)
    return run


def _choose_trace(path: Path, trace: int | str) -> list[Span]:
    """Return the spans of one trace in a file, by number or id; "" means the only one.

    Raises InputError, which lists the traces, if there is no such trace, or several for "".
    """
    traces: dict[str, list[Span]] = {}
    for span in read_spans(path):
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
        problem, hint=f"choose one with trace=NUMBER: {_describe_traces(traces.values())}"
    )


def _describe_traces(traces: Iterable[list[Span]]) -> str:
    """Return the numbers of traces with the names of their first spans: "trace=1 (LangGraph)"."""
    texts = []
    for number, spans in enumerate(traces, 1):
        texts.append(f"trace={number} ({shorten(spans[0].name)})")
    return list_first(texts)
