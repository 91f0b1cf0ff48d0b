"""What is asserted of answers beside gold: whether it holds, in results, gates, JUnit and after a change."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import (
    DENIS,
    FILM,
    bench,
    change_rows,
    retries,
    retry,
    rows,
    write_questions,
)

from kgwb.bench.assertions import NOT_KNOWN, check_assertions, list_failed
from kgwb.bench.exports import make_results_suite
from kgwb.bench.figures import LoadedResults, make_assertions_table
from kgwb.bench.formats import load_questions, save_questions
from kgwb.bench.questions import BenchQuestion

Capture = pytest.CaptureFixture[str]
ASSERTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"contains": "fl:Denis_Villeneuve"}, []),
    ({"contains": [f"<{DENIS}>", DENIS]}, []),
    ({"contains": ["fl:Denis_Villeneuve", "fl:Dune"]}, ["contains"]),
    ({"contains": 7, "not_contains": [7, "fl:Dune"]}, ["contains"]),
    ({"contains": '"fl:Denis_Villeneuve"'}, ["contains"]),  # quotes make a literal of it
    ({"not_contains": "fl:Denis_Villeneuve"}, ["not_contains"]),
    ({"uses_predicate": "fl:director", "not_uses_predicate": ["rdf:type", f"{FILM}writer"]}, []),
    ({"uses_predicate": ["fl:director", "fl:writer"]}, ["uses_predicate"]),
    ({"not_uses_predicate": "fl:director"}, ["not_uses_predicate"]),
    ({"max_model_calls": 9, "max_tokens": 0, "max_seconds": 99, "max_cost": 0}, []),
    ({"max_model_calls": 0}, ["max_model_calls"]),
    ({"max_seconds": 0}, ["max_seconds"]),
    ({}, []),
]


def write(*asserted: object, name: str = "assert", **fields: object) -> None:
    """Write a file of the same question with each of these assertions."""
    questions = []
    for number, each in enumerate(asserted):
        questions.append({"id": f"q{number}", "answers": None, name: each, **fields})
    write_questions(*questions)


def test_each_assertion_is_checked_in_the_table_the_gate_and_junit(
    here: Path, capsys: Capture
) -> None:
    write(*(asserted for asserted, _ in ASSERTIONS), answers=[DENIS])
    assert bench("--junit", "j.xml", "--fail-if", "failed_assertions>8") == 0
    failed = [[check.name for check in check_assertions(row) if check.found] for row in rows()]
    assert failed == [names for _, names in ASSERTIONS]
    cases = ElementTree.parse("j.xml").iter("testcase")
    states = [case.find("failure") is not None for case in cases][: len(failed)]
    assert states == [bool(names) for _, names in ASSERTIONS]
    table = make_assertions_table([LoadedResults.read(Path("r"))])
    held = {name: str(rate).partition("\u00a0")[0] for name, rate in table.rows}
    assert held["questions"] == "4 of 12" and held["not_contains"] == "2 of 3"
    assert "q12" not in capsys.readouterr().out  # nothing is asserted of it
    assert bench("--fail-if", "failed_assertions>7") == 4
    write(ASSERTIONS[6][0], ASSERTIONS[8][0])  # the queries of DoG have predicates as values
    assert bench("--system", "dog", out="dog") == 0
    assert [bool(list_failed(row)) for row in rows("dog")] == [False, True]


@pytest.mark.parametrize(
    ("name", "asserted", "said"),
    [
        ("assert", {"contain": "x"}, "not_uses_predicate, max_model_calls"),
        ("assert", [{"type": "contains"}], "object"),
        ("assert", {"max_tokens": "10"}, "max_tokens"),
        ("assert", {"max_cost": -1}, "max_cost"),
        ("assert", {"contains": "fll:Dune"}, "fl, "),
        ("assert", {"not_contains": "fll:Dune"}, "'q0'"),
        ("assert", {"uses_predicate": "director"}, "uses_predicate"),
        ("assert", {"uses_predicate": '"fl:director"'}, "uses_predicate"),
        ("assert", {"max_cost": 1}, "'rules'"),
        ("asserts", {}, "'asserts'"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_any_call(
    name: str, asserted: object, said: str, here: Path, capsys: Capture
) -> None:
    write(asserted, name=name)
    Path("prices.toml").write_text('currency = "USD"\n')
    assert bench("--prices", "prices.toml") == 2
    assert said in capsys.readouterr().err
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
UNCOUNTED = {
    "openai:x": {"calls": 2, "uncounted_calls": 1, "prompt_tokens": 5, "completion_tokens": 6}
}


@pytest.mark.parametrize(
    ("asserted", "more", "found"),
    [
        ({"max_tokens": 11}, {}, ""),
        ({"max_tokens": 10}, {}, "11"),
        ({"max_tokens": 99}, {"models": UNCOUNTED}, NOT_KNOWN),
        ({"max_cost": 0.5}, {"money": 0.5}, ""),
        ({"max_cost": 0.5}, {"money": 0.75}, "0.75"),
        ({"max_cost": 9}, {}, NOT_KNOWN),
        ({"not_contains": ["x"]}, {"error": "no server"}, "no server"),
        ({"not_uses_predicate": ["http://e/p"]}, {"answer_queries": ["SELEC"]}, NOT_KNOWN),
        ({"uses_predicate": ["http://e/p"]}, {"support_predicates": ["http://e/p"]}, ""),
        (
            {"not_uses_predicate": ["http://e/p"]},
            {"answer_queries": ["ASK { ?s (<http://e/q>|^<http://E/p>)+ ?o }"]},
            "found",
        ),
    ],
)
def test_what_is_not_known_does_not_hold(
    asserted: Mapping[str, object], more: Mapping[str, object], found: str
) -> None:
    row = {**ROW, **USAGE, **more, "assertions": asserted}
    [check] = check_assertions(row)
    assert check.found == found
    suite = make_results_suite("r", [row])
    assert suite.figures["failed_assertions"] == bool(found)
    state = "error" if row["error"] else ("failure" if found else "passed")
    assert [case.state for case in suite.cases] == [state]


def test_any_format_may_have_assertions_and_own_files_keep_them(here: Path) -> None:
    entry = {"id": 1, "question": [{"language": "en", "string": "Who?"}], "assert": {"contains": 7}}
    Path("qald.json").write_text(json.dumps({"questions": [entry]}))
    questions = load_questions("qald.json")
    assert questions[0].assertions.contains == ("7",)
    save_questions(questions, "own.jsonl")
    assert load_questions("own.jsonl") == questions
    assert BenchQuestion(id="1", question="?", assertions={"max_tokens": 1}).assertions.max_tokens
