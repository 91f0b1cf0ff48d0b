"""What the rules found in a graph, kept for the next rule that asks for the same.

A question is read by several rules of one run: is its language read, which predicates does it ask
for, what is left out. Each would ask the graph the same again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from kgwb.kg.base import Graph

MAX_KEPT = 64
"""How many findings of one graph are kept: those of the questions that are asked at the same time."""
T = TypeVar("T")


class KeptByGraph(Generic[T]):
    """The last MAX_KEPT findings in each graph, by a key. Threads may share it.

    They are dropped with the graph. A graph with muted triples is another graph.
    """

    def __init__(self) -> None:
        self._findings: WeakKeyDictionary[Graph, dict[Hashable, T]] = WeakKeyDictionary()

    def get(self, kg: Graph, key: Hashable) -> T | None:
        """Return the finding that is kept for a key, or None."""
        return self._findings.get(kg, {}).get(key)

    def keep(self, kg: Graph, key: Hashable, finding: T) -> None:
        """Keep a finding, and drop the oldest if there are more than MAX_KEPT."""
        kept = dict(self._findings.get(kg, {}))
        kept[key] = finding
        while len(kept) > MAX_KEPT:
            oldest = next(iter(kept))
            del kept[oldest]
        self._findings[kg] = kept
