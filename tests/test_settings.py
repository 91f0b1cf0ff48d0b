"""Settings and the two profiles."""

from __future__ import annotations

from typing import Any

import pytest

from kgwb import profile
from kgwb.errors import SettingError
from kgwb.settings import PROFILES, Settings


def test_fast_is_the_default() -> None:
    assert Settings() == profile("fast") == PROFILES["fast"]
    assert Settings().fast


@pytest.mark.parametrize(
    ("name", "value"),
    [("theta", 3), ("answers_in_context", 100), ("v_limit", 600), ("query_num", 40), ("temperature", 0.0)],
)
def test_paper_has_the_published_values(name: str, value: float) -> None:
    assert getattr(profile("paper"), name) == value
    assert not profile("paper").fast


def test_a_profile_can_be_changed() -> None:
    assert profile("paper", theta=5) == PROFILES["paper"].changed(theta=5)
    assert PROFILES["paper"].theta == 3


def test_settings_are_plain_data_and_back() -> None:
    changed = profile("paper", reword_answer=True)
    assert Settings(**changed.to_data()) == changed


@pytest.mark.parametrize("name", ["theta", "answers_in_context", "v_limit", "query_num"])
@pytest.mark.parametrize("value", [0, -1, 10**20])
def test_a_limit_that_no_engine_takes_is_refused(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}") as caught:
        profile("fast", **{name: value})
    assert caught.value.hint == f"give {name} a whole number from 1 to 1,000,000"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"profile": "fats"}, "profile is 'fats'"),
        ({"repair": "give up"}, "repair is 'give up'"),
        ({"theta": "three"}, "theta is 'three'"),
        ({"theta": 2.5}, "theta is 2.5"),
        ({"workers": 0}, "workers is 0"),
        ({"model_timeout_s": 0}, "model_timeout_s is 0"),
        ({"model_timeout_s": -1.0}, "model_timeout_s is -1.0"),
        ({"model_timeout_s": float("inf")}, "model_timeout_s is inf"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"seed": 2**63}, "seed is 9223372036854775808"),
        ({"spelling": 1.5}, "spelling is 1.5"),
        ({"max_question_words": 0}, "max_question_words is 0"),
        ({"translate": "no"}, "translate is 'no'"),
        ({"thetta": 3}, "no setting named thetta"),
    ],
)
def test_an_impossible_setting_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingError, match=problem) as caught:
        profile("fast", **changes)
    assert caught.value.hint


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(SettingError, match="no profile named 'quick'") as caught:
        profile("quick")
    assert caught.value.hint == "choose one of fast, paper"
