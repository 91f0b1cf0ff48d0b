"""Bootstrap intervals and permutation tests over questions, the interval of a share, and how far raters agree.

The agreement is Cohen's kappa (Cohen 1960), and its weighted form (Cohen 1968). The random numbers
have a fixed seed, so the same scores give the same result.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil, sqrt
from statistics import fmean
from typing import Any, TypeVar

import numpy

from kgwb.records import frozen

Matrix = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
BOOTSTRAP_SAMPLES = 2000
PERMUTATIONS = 10_000
PERMUTATION_BATCH = 1000
"""Permutations that are computed at the same time, for the memory."""
ROUNDING_ERROR = 1e-9
"""Sums of the same numbers in another order count as equal."""
SIGNIFICANCE_LEVEL = 0.05
"""A difference with a higher p-value may be chance."""
NORMAL_QUANTILE = 1.959964
"""The 97.5th percentile of the normal distribution, for intervals of 95 %."""
MIN_SHOWN_P_VALUE = 0.001
"""A smaller p-value is shown as being below it: so few permutations are counted inexactly."""
POWER = 0.8
"""The chance that a true difference is found, for which numbers of questions are estimated."""
POWER_QUANTILE = 0.841621
"""The percentile of the normal distribution that belongs to POWER."""
MIN_DIFFERING_QUESTIONS = 8
"""From fewer questions that score otherwise, no number is estimated.

