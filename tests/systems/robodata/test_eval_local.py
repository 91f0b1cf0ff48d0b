"""The state that judges the local graph."""

from __future__ import annotations

import pytest
from machine import answered
from small import asked


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        ({}, ["EVAL_LOCAL"]),
        ({"shown_chars": 60}, ["EVAL_LOCAL", "LOCAL", "EVAL_LOCAL"]),
        ({"shown_chars": 60, "large_graph": "asked"}, ["EVAL_LOCAL"]),
    ],
)
def test_a_graph_that_a_prompt_cannot_hold_is_looked_into_once(
    settings: dict[str, object], states: list[str]
) -> None:
    run, model = answered(settings=settings)
    last = [step for step in run.steps if step.agent == "turn"][-1].output
    assert [visit.state for visit in last.visits[5:]] == states
    assert asked(model)["eval_local"] == 1  # LOCAL is visited without a model's decision
