"""Answers are rated by people and by models, in files that a person can fill in."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from commands import bench, change_rows, measure, once, write_questions
from tables import read_table

from kgwb.bench import Report
from kgwb.bench.figures import LoadedResults
from kgwb.bench.judgements import (
    make_agreement_table,
    make_ratings_table,
    rate_by_model,
    read_ratings,
    write_rating_form,
)
from kgwb.bench.statistics import compute_weighted_kappa
from kgwb.cli import main
from kgwb.errors import InputError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest

RESULTS = Path("r")
Capture = pytest.CaptureFixture[str]


FIRST = {"dialogue": "d", "turn": 1}
SECOND = {"question": "Who directed Inception?", "dialogue": "d", "turn": 2}
measured = once(lambda: measure(FIRST, SECOND, {"question": "Who directed Interstellar?"}))
pytestmark = pytest.mark.usefixtures("measured")


def fill_in(who: str, *grades: dict[str, int]) -> None:
    """Write the form of a person, and its grades of questions 3, 1 and 2, without a last line end.

    This is the order of the form: dialogues come last.
    """
    path = write_rating_form(LoadedResults.read(RESULTS), who)
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    filled = [line | given for line, given in zip(lines, grades, strict=True)]
    path.write_text("\n".join(map(json.dumps, filled)), encoding="utf-8")


@pytest.mark.parametrize(
    ("first", "second", "kappa"), read_table(Path(__file__).with_name("kappas.jsonl"))
)
def test_kappa_is_that_computed_by_hand(
    first: list[int], second: list[int], kappa: float | None
) -> None:
    computed = compute_weighted_kappa(list(zip(first, second, strict=True)))
    assert computed == (None if kappa is None else pytest.approx(kappa))


def test_people_and_a_model_rate_and_their_agreement_is_in_the_report(capsys: Capture) -> None:
    fill_in("ann", {"quality": 5, "fluency": 5}, {"quality": 4}, {"quality": 4, "coherence": 5})
    fill_in("bob", {"quality": 5}, {"quality": 3}, {"quality": 4, "coherence": 4})

    def rate(request: ChatRequest) -> dict[str, Any]:
        is_second = "Inception" in request.messages[1].content
        assert ("Before: Who directed Arrival?" in request.messages[1].content) is is_second
        return {"reason": "so", "quality": 4 if is_second else 5, "fluency": 5, "coherence": 3}

    results = LoadedResults.read(RESULTS)
    path = rate_by_model(results, Scripted(rate))
    lines = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    assert [line["coherence"] for line in lines] == [None, None, 3]
    assert [line["id"] for line in lines] == ["3", "1", "2"]
    assert lines[1]["answer"] == "Denis Villeneuve"
    ratings = read_ratings(results)
    table = make_ratings_table(ratings)
    assert [row[0] for row in table.rows] == ["quality", "fluency", "coherence"]
    assert table.rows[0][1:3] == ("4.33", "4.00")
    assert table.rows[2][-2:] == ("4.00", "1.00")  # of 5, 4 and 3
    [alone, *_] = make_ratings_table({"ann": ratings["ann"]}).rows
    assert alone[-2:] == ("4.33", "–")  # one rater does not deviate
    # Of quality, one of 3 pairs differs by 1; by chance it is 9 in 9 pairs: 1 - (1/3) / (9/9).
    people, mixed = make_agreement_table(ratings).rows
    assert people[:3] == ("people", 1, "0.67")
    assert mixed[:2] == ("people and models", 2)
    assert main(["rate", "r"]) == 0
    assert "people and models" in capsys.readouterr().out
    assert "people and models" in Report(RESULTS)._repr_html_()


def test_a_form_is_not_written_over_and_a_wrong_grade_is_named(capsys: Capture) -> None:
    assert main(["rate", "r"]) == 2  # no grades yet
    assert main(["rate", "r", "--who", "ann"]) == 0
    assert main(["rate", "r", "--who", "ann"]) == 2
    path = RESULTS / "ratings.ann.jsonl"
    assert '"quality": null' in path.read_text(encoding="utf-8")
    capsys.readouterr()
    path.unlink()
    fill_in("ann", {}, {"quality": 6}, {})
    with pytest.raises(InputError, match="line 2"):
        read_ratings(LoadedResults.read(RESULTS))


@pytest.mark.parametrize("name", ["Müller", "ann lee", "a+b", "José@uni", "judge%3aopenai"])
def test_grades_count_in_a_file_whose_name_a_person_wrote(name: str) -> None:
    fill_in("ann", {"quality": 5}, {}, {})
    (RESULTS / "ratings.ann.jsonl").rename(RESULTS / f"ratings.{name}.jsonl")
    ratings = read_ratings(LoadedResults.read(RESULTS))
    assert {rater: list(by_id) for rater, by_id in ratings.items()} == {unquote(name): ["3"]}


def test_grades_that_appear_while_a_model_rates_are_not_replaced() -> None:
    path = RESULTS / "ratings.judge%3Aother.jsonl"

    def rate(request: ChatRequest) -> dict[str, Any]:
        path.write_text("grades")
        return {"reason": "so", "quality": 4, "fluency": 5, "coherence": 3}

    with pytest.raises(InputError, match="no new file"):
        rate_by_model(LoadedResults.read(RESULTS), Scripted(rate, name="other"))
    assert path.read_text() == "grades"


def test_a_rating_of_another_answer_does_not_count() -> None:
    fill_in("ann", {}, {"quality": 5}, {"quality": 4})
    change_rows("r", lambda rows: rows[0].update(answers=["another"]))
    assert list(read_ratings(LoadedResults.read(RESULTS))["ann"]) == ["2"]


def test_what_counts_as_right_is_shown_where_a_person_judges() -> None:
    right = "Its director <alone>; not the writer."
    write_questions({"right": right})
    assert bench(out="judged") == 0
    results = LoadedResults.read(Path("judged"))
    [line] = write_rating_form(results, "ann").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["right"] == right
    page = Report(Path("judged")).save("judged.html").read_text(encoding="utf-8")
    assert "Its director &lt;alone&gt;; not the writer." in page
    write_questions({})
    assert bench(out="judged") == 0  # the same question: nothing is asked again
