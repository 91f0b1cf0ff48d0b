"""How far raters agree: Cohen's kappa (Cohen 1960), and its weighted form (Cohen 1968)."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy

from kgwb.bench.statistics import BOOTSTRAP_SAMPLES, percentile_interval

T = TypeVar("T")
RatingPair = tuple[int, int]
"""What two raters say of the same thing, on an ordinal scale."""
CategoryPair = tuple[str, str]
"""The categories that two raters give to the same thing."""


@dataclass(frozen=True, slots=True)
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


def compute_kappa(pairs: Sequence[CategoryPair]) -> Agreement | None:
    """Return Cohen's kappa of two raters over categories without an order, with its interval.

    It is 1 for full agreement, 0 for that of chance, and less for a smaller one. Returns None without
    pairs, or if both raters always gave the same one category: then chance alone explains it. In a
    bootstrap sample of which this is true, kappa counts as 1.
    """
    kappa = _kappa(pairs, _differ)
    if kappa is None:
        return None
    generator = random.Random(0)
    resampled = []
    for _ in range(BOOTSTRAP_SAMPLES):
        sample = generator.choices(pairs, k=len(pairs))
        sampled_kappa = _kappa(sample, _differ)
        resampled.append(1.0 if sampled_kappa is None else sampled_kappa)
    low, high = percentile_interval(numpy.array(resampled))
    return Agreement(kappa, low, high, len(pairs))


def compute_weighted_kappa(pairs: Sequence[RatingPair]) -> float | None:
    """Return Cohen's kappa of two raters on an ordinal scale, with quadratic weights.

    ``pairs`` has the two ratings of each thing. A disagreement counts by the square of its size. 1
    is full agreement, 0 that of chance, and less than 0 a smaller one. Returns None without pairs,
    or if both raters always gave the same one rating: then chance alone explains it.
    """
    return _kappa(pairs, _squared_difference)


def _kappa(pairs: Sequence[tuple[T, T]], disagreement: Callable[[T, T], float]) -> float | None:
    """Return 1 minus the observed disagreement divided by that of chance; None if the latter is 0.

    By chance, what one rater said of any thing meets what the other said of any other.
    """
    if not pairs:
        return None
    observed = statistics.mean(disagreement(first, second) for first, second in pairs)
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
    return statistics.mean(known) if known else None


def _differ(first: str, second: str) -> float:
    return float(first != second)


def _squared_difference(first: int, second: int) -> float:
    return float((first - second) ** 2)
