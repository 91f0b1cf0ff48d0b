"""How often a verdict on a change is false, and how often a true effect is found, in simulated trials.

A question is answered anew each time it is asked. A share of the questions is unsteady: each ask is right with a
chance of a half, so that with a share of 2f one ask in f comes out otherwise than the one before. The others are
right or wrong each time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy
import pytest

from kgwb.bench.comparisons import ResultsComparison, compare_with_each
from kgwb.bench.exports import CHANGE_FIGURES, Condition, make_change_suite
from kgwb.bench.figures import LoadedResults
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import rescore_row
from kgwb.bench.statistics import (
    POWER,
    SIGNIFICANCE_LEVEL,
    PairedScores,
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
    pairs = chosen_pairs(*score(questions, repeats), all_asked=all_asked)
    if pairs is None:
        return False
    mean_before, mean_after = pairs.means()
    permuted_before, permuted_after = pairs.permuted_means()
    permuted = (permuted_after - permuted_before).ravel()
    p_value = permutation_p_value(permuted, float((mean_after - mean_before)[0]))
    return p_value <= SIGNIFICANCE_LEVEL


def chosen_pairs(
    before: Asks, after: Asks, scores_before: Scores, scores_after: Scores, *, all_asked: bool
) -> PairedScores | None:
    """The scores of the questions that are asked again, with their weights; None if there are none."""
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
        return None
    return PairedScores(
        scores_before[chosen, None],
        scores_after[chosen, None],
        numpy.where(before[chosen], right_weight, 1.0),
        numpy.where(after[chosen], right_weight, 1.0),
    )


def share(
    count: int,
    flips: float,
    effect: float = 0.0,
    *,
    all_asked: bool,
    repeats: int = 1,
    trials: int = TRIALS,
) -> float:
    """The share of trials whose verdict is "more than chance"."""
    generator = numpy.random.default_rng(0)
    found = 0
    for _ in range(trials):
        questions = Questions(count, flips, generator, effect)
        found += is_more_than_chance(questions, all_asked=all_asked, repeats=repeats)
    return found / trials


def upper_end(share_found: float) -> float:
    """The upper end of Wilson's 95 % interval of a share of TRIALS."""
    return wilson_interval(round(share_found * TRIALS), TRIALS)[1]


@pytest.mark.long
@pytest.mark.parametrize("count", [50, 200])
@pytest.mark.parametrize("flips", [0.1, 0.3])
@pytest.mark.parametrize("all_asked", [False, True])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_change_without_an_effect_is_seldom_more_than_chance(
    count: int, flips: float, all_asked: bool, repeats: int
) -> None:
    assert upper_end(share(count, flips, all_asked=all_asked, repeats=repeats)) <= 0.06


@pytest.mark.long
@pytest.mark.parametrize("flips", [0.0, 0.15])
@pytest.mark.parametrize(("all_asked", "repeats"), [(True, 1), (True, 3), (False, 3)])
def test_an_effect_of_ten_points_is_found(flips: float, all_asked: bool, repeats: int) -> None:
    assert share(200, flips, effect=0.1, all_asked=all_asked, repeats=repeats) >= 0.8


# --- how many questions it takes


def pairs_of(before: Scores, after: Scores) -> PairedScores:
    """Scores before and after of questions that each stand for themselves."""
    weights = numpy.ones(len(before))
    return PairedScores(before[:, None], after[:, None], weights, weights)


def pairs_with(improved: int, worsened: int, unchanged: int, by: float = 1.0) -> PairedScores:
    """Questions whose score changed by so much, and others."""
    changes = [by] * improved + [-by] * worsened + [0.0] * unchanged
    before = numpy.array([float(change < 0) for change in changes])
    return pairs_of(before, before + numpy.array(changes))


@pytest.mark.parametrize(
    ("improved", "worsened", "unchanged", "needed"),
    [
        # By hand, (1.96 sqrt(p) + 0.8416 sqrt(p - d * d)) ** 2 / (d * d), p = 0.15 and d = 0.05:
        # (0.7591 + 0.3232) ** 2 / 0.0025 = 468.6.
        (10, 5, 85, 469),
        # p = 0.35 and d = 0.05: (1.1595 + 0.4961) ** 2 / 0.0025 = 1096.4.
        (20, 15, 65, 1097),
    ],
)
def test_the_number_of_questions_is_connors(
    improved: int, worsened: int, unchanged: int, needed: int
) -> None:
    size = pairs_with(improved, worsened, unchanged).estimate_sample_size(0)
    assert (size.questions, size.differing, size.needed) == (100, improved + worsened, needed)


