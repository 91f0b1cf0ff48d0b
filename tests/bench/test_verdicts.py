"""How often a verdict on a change is false, and how often a true effect is found, in simulated trials.

A question is answered anew each time it is asked. A share of the questions is unsteady: each ask is right with a
chance of a half, so that with a share of 2f one ask in f comes out otherwise than the one before. The others are
right or wrong each time.
"""

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
    POWER,
    SIGNIFICANCE_LEVEL,
    PairedScores,
    SampleSize,
    holm_adjusted,
    permutation_interval,
    permutation_p_value,
    wilson_interval,
)

TRIALS = 2000
POWER_TRIALS = 700
"""Trials that tell a power of 0.8 from one of 0.72 by four standard errors and more."""
RIGHT_SHARE = 0.75
"""How many of the steady questions are right."""
Asks = numpy.ndarray[tuple[int], numpy.dtype[numpy.bool_]]


class Questions:
    """Simulated questions, some of them unsteady; ``effect`` of them are right only after a change."""

    def __init__(
        self, count: int, flips: float, generator: numpy.random.Generator, effect: float = 0.0
    ) -> None:
        self.generator = generator
        self.is_unsteady = generator.random(count) < 2 * flips
        self.is_right = generator.random(count) < RIGHT_SHARE
        lost = numpy.flatnonzero(~self.is_right & ~self.is_unsteady)
        self.is_cured = numpy.zeros(count, bool)
        self.is_cured[lost[: round(effect * count)]] = True

    def ask(self, *, is_changed: bool = False) -> Asks:
        """Whether each question comes out right this time."""
        by_chance = self.generator.random(len(self.is_right)) < 0.5
        steady = self.is_right | self.is_cured if is_changed else self.is_right
        return numpy.where(self.is_unsteady, by_chance, steady)


def asked_pairs(questions: Questions, *, all_asked: bool) -> PairedScores | None:
    """The scores of all questions, or of the lost and as many right ones, with their weights; None if none are lost."""
    before, after = questions.ask(), questions.ask(is_changed=True)
    chosen = numpy.arange(len(before))
    right_weight = 1.0
    if not all_asked:
        lost, right = numpy.flatnonzero(~before), numpy.flatnonzero(before)
        count = min(len(lost), len(right))
        if not count:
            return None
        chosen = numpy.concatenate([lost, right[numpy.arange(count) * len(right) // count]])
        right_weight = len(right) / count
    return PairedScores(
        before[chosen, None].astype(float),
        after[chosen, None].astype(float),
        numpy.where(before[chosen], right_weight, 1.0),
        numpy.where(after[chosen], right_weight, 1.0),
    )


def share(
    count: int, flips: float, effect: float, *, all_asked: bool, trials: int = TRIALS
) -> float:
    """The share of trials whose verdict is "more than chance"."""
    generator = numpy.random.default_rng(0)
    found = 0
    for _ in range(trials):
        questions = Questions(count, flips, generator, effect)
        pairs = asked_pairs(questions, all_asked=all_asked)
        if pairs is not None:
            [before], [after] = pairs.means()
            permuted_before, permuted_after = pairs.permuted_means()
            permuted = (permuted_after - permuted_before).ravel()
            found += permutation_p_value(permuted, float(after - before)) <= SIGNIFICANCE_LEVEL
    return found / trials


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "flips", "effect", "all_asked"),
    [
        (50, 0.3, 0.0, False),
        (50, 0.3, 0.0, True),
        (200, 0.1, 0.0, False),
        (200, 0.1, 0.1, False),
        (200, 0.15, 0.1, True),
    ],
)
def test_a_change_without_an_effect_is_seldom_more_than_chance_and_one_of_ten_points_is(
    count: int, flips: float, effect: float, all_asked: bool
) -> None:
    found = share(count, flips, effect, all_asked=all_asked)
    _, high = wilson_interval(round(found * TRIALS), TRIALS)
    assert found >= 0.8 if effect else high <= 0.06


# --- how many questions it takes


def size_with(improved: int, worsened: int, unchanged: int, by: float = 1.0) -> SampleSize:
    """What questions can show whose score changed by so much, and others that stayed the same."""
    changes = numpy.array([by] * improved + [-by] * worsened + [0.0] * unchanged)
    before = (changes < 0).astype(float)
    weights = numpy.ones(len(changes))
    pairs = PairedScores(before[:, None], (before + changes)[:, None], weights, weights)
    return pairs.estimate_sample_size(0)


@pytest.mark.parametrize(
    ("changes", "needed", "has_smallest"),
    [
        # By hand, (1.96 sqrt(p) + 0.8416 sqrt(p - d * d)) ** 2 / (d * d), p = 0.15 and d = 0.05:
        # (0.7591 + 0.3232) ** 2 / 0.0025 = 468.6. A larger unit of the scores takes as many.
        ((10, 5, 85), 469, True),
        ((10, 5, 85, 0.5), 469, True),
        ((4, 3, 500), None, False),
        ((4, 4, 500), None, True),  # enough differ, and no difference has no number
        # 7.85 p / (d * d) is 86 times the questions with 11 that differ by one, and 102 times with 13.
        ((6, 5, 989), 86_336, True),
        ((7, 6, 987), None, True),
    ],
)
def test_the_number_of_questions_is_connors_if_enough_differ_and_not_too_many_are_needed(
    changes: tuple[Any, ...], needed: int | None, has_smallest: bool
) -> None:
    size = size_with(*changes)
    assert (size.questions, size.differing) == (sum(changes[:3]), sum(changes[:2]))
    assert (size.needed, size.smallest_difference is not None) == (needed, has_smallest)


def test_the_smallest_difference_is_the_one_for_which_the_questions_suffice() -> None:
    suffices = []
    for improved in range(21, 60):
        size = size_with(improved, 20, 300)
        assert size.smallest_difference is not None
        suffices.append(size.needed is not None and size.needed <= size.questions)
        is_above = (improved - 20) / size.questions >= size.smallest_difference
        assert suffices[-1] == is_above
    assert {True, False} == set(suffices)


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


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("flips", "effect", "all_asked"), [(0.1, 0.1, True), (0.1, 0.05, False), (0.2, 0.1, False)]
)
def test_so_many_questions_suffice_however_they_are_asked(
    flips: float, effect: float, all_asked: bool
) -> None:
    """Also where only the lost and as many right ones are asked, which are weighted."""
    count = 400_000  # so that its own difference is hardly by chance
    questions = Questions(count, flips, numpy.random.default_rng(1), effect)
    pairs = asked_pairs(questions, all_asked=all_asked)
    assert pairs is not None
    needed = pairs.estimate_sample_size(0).needed
    assert needed is not None
    measured = round(needed * count / len(pairs.weights))
    power = share(measured, flips, effect, all_asked=all_asked, trials=POWER_TRIALS)
    assert POWER - 0.08 <= power <= 0.97


# --- several changes at once


def results_of(asks: Asks, name: str = "") -> LoadedResults:
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
