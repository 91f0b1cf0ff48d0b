"""What is asserted of answers beside gold: whether it holds, in results, gates, JUnit and after a change."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import (
    DENIS,
    bench,
    change_rows,
    retries,
    retry,
    rows,
    write_questions,
)
from tables import read_table

from kgwb.bench.assertions import check_assertions, list_failed
from kgwb.bench.exports import make_results_suite
from kgwb.bench.figures import LoadedResults, make_assertions_table
from kgwb.bench.formats import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion

Capture = pytest.CaptureFixture[str]
HERE = Path(__file__).parent


def write(*asserted: object, name: str = "assert", **fields: object) -> None:
    """Write a file of the same question with each of these assertions."""
    questions = []
    for number, each in enumerate(asserted):
        questions.append({"id": f"q{number}", "answers": None, name: each, **fields})
    write_questions(*questions)


def test_each_assertion_is_checked_in_the_table_the_gate_and_junit(
    here: Path, capsys: Capture
) -> None:
    cases = read_table(HERE / "assertions.jsonl")
    write(*(case["asserted"] for case in cases), answers=[DENIS])
    assert bench("--junit", "j.xml", "--fail-if", "failed_assertions>8") == 0
    failed = [[check.name for check in check_assertions(row) if check.found] for row in rows()]
    assert failed == [case["failed"] for case in cases]
    elements = ElementTree.parse("j.xml").iter("testcase")
    states = [each.find("failure") is not None for each in elements][: len(failed)]
    assert states == [bool(names) for names in failed]
    table = make_assertions_table([LoadedResults.read(Path("r"))])
    held = {name: str(rate).partition("\u00a0")[0] for name, rate in table.rows}
    assert held["questions"] == "4 of 12" and held["not_contains"] == "2 of 3"
    assert "q12" not in capsys.readouterr().out  # nothing is asserted of it
    assert bench("--fail-if", "failed_assertions>7") == 4
    # The queries of DoG have predicates as values
    write(cases[6]["asserted"], cases[8]["asserted"])
    assert bench("--system", "dog", out="dog") == 0
    assert [bool(list_failed(row)) for row in rows("dog")] == [False, True]


@pytest.mark.parametrize("case", read_table(HERE / "wrong_assertions.jsonl"), ids=str)
def test_what_cannot_be_checked_is_refused_before_any_call(
    case: dict[str, Any], here: Path, capsys: Capture
) -> None:
    write(case["asserted"], name=case["name"])
    Path("prices.toml").write_text('currency = "USD"\n')
    assert bench("--prices", "prices.toml") == 2
    assert case["said"] in capsys.readouterr().err
    assert not Path("r").exists() or not rows()


def test_a_changed_assertion_counts_at_once_and_a_retry_says_what_holds(
    here: Path, capsys: Capture
) -> None:
    write({"contains": "fl:Dune"}, {"max_seconds": 0}, {"max_model_calls": 9}, answers=[DENIS])
    assert bench() == 0
    write({"contains": DENIS}, {"max_cost": 0}, {"max_model_calls": 0}, answers=[DENIS])
    capsys.readouterr()
    assert bench() == 0
    assert "0 model calls made" in capsys.readouterr().out
    assert [bool(list_failed(row)) for row in rows()] == [False, False, True]
    gate = ["--set", "theta=5", "--fail-if", "failed_assertions!=1", "--junit", "j.xml"]
    assert retry("--only", "failed", *gate) == 0
    assert ElementTree.parse("j.xml").find(".//failure") is None
    [folder] = retries()
    assert [row["id"] for row in rows(folder)] == ["q2"]
    # As if it had held before: the change is to blame
    change_rows("r", lambda rows: rows[2].update(model_calls=0))
    capsys.readouterr()
    assert retry("--only", "q2", *gate) == 0
    assert "1 → 0 of 1 question" in capsys.readouterr().out
    assert ElementTree.parse("j.xml").find(".//failure") is not None


def test_what_is_asserted_of_literals_is_checked_and_asked_again(here: Path) -> None:
    texts = ['"fll:Dune"', "<urn:x:y>", "<b>", 'say "hi"']
    write({"contains": 0}, {"contains": False}, {"not_contains": texts}, {"contains": texts})
    assert bench() == 0
    assert failed_in("r") == [1, 1, 0, 4]
    assert retry("--only", "all", "--set", "theta=5") == 0
    [folder] = retries()
    assert failed_in(folder) == [1, 1, 0, 4]
    literals = ["fll:Dune", "urn:x:y", "<b>", 'say "hi"', "0", "false"]
    assert [len(list_failed({**row, "answers": literals})) for row in rows()] == [0, 0, 4, 0]


def failed_in(folder: Path | str) -> list[int]:
    """How many assertions failed, for each row."""
    return [len(list_failed(row)) for row in rows(folder)]


ROW = {"id": "1", "question": "?", "answers": [], "gold": None, "error": None, "seconds": 1.0}
USAGE = {"model_calls": 2, "prompt_tokens": 5, "completion_tokens": 6, "answer_queries": []}


@pytest.mark.parametrize("case", read_table(HERE / "unknown_assertions.jsonl"), ids=str)
def test_what_is_not_known_does_not_hold(case: dict[str, Any]) -> None:
    row = {**ROW, **USAGE, **case["row"], "assertions": case["asserted"]}
    [check] = check_assertions(row)
    assert check.found == case["found"]
    suite = make_results_suite("r", [row])
    assert suite.figures["failed_assertions"] == bool(check.found)
    state = "error" if row["error"] else ("failure" if check.found else "passed")
    assert [each.state for each in suite.cases] == [state]


def test_any_format_may_have_assertions_and_own_files_keep_them(here: Path) -> None:
    entry = {"id": 1, "question": [{"language": "en", "string": "Who?"}], "assert": {"contains": 7}}
    Path("qald.json").write_text(json.dumps({"questions": [entry]}))
    questions = load_questions("qald.json")
    assert questions[0].assertions.contains == ("7",)
    save_questions(questions, "own.jsonl")
    assert load_questions("own.jsonl") == questions
    assert BenchQuestion(id="1", question="?", assertions={"max_tokens": 1}).assertions.max_tokens
