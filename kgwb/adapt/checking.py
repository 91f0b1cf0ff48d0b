"""Whether a system can be repeated: it is asked twice, and what differs is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rdflib

from kgwb.adapt.graph_clients import RecordedRdflibGraph, has_read_wrapped_graph
from kgwb.errors import KgwbError
from kgwb.kg import GraphSource
from kgwb.kg.base import Graph
from kgwb.kg.sparql import is_serializable, n3
from kgwb.records import decision_of, one_line
from kgwb.run import Run, System
from kgwb.run.calls import QUERY_KINDS, SEARCH_KINDS
from kgwb.run.differences import find_difference
from kgwb.run.models import Models
from kgwb.run.steps import current_frame
from kgwb.terms import Triple
from kgwb.text import pluralize

GRAPH_KINDS = QUERY_KINDS | SEARCH_KINDS
"""Kinds of calls that ask a graph, besides those for display names."""


@dataclass(frozen=True)
class SystemCheck:
    """What was found when a system was asked the same question twice."""

    run: Run
    """The run, as it was the first time."""
    problems: tuple[str, ...]
    """What was not the same the second time, and what went past the run; empty if all is well."""

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        if not self.problems:
            steps = pluralize(len(self.run.steps), "step")
            return f"{self.run.system.name}: {steps}, the same twice; nothing went past the run"
        return "\n".join(self.problems)

    __repr__ = __str__


def check_system(
    system: System,
    question: str,
    *,
    kg: GraphSource | None = None,
    model: Models = "rules",
    **options: Any,
) -> SystemCheck:
    """Ask a system a question twice and then from a file; return what was not the same each time.

    The second time everything must come from the record of the first. Then the run is saved, and
    executed from its file without graph and model. Requests that the run did not record are
    problems as well. With ``kg`` it is a problem, too, if no query went through the run, or if an
    rdflib graph with triples of ``kg`` was read that is not wrapped; a graph that the pipeline
    reads from a file is not noticed. A pipeline with its own clients needs no ``kg``, but its
    answer then has no support.

    ``kg``, ``model`` and ``options`` are those of ``Run``. Raises the KgwbError that stops the run
    the first time.
    """
    first = Run(system, question, kg=kg, models=model, **options)
    with watch_plain_graphs() as plain_reads:
        first.go()
    problems = list(_requests_past(first))
    if kg is not None:
        problems += _unwrapped_graph(first, plain_reads)
    second = first.fork()
    try:
        second.go_explained()
    except KgwbError as error:
        problems.append(f"the second time it failed: {error.message}")
    problems += _differences(first, second)
    if not problems:
        problems += _file_problems(first)
    return SystemCheck(first, tuple(problems))


def _requests_past(run: Run) -> Iterator[str]:
    """Yield a problem for each host that a run sent requests to without recording them.

    It has the number of requests and the steps.
    """
    for host, number in run.past_calls.items():
        requests = pluralize(number, "request")
        steps = [step.key for step in run.steps if host in step.past_calls]
        places = ", ".join(steps) or "outside of all steps"
        yield (
            f"{requests} to {host} went past the run (in {places}): wrap the executor that starts "
            "threads, or send them by httpx, requests, urllib or aiohttp"
        )


def _unwrapped_graph(run: Run, plain_reads: PlainReads) -> Iterator[str]:
    """Yield a problem if a run used no graph, or read a graph of rdflib that is not wrapped.

    Reading an rdflib graph in memory makes no request, so nothing else shows it. A run used a graph
    if it recorded a query or read a wrapped graph. ``plain_reads`` are the triples that were read
    from others.
    """
    kinds = {call.kind for call in run.calls.values()}
    if not kinds & GRAPH_KINDS and not has_read_wrapped_graph(run):
        yield (
            "no query went through the run, so muting a triple changes nothing: wrap the graph that "
            "the pipeline asks (wrap_rdflib), or give no kg if it asks none"
        )
        return
    graph = run.kg.inner
    steps = plain_reads.steps_reading(graph) if graph is not None else []
    if steps:
        places = ", ".join(step or "outside of all steps" for step in steps)
        yield (
            f"an rdflib graph that is not wrapped was read (in {places}), so muting a triple changes "
            "nothing there: wrap that graph, too (wrap_rdflib)"
        )


def _differences(first: Run, second: Run) -> Iterator[str]:
    """Yield a problem for each difference of a second execution from the first.

    These are steps that only one of them reached, calls that the first did not make, and other
    decisions.
    """
    steps = second.steps_by_key
    for step in first.steps:
        again = steps.get(step.key)
        if again is None:
            yield f"{step.key} was not reached the second time"
            continue
        new_calls = [key for key in again.calls if key not in first.calls]
        if new_calls:
            call = second.calls[new_calls[0]]
            yield f"{step.key} asked something else the second time: {one_line(call.request)}"
        varying = step.varying
        if decision_of(again.output, varying) != decision_of(step.output, varying):
            place, now, before = find_difference(again.output, step.output, varying)
            at = f" at {place}" if place else ""
            yield f"{step.key} returned something else the second time{at}: {now}, before {before}"
    known = first.steps_by_key
    for key in steps:
        if key not in known:
            yield f"{key} was reached the second time only"


def _file_problems(run: Run) -> Iterator[str]:
    """Yield why a run cannot be saved, and executed from its file without graph and model.

    A failure of that execution is the only problem; otherwise it is each difference from the run.
    """
    with TemporaryDirectory() as folder:
        path = run.save(Path(folder) / "run.jsonl")
        try:
            loaded = Run.load(path, run.system)
            loaded.go_explained()
        except KgwbError as error:
            yield f"without graph and model it fails: {error.message}"
            return
        yield from _differences(run, loaded)


MAX_TRIPLES = 20
"""Triples that are remembered of one step. Whether they are those of a graph is asked for each."""


@dataclass
class PlainReads:
    """What the steps of executions read from graphs of rdflib that are not wrapped."""

    triples: dict[str, list[Triple]] = field(default_factory=dict)
    """The first triples that each step read, by its key, as far as they can stand in a query."""

    def steps_reading(self, graph: Graph) -> list[str]:
        """Return the keys of the steps that read a triple which this graph has, too.

        An ASK is sent to the graph for each triple, until one of the step is found.
        """
        steps = []
        for key, triples in self.triples.items():
            if any(_has_triple(graph, triple) for triple in triples):
                steps.append(key)
        return steps

    def add(self, triple: Triple) -> None:
        """Note a triple as read by the step that is being executed on this thread.

        Nothing is noted outside of an execution, for a triple with a term that no query can
        contain, and beyond MAX_TRIPLES triples of a step.
        """
        frame = current_frame.get(None)
        if frame is None or not all(map(is_serializable, triple)):
            return
        triples = self.triples.setdefault(frame.step.key, [])
        if len(triples) < MAX_TRIPLES:
            triples.append(triple)


@contextmanager
def watch_plain_graphs() -> Iterator[PlainReads]:
    """Note what executions read from plain graphs of rdflib while the code inside runs.

    rdflib's Graph and ConjunctiveGraph are patched meanwhile. A graph that is made by an execution
    itself, such as the result of a CONSTRUCT, does not count.
    """
    reads = PlainReads()
    own_graphs: dict[int, rdflib.Graph] = {}

    def watch_init(init: Callable[..., None]) -> Callable[..., None]:
        """Return a constructor that puts graphs made in executions into ``own_graphs``."""

        @wraps(init)
        def watched_init(graph: rdflib.Graph, *args: Any, **kwargs: Any) -> None:
            """Initialize the graph; remember it if an execution makes it."""
            if current_frame.get(None) is not None:
                own_graphs[id(graph)] = graph
            init(graph, *args, **kwargs)

        return watched_init

    def watch_triples(triples: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Return ``Graph.triples`` as it is, which also adds what it yields to ``reads``.

        Only triples of graphs that are neither wrapped nor kgwb's own are added.
        """

        @wraps(triples)
        def watched_triples(graph: rdflib.Graph, *args: Any, **kwargs: Any) -> Iterator[Any]:
            """Yield the triples of the graph; note those of a plain graph as read."""
            is_wrapped = isinstance(graph, RecordedRdflibGraph)
            is_plain = not is_wrapped and id(graph) not in own_graphs
            for triple in triples(graph, *args, **kwargs):
                if is_plain:
                    reads.add(triple)
                yield triple

        return watched_triples

    graph_class: Any = rdflib.Graph
    dataset_class: Any = rdflib.ConjunctiveGraph
    plain_init = graph_class.__init__
    plain_triples = graph_class.triples
    plain_dataset_triples = dataset_class.triples
    graph_class.__init__ = watch_init(plain_init)
    graph_class.triples = watch_triples(plain_triples)
    dataset_class.triples = watch_triples(plain_dataset_triples)
    try:
        yield reads
    finally:
        graph_class.__init__ = plain_init
        graph_class.triples = plain_triples
        dataset_class.triples = plain_dataset_triples


def _has_triple(graph: Graph, triple: Triple) -> bool:
    """Return whether a graph has a triple."""
    subject, predicate, value = map(n3, triple)
    return graph.ask(f"ASK {{ {subject} {predicate} {value} }}")