Even if all of them changed in the same direction, a difference like this would be found with less
than POWER: (NORMAL_QUANTILE + POWER_QUANTILE) ** 2 is 7.8.
"""
MAX_FURTHER_FACTOR = 100
"""A difference that takes so many times the questions is too close to 0 to plan for."""


def bootstrap_means(scores: Matrix) -> Matrix:
    """Return the mean scores of BOOTSTRAP_SAMPLES samples, a row for each sample.

    ``scores`` has a row for each question and a column for each measure. A sample has as many
    questions as there are, drawn with replacement (Efron and Tibshirani 1993, chapter 6). How often
    each is drawn has a multinomial distribution, so counts are drawn in place of questions. The
    seed is fixed.
    """
    generator = numpy.random.default_rng(0)
    count = len(scores)
    equal_chances = numpy.full(count, 1 / count)
    times_drawn = generator.multinomial(count, equal_chances, size=BOOTSTRAP_SAMPLES)
    means: Matrix = times_drawn @ scores / count
    return means


def percentile_interval(values: Matrix) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of bootstrap values.

    This is the 95 % percentile interval (Efron and Tibshirani 1993, chapter 13).
    """
    low, high = numpy.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the probability behind ``count`` of ``total`` (Wilson 1927).

    Unlike a bootstrap interval it holds for few trials, and for a count of 0 or of all. It is
    within 0 and 1.
    """
    squared = NORMAL_QUANTILE**2
    share = count / total
    centre = share + squared / (2 * total)
    variance = share * (1 - share) / total
    correction = squared / (4 * total**2)
    spread = NORMAL_QUANTILE * sqrt(variance + correction)
    scale = 1 + squared / total
    low = (centre - spread) / scale
    high = (centre + spread) / scale
    return max(0.0, low), min(1.0, high)


@frozen
class SampleSize:
    """What a number of questions can show, and how many more would show the observed difference.

    Both figures hold for POWER and SIGNIFICANCE_LEVEL, and for further questions like the measured
    ones: chosen in the same way, of which the same share scores otherwise, by as much. The true
    difference may be smaller than the observed one; then it takes more.
    """

    questions: int
    """How many were measured."""
    differing: int
    """How many of them score otherwise after the change."""
    needed: int | None = None
    """How many questions it takes in all if the true difference is the observed one.

    None if fewer than MIN_DIFFERING_QUESTIONS differ, or if it takes more than MAX_FURTHER_FACTOR
    times as many.
    """
    smallest_difference: float | None = None
    """The smallest difference that the measured number shows; None if too few questions differ."""


@frozen
class PairedScores:
    """The scores of the same questions before and after a change, a row for each question.

    A row of ``before`` and ``after`` has all scores of a question. ``weights`` says how many
    questions each one stands for. ``swapped_weights`` says how many it would stand for if its two
    scores were exchanged: where questions are drawn by what came of them before, that is another
    number.
    """

    before: Matrix
    after: Matrix
    weights: Matrix
    swapped_weights: Matrix

    def means(self) -> tuple[Matrix, Matrix]:
        """Return the weighted mean scores before and after."""
        total = self.weights.sum()
        before = self.weights @ self.before
        after = self.weights @ self.after
        return before / total, after / total

    def permuted_means(self) -> tuple[Matrix, Matrix]:
        """Return the mean scores before and after of PERMUTATIONS random exchanges, a row for each.

        If a change had no effect, the scores of a question before and after it could be exchanged.
        A question that stands for w questions, and for v after an exchange, was drawn with a chance
        of 1/w, and would have been drawn with one of 1/v. So it is exchanged with the chance
        w / (w + v), which is a half where both are equal (Good 2005, chapter 3). The seed is fixed.
        """
        differs = (self.before != self.after).any(axis=1)
        before = self.before[differs]
        after = self.after[differs]
        weights = self.weights[differs, None]
        swapped_weights = self.swapped_weights[differs, None]
        chances = (weights / (weights + swapped_weights)).ravel()
        total = self.weights.sum()
        gained_before = swapped_weights * after
        lost_before = weights * before
        change_before = (gained_before - lost_before) / total
        gained_after = swapped_weights * before
        lost_after = weights * after
        change_after = (gained_after - lost_after) / total
        base_before, base_after = self.means()
        means_before = numpy.tile(base_before, (PERMUTATIONS, 1))
        means_after = numpy.tile(base_after, (PERMUTATIONS, 1))
        generator = numpy.random.default_rng(0)
        for start in range(0, PERMUTATIONS, PERMUTATION_BATCH):
            rows = slice(start, start + PERMUTATION_BATCH)
            draws = generator.random((PERMUTATION_BATCH, len(before)))
            is_swapped = draws < chances
            means_before[rows] += is_swapped @ change_before
            means_after[rows] += is_swapped @ change_after
        return means_before, means_after

    def estimate_sample_size(self, column: int) -> SampleSize:
        """Estimate how many questions show the observed difference of one column of scores.

        The method is Connor's for paired proportions (Connor 1987, "Sample size for testing
        differences in proportions for the paired-sample design"): the normal approximation of a
        test like that of ``permuted_means``. His share of discordant pairs is the mean square of
        the differences, which is the same for scores of 0 and 1, and holds for others too. Weights
        stand in it as they do in the test. Nothing is estimated from fewer than
        MIN_DIFFERING_QUESTIONS questions that differ.
        """
        count = len(self.weights)
        changes = self.after[:, column] - self.before[:, column]
        differing = int(numpy.count_nonzero(changes))
        if differing < MIN_DIFFERING_QUESTIONS:
            return SampleSize(count, differing)
        mean_weight = float(self.weights.mean())
        weighted = self.weights * changes / mean_weight
        exchanged = self.swapped_weights * changes / mean_weight
        difference = abs(float(weighted.mean()))
        square = float((weighted**2).mean())
        square_without_effect = float((weighted * exchanged).mean())
        deviation_without_effect = sqrt(square_without_effect)
        deviation = sqrt(max(0.0, square - difference**2))
        needed = None
        reach = NORMAL_QUANTILE * deviation_without_effect + POWER_QUANTILE * deviation
        if reach < difference * sqrt(MAX_FURTHER_FACTOR * count):
            needed = ceil((reach / difference) ** 2)
        # The difference d that solves sqrt(count) * d = reach, whose deviation depends on d.
        chance_part = NORMAL_QUANTILE * deviation_without_effect
        power_square = POWER_QUANTILE**2
        rest = max(0.0, (count + power_square) * square - chance_part**2)
        root = sqrt(count) * chance_part + POWER_QUANTILE * sqrt(rest)
        smallest_difference = root / (count + power_square)
        return SampleSize(count, differing, needed, smallest_difference)


def permutation_p_value(permuted: Matrix, observed: float) -> float:
    """Return the share of permuted differences that are at least as far from 0 as the observed one.

    This is the two-sided p-value.
    """
    is_as_far = abs(permuted) >= abs(observed) - ROUNDING_ERROR
    return float(is_as_far.mean())


def format_p_value(p_value: float) -> str:
    """Return a p-value with three digits, "p 0.244", or "p < 0.001" if it is below MIN_SHOWN_P_VALUE."""
    if p_value < MIN_SHOWN_P_VALUE:
        return f"p < {MIN_SHOWN_P_VALUE}"
    return f"p {p_value:.3f}"


def permutation_interval(permuted: Matrix, observed: float) -> tuple[float, float]:
    """Return the 95 % interval of a difference, made from permuted differences, which have no effect.

    It reaches as far to both sides of the observed difference as 95 % of the permuted ones are from
    0. So it contains 0 if, and only if, the p-value is above 0.05. It ends at -1 and 1.
    """
    distances = numpy.sort(abs(permuted))[::-1]
    rank = int(SIGNIFICANCE_LEVEL * len(distances))
    reach = float(distances[rank])
    size = abs(observed)
    if abs(reach - size) < ROUNDING_ERROR:
        reach = size
    low = observed - reach
    high = observed + reach
    return max(-1.0, low), min(1.0, high)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down method, in the same order.

    A difference is significant at a level if its adjusted p-value is below it; the chance of any
    false one is then at most that level (Holm 1979, "A simple sequentially rejective multiple test
    procedure").
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    adjusted = [0.0] * count
    highest = 0.0
    for rank, position in enumerate(order):
        highest = max(highest, (count - rank) * p_values[position])
        adjusted[position] = min(highest, 1.0)
    return adjusted


T = TypeVar("T")


@frozen
class Agreement:
    """Cohen's kappa of two raters, with its interval."""

    kappa: float
    low: float
    high: float
    """The 95 % percentile bootstrap interval over the things that were rated."""
    count: int
    """How many things both have rated."""

    def __str__(self) -> str:
        return f"{self.kappa:.2f} [{self.low:.2f}, {self.high:.2f}] (n = {self.count})"


