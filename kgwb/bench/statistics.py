"""How sure a figure is, and whether two result sets differ: bootstrap, permutation, dialogue retention.

Every function takes lines of results files (see kgwb.bench.runner), a measure of ``metrics.MEASURES``, and a
seed: the same lines give the same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy

from kgwb.bench.metrics import MEASURES, Scores, score_row
from kgwb.errors import InputError

Rows = Sequence[Mapping[str, Any]]
Matrix = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
Drawn = numpy.ndarray[Any, numpy.dtype[numpy.int64]]


def interval(
    rows: Rows, measure: str = "f1", *, seed: int = 0, resamples: int = 2000, level: float = 0.95
) -> tuple[float, float]:
    """The percentile bootstrap interval of a measure over questions (Efron and Tibshirani 1993, chapter 13).

    Raises InputError for an unknown measure, and if no line has gold.
    """
    columns = _columns(_scores(rows, measure).values())
    return _bootstrap(len(columns), lambda drawn: _value(columns[drawn], measure), seed, resamples, level)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two result sets on the questions that both have, with the same gold."""

    measure: str
    questions: int
    one: float
    other: float
    interval: tuple[float, float]
    """95 % of the paired bootstrap's ``difference`` lie in it."""
    p_value: float
    """Two-sided, of a paired permutation test: how often swapping pairs at random differs as much."""
    better: tuple[str, ...]
    """Ids of the questions that the other does better; what is in neither list is a tie."""
    worse: tuple[str, ...]
    unpaired: tuple[str, ...]
    """Ids that only one of the two has, or that have no gold."""

    @property
    def difference(self) -> float:
        """What the other has more."""
        return self.other - self.one


def compare(
    one: Rows, other: Rows, measure: str = "f1", *, seed: int = 0, resamples: int = 2000
) -> Comparison:
    """Another result set against one, question by question.

    Raises InputError for an unknown measure, if they share no question with gold, or if a gold differs.
    """
    before, after = _scores(one, measure), _scores(other, measure)
    shared = [key for key in before if key in after]
    both = {*shared}
    _agree(one, other, shared)
    first, second = (_columns(side[key] for key in shared) for side in (before, after))
    changes = [(key, getattr(after[key], measure) - getattr(before[key], measure)) for key in shared]

    def difference(drawn: Drawn) -> float:
        return _value(second[drawn], measure) - _value(first[drawn], measure)

    return Comparison(
        measure,
        len(shared),
        _value(first, measure),
        _value(second, measure),
        _bootstrap(len(shared), difference, seed, resamples, 0.95),
        _permuted(first, second, measure, seed, resamples),
        tuple(key for key, change in changes if change > 0),
        tuple(key for key, change in changes if change < 0),
        tuple(dict.fromkeys(row["id"] for row in (*one, *other) if row["id"] not in both)),
    )


def retention(dialogue: Rows, standalone: Rows) -> float | None:
    """Per cent of F1 kept in dialogues: F1 dialogue / F1 standalone (Chatty-KG, Table 5); None of F1 0.

    Both are F1 as the paper computes it, over the same questions (``standalone_forms``). Raises InputError
    like ``compare``, and if a question has no counterpart or no gold.
    """
    found = compare(dialogue, standalone, "paper_f1", resamples=1)
    if found.unpaired:
        some = ", ".join(found.unpaired[:5])
        hint = "ask both ways: the dialogues, and standalone_forms(questions)"
        raise InputError(f"{len(found.unpaired)} questions have no counterpart or gold: {some}", hint=hint)
    return 100 * found.one / found.other if found.other else None


def _scores(rows: Rows, measure: str) -> dict[str, Scores]:
    if measure not in MEASURES:
        raise InputError(f"there is no measure {measure!r}", hint=f"choose one of {', '.join(MEASURES)}")
    return {row["id"]: scores for row in rows if (scores := score_row(row)) is not None}


def _agree(one: Rows, other: Rows, shared: Sequence[str]) -> None:
    golds, others = ({row["id"]: row["gold"] for row in rows} for rows in (one, other))
    if differ := [key for key in shared if set(golds[key]) != set(others[key])]:
        hint = "compare results of one question set on one graph"
        raise InputError(f"the gold of {len(differ)} questions differs, first of {differ[0]}", hint=hint)


def _columns(scores: Iterable[Scores]) -> Matrix:
    columns = numpy.array([astuple(one) for one in scores])
    if not len(columns):
        raise InputError(
            "no question with gold to measure", hint="see with_gold, or compare one question set"
        )
    return columns


def _value(columns: Matrix, measure: str) -> float:
    return float(getattr(Scores(*columns.mean(axis=0)), measure))


def _bootstrap(
    count: int, statistic: Callable[[Drawn], float], seed: int, resamples: int, level: float
) -> tuple[float, float]:
    generator = numpy.random.default_rng(seed)
    drawn = [statistic(generator.integers(count, size=count)) for _ in range(resamples)]
    low, high = numpy.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _permuted(first: Matrix, second: Matrix, measure: str, seed: int, resamples: int) -> float:
    """The share of random swaps that differ at least as much, what was seen counted among them."""
    generator = numpy.random.default_rng(seed)
    seen = abs(_value(second, measure) - _value(first, measure)) - 1e-12  # sums differ by rounding
    swaps = (generator.random((len(first), 1)) < 0.5 for _ in range(resamples))
    differences = (
        _value(numpy.where(swap, first, second), measure) - _value(numpy.where(swap, second, first), measure)
        for swap in swaps
    )
    return (1 + sum(abs(one) >= seen for one in differences)) / (1 + resamples)
