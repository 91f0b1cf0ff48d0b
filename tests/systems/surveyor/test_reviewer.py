"""When a draft is reviewed, what the reviewer is shown, and how its revisions are used."""

from __future__ import annotations

from surveying import (
    answered,
)

from kgwb.run.answers import NOT_IN_GRAPH


def test_a_review_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = {"verdict": NOT_IN_GRAPH, "reason": "these are other films", "draft": None}
    run.override("reviewer[draft]", own).go()
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {own['reason']}"
    assert model.call_count() == 3