def compute_kappa(pairs: Sequence[tuple[str, str]]) -> Agreement | None:
    """Return Cohen's kappa of two raters over categories without an order, with its interval.

    It is 1 for full agreement, 0 for that of chance, and less for a smaller one. Returns None without
    pairs, or if both raters always gave the same one category: then chance alone explains it. In a
    bootstrap sample of which this is true, kappa counts as 1.
    """
    kappa = _kappa(pairs, operator.ne)
    if kappa is None:
        return None
    generator = random.Random(0)
    resampled = []
    for _ in range(BOOTSTRAP_SAMPLES):
        sample = generator.choices(pairs, k=len(pairs))
        sampled_kappa = _kappa(sample, operator.ne)
        resampled.append(1.0 if sampled_kappa is None else sampled_kappa)
    low, high = percentile_interval(numpy.array(resampled))
    return Agreement(kappa, low, high, len(pairs))


def compute_weighted_kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Cohen's kappa of two raters on an ordinal scale, with quadratic weights.

    ``pairs`` has the two ratings of each thing. A disagreement counts by the square of its size. 1
    is full agreement, 0 that of chance, and less than 0 a smaller one. Returns None without pairs,
    or if both raters always gave the same one rating: then chance alone explains it.
    """

    def squared_difference(first: float, second: float) -> float:
        return (first - second) ** 2

    return _kappa(pairs, squared_difference)


def _kappa(pairs: Sequence[tuple[T, T]], disagreement: Callable[[T, T], float]) -> float | None:
    """Return 1 minus the observed disagreement divided by that of chance; None if the latter is 0.

    By chance, what one rater said of any thing meets what the other said of any other.
    """
    if not pairs:
        return None
    observed = fmean(disagreement(first, second) for first, second in pairs)
    first_counts = Counter(first for first, _ in pairs)
    second_counts = Counter(second for _, second in pairs)
    by_chance = 0.0
    for first, first_count in first_counts.items():
        for second, second_count in second_counts.items():
            by_chance += first_count * second_count * disagreement(first, second)
    expected = by_chance / len(pairs) ** 2
    return None if expected == 0 else 1 - observed / expected


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all are."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