def test_a_larger_unit_of_the_scores_takes_as_many_questions() -> None:
    whole = pairs_with(10, 5, 85).estimate_sample_size(0)
    halves = pairs_with(10, 5, 85, by=0.5).estimate_sample_size(0)
    assert halves.needed == whole.needed
    assert whole.smallest_difference is not None
    assert halves.smallest_difference == pytest.approx(whole.smallest_difference / 2)


def test_the_smallest_difference_is_the_one_for_which_the_questions_suffice() -> None:
    sizes = [pairs_with(improved, 20, 300).estimate_sample_size(0) for improved in range(21, 60)]
    suffices = [size.needed is not None and size.needed <= size.questions for size in sizes]
    differences = [(number - 20) / (number + 320) for number in range(21, 60)]
    above = [
        difference >= (size.smallest_difference or 1.0)
        for size, difference in zip(sizes, differences, strict=True)
    ]
    assert suffices == above
    assert {True, False} == set(suffices)


@pytest.mark.parametrize(
    ("improved", "worsened", "unchanged", "has_needed", "has_smallest"),
    [
        (0, 0, 500, False, False),
        (4, 3, 500, False, False),
        (
            4,
            4,
            500,
            False,
            True,
        ),  # MIN_DIFFERING_QUESTIONS is enough, and no difference has no number
        (8, 0, 500, True, True),
        # 7.85 p / (d * d) is 86 times the questions with 11 that differ by one, and 102 times with 13.
        (6, 5, 989, True, True),
        (7, 6, 987, False, True),
    ],
)
def test_a_number_is_estimated_from_enough_changes_that_are_not_too_close_to_0(
    improved: int, worsened: int, unchanged: int, has_needed: bool, has_smallest: bool
) -> None:
    size = pairs_with(improved, worsened, unchanged).estimate_sample_size(0)
    assert (size.needed is not None, size.smallest_difference is not None) == (
        has_needed,
        has_smallest,
    )


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
@pytest.mark.parametrize(("flips", "effect"), [(0.1, 0.1), (0.1, 0.05), (0.3, 0.1)])
@pytest.mark.parametrize("all_asked", [False, True])
@pytest.mark.parametrize("repeats", [1, 3])
def test_so_many_questions_suffice_however_they_are_asked(
    flips: float, effect: float, all_asked: bool, repeats: int
) -> None:
    """Also where only the lost and as many right ones are asked, which are weighted, and with repeats."""
    count = 400_000  # so that its own difference is hardly by chance
    questions = Questions(count, flips, numpy.random.default_rng(1), effect)
    pairs = chosen_pairs(*score(questions, repeats), all_asked=all_asked)
    assert pairs is not None
    needed = pairs.estimate_sample_size(0).needed
    assert needed is not None
    measured = round(needed * count / len(pairs.weights))
    power = share(
        measured, flips, effect, all_asked=all_asked, repeats=repeats, trials=POWER_TRIALS
    )
    assert POWER - 0.08 <= power <= 0.97


# --- several changes at once, and a gate


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


LABS = 200
"""docs/how-to/my-benchmark.md has the figures of 1,000."""


GATES = {
    "worse": "worse>0",
    "not better": "better<1",
    "5 points worse is possible": "f1_low<-0.05",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("effect", "at_most", "at_least"),
    [
        (0.0, {"worse": 0.05}, {"not better": 0.95}),
        (-0.05, {}, {"not better": 0.95, "5 points worse is possible": 0.95}),
        (0.05, {"worse": 0.05}, {}),
    ],
)
def test_a_gate_seldom_gives_a_false_alarm(
    effect: float, at_most: dict[str, float], at_least: dict[str, float]
) -> None:
    """At 200 questions, with one ask in 20 that comes out otherwise."""
    generator = numpy.random.default_rng(0)
    met: Counter[str] = Counter()
    for _ in range(LABS):
        questions = Questions(200, 0.05, generator, abs(effect))
        sides = [questions.ask(), questions.ask(is_changed=True)]
        if effect < 0:
            sides.reverse()
        before, after = map(results_of, sides)
        suite = make_change_suite(ResultsComparison(before, after))
        for name, text in GATES.items():
            met[name] += Condition.parse(text, CHANGE_FIGURES).is_met(suite.figures)
    for name, share_allowed in at_most.items():
        assert met[name] <= share_allowed * LABS
    for name, share_needed in at_least.items():
        assert met[name] >= share_needed * LABS
