"""Replays recorded replies of a strong reader on a set of questions, and scores the answers.

    python benchmarks/recorded_questions.py GRAPH QUESTIONS RECORDING
    python benchmarks/recorded_questions.py keep RESULTS RECORDING   keep the replies in a results folder

    python benchmarks/recorded_questions.py DATA/harbour DATA/harbour/questions.jsonl \
        benchmarks/recordings/harbour.surveyor.jsonl.gz
    python benchmarks/recorded_questions.py benchmarks/clinic benchmarks/clinic/questions.jsonl \
        benchmarks/recordings/clinic.surveyor.jsonl.gz

The replies are of readers who had seen neither graph nor gold: what came in one go, without a second attempt.
A prompt that was edited since has no recorded reply: such a question is an error. Strict F1 compares all
values of all columns as one set, lenient F1 the best choice of the columns.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from replies import keep_replies, unpack_recording

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Results, load_questions
from kgwb.bench.metrics import score_answers


def lenient(row: dict[str, Any]) -> float:
    """F1 of the best choice among the columns of an answer."""
    columns = list(zip(*row.get("table", ()), strict=True))
    chosen = chain.from_iterable(combinations(columns, n) for n in range(1, len(columns) + 1))
    cells = ([cell for column in some for cell in column if cell is not None] for some in chosen)
    return max([row["f1"], *(score_answers(some, row["gold"]).f1 for some in cells)])


def replay(
    graph: str, questions: str, recording: str, system: str = "surveyor"
) -> list[dict[str, Any]]:
    """Ask a system the questions with the recorded replies, and return the row of each result."""
    with tempfile.TemporaryDirectory() as folder:
        replies = unpack_recording(Path(recording), Path(folder))
        workbench = kgwb.Workbench(kgwb.open_kg(graph), f"replay:{replies}", system=system)
        setup, asked = BenchSetup.from_workbench(workbench), load_questions(questions)
        return Benchmark(setup, Results(Path(folder) / "out", setup.to_config(asked))).run(asked)


def main(graph: str, questions: str, recording: str) -> None:
    """Print the figures by language, those that cannot be answered apart, and what was lost."""
    rows = replay(graph, questions, recording)
    parts = {"cannot be answered": [row for row in rows if not row["gold"]]}
    for row in (row for row in rows if row["gold"]):
        parts.setdefault(row.get("language", "all"), []).append(row)
    for name, some in parts.items():
        strict = statistics.mean(row["f1"] for row in some)
        best = statistics.mean(map(lenient, some))
        print(f"{name:20} {len(some):4} questions   strict F1 {strict:.3f}   lenient F1 {best:.3f}")
    calls = [row["model_calls"] for row in rows]
    tokens = statistics.median(row.get("prompt_tokens", 0) for row in rows)
    seconds = statistics.median(row["seconds"] for row in rows)
    print(f"model calls {statistics.median(calls):g} in the median, {max(calls)} at most;", end=" ")
    print(f"{tokens:g} prompt tokens and {1000 * seconds:.0f} ms of its own in the median")
    for row in rows:
        if row["f1"] < 1:
            print(f"lost: {row['id']} {row['question']} {row['error'] or ''}")


def keep(results: str, recording: str) -> None:
    """Keep the replies in a results folder as a recording."""
    said = "replies of a strong reader, recorded"
    count = keep_replies([Path(results)], Path(recording), "surveyor", said)
    print(f"{recording}: {count} replies")


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
