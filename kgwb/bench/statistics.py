"""Bootstrap intervals and permutation tests over questions.

The random numbers have a fixed seed, so the same scores give the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

Matrix = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
BOOTSTRAP_SAMPLES = 2000
PERMUTATIONS = 10_000


def bootstrap_means(scores: Matrix, resamples: int = BOOTSTRAP_SAMPLES) -> Matrix:
    """Return the mean scores of bootstrap samples, a row for each sample.

    A sample has as many questions as there are, drawn with replacement (Efron and Tibshirani 1993,
    chapter 6). How often each is drawn has a multinomial distribution, so counts are drawn in place
    of questions. The seed is fixed. ``scores`` has a row for each question and a column for each
    measure.
    """
    generator = numpy.random.default_rng(0)
    count = len(scores)
    equal_chances = numpy.full(count, 1 / count)
    times_drawn = generator.multinomial(count, equal_chances, size=resamples)
    means: Matrix = times_drawn @ scores / count
    return means


def percentile_interval(values: Matrix) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of bootstrap values.

    This is the 95 % percentile interval (Efron and Tibshirani 1993, chapter 13).
    """
    low, high = numpy.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def permutation_p_value(changes: Sequence[float]) -> float:
    """Return the two-sided p-value of the questions' changes, by a paired permutation test.

    If nothing had an effect, the scores before and after could be exchanged for each question,
    which reverses the sign of its change. The p-value is the share of PERMUTATIONS random choices
    of signs whose sum is at least as far from 0 as the observed sum (Good 2005, chapter 3). The
    seed is fixed. Without any change it is 1.
    """
    nonzero_changes = numpy.array([change for change in changes if change != 0])
    generator = numpy.random.default_rng(0)
    signs = generator.choice([-1.0, 1.0], size=(PERMUTATIONS, len(nonzero_changes)))
    observed = abs(nonzero_changes.sum())
    # The tolerance is for rounding: sums of the same numbers in another order count as equal.
    is_extreme = abs(signs @ nonzero_changes) >= observed - 1e-9
    return float(is_extreme.mean())
