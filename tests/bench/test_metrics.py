"""What counts as right, question by question and on average, and how sure a figure is."""

from pathlib import Path
from typing import Any

import pytest
from tables import read_table

from kgwb.bench import compare_results, compute_retention
from kgwb.bench.metrics import (
    MEASURES,
    ZERO_SCORES,
    Estimate,
    group_questions,
    normalize_value,
    score_answers,
    score_columns,
)
from kgwb.bench.statistics import format_p_value
from kgwb.errors import InputError

A, B = "http://e.org/a", "http://e.org/b"
Rows = list[dict[str, Any]]

# --- one question

HERE = Path(__file__).parent


@pytest.mark.parametrize("row", read_table(HERE / "values.jsonl"), ids=str)
def test_values_are_the_same_whatever_their_spelling(row: dict[str, list[str]]) -> None:
    [(kind, texts)] = row.items()
    values = {normalize_value(text) for text in texts}
    assert len(values) == (1 if kind == "same" else len(texts))


@pytest.mark.parametrize("row", read_table(HERE / "scores.jsonl"), ids=str)
def test_the_scores_of_one_question(row: dict[str, Any]) -> None:
    table = row.get("table", ())
    scores = score_answers(row["answers"], row["gold"], table, row.get("labels", {}))
    found = {name: getattr(scores, name) for name in MEASURES}
    expected = dict.fromkeys(MEASURES, 0.0) | row["scores"]
    assert found == pytest.approx(expected, abs=1e-3)
    if "columns" in row:
        gold_table = [["412", "EUR"], ["97.5", "EUR"]]
        assert score_columns(("amount", "currency"), gold_table, table) == row["columns"]


def test_answers_from_own_knowledge_have_figures_apart() -> None:
    rows = [
        row(1, [A], [A], source="the graph"),
        row(2, [A], [A], source="own knowledge"),
        row(3, [A], [A], source="own knowledge"),
        row(4, [], [A], source="the graph"),
    ]
    hits = {group.name: group.mean_scores.hits1 for group in group_questions(rows)}
    assert hits == {
        "all": 0.75,
        "all, by the graph alone": 0.25,
        "source own knowledge": 1.0,
        "source the graph": 0.5,
    }


def row(number: int, answers: list[str], gold: list[str] | None, **given: Any) -> dict[str, Any]:
    return {"id": str(number), "answers": answers, "gold": gold, "error": None, **given}


# --- a set worked out by hand

WORKED = [
    row(1, [A], [A], type="factoid", language="en"),
    row(2, [], [A], type="factoid", language="en"),  # an abstention
    row(3, [], [], type="factoid", language="de"),  # rightly withheld: the gold is empty
    row(4, [A], [], type="factoid", language="de"),  # invented
    row(5, [B, A], [A], type="list", hops=2),
    row(6, [A], [A, B], type="list", hops=2),
    row(7, ["5.0"], ["5"], type="count"),
    row(8, ["2001-07-20"], ["2001-07-20T00:00:00Z"]),
    row(
        9, ["7", "7.0", "8"], ["8"], type="count"
    ),  # a tie: "7" and "7.0" are one value, 8 is second
    row(10, [A], [A], error="no reply"),  # an error is no abstention
    row(11, [A], None),  # no gold: in no average
]
#      1    2    3    4    5    6    7    8    9   10    sum, of 10 questions
# P    1    0    1    0   1/2   1    1    1   1/2   0     6
# R    1    0    1    0    1   1/2   1    1    1    0     6.5
# F1   1    0    1    0   2/3  2/3   1    1   2/3   0     6
# P'   1    1    1    0   1/2   1    1    1   1/2   0     7     (the paper's: an abstention counts 1)
# @1   1    0    1    0    0    1    1    1    0    0     5
# RR   1    0    1    0   1/2   1    1    1   1/2   0     6
# @5   1    0    1    0    1    1    1    1    1    0     7
# =    1    0    1    0    0    0    1    1    0    0     4


def test_the_figures_of_a_set_worked_out_by_hand() -> None:
    everything = group_questions(WORKED)[0]
    counts = (everything.name, len(everything.rows), everything.errors, everything.without_gold)
    assert counts == ("all", 11, 1, 1)
    means = [getattr(everything.mean_scores, name) for name in MEASURES[:8]]
    assert means == pytest.approx([0.6, 0.65, 0.6, 0.5, 0.6, 0.7, 0.4, 0.7])
    assert everything.mean_scores.paper_f1 == pytest.approx(0.91 / 1.35)  # no mean of F1s


def test_averages_by_hops_type_and_language_are_over_those_that_have_them() -> None:
    parts = {group.name: group for group in group_questions(WORKED)}
    kinds = ["type count", "type factoid", "type list"]
    languages = ["language de", "language en"]
    assert [*parts] == ["all", "answerable", "unanswerable", "hops 2", *kinds, *languages]
    assert (len(parts["unanswerable"].rows), parts["unanswerable"].mean_scores.exact) == (2, 0.5)
    assert [group.name for group in group_questions(WORKED[2:4])][:2] == ["all", "type factoid"]
    assert [group.name for group in group_questions(WORKED[1:3])][1:3] == [*parts][1:3]
    assert parts["type factoid"].mean_scores.f1 == pytest.approx(2 / 4)
    assert parts["type factoid"].mean_scores.paper_f1 == pytest.approx(0.75 / 1.25)  # P 3/4, R 2/4
    assert (len(parts["hops 2"].rows), parts["hops 2"].mean_scores.mrr) == (2, pytest.approx(0.75))


