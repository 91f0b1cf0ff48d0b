"""How often repeated questions come out right: pass rates, pass^k, and the questions right by luck."""

from itertools import combinations
from typing import Any

import pytest

from kgwb.bench.figures import PassRate, estimate_chances
from kgwb.bench.statistics import wilson_interval


def asks(pattern: str) -> list[Any]:
    """Asks that came out as the pattern says: "r" right, "w" wrong, "e" an error."""
    scores = {"r": {"f1": 1.0}, "w": {"f1": 0.0}, "e": None}
    return [scores[letter] for letter in pattern]


def test_wilson_s_interval_is_that_of_the_literature() -> None:
    """The figures are those of Newcombe 1998, table I, method 3."""
    published = {(81, 263): (0.2553, 0.3662), (15, 148): (0.0624, 0.1605), (0, 20): (0, 0.1611)}
    for (count, total), interval in published.items():
        assert wilson_interval(count, total) == pytest.approx(interval, abs=1e-4)
    assert wilson_interval(20, 20) == pytest.approx((1 - 0.1611, 1), abs=1e-4)
    for total in range(1, 60):
        assert wilson_interval(0, total)[0] >= 0 and wilson_interval(total, total)[1] <= 1


@pytest.mark.parametrize("right", range(6))
@pytest.mark.parametrize("k", [1, 2, 5])
def test_pass_hat_k_is_the_share_of_choices_in_which_all_are_right(right: int, k: int) -> None:
    choices = list(combinations([True] * right + [False] * (5 - right), k))
    share = sum(map(all, choices)) / len(choices)
    assert PassRate(right, 5).chance_of_all(k) == pytest.approx(share)


def test_pass_hat_k_of_all_questions_is_the_mean_of_those_that_all_were_asked() -> None:
    rates = [PassRate.of_asks(asks(pattern)) for pattern in ("rrrr", "wwww", "wrww", "rrrw")]
    chances = estimate_chances(rates)
    assert {k: chance.value for k, chance in chances.items()} == pytest.approx(
        {1: (1 + 0 + 0.25 + 0.75) / 4, 2: (1 + 0 + 0 + 0.5) / 4, 3: (1 + 0 + 0 + 0.25) / 4}
    )
    assert list(estimate_chances([*rates, PassRate(1, 2)])) == [1, 2]
    assert estimate_chances([]) == {}


def test_an_error_is_not_right_and_the_ask_that_chose_a_question_does_not_count() -> None:
    assert PassRate.of_row({"asks": asks("rew")}) == PassRate(1, 3)
    repeated = {"asks": asks("rew"), "asks_before": asks("wr")}
    assert PassRate.of_row(repeated) == PassRate(0, 2)
    assert PassRate.of_row(repeated, "asks_before") == PassRate(1, 1)
    assert PassRate.of_row({}) is None
