"""The advice of metacognition."""

from __future__ import annotations

from machine import (
    answered,
    variables_of,
)

from kgwb.systems.robodata.records import Observation


def test_empty_advice_is_shown_as_none() -> None:
    nothing = {"judgement": "sound", "advice": ""}
    _, model = answered(settings={"metacognition": True}, observation=nothing)
    assert variables_of(model, "eval_local", "advice") == ["none"]


def test_the_text_of_an_observation_is_its_advice_else_its_judgement() -> None:
    texts = [str(Observation("s", "sound", advice)) for advice in ("fetch more", "")]
    assert texts == ["fetch more", "sound"]
