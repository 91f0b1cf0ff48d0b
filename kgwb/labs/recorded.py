"""The recorded questions: what each system answered, how right that is, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from kgwb import disk
from kgwb.bench.metrics import score_answers
from kgwb.bench.questions import answer_to_strings
from kgwb.run import Run
from kgwb.run.steps import Totals
from kgwb.workbench import list_recordings, recording

LOST_FOLDER = "lost"
"""The folder of the runs for lab 1."""
PAPER_FOLDER = "paper"
"""The folder of the runs in profile ``paper``."""
UNMEASURED_FOLDERS = (LOST_FOLDER, PAPER_FOLDER)
"""The folders of runs that are no sample, so nothing is measured on them.

The lost ones were chosen because they fail, and those in profile ``paper`` because they show what a
paper is named for.
"""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A recorded question with its answer, the gold answer, and its cost."""

    name: str
    """The name of the recording, such as "films/dog/3"."""
    question: str
    labels: frozenset[str]
    gold_labels: frozenset[str]
    totals: Totals
    f1: float
    """F1 of the values, 0 to 1. It is 1 if there are no values and no gold values.

    Two things of one label are two values.
    """

    @property
    def run(self) -> Run:
        """The run, replayed anew. To edit it does not change the other fields."""
        return recording(self.name)


def recorded_systems() -> tuple[str, ...]:
    """Return the names of the systems with recordings outside UNMEASURED_FOLDERS, in alphabetical order."""
    systems = set()
    for name in list_recordings():
        folder, system, _ = name.split("/")
        if folder not in UNMEASURED_FOLDERS:
            systems.add(system)
    return tuple(sorted(systems))


@cache
def load_questions(graph: str) -> tuple[Mapping[str, Any], ...]:
    """Return the recorded questions over a sample graph with their gold, in the order of their numbers.

    Each is the JSON object of a line in GRAPH.questions.jsonl, with "question", "answers" and
    "answer_labels" among its keys. Raises FileNotFoundError for a graph without such a file.
    """
    recordings = iter(list_recordings().values())
    folder = next(recordings).parents[2]
    file = folder / f"{graph}.questions.jsonl"
    return tuple(question for _, question in disk.read_json_lines(file))


@cache
def answers_of_system(system: str) -> tuple[RecordedAnswer, ...]:
    """Replay the recordings of a system, and return the answer to each with gold, F1 and cost.

    Those in UNMEASURED_FOLDERS are left out. Empty for an unknown system. Replaying takes about a
    second for a system; the result is kept for later calls.
    """
    answers = []
    for name in list_recordings():
        graph, recorded_system, number = name.split("/")
        if graph in UNMEASURED_FOLDERS or recorded_system != system:
            continue
        run = recording(name)
        row = load_questions(graph)[int(number) - 1]
        scores = score_answers(answer_to_strings(run.answer), row["answers"])
        answer = RecordedAnswer(
            name,
            row["question"],
            frozenset(run.answer.labels if run.answer else ()),
            frozenset(row["answer_labels"]),
            run.totals,
            scores.f1,
        )
        answers.append(answer)
    return tuple(answers)


def lost_runs() -> list[Run]:
    """Return the recorded runs that lost their answer, which were made for lab 1, by number."""
    prefix = f"{LOST_FOLDER}/"
    return [recording(name) for name in sorted(list_recordings()) if name.startswith(prefix)]


def mean_f1(system: str) -> float:
    """Return the mean F1, 0 to 1, of the recorded questions of a system. Raises StatisticsError if it has none."""
    return fmean(answer.f1 for answer in answers_of_system(system))
