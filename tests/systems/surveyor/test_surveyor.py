"""The survey of Surveyor: its time limit, its record, and one that a person puts in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from surveying import (
    SURVEYOR,
    answered,
    script,
    surveyor,
    variables_of,
)

from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_records import Survey
from kgwb.llm import Scripted
from kgwb.systems import surveyor as pipeline


def test_a_fork_with_another_time_limit_surveys_anew_and_one_with_the_same_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []

    def watched(kg: Any, classes: Any, *, timeout_s: float) -> Survey:
        given.append(timeout_s)
        return survey_graph(kg, classes, timeout_s=timeout_s)

    monkeypatch.setattr(pipeline, "survey_graph", watched)
    run = surveyor(Scripted(script())).go(until="drafter")
    for seconds in (60, 300, 300):
        settings = SURVEYOR.settings(survey_seconds=seconds)
        run = run.fork(settings=settings).go(until="drafter")
    assert given == [60.0, 300.0]
    [first, second] = [call.request for call in run.calls.values() if call.kind == "survey"]
    assert second == {**first, "seconds": 300}


def test_a_survey_by_hand_changes_what_is_drafted() -> None:
    run, model = answered()
    seen = run.output("surveyor")
    assert isinstance(seen, Survey)
    only = [kind for kind in seen.classes if kind.name == "Story"]
    run.override("surveyor", replace(seen, classes=tuple(only))).go()
    assert ["org:Film" in text for text in variables_of(model, "drafter", "survey")] == [
        True,
        False,
    ]
