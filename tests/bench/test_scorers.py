"""Recorded answers are scored by a function, a judging model and a person, and no question is asked again."""

from pathlib import Path
from typing import Any

import pytest
from commands import DENIS, FILM, bench, measure, once

from kgwb.bench import Report
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    make_judge,
    make_scores_table,
    open_scorer,
    read_labels,
    score_results,
)
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest

NOLAN = f"{FILM}Christopher_Nolan"
RESULTS = Path("r")
Capture = pytest.CaptureFixture[str]


LOST = {"question": "Who directed Inception?", "answers": ["nobody"]}
WITHOUT_GOLD = {"question": "Who directed Interstellar?", "answers": None}
measured = once(lambda: measure({}, LOST, WITHOUT_GOLD))
pytestmark = pytest.mark.usefixtures("measured")


def scores() -> dict[str, list[Any]]:
    rows = make_scores_table([LoadedResults.read(RESULTS)]).rows
    return {
        str(row[0]): [row[1], *(getattr(cell, "value", cell) for cell in row[2:])] for row in rows
    }


def test_a_function_scores_beside_exact_and_f1(capsys: Capture) -> None:
    Path("my.py").write_text(
        "def has_one(row):\n    return len(row['answers']) == 1, 'counted'\n", encoding="utf-8"
    )
    capsys.readouterr()
    assert main(["score", "r", "--scorer", "./my.py:has_one"]) == 0
    assert "./my.py:has_one" in capsys.readouterr().out
    assert scores() == {"./my.py:has_one": [3, 1.0, 0.5, 0.5]}
    assert "./my.py:has_one" in Report(RESULTS)._repr_html_()


def test_a_function_that_fails_is_said_with_its_question(capsys: Capture) -> None:
    for number, body in enumerate(("return 2", "return 'x'", "return 1 / 0", "return None")):
        Path(f"bad{number}.py").write_text(f"def score(row):\n    {body}\n", encoding="utf-8")
        assert main(["score", "r", "--scorer", f"./bad{number}.py:score"]) == 2
        assert "'1'" in capsys.readouterr().err
    for missing in ("./bad0.py:other", "./none.py:score", "score"):
        assert main(["score", "r", "--scorer", missing]) == 2


def test_a_judge_is_shown_as_such_and_asked_once_for_each_answer() -> None:
    def says(request: ChatRequest) -> dict[str, Any]:
        text = request.messages[1].content
        assert "Christopher Nolan" in text or "Denis" in text
        return {"reason": "the same man", "right": True}

    model = Scripted(says, name="wise")
    for _ in range(2):
        score_results(RESULTS, [make_judge(model)])
    assert model.call_count() == 2  # not without gold, and not twice
    assert scores() == {"judge:wise": [2, 1.0, 0.5, 0.5]}


def test_an_invalid_judgement_is_no_score() -> None:
    score_results(RESULTS, [make_judge(Scripted(lambda request: {"right": "maybe"}))])
    assert scores() == {}


def test_a_label_stays_with_the_question_set_and_counts_for_the_same_answer() -> None:
    label = ["--right", "2", "--questions", "q.jsonl", "--note", "the gold is old"]
    assert main(["score", "r", *label]) == 0
    assert scores() == {"labels:q.jsonl": [2, 1.0, 0.5, 0.5]}
    [kept] = read_labels(Path("q.jsonl"))
    assert (kept.answers, kept.right, kept.note) == ((NOLAN,), True, "the gold is old")
    assert bench(out="again") == 0
    assert main(["score", "again", "--scorer", "labels:q.jsonl"]) == 0
    assert main(["score", "r", "--wrong", "2", "--questions", "q.jsonl"]) == 0
    assert scores() == {"labels:q.jsonl": [2, 0.5, 0.5, 0.5]}
    assert main(["score", "r", "--right", "9", "--questions", "q.jsonl"]) == 2
    assert main(["score", "r", "--right", "2"]) == 2


def test_what_was_said_of_another_answer_does_not_count() -> None:
    score_results(RESULTS, [open_scorer("labels:q.jsonl")])
    text = (RESULTS / "scores.jsonl").read_text()
    (RESULTS / "scores.jsonl").write_text(text.replace(NOLAN, DENIS))
    assert scores() == {"labels:q.jsonl": [1, 1.0, 1.0, 1.0]}
    (RESULTS / "scores.jsonl").write_text("nonsense\n")
    with pytest.raises(InputError, match="holds no scores"):
        scores()
