"""A build server learns what a benchmark or a retry found: by an exit code, JUnit XML, or JSON."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kgwb.bench.exports import Case, Suite, write_junit
from kgwb.bench.formats import save_questions
from kgwb.bench.questions import BenchQuestion
from kgwb.cli import main

DENIS = "https://kgwb.example/films/Denis_Villeneuve"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bench(here: Path) -> list[str]:
    """The command that measures three questions: one right, one lost, one without gold."""
    questions = [
        BenchQuestion(id="1", question="Who directed Arrival?", answers=(DENIS,)),
        BenchQuestion(id="2", question="Who directed Inception?", answers=(DENIS,)),
        BenchQuestion(id="3", question="Who directed\x0b Tenet?"),
    ]
    save_questions(questions, "q.jsonl")
    return ["bench", "--kg", "films", "--questions", "q.jsonl", "--out", "r", "--save-runs"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("f1<0.8", 4),
        ("f1 < 0.5", 0),
        ("lost>0", 4),
        ("errors>0", 0),
        ("right=1", 4),
        ("exact>=1", 0),
    ],
)
def test_a_benchmark_fails_if_a_figure_is_so(
    bench: list[str], condition: str, code: int, capsys: Capture
) -> None:
    assert main([*bench, "--fail-if", "questions>9", "--fail-if", condition]) == code
    assert ("--fail-if: r: " in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("condition", ["broken>0", "f1", "f1<x", "f1<-1"])
def test_a_wrong_condition_is_refused_before_anything_is_asked(
    bench: list[str], condition: str, here: Path
) -> None:
    assert main([*bench, "--fail-if", condition]) == 2
    assert not (here / "r").exists()


def test_a_set_without_gold_does_not_pass_a_check_of_f1(here: Path) -> None:
    save_questions([BenchQuestion(id="3", question="Who directed Tenet?")], "q.jsonl")
    command = ["bench", "--kg", "films", "--questions", "q.jsonl", "--out", "r"]
    assert main([*command, "--fail-if", "f1<0.1"]) == 4


def test_each_question_is_a_test_case_and_an_entry_of_json(bench: list[str]) -> None:
    files = ["--junit", "out/junit.xml", "--json", "out/results.json"]
    assert main([*bench, *files, "--fail-if", "f1<0.8"]) == 4
    root = ElementTree.parse("out/junit.xml").getroot()
    [suite] = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "2", "errors": "0", "skipped": "1"}
    children = [[child.tag for child in case] for case in suite]
    assert children == [[], ["failure"], ["skipped"], ["failure"]]
    [results] = json.loads(Path("out/results.json").read_text())["results"]
    assert results["figures"]["f1"] == 0.5
    assert results["fail_if"] == {"f1<0.8": True}
    assert [case["outcome"] for case in results["questions"]][:2] == ["right", "wrong"]


def test_a_test_case_keeps_the_lines_of_its_texts(tmp_path: Path) -> None:
    case = Case("1", "Who?", "failure", "wrong", "first <line>\nsecond\x07 line", 0.5)
    write_junit(tmp_path / "junit.xml", [Suite("s", {}, [case])])
    [[found]] = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [each.get("message") for each in found] == ["wrong: first <line>\nsecond\ufffd line"]


def test_a_retry_fails_if_something_broke(bench: list[str], capsys: Capture) -> None:
    assert main(bench) == 0
    retry = ["retry", "r", "--only", "all", "--set", "theta=5", "--junit", "junit.xml"]
    assert main([*retry, "--fail-if", "broken>0"]) == 0
    [suite] = ElementTree.parse("junit.xml").getroot()
    assert [[child.tag for child in case] for case in suite] == [[], ["skipped"], []]
    assert main([*retry, "--fail-if", "still_lost>0"]) == 4
    for condition, code in (
        ("f1<1", 4),
        ("f1<0.5", 0),
        ("exact<1", 2),
        ("worse>0", 0),
        ("better<1", 4),
        ("f1_low<-0.05", 0),
        ("f1_change<-1.5", 0),
        ("broken<-1", 2),
    ):
        assert main([*retry, "--fail-if", condition]) == code


def test_questions_chosen_by_their_results_pass_no_gate(bench: list[str]) -> None:
    assert main(bench) == 0
    retry = ["retry", "r", "--only", "lost", "--set", "theta=5"]
    assert main([*retry, "--fail-if", "broken>0"]) == 0
    for condition in ("worse>0", "better<1", "f1_low<-0.05"):
        assert main([*retry, "--fail-if", condition]) == 4


def test_what_is_amiss_with_prices_and_gold_is_said(here: Path, capsys: Capture) -> None:
    directed = "SELECT ?x WHERE { <https://kgwb.example/films/Arrival> <https://kgwb.example/films/director> ?x }"
    lines = []
    for id_, name in (("good", "Denis_Villeneuve"), ("contradicted", "Dune")):
        answers = [f"https://kgwb.example/films/{name}"]
        question = {"id": id_, "question": "Who directed Arrival?", "answers": answers}
        lines.append(json.dumps({**question, "sparql": directed}))
    half = {"id": "half", "question": "How much?", "answers": ["0.50"]}
    lines.append(json.dumps({**half, "sparql": "SELECT ?x WHERE { VALUES ?x { 0.5 } }"}))
    Path("q.jsonl").write_text("\n".join(lines))
    Path("prices.toml").write_text('currency = "USD"\n')
    command = "bench --kg films --questions q.jsonl --out r --prices prices.toml".split()
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "1 question gives other answers than the file has: contradicted" in said
    assert said.index("no price for 'rules'") < said.index("contradicted")
    assert main([*command[:-4], "--out", "each", "--each", "theta=1,2"]) == 0
    assert capsys.readouterr().err.count("contradicted") == 1
    assert main([*command, "--budget", "money=1"]) == 2
