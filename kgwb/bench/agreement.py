"""How far raters agree: Cohen's weighted kappa (Cohen 1968)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

RatingPair = tuple[int, int]
"""What two raters say of the same thing."""


def compute_weighted_kappa(pairs: Sequence[RatingPair]) -> float | None:
    """Return Cohen's kappa of two raters on an ordinal scale, with quadratic weights.

    ``pairs`` has the two ratings of each thing. A disagreement counts by the square of its size. 1
    is full agreement, 0 that of chance, and less than 0 a smaller one. Returns None without pairs,
    or if both raters always gave the same one rating: then chance alone explains it.
    """
    if not pairs:
        return None
    observed = statistics.mean(_disagreement(first, second) for first, second in pairs)
    by_chance = []
    for first, _ in pairs:
        for _, second in pairs:
            by_chance.append(_disagreement(first, second))
    expected = statistics.mean(by_chance)
    return None if expected == 0 else 1 - observed / expected


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all are."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _disagreement(first: int, second: int) -> int:
    return (first - second) ** 2