def test_right_questions_of_a_sample_stand_for_those_that_were_not_asked() -> None:
    # 10 lost and 10 of 50 right ones: 4 fixed, and 1 broken that stands for 5 of its kind.
    before = yes_and_no("0" * 10 + "1" * 10)
    after = yes_and_no("1" * 4 + "0" * 6 + "0" + "1" * 9)
    found = compare_results(before, after, right_weight=5.0)
    assert (found.first, found.second) == (pytest.approx(50 / 60), pytest.approx(49 / 60))
    assert found.p_value > 0.5
    found = compare_results(after, before, right_weight=5.0, drawn_by=before)
    assert (found.first, found.second) == (pytest.approx(49 / 60), pytest.approx(50 / 60))
    assert compare_results(before, after).difference == pytest.approx(3 / 20)
    in_part = [
        *before,
        row(99, [A, B], [A]),
    ]  # it was not drawn as a right one, and stands for itself
    found = compare_results(in_part, [*after, row(99, [A], [A])], right_weight=5.0)
    assert found.first == pytest.approx((50 + 2 / 3) / 61)


def test_every_measure_is_compared_and_a_small_p_value_is_not_shown_as_0() -> None:
    sides = yes_and_no("1" * 40), yes_and_no("0" * 40)
    found = compare_results(*sides)
    assert found.p_value == 0
    assert "p < 0.001" in repr(found)
    assert format_p_value(0.001) == "p 0.001"
    for measure in MEASURES:
        compared = compare_results(*sides, measure)
        assert compared.difference == -1
        # Paper F1 is no mean of questions, so that no number of them is estimated
        assert (compared.sample_size is None) == (measure == "paper_f1")
    size = compare_results(*sides, "exact").sample_size
    assert size is not None and (size.questions, size.differing) == (40, 40)


def test_without_questions_there_is_no_division_by_zero() -> None:
    for rows in ([], [row(1, [], None)]):
        everything = group_questions(rows)[0]
        assert (everything.mean_scores, everything.estimate("f1")) == (ZERO_SCORES, None)


# --- two result sets


def yes_and_no(pattern: str) -> Rows:
    """A row for each sign: right (1), wrong (0) or withheld (-)."""
    given = {"1": [A], "0": [B], "-": []}
    return [row(number, given[sign], [A]) for number, sign in enumerate(pattern)]


def test_retention_is_the_f1_that_dialogues_keep() -> None:
    # dialogue: P 3/4 (one withheld), R 2/4, F1 0.6; standalone: P = R = F1 = 3/4
    assert compute_retention(yes_and_no("11-0"), yes_and_no("1110")) == pytest.approx(80)
    assert compute_retention(yes_and_no("00"), yes_and_no("0-")) is None
    with pytest.raises(InputError, match="in one of the two results only"):
        compute_retention(yes_and_no("110"), yes_and_no("11"))


def test_a_comparison_names_what_changed_and_leaves_ties_out() -> None:
    found = compare_results(yes_and_no("110010"), [*yes_and_no("011110"), row(9, [], [A])], "f1")
    assert (found.questions, found.first, found.second) == pytest.approx((6, 3 / 6, 4 / 6))
    assert found.difference == pytest.approx(1 / 6)
    assert (found.improved_ids, found.worsened_ids) == (("2", "3"), ("0",))
    assert found.unpaired_ids == ("9",)


def figure(rows: Rows, measure: str = "f1") -> Estimate:
    figure = group_questions(rows)[0].estimate(measure)
    assert figure is not None
    return figure


def test_the_bootstrap_interval_is_that_of_theory_and_repeatable() -> None:
    half = figure(yes_and_no("10" * 100), "recall")
    # 200 questions, half right: 0.5 +- 1.96 * sqrt(0.25 / 200) = 0.5 +- 0.0693
    assert half == pytest.approx((0.5, 0.4307, 0.5693), abs=0.011)
    assert figure(yes_and_no("10" * 100), "recall") == half
    assert figure(yes_and_no("11"), "paper_f1") == (1, 1, 1)
    same = compare_results(yes_and_no("10-1"), yes_and_no("10-1"), "paper_f1")
    assert (same.confidence_interval, same.difference) == ((0, 0), 0)


@pytest.mark.parametrize(
    ("other", "measure", "complaint"),
    [
        (row(0, [], [A]), "bleu", "no measure 'bleu'"),
        (row(7, [], [A]), "f1", "no question with gold"),
        (row(0, [], None), "f1", "no question with gold"),
        (row(0, [A], [B]), "f1", "gold answers of 1 question differ .* those of 0"),
    ],
)
def test_what_cannot_be_compared(other: dict[str, Any], measure: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        compare_results(yes_and_no("1"), [other], measure)


def test_questions_are_grouped_by_length_and_by_the_predicates_of_their_gold_query() -> None:
    rows = [row(n, [A], [A], words=n, predicates=n) for n in (1, 2, 3, 5, 6, 10, 11)]
    words = {"words 1 to 5": 4, "words 6 to 10": 2, "words 11 or more": 1}
    predicates = {"predicates 1": 1, "predicates 2": 1, "predicates 3 or more": 5}
    sizes = {each.name: len(each.rows) for each in group_questions([row(0, [A], [A]), *rows])[1:]}
    assert sizes == words | predicates
    assert [group.name for group in group_questions(rows[4:])][1:] == [*words][1:]
