"""The recorded questions: their runs by system, and how right their answers are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kgwb.run import Run
from kgwb.workbench import recording, recordings

LOST = "lost"
"""The folder of runs that lost their answers, which are no measure."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded question: its name, the run, and the gold labels."""

    name: str
    question: str
    run: Run
    gold: frozenset[str]

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(self.run.answer.labels if self.run.answer else ())

    @property
    def f1(self) -> float:
        """1 where both are empty."""
        whole = len(self.labels) + len(self.gold)
        return 2 * len(self.labels & self.gold) / whole if whole else 1.0


def systems() -> tuple[str, ...]:
    """The systems that were recorded."""
    return tuple(sorted({name.split("/")[1] for name in recordings() if not name.startswith(LOST)}))


@cache
def questions(graph: str) -> tuple[dict[str, Any], ...]:
    """The recorded questions over a graph with their gold labels, in the order of their numbers."""
    folder = next(iter(recordings().values())).parents[2]
    text = (folder / f"{graph}.questions.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def of_system(system: str) -> Iterator[Recorded]:
    """Every recorded question of a system."""
    for name in recordings():
        graph, owner, number = name.split("/")
        if graph != LOST and owner == system:
            row = questions(graph)[int(number) - 1]
            yield Recorded(name, row["question"], recording(name), frozenset(row["answer_labels"]))
