"""A benchmark also asks the readings that an answer offers, and reports the best of them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import surveying
from small import EX, workbench

from kgwb.bench.figures import LoadedResults, make_readings_table
from kgwb.bench.metrics import score_best_reading
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.report import Report
from kgwb.bench.results import BenchRow, Results, read_results
from kgwb.bench.runner import Benchmark, BenchSetup
from kgwb.llm import Scripted

ASSUMED = {"taken": "films that he directed", "others": ["films that Lynch directed"]}
NAMES = ["Arrival", "Dune", "Sicario"]
OTHER = surveying.draft("SELECT DISTINCT ?film WHERE { ?film org:director org:lynch }")
QUESTION = BenchQuestion(
    id="1", question=surveying.QUESTION, answers=(f"{EX}lynchs_dune",), language="en"
)


def measured(folder: Path, *, asks_readings: bool) -> list[BenchRow]:
    """The rows of a question whose gold is the answer of its other reading."""
    drafts: list[Any] = [surveying.draft(assumptions=[ASSUMED]), OTHER]
    model = Scripted(
        {
            "surveyor/mention_finder": surveying.mention("Denis Villeneuve"),
            "surveyor/drafter": drafts,
            "surveyor/reviewer": surveying.FINE,
        }
    )
    bench = workbench(model, system="surveyor")
    setup = BenchSetup.from_workbench(bench)
    results = Results(folder, setup.to_config([QUESTION]))
    return Benchmark(setup, results, asks_readings=asks_readings).run([QUESTION])


def test_the_best_reading_is_no_score_of_the_answer(tmp_path: Path) -> None:
    [row] = measured(tmp_path, asks_readings=True)
    assert (row["f1"], row["lenient"]) == (0, 0)
    first, names = row["readings"]
    assert ([first["other"]], sorted(names["answers"])) == (ASSUMED["others"], NAMES)
    assert row["readings"][0]["answers"] == [f"{EX}lynchs_dune"]
    assert score_best_reading(row, "f1") == score_best_reading(row, "lenient") == 1
    assert (row["model_calls"], row["paid"]["model_calls"]) == (2, 4)
    _, kept = read_results(tmp_path)
    assert kept == [row]
    table = make_readings_table([LoadedResults.read(tmp_path)])
    assert table.rows[0] == ("all", 1, 1, 2, "0.000", "0.000", "1.000", "1.000")
    page = Report(tmp_path).save(tmp_path / "report.html").read_text()
    assert "strict F1, best reading" in page


def test_readings_are_only_asked_if_it_is_wanted(tmp_path: Path) -> None:
    [row] = measured(tmp_path, asks_readings=False)
    assert "readings" not in row
    assert score_best_reading(row, "f1") is None
    assert make_readings_table([LoadedResults.read(tmp_path)]).rows == []
    assert "best reading" not in Report(tmp_path).save(tmp_path / "report.html").read_text()


def test_a_reading_that_fails_does_not_count() -> None:
    failed = {"other": "so", "answers": [], "error": "it failed"}
    row: BenchRow = {"id": "1", "answers": ["x"], "gold": [], "error": None, "readings": [failed]}
    assert score_best_reading(row, "f1") == 0
