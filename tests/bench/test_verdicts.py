"""How often a verdict on a change is false, and how often a true effect is found, in simulated trials.

A question is answered anew each time it is asked. A share of the questions is unsteady: each ask is right with a
chance of a half, so that with a share of 2f one ask in f comes out otherwise than the one before. The others are
right or wrong each time.
"""

from __future__ import annotations

import numpy
import pytest

from kgwb.bench.statistics import SIGNIFICANCE_LEVEL, PairedScores, permutation_p_value

TRIALS = 2000
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


def is_more_than_chance(questions: Questions, *, all_asked: bool) -> bool:
    """The verdict of one trial, with all questions asked again or the lost and as many right ones."""
    before, after = questions.ask(), questions.ask(is_changed=True)
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
        before[chosen, None].astype(float),
        after[chosen, None].astype(float),
        numpy.where(before[chosen], right_weight, 1.0),
        numpy.where(after[chosen], right_weight, 1.0),
    )
    mean_before, mean_after = pairs.means()
    permuted_before, permuted_after = pairs.permuted_means()
    permuted = (permuted_after - permuted_before).ravel()
    p_value = permutation_p_value(permuted, float((mean_after - mean_before)[0]))
    return p_value <= SIGNIFICANCE_LEVEL


def share(count: int, flips: float, effect: float = 0.0, *, all_asked: bool) -> float:
    """The share of trials whose verdict is "more than chance"."""
    generator = numpy.random.default_rng(0)
    found = 0
    for _ in range(TRIALS):
        questions = Questions(count, flips, generator, effect)
        found += is_more_than_chance(questions, all_asked=all_asked)
    return found / TRIALS


def upper_end(share_found: float) -> float:
    """The upper end of Wilson's 95 % interval of a share of TRIALS."""
    z = 1.96
    centre = share_found + z * z / (2 * TRIALS)
    spread = z * numpy.sqrt(share_found * (1 - share_found) / TRIALS + z * z / (4 * TRIALS**2))
    return float((centre + spread) / (1 + z * z / TRIALS))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [50, 200, 400])
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("all_asked", [False, True])
def test_a_change_without_an_effect_is_seldom_more_than_chance(
    count: int, flips: float, all_asked: bool
) -> None:
    assert upper_end(share(count, flips, all_asked=all_asked)) <= 0.06


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.15])
def test_an_effect_of_ten_points_is_found_where_all_are_asked(flips: float) -> None:
    assert share(200, flips, effect=0.1, all_asked=True) >= 0.8
