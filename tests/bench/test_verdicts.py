"""Verdicts on a change: how sure a difference is, and how many questions it takes, with figures by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from kgwb.bench.comparisons import ResultsComparison, compare_with_each
from kgwb.bench.figures import LoadedResults
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import rescore_row
from kgwb.bench.statistics import (
    SIGNIFICANCE_LEVEL,
    PairedScores,
    SampleSize,
    holm_adjusted,
    permutation_interval,
    permutation_p_value,
)


def pairs_of(before: Any, changes: Any, right_weight: float = 1.0) -> PairedScores:
    """Questions with these scores and changes; each that is right stands for so many."""
    before = numpy.array(before)
    after = before + numpy.array(changes)
    weights = [numpy.where(scores == 1, right_weight, 1.0) for scores in (before, after)]
    return PairedScores(before[:, None], after[:, None], *weights)


def test_an_exchanged_question_stands_for_as_many_as_it_would_then() -> None:
    """One of two questions stands for 5 of its kind, and for itself if its scores are exchanged."""
    pairs = pairs_of([1.0, 1.0], [-0.5, 0.0], right_weight=5.0)
    before, after = (means.ravel() for means in pairs.permuted_means())
    is_exchanged = before < 1
    assert is_exchanged.mean() == pytest.approx(5 / 6, abs=0.02)  # w / (w + v)
    # (1 * 0.5 + 5 * 1) / 10 before, and (1 * 1 + 5 * 1) / 10 after
    assert before[is_exchanged] == pytest.approx(0.55)
    assert after[is_exchanged] == pytest.approx(0.6)
    # 1, and (5 * 0.5 + 5 * 1) / 10
    assert before[~is_exchanged] == pytest.approx(1)
    assert after[~is_exchanged] == pytest.approx(0.75)


# --- how many questions it takes


def size_with(improved: int, worsened: int, unchanged: int, by: float = 1.0) -> SampleSize:
    """What questions can show whose score changed by so much, and others that stayed the same."""
    changes = [by] * improved + [-by] * worsened + [0.0] * unchanged
    before = [float(change < 0) for change in changes]
    return pairs_of(before, changes).estimate_sample_size(0)


@pytest.mark.parametrize(
    ("changes", "needed", "smallest"),
    [
        # By hand, (1.96 sqrt(p) + 0.8416 sqrt(p - d * d)) ** 2 / (d * d), p = 0.15 and d = 0.05:
        # (0.7591 + 0.3232) ** 2 / 0.0025 = 468.6. A larger unit of the scores takes as many. With the
        # smallest difference in the place of d, it is the number of questions.
        ((10, 5, 85), 469, 0.107231),
        ((10, 5, 85, 0.5), 469, 0.053615),
        ((4, 3, 500), None, None),
        ((4, 4, 500), None, 0.015562),  # enough differ, and no difference has no number
        # 7.85 p / (d * d) is 86 times the questions with 11 that differ by one, and 102 times with 13.
        ((6, 5, 989), 86_336, 0.009281),
        ((7, 6, 987), None, 0.010089),
    ],
)
def test_the_number_of_questions_is_connors_if_enough_differ_and_not_too_many_are_needed(
    changes: tuple[Any, ...], needed: int | None, smallest: float | None
) -> None:
    size = size_with(*changes)
    assert (size.questions, size.differing) == (sum(changes[:3]), sum(changes[:2]))
    assert (size.needed, size.smallest_difference) == (needed, pytest.approx(smallest, abs=1e-6))


@pytest.mark.parametrize(
    ("extreme", "others", "observed", "p_value", "interval"),
    [
        (5, 0.5, 0.6, 0.05, (0.1, 1.0)),
        (6, 0.5, 0.6, 0.06, (-0.4, 1.0)),
        (0, 0.3, 0.1 + 0.2, 1.0, (0.0, 0.6)),  # sums of the same numbers in another order are equal
        (0, 0.3, -0.3, 1.0, (-0.6, 0.0)),
        (100, 0.0, -0.5, 1.0, (-1.0, 0.5)),
    ],
)
def test_an_interval_is_as_wide_as_what_chance_does(
    extreme: int, others: float, observed: float, p_value: float, interval: tuple[float, float]
) -> None:
    permuted = numpy.array([1.0] * extreme + [others] * (100 - extreme))
    assert permutation_p_value(permuted, observed) == p_value
    low, high = permutation_interval(permuted, observed)
    assert (low, high) == pytest.approx(interval)
    assert (low <= 0 <= high) == (p_value > SIGNIFICANCE_LEVEL)


def test_questions_that_stand_for_others_count_so_in_the_number_of_questions() -> None:
    """Of 50 lost ones 20 are cured, and of 50 right ones, which stand for 3 each, 4 are lost."""
    before, changes = [0.0] * 50 + [1.0] * 50, [1.0] * 20 + [0.0] * 30 + [-1.0] * 4 + [0.0] * 46
    # A mean weight of 2: d = (20 * 0.5 - 4 * 1.5) / 100, and the mean squares are
    # (20 * 0.25 + 4 * 2.25) / 100 = 0.14, without an effect (20 + 4) * 0.5 * 1.5 / 100 = 0.18:
    # (1.96 sqrt(0.18) + 0.8416 sqrt(0.14 - 0.04 ** 2)) ** 2 / 0.04 ** 2 = 818.9.
    assert pairs_of(before, changes, right_weight=3.0).estimate_sample_size(0).needed == 819


# --- several changes at once


def results_of(asks: Any, name: str = "") -> LoadedResults:
    """Results of questions that were right or wrong."""
    rows = {}
    for number, is_right in enumerate(asks):
        answers = ["gold"] if is_right else ["other"]
        question = BenchQuestion(id=f"{number}", question="?", answers=("gold",))
        row = {"id": question.id, "question": "?", "answers": answers, "error": None}
        rows[question.id] = rescore_row({**row, "seconds": 0.0}, question)
    return LoadedResults(name, Path(name), {}, rows, {})


def test_p_values_are_adjusted_for_all_that_stand_side_by_side() -> None:
    generator = numpy.random.default_rng(1)
    before = generator.random(60) < 0.5
    changed = []
    for cured in (10, 12, 2):
        after = before.copy()
        after[numpy.flatnonzero(~before)[:cured]] = True
        after[numpy.flatnonzero(before)[:2]] = False
        changed.append(results_of(after, f"{cured} cured"))
    first = results_of(before, "first")
    alone = [ResultsComparison(first, after).compare_scores("f1").p_value for after in changed]
    together = compare_with_each(first, changed)
    adjusted = [comparison.adjust_p_value("f1") for comparison in together]
    assert adjusted == [(p_value, 3) for p_value in holm_adjusted(alone)]
    assert alone[0] <= SIGNIFICANCE_LEVEL < adjusted[0][0]
    assert "may be chance" in together[0].describe_f1()
    assert f"{alone[0]:.3f}" in together[0].describe_f1()
    assert "more than chance" in ResultsComparison(first, changed[0]).describe_f1()
