"""How often the verdict on a change is false, and how often a true effect is found, in simulated trials.

    python benchmarks/simulated_changes.py [TRIALS]

A question is answered anew each time it is asked. A share of the questions is unsteady: each ask is right
with a chance of a half, so that with a share of 2f one ask in f comes out otherwise than the one before. The
others are right or wrong each time. docs/how-to/my-benchmark.md has the figures.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy

from kgwb.bench.statistics import SIGNIFICANCE_LEVEL, PairedScores, permutation_p_value

RIGHT_SHARE = 0.75
"""How many of the steady questions are right."""
MANY = 400_000
"""So many questions tell a difference that is hardly by chance."""
Asks = numpy.ndarray[tuple[int], numpy.dtype[numpy.bool_]]
Scores = numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]


class Questions:
    """Simulated questions, some of them unsteady; the share ``effect`` of them is right only after a change."""

    def __init__(
        self, count: int, flips: float, generator: numpy.random.Generator, effect: float = 0.0
    ) -> None:
        self.generator = generator
        self.is_unsteady = generator.random(count) < 2 * flips
        self.is_right = generator.random(count) < RIGHT_SHARE
        steady = numpy.flatnonzero(~self.is_unsteady)
        cured = round(effect * count)
        missing = cured - int((~self.is_right[steady]).sum())
        if missing > 0:  # then some of the right ones are lost before the change
            self.is_right[steady[self.is_right[steady]][:missing]] = False
        lost = steady[~self.is_right[steady]]
        self.is_cured = numpy.zeros(count, bool)
        self.is_cured[lost[:cured]] = True

    def ask(self, *, is_changed: bool = False) -> Asks:
        """Whether each question comes out right this time."""
        by_chance = self.generator.random(len(self.is_right)) < 0.5
        steady = self.is_right | self.is_cured if is_changed else self.is_right
        return numpy.where(self.is_unsteady, by_chance, steady)


def ask_again(questions: Questions, repeats: int, *, asks_all: bool) -> PairedScores | None:
    """Ask before and after the change, and what differs so many times; None if nothing is asked again.

    Without ``asks_all`` these are the lost questions and as many right ones, which stand for all
    right ones.
    """
    before, after = questions.ask(), questions.ask(is_changed=True)
    scores = [before.astype(float), after.astype(float)]
    for side, is_changed in enumerate((False, True)):
        if repeats > 1:
            asks = [questions.ask(is_changed=is_changed) for _ in range(repeats - 1)]
            scores[side] = numpy.where(before != after, numpy.mean(asks, axis=0), scores[side])
    chosen, right_weight = numpy.arange(len(before)), 1.0
    if not asks_all:
        lost, right = numpy.flatnonzero(~before), numpy.flatnonzero(before)
        count = min(len(lost), len(right))
        kept = right[numpy.arange(count) * len(right) // max(count, 1)]
        chosen, right_weight = numpy.concatenate([lost, kept]), len(right) / max(count, 1)
    if not len(chosen):
        return None
    weights = [numpy.where(side[chosen], right_weight, 1.0) for side in (before, after)]
    return PairedScores(scores[0][chosen, None], scores[1][chosen, None], *weights)


def is_more_than_chance(pairs: PairedScores | None) -> bool:
    """Return the verdict on the two results."""
    if pairs is None:
        return False
    before, after = pairs.means()
    permuted_before, permuted_after = pairs.permuted_means()
    permuted = (permuted_after - permuted_before).ravel()
    return permutation_p_value(permuted, float((after - before)[0])) <= SIGNIFICANCE_LEVEL


def share_found(
    count: int, flips: float, effect: float, repeats: int, trials: int, *, asks_all: bool
) -> float:
    """Return the share of trials in which the verdict is "more than chance"."""
    generator = numpy.random.default_rng(0)
    found = 0
    for _ in range(trials):
        questions = Questions(count, flips, generator, effect)
        found += is_more_than_chance(ask_again(questions, repeats, asks_all=asks_all))
    return found / trials


def questions_needed(flips: float, effect: float, repeats: int, *, asks_all: bool) -> int:
    """Return how many measured questions would find an effect in 8 of 10 trials, as a verdict says."""
    questions = Questions(MANY, flips, numpy.random.default_rng(1), effect)
    pairs = ask_again(questions, repeats, asks_all=asks_all)
    assert pairs is not None
    needed = pairs.estimate_sample_size(0).needed
    assert needed is not None
    return round(needed * MANY / len(pairs.weights))


def main(trials: int) -> None:
    """Print the share of "more than chance": without an effect, with one, and with as many questions as it takes."""
    print("no effect (at most 0.05 wanted)")
    for count, flips, asks_all, repeats in product((50, 200), (0.1, 0.3), (False, True), (1, 3)):
        found = share_found(count, flips, 0.0, repeats, trials, asks_all=asks_all)
        print(f"  {count} questions, {flips=}, {asks_all=}, {repeats=}: {found:.3f}")
    print("10 points in 200 questions")
    for flips, asks_all, repeats in product((0.0, 0.15), (False, True), (1, 3)):
        found = share_found(200, flips, 0.1, repeats, trials, asks_all=asks_all)
        print(f"  {flips=}, {asks_all=}, {repeats=}: {found:.3f}")
    print("as many questions as the verdict says (0.8 wanted)")
    choices = product(((0.1, 0.1), (0.1, 0.05), (0.3, 0.1)), (False, True), (1, 3))
    for (flips, effect), asks_all, repeats in choices:
        count = questions_needed(flips, effect, repeats, asks_all=asks_all)
        found = share_found(count, flips, effect, repeats, trials, asks_all=asks_all)
        print(f"  {count} questions, {flips=}, {effect=}, {asks_all=}, {repeats=}: {found:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
