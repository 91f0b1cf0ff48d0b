"""How far raters agree: Cohen's weighted kappa (Cohen 1968)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import product

RatingPair = tuple[int, int]
"""What two raters say of the same thing."""


def compute_weighted_kappa(pairs: Sequence[RatingPair]) -> float | None:
    """Return Cohen's kappa of two raters on an ordinal scale, with quadratic weights.

    A disagreement counts by the square of its size. Returns 1 for full agreement, 0 for that of
    chance, and less for a smaller one. Returns None without pairs, or if both raters always said the
    same one thing: then chance alone explains it.
    """
    if not pairs:
        return None
    observed = statistics.mean(_disagreement(*pair) for pair in pairs)
    first_grades, second_grades = zip(*pairs, strict=True)
    chance_pairs = product(first_grades, second_grades)
    expected = statistics.mean(_disagreement(*pair) for pair in chance_pairs)
    if expected == 0:
        return None
    return 1 - observed / expected


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if all are."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _disagreement(first: int, second: int) -> int:
    return (first - second) ** 2
