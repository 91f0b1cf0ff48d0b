"""How often a verdict on a change is false, and how often a true effect is found, in simulated trials.

A question is answered anew each time it is asked. A share of the questions is unsteady: each ask is right with a
chance of a half, so that with a share of 2f one ask in f comes out otherwise than the one before. The others are
right or wrong each time.
"""

from __future__ import annotations

import numpy
import pytest

from kgwb.bench.statistics import (
    SIGNIFICANCE_LEVEL,
    PairedScores,
    permutation_p_value,
    wilson_interval,
)

TRIALS = 2000
RIGHT_SHARE = 0.75
"""How many of the steady questions are right."""
Asks = numpy.ndarray[tuple[int], numpy.dtype[numpy.bool_]]
Scores = numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]


class Questions:
    """Simulated questions, some of them unsteady; ``effect`` of them are right only after a change."""

    def __init__(
        self, count: int, flips: float, generator: numpy.random.Generator, effect: float = 0.0
    ) -> None:
        self.generator = generator
        self.is_unsteady = generator.random(count) < 2 * flips
        self.is_right = generator.random(count) < RIGHT_SHARE
        lost = numpy.flatnonzero(~self.is_right & ~self.is_unsteady)
        steady = numpy.flatnonzero(~self.is_unsteady)
        cured = round(effect * count)
        if cured > len(lost):  # then some of the right ones are lost before the change
            self.is_right[steady[: cured - len(lost)]] = False
            lost = numpy.flatnonzero(~self.is_right & ~self.is_unsteady)
        self.is_cured = numpy.zeros(count, bool)
        self.is_cured[lost[:cured]] = True

    def ask(self, *, is_changed: bool = False) -> Asks:
        """Whether each question comes out right this time."""
        by_chance = self.generator.random(len(self.is_right)) < 0.5
        steady = self.is_right | self.is_cured if is_changed else self.is_right
        return numpy.where(self.is_unsteady, by_chance, steady)


def score(questions: Questions, repeats: int) -> tuple[Asks, Asks, Scores, Scores]:
    """The first asks before and after the change, and the scores: where they differ, those of the repeats."""
    before, after = questions.ask(), questions.ask(is_changed=True)
    scores_before, scores_after = before.astype(float), after.astype(float)
    if repeats > 1:
        differs = before != after
        further = range(repeats - 1)
        means_before = numpy.mean([questions.ask() for _ in further], axis=0)
        means_after = numpy.mean([questions.ask(is_changed=True) for _ in further], axis=0)
        scores_before = numpy.where(differs, means_before, scores_before)
        scores_after = numpy.where(differs, means_after, scores_after)
    return before, after, scores_before, scores_after


def is_more_than_chance(questions: Questions, *, all_asked: bool, repeats: int = 1) -> bool:
    """The verdict of one trial, with all questions asked again or the lost and as many right ones."""
    before, after, scores_before, scores_after = score(questions, repeats)
    chosen = list(range(len(before)))
    right_weight = 1.0
    if not all_asked:
        lost = [place for place in chosen if not before[place]]
        right = [place for place in chosen if before[place]]
        count = min(len(lost), len(right))
        kept = [right[place * len(right) // count] for place in range(count)] if count else []
        chosen = [*lost, *kept]
        right_weight = len(right) / len(kept) if kept else 1.0
    if not chosen:
        return False
    pairs = PairedScores(
        scores_before[chosen, None],
        scores_after[chosen, None],
        numpy.where(before[chosen], right_weight, 1.0),
        numpy.where(after[chosen], right_weight, 1.0),
    )
    mean_before, mean_after = pairs.means()
    permuted_before, permuted_after = pairs.permuted_means()
    permuted = (permuted_after - permuted_before).ravel()
    p_value = permutation_p_value(permuted, float((mean_after - mean_before)[0]))
    return p_value <= SIGNIFICANCE_LEVEL


def share(
    count: int, flips: float, effect: float = 0.0, *, all_asked: bool, repeats: int = 1
) -> float:
    """The share of trials whose verdict is "more than chance"."""
    generator = numpy.random.default_rng(0)
    found = 0
    for _ in range(TRIALS):
        questions = Questions(count, flips, generator, effect)
        found += is_more_than_chance(questions, all_asked=all_asked, repeats=repeats)
    return found / TRIALS


def upper_end(share_found: float) -> float:
    """The upper end of Wilson's 95 % interval of a share of TRIALS."""
    return wilson_interval(round(share_found * TRIALS), TRIALS)[1]


@pytest.mark.long
@pytest.mark.parametrize("count", [50, 200, 400])
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("all_asked", [False, True])
def test_a_change_without_an_effect_is_seldom_more_than_chance(
    count: int, flips: float, all_asked: bool
) -> None:
    assert upper_end(share(count, flips, all_asked=all_asked)) <= 0.06


@pytest.mark.long
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.15])
def test_an_effect_of_ten_points_is_found_where_all_are_asked(flips: float) -> None:
    assert share(200, flips, effect=0.1, all_asked=True) >= 0.8


@pytest.mark.long
@pytest.mark.parametrize("count", [50, 200, 400])
@pytest.mark.parametrize("flips", [0.1, 0.3])
@pytest.mark.parametrize("all_asked", [False, True])
@pytest.mark.parametrize("repeats", [3, 5])
def test_a_change_without_an_effect_is_seldom_more_than_chance_with_repeats(
    count: int, flips: float, all_asked: bool, repeats: int
) -> None:
    assert upper_end(share(count, flips, all_asked=all_asked, repeats=repeats)) <= 0.06


@pytest.mark.long
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.15])
@pytest.mark.parametrize("all_asked", [False, True])
def test_an_effect_of_ten_points_is_found_in_three_asks(flips: float, all_asked: bool) -> None:
    assert share(200, flips, effect=0.1, all_asked=all_asked, repeats=3) >= 0.8
