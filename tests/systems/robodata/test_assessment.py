"""The assessment of the strategy."""

from __future__ import annotations

from machine import (
    CALLS,
    answered,
    variables_of,
)
from small import asked

ADVICE = "Fetch both triples."
"""The advice of the scripted model."""


def test_metacognition_advises_only_the_evaluations() -> None:
    _, model = answered(settings={"metacognition": True})
    assert asked(model) == {**CALLS, "assessment": 2, "observation": 2}
    assert variables_of(model, "eval_local", "advice") == [ADVICE]
    assert variables_of(model, "observation", "previous") == ["none", ADVICE]
    [update] = [request for request in model.requests if request.task == "robodata/update"]
    assert not any(ADVICE in message.content for message in update.messages)
