"""Answers are scored again, from what was recorded, if gold is corrected."""

from functools import partial
from pathlib import Path

import pytest
from commands import DENIS, FILM, bench, retries, retry, rows, write_questions

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Report, Results
from kgwb.bench.lab import RetryExperiment
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.kg.embeddings import Embeddings

DUNE = f"{FILM}Dune"
Capture = pytest.CaptureFixture[str]
save_runs = partial(bench, "--save-runs")


def write_gold(gold_of_first: str, file: str = "q.jsonl") -> None:
    write_questions({"answers": [gold_of_first]}, {"question": "Who directed Sicario?"}, file=file)


def f1_in(folder: Path | str) -> list[float]:
    return [row["f1"] for row in rows(folder)]


def test_a_corrected_gold_answer_changes_scores_and_asks_nothing(
    here: Path, capsys: Capture
) -> None:
    write_gold(DUNE)
    assert save_runs() == 0
    assert f1_in("r") == [0, 1]
    seconds = [row["seconds"] for row in rows()]
    write_gold(DENIS)
    assert save_runs() == 0
    config, scored = read_results("r")
    assert [(row["f1"], row["exact"], row["gold"]) for row in scored] == [(1, 1, [DENIS])] * 2
    assert [row["seconds"] for row in scored] == seconds  # those of its asking
    assert config["questions"]["count"] == 2
    assert "1 answer scored again" in capsys.readouterr().out
    assert save_runs() == 0
    assert "scored again" not in capsys.readouterr().out


def test_a_report_compares_all_folders_by_one_gold_and_by_that_of_a_file(here: Path) -> None:
    for folder, gold in (("a", DENIS), ("b", DUNE)):
        write_gold(gold)
        assert bench(out=folder) == 0
    report = Report("a", "b")
    assert [results.rows["1"]["f1"] for results in report.results] == [1, 1]
    assert report.comparisons[0].counts == {"still right": 2}
    assert main(["report", "a", "--out", "page.html", "--questions", "q.jsonl"]) == 0
    assert "0.500" in Path("page.html").read_text(encoding="utf-8")
    assert f1_in("a") == [1, 1]  # nothing is written


def test_a_retry_and_what_was_retried_before_follow_the_gold(here: Path) -> None:
    write_gold(DUNE)
    assert save_runs() == 0
    assert retry("--only", "all", "--set", "theta=4") == 0
    [again] = retries()
    assert f1_in(again) == [0, 1]
    write_gold(DENIS)
    assert save_runs() == 0
    assert RetryExperiment(Path("r")).earlier_results.rows["1"]["f1"] == 1
    assert retry("--only", "all", "--set", "theta=4") == 0
    assert f1_in(again) == [1, 1]


def test_linking_is_counted_again_in_the_saved_run(tmp_path: Path) -> None:
    workbench = kgwb.Workbench("films", embeddings=Embeddings("lexical"))
    setup = BenchSetup.from_workbench(workbench)
    query = f"SELECT ?x WHERE {{ <{FILM}Arrival> <{FILM}director> ?x }}"
    question = BenchQuestion(id="1", question="Who directed Arrival?", answers=("x",), sparql=query)
    results = Results(tmp_path, setup.to_config([question]))
    [first] = Benchmark(setup, results, save_runs=True).run([question])
    two_gold = f"SELECT ?x WHERE {{ <{FILM}Arrival> <{FILM}director> ?x . ?x <{FILM}p> ?y }}"
    corrected = question.model_copy(update={"answers": (DENIS,), "sparql": two_gold})
    [second] = Benchmark(setup, results, save_runs=True).run([corrected])
    assert first["linking"]["predicates"]["gold"] == 1
    assert second["linking"]["predicates"]["gold"] == 2 == second["predicates"]
    assert (first["f1"], second["f1"]) == (0, 1)
