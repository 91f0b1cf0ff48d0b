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


@pytest.mark.parametrize(("room", "is_looked_into"), [(0, True), (1, False)])
def test_a_graph_fits_if_it_has_fewer_characters_than_are_shown(
    room: int, is_looked_into: bool
) -> None:
    whole = answered()[0].output("local_graph[turn 5]")
    chars = sum(map(len, whole.format_lines()))
    _, model = answered(settings={"shown_chars": chars + room})
    assert ("local" in asked(model)) == is_looked_into
