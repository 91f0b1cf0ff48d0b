"""Questions a second with a model that takes 200 ms for a reply, by workers.

    python benchmarks/throughput.py [questions for each worker]

The runner asks (``kgwb.bench``); the model answers from memory what ``rules`` said, after sleeping, and is
waited for as a remote one is. Every worker count asks the same questions, each as often as there are workers.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from pipeline import Recorded, recorded
from table import Row, show

from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import Results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.kg import Graph
from kgwb.llm.base import ChatReply, ChatRequest
from kgwb.run.models import Replay

DELAY_S = 0.2
WORKERS = (1, 4, 16, 64)


class Slow(Replay):
    """Takes its time, as a model elsewhere does."""

    remote = True

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """The recorded reply, after DELAY_S."""
        time.sleep(DELAY_S)
        return super().complete(request, kg, cancel)


def throughput(given: Recorded) -> list[Row]:
    """Questions a second by workers, and how many times that of one worker."""
    model = Slow(given.replies, name="rules")
    setup = replace(BenchSetup.from_workbench(given.bench), models={"": model})
    rates = {workers: _rate(setup, given.questions, workers) for workers in WORKERS}
    what = f"throughput, {1000 * DELAY_S:.0f} ms model"
    return [
        Row(f"{what}: {workers} workers", rate, "questions/s", rate / rates[1], "1 worker",
            least=40 if workers == WORKERS[-1] else None)
        for workers, rate in rates.items()
    ]  # fmt: skip


def _rate(setup: BenchSetup, texts: list[str], workers: int) -> float:
    questions = [
        BenchQuestion(id=f"{place}/{time}", question=text)
        for time in range(workers)
        for place, text in enumerate(texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        bench = Benchmark(setup, Results(Path(folder), setup.to_config(questions)), workers=workers)
        started = time.perf_counter()
        rows = bench.run(questions)
        seconds = time.perf_counter() - started
    failed = [row for row in rows if row["error"] is not None]
    assert not failed, f"{len(failed)} questions failed, the first because {failed[0]['error']}"
    return len(rows) / seconds


def main() -> None:
    """Prints the table."""
    show(throughput(recorded(int(sys.argv[1]) if len(sys.argv) > 1 else 20)))


if __name__ == "__main__":
    main()
