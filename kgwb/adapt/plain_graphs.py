"""Graphs of rdflib that a run reads without a wrapper: what they hold is not recorded or muted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import rdflib

from kgwb.adapt.rdflib_graph import RecordedRdflibGraph
from kgwb.kg.base import Graph
from kgwb.kg.sparql import is_serializable, n3
from kgwb.run.steps import current_frame
from kgwb.terms import Triple

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
