"""Questions a second, and CPU time a question, with a model that takes 200 ms for a reply, by workers.

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
    measured = {workers: _measure(setup, given.questions, workers) for workers in WORKERS}
    one_rate, _ = measured[1]
    what = f"throughput, {1000 * DELAY_S:.0f} ms model"
    rows = []
    for workers, (rate, cpu_s) in measured.items():
        least = 50 if workers == WORKERS[-1] else None
        case = f"{what}: {workers} workers"
        rows.append(Row(case, rate, "questions/s", rate / one_rate, "1 worker", least=least))
        rows.append(Row(f"{case}, CPU a question", 1000 * cpu_s, "ms"))
    return rows


def _measure(setup: BenchSetup, texts: list[str], workers: int) -> tuple[float, float]:
    """Return the questions a second, and the CPU seconds of a question."""
    questions = [
        BenchQuestion(id=f"{place}/{time}", question=text)
        for time in range(workers)
        for place, text in enumerate(texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        bench = Benchmark(setup, Results(Path(folder), setup.to_config(questions)), workers=workers)
        started, cpu_started = time.perf_counter(), time.process_time()
        rows = bench.run(questions)
        seconds = time.perf_counter() - started
        cpu_s = time.process_time() - cpu_started
    failed = [row for row in rows if row["error"] is not None]
    assert not failed, f"{len(failed)} questions failed, the first because {failed[0]['error']}"
    return len(rows) / seconds, cpu_s / len(rows)


def main() -> None:
    """Prints the table."""
    show(throughput(recorded(int(sys.argv[1]) if len(sys.argv) > 1 else 20)))


if __name__ == "__main__":
    main()
