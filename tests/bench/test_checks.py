"""A build server learns what a benchmark or a retry found: by an exit code, JUnit XML, or JSON."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commands import FILM, bench, measure, once, retry, write_questions

from kgwb.bench.exports import Case, Suite, write_junit

Capture = pytest.CaptureFixture[str]


LOST = {"question": "Who directed Inception?"}
WITHOUT_GOLD = {"question": "Who directed\x0b Tenet?", "answers": None}
measured = once(lambda: measure({}, LOST, WITHOUT_GOLD, options=["--save-runs"]))


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
    measured: Path, condition: str, code: int, capsys: Capture
) -> None:
    assert bench("--fail-if", "questions>9", "--fail-if", condition) == code
    assert ("--fail-if: r: " in capsys.readouterr().err) == bool(code)


def test_a_set_without_gold_does_not_pass_a_check_of_f1(here: Path) -> None:
    write_questions({"answers": None})
    assert bench("--fail-if", "f1<0.1") == 4


def test_each_question_is_a_test_case_and_an_entry_of_json(measured: Path) -> None:
    files = ["--junit", "out/junit.xml", "--json", "out/results.json"]
    assert bench(*files, "--fail-if", "f1<0.8") == 4
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


def test_a_retry_fails_if_something_broke(measured: Path) -> None:
    again = ["--only", "all", "--set", "theta=5", "--junit", "junit.xml", "--fail-if"]
    assert retry(*again, "broken>0") == 0
    [suite] = ElementTree.parse("junit.xml").getroot()
    assert [[child.tag for child in case] for case in suite] == [[], ["skipped"], []]
    for condition, code in (
        ("still_lost>0", 4),
        ("f1<1", 4),
        ("f1<0.5", 0),
        ("exact<1", 2),
        ("worse>0", 0),
        ("better<1", 4),
        ("f1_low<-0.05", 0),
        ("f1_change<-1.5", 0),
        ("broken<-1", 2),
    ):
        assert retry(*again, condition) == code


def test_questions_chosen_by_their_results_pass_no_gate(measured: Path) -> None:
    again = ["--only", "lost", "--set", "theta=5", "--fail-if"]
    for condition, code in (("broken>0", 0), ("worse>0", 4), ("better<1", 4), ("f1_low<-0.05", 4)):
        assert retry(*again, condition) == code


def test_what_is_amiss_with_prices_and_gold_is_said(here: Path, capsys: Capture) -> None:
    directed = f"SELECT ?x WHERE {{ <{FILM}Arrival> <{FILM}director> ?x }}"
    half = {"answers": ["0.50"], "sparql": "SELECT ?x WHERE { VALUES ?x { 0.5 } }"}
    contradicted = {"id": "contradicted", "answers": [f"{FILM}Dune"], "sparql": directed}
    write_questions({"sparql": directed}, contradicted, half)
    Path("prices.toml").write_text('currency = "USD"\n')
    prices = ["--prices", "prices.toml"]
    assert bench(*prices) == 0
    said = capsys.readouterr().err
    assert "1 question gives other answers than the file has: contradicted" in said
    assert said.index("no price for 'rules'") < said.index("contradicted")
    assert bench("--each", "theta=1,2", out="each") == 0
    assert capsys.readouterr().err.count("contradicted") == 1
    assert bench(*prices, "--budget", "money=1") == 2
