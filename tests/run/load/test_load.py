"""16 workers over one graph and one model server: no error, no run in another's record, memory flat."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import engines
import pytest
from under_load import Figures, Load, Recording, load, record

pytestmark = pytest.mark.timeout(900)  # it shares the machine
SAMPLES = engines.ROOT / "sample_kgs"
QUESTIONS, WORKERS = 2_000, 16
DISTINCT = 200
"""How many questions there are among these; each is asked several times."""
GROWTH = 0.25
"""Share by which memory may peak higher after the first quarter of the questions than in it.

Caches of bounded size go on filling, and the lines of the results are kept: about 0.1. Runs that were
kept, even in part, would make it 0.35 or more.
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """MetaQA where it is, else the films, every question of a sample asked alone."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KGWB_EMBEDDINGS", "lexical")
        patch.setenv("KGWB_CACHE", str(cache))
        graph, questions = engines.metaqa(), engines.metaqa("metaqa_dev.jsonl")
        if not questions.exists():
            graph, questions = SAMPLES / "films.ttl", SAMPLES / "films.questions.jsonl"
        lines = questions.read_text(encoding="utf-8").splitlines(keepends=True)
        sample = cache / "sample.jsonl"
        sample.write_text("".join(lines[:: -(-len(lines) // DISTINCT)]), encoding="utf-8")
        return record(str(graph), sample, cache)


@pytest.fixture(autouse=True)
def opened_before(offline: None, recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph is kept in the cache folder: building that would count as memory of the first questions."""
    monkeypatch.setenv("KGWB_CACHE", str(Path(recording.replies).parent))


def nothing_wrong(figures: Figures, given: Load, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{given.workers} workers: {figures}\n")
    assert figures.asked == given.questions
    assert (figures.errors, figures.different, figures.out_of_place) == ([], [], [])
    assert figures.left == []
    assert figures.at_once > 1, "nothing went side by side"


def test_two_thousand_questions(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = Load(recording, str(tmp_path / "out"), QUESTIONS, WORKERS)
    figures = load(given)
    nothing_wrong(figures, given, capsys)
    assert figures.growth_mb <= GROWTH * figures.first_quarter_mb
    assert (
        figures.connections <= 4 * WORKERS
    )  # settings.workers entities of each question at the same time


def test_with_runs_saved(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = Load(recording, str(tmp_path / "out"), 200, WORKERS, is_saved=True)
    nothing_wrong(load(given), given, capsys)


def test_over_an_endpoint(
    oxigraph: engines.Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = oxigraph.load(SAMPLES / "films.ttl")
    recording = record(url, SAMPLES / "films.questions.jsonl", tmp_path / "recording")
    given = Load(recording, str(tmp_path / "out"), 200, WORKERS)
    figures = load(given)
    nothing_wrong(figures, given, capsys)
    assert figures.most_files < 200, "connections pile up"


def test_what_is_wrong_is_noticed(recording: Recording, tmp_path: Path) -> None:
    """Another run than expected, and messages that nobody recorded."""
    replies = json.loads(Path(recording.replies).read_text(encoding="utf-8"))
    runs, failed = json.loads(Path(recording.runs).read_text(encoding="utf-8"))
    # Here and there one is missing: a benchmark stops if a server fails for many questions in a row.
    kept = {key: reply for place, (key, reply) in enumerate(replies.items()) if place % 4}
    (tmp_path / "replies.json").write_text(json.dumps(kept), encoding="utf-8")
    (tmp_path / "runs.json").write_text(
        json.dumps([dict.fromkeys(runs, "another"), failed]), encoding="utf-8"
    )
    changed = replace(
        recording, replies=str(tmp_path / "replies.json"), runs=str(tmp_path / "runs.json")
    )
    figures = load(Load(changed, str(tmp_path / "out"), 30, WORKERS))
    assert figures.errors
    assert len(figures.different) == figures.asked == 30
