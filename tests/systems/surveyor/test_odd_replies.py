"""Replies that a small model gives within the schema: no run crashes or goes on without end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from surveying import DIRECTED, FINE, SURVEYOR, draft, mention, revise, script, surveyor
from tables import read_table

from kgwb.errors import InvalidReplyError
from kgwb.llm import Scripted

SMALL = SURVEYOR.settings(survey_tokens=1_200, exemplars=1)
ODD_DRAFTS = read_table(Path(__file__).parent / "odd_drafts.jsonl")
ODD_NAMES = (
    mention(),
    mention("", " ", "?x", "SELECT * { ?s ?p ?o }", "a" * 5_000, question=""),
    mention(*map(str, range(100)), classes=["", "Nothing", "org:Film", "film 4", "<x y>"] * 50),
    mention('denis\nDenis "Villeneuve" \\', "{{question}}", "\u202eDenis"),
)
ODD_REVIEWS = (
    FINE,
    {**FINE, "sparql": DIRECTED},
    {**FINE, "verdict": "not in this graph", "reason": "", "missing": ""},
    revise("", "film"),
    revise(DIRECTED, *["film"] * 30),
    [revise(DIRECTED), revise("SELECT ?f { ?f ?p org:denis }")] * 4,
)


@pytest.mark.parametrize(
    ("names", "drafts"),
    [*((names, draft()) for names in ODD_NAMES), *((mention(), drafts) for drafts in ODD_DRAFTS)],
)
def test_a_run_ends_with_an_answer_or_says_that_replies_are_invalid(
    names: Any, drafts: Any
) -> None:
    ends_within_its_calls(script(drafts, FINE, names))


@pytest.mark.parametrize("drafts", [draft(), draft("SELECT")])
@pytest.mark.parametrize("reviews", ODD_REVIEWS)
def test_a_review_ends_however_odd_it_is(drafts: Any, reviews: Any) -> None:
    ends_within_its_calls(script(drafts, reviews))


def ends_within_its_calls(replies: dict[str, Any]) -> None:
    """Each of five calls, and of those of each reading, is asked theta times at most."""
    model = Scripted(replies)
    run = surveyor(model, settings=SMALL)
    most = 5 * SMALL.theta
    try:
        run.go()
    except InvalidReplyError:
        assert model.call_count() <= most
        return
    assert run.status == "done" and model.call_count() <= most
    assert run.answer is not None and (run.answer.values or run.answer.reason)
    assert len(run.readings) <= 3
    for number, reading in enumerate(run.readings, 1):
        if reading.sparql:
            assert run.read_as(number).go().status == "done"
