"""Answers are scored again, from what was recorded, if gold is corrected."""

import json
from pathlib import Path

import pytest

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results
from kgwb.bench.lab import RetryExperiment
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.kg.embeddings import Embeddings

FILMS = "https://kgwb.example/films/"
DENIS = f"{FILMS}Denis_Villeneuve"
Capture = pytest.CaptureFixture[str]
QUESTIONS = [
    {"id": "1", "question": "Who directed Arrival?", "answers": [f"{FILMS}Wrong"]},
    {"id": "2", "question": "Who directed Sicario?", "answers": [DENIS]},
]


def write_questions(path: Path, gold_of_first: str) -> Path:
    first = {**QUESTIONS[0], "answers": [gold_of_first]}
    lines = [json.dumps(each) for each in (first, QUESTIONS[1])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def bench(folder: Path, questions: Path, *more: str) -> None:
    arguments = ["bench", "--kg", "films", "--questions", str(questions), "--out", str(folder)]
    assert main([*arguments, *more]) == 0


def asked_at(folder: Path) -> dict[str, float]:
    return {row["id"]: row["seconds"] for row in read_results(folder)[1]}


def test_a_corrected_gold_answer_changes_scores_and_asks_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "out"
    bench(folder, write_questions(tmp_path / "q.jsonl", f"{FILMS}Wrong"), "--save-runs")
    assert [row["f1"] for row in read_results(folder)[1]] == [0, 1]
    before = asked_at(folder)
    capsys.readouterr()
    bench(folder, write_questions(tmp_path / "q.jsonl", DENIS), "--save-runs")
    config, rows = read_results(folder)
    assert [(row["f1"], row["exact"], row["gold"]) for row in rows] == [(1, 1, [DENIS])] * 2
    assert asked_at(folder) == before  # the seconds of an answer are those of its asking
    assert config["questions"]["count"] == 2
    assert "1 answer scored again" in capsys.readouterr().out
    bench(folder, tmp_path / "q.jsonl", "--save-runs")
    assert "scored again" not in capsys.readouterr().out


def test_a_report_compares_all_folders_by_one_gold_and_by_that_of_a_file(tmp_path: Path) -> None:
    wrong = write_questions(tmp_path / "wrong.jsonl", f"{FILMS}Wrong")
    right = write_questions(tmp_path / "right.jsonl", DENIS)
    bench(tmp_path / "a", right)
    bench(tmp_path / "b", wrong)
    report = Report(tmp_path / "a", tmp_path / "b")
    assert [results.rows["1"]["f1"] for results in report.results] == [1, 1]
    assert report.comparisons[0].counts == {"still right": 2}
    page = tmp_path / "page.html"
    arguments = ["report", str(tmp_path / "a"), "--out", str(page), "--questions", str(wrong)]
    assert main(arguments) == 0
    assert "0.500" in page.read_text(encoding="utf-8")
    assert [row["f1"] for row in read_results(tmp_path / "a")[1]] == [1, 1]  # nothing is written


def test_a_retry_and_what_was_retried_before_follow_the_gold(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    bench(folder, write_questions(tmp_path / "q.jsonl", f"{FILMS}Wrong"), "--save-runs")
    arguments = ["retry", str(folder), "--only", "all", "--set", "theta=4"]
    assert main(arguments) == 0
    [again] = (folder / "retries").glob("*/results.jsonl")
    assert [row["f1"] for row in read_results(again.parent)[1]] == [0, 1]
    bench(folder, write_questions(tmp_path / "q.jsonl", DENIS), "--save-runs")
    assert RetryExperiment(folder).earlier_results.rows["1"]["f1"] == 1
    assert main(arguments) == 0
    assert [row["f1"] for row in read_results(again.parent)[1]] == [1, 1]


def test_linking_is_counted_again_in_the_saved_run(tmp_path: Path) -> None:
    workbench = kgwb.Workbench("films", embeddings=Embeddings("lexical"))
    setup = BenchSetup.from_workbench(workbench)
    query = f"SELECT ?x WHERE {{ <{FILMS}Arrival> <{FILMS}director> ?x }}"
    question = BenchQuestion(id="1", question="Who directed Arrival?", answers=("x",), sparql=query)
    results = Results(tmp_path, setup.to_config([question]))
    [first] = Benchmark(setup, results, save_runs=True).run([question])
    two_gold = f"SELECT ?x WHERE {{ <{FILMS}Arrival> <{FILMS}director> ?x . ?x <{FILMS}p> ?y }}"
    corrected = question.model_copy(update={"answers": (DENIS,), "sparql": two_gold})
    [second] = Benchmark(setup, results, save_runs=True).run([corrected])
    assert first["linking"]["predicates"]["gold"] == 1
    assert second["linking"]["predicates"]["gold"] == 2 == second["predicates"]
    assert (first["f1"], second["f1"]) == (0, 1)
