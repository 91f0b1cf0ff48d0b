"""Many questions at once: questions a second, and peak memory.

    python benchmarks/load.py [questions]

2,000 questions by 16 workers, then fewer by 1, 4 and 16, with a model server that takes no time and one that
takes 50 ms for a reply; and by 1 and 64 with one that takes 200 ms. It answers on loopback, in a process of
its own, what ``rules`` said when each question was asked alone. Embeddings are lexical, so that the memory is
kgwb's and not torch's. Without MetaQA (../shared/data or KGWB_DATA) the films sample serves.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from graphs import metaqa
from table import Row, show
from under_load import Load, Recording, load, record

HERE = Path(__file__).resolve().parent
WORKERS = (1, 4, 16)
FEWER = 240
DELAYS_S = (0.0, 0.05)
SLOW_S, AT_ONCE, EACH = 0.2, 64, 20
"""A slow model, the workers that ask it, and the questions of each."""


def many_at_once(most: int = 2_000) -> list[Row]:
    """Rates and peak memory. Raises AssertionError if a run is not as it was alone."""
    graph = metaqa()
    questions = graph.with_name("metaqa_dev.jsonl")
    if not graph.exists():
        graph = HERE.parent / "sample_kgs" / "films.ttl"
        questions = graph.with_name("films.questions.jsonl")
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, KGWB_EMBEDDINGS="lexical"):
        recording = record(str(graph), questions, Path(folder) / "recording")
        figures = load(Load(recording, f"{folder}/all", most, WORKERS[-1]))
        assert not figures.errors and not figures.different, figures
        what = f"HTTP model, {figures.asked:,} questions by {WORKERS[-1]} workers"
        rows = [
            Row(f"{what}: rate", figures.rate, "questions/s"),
            Row(f"{what}: peak memory later", figures.later_mb, "MB",
                figures.later_mb / figures.first_quarter_mb, "that of the first quarter"),
        ]  # fmt: skip
        fewer = [(workers, FEWER) for workers in WORKERS]
        for delay_s in DELAYS_S:
            rows += _rates(recording, folder, delay_s, fewer)
        return rows + _rates(recording, folder, SLOW_S, [(n, n * EACH) for n in (1, AT_ONCE)])


def _rates(
    recording: Recording, folder: str, delay_s: float, asked: list[tuple[int, int]]
) -> list[Row]:
    alone = None
    rows = []
    for workers, questions in asked:
        out = f"{folder}/{workers} {delay_s}"
        rate = load(Load(recording, out, questions, workers, delay_s=delay_s, compare=False)).rate
        alone = alone or rate
        what = f"HTTP model of {1000 * delay_s:.0f} ms: {workers} workers"
        rows.append(Row(what, rate, "questions/s", rate / alone, "1 worker"))
    return rows


def main() -> None:
    """Prints the figures."""
    show(many_at_once(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000))


if __name__ == "__main__":
    main()
