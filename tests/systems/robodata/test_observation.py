"""The advice of metacognition."""

from __future__ import annotations

from machine import (
    answered,
)

from kgwb.llm import Scripted
from kgwb.systems.robodata.records import Observation


def variables_of(model: Scripted, task: str, name: str) -> list[str]:
    """The values of a prompt variable in the requests of a task, in order."""
    return [str(r.variables[name]) for r in model.requests if r.task == f"robodata/{task}"]


def test_empty_advice_is_shown_as_none() -> None:
    nothing = {"judgement": "sound", "advice": ""}
    _, model = answered(settings={"metacognition": True}, observation=nothing)
    assert variables_of(model, "eval_local", "advice") == ["none"]


def test_the_text_of_an_observation_is_its_advice_else_its_judgement() -> None:
    texts = [str(Observation("s", "sound", advice)) for advice in ("fetch more", "")]
    assert texts == ["fetch more", "sound"]
