"""Replies of readers who had seen neither graph nor gold, over two graphs: each prompt is still the same."""

from __future__ import annotations

import statistics
from pathlib import Path

import engines
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
RECORDINGS = BENCHMARKS / "recordings"
pytestmark = pytest.mark.long
WITH_ANOTHER_COLUMN = {"clinic": [], "harbour": ["H015"]}
"""Questions whose answer has a column more than gold: the person beside each mail address."""


@pytest.mark.parametrize("name", WITH_ANOTHER_COLUMN)
def test_the_replies_of_a_reader_are_replayed_and_right(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KGWB_EMBEDDINGS", raising=False)
    monkeypatch.syspath_prepend(BENCHMARKS)
    from recorded_questions import lenient, replay

    graph = BENCHMARKS / "clinic"
    if name == "harbour":
        graph = engines.harbour()
    recording = RECORDINGS / f"{name}.surveyor.jsonl.gz"
    rows = replay(str(graph), str(graph / "questions.jsonl"), str(recording))
    assert [row["id"] for row in rows if row["error"]] == []
    assert [row["id"] for row in rows if row["f1"] < 1] == WITH_ANOTHER_COLUMN[name]
    assert [row["id"] for row in rows if lenient(row) < 1] == []
    assert statistics.median(row["model_calls"] for row in rows) == 2
