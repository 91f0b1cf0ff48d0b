"""The recorded questions: what came of them by system, and how right their answers are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from kgwb.deprecated import RenamedAttribute, renamed_names
from kgwb.run import Run
from kgwb.run.steps import Totals
from kgwb.workbench import list_recordings, recording

LOST_FOLDER = "lost"
"""The folder of runs that lost their answers, which are no measure."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A recorded question with the labels of its answer, the gold labels, and what the run cost."""

    name: str
    question: str
    labels: frozenset[str]
    gold_labels: frozenset[str]
    totals: Totals

    @property
    def run(self) -> Run:
        """The run, opened afresh: what is edited in it changes no figure here."""
        return recording(self.name)

    @property
    def f1(self) -> float:
        """1 where both are empty."""
        whole = len(self.labels) + len(self.gold_labels)
        return 2 * len(self.labels & self.gold_labels) / whole if whole else 1.0

    gold = RenamedAttribute("gold", "gold_labels")


def recorded_systems() -> tuple[str, ...]:
    """The systems that were recorded."""
    return tuple(
        sorted(
            {name.split("/")[1] for name in list_recordings() if not name.startswith(LOST_FOLDER)}
        )
    )


@cache
def load_questions(graph: str) -> tuple[dict[str, Any], ...]:
    """The recorded questions over a graph with their gold labels, in the order of their numbers."""
    folder = next(iter(list_recordings().values())).parents[2]
    text = (folder / f"{graph}.questions.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


@cache
def answers_of_system(system: str) -> tuple[RecordedAnswer, ...]:
    """Every recorded question of a system; the first time, its runs are replayed."""
    rows = []
    for name in list_recordings():
        graph, owner, number = name.split("/")
        if graph != LOST_FOLDER and owner == system:
            row, run = load_questions(graph)[int(number) - 1], recording(name)
            labels = frozenset(run.answer.labels if run.answer else ())
            rows.append(
                RecordedAnswer(
                    name, row["question"], labels, frozenset(row["answer_labels"]), run.totals
                )
            )
    return tuple(rows)


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
