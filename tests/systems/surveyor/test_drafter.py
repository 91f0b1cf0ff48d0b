"""The draft of a query: what the drafter is shown, what it replies, and one that a person puts in."""

from __future__ import annotations

import pytest
from small import answer_of, asked
from surveying import (
    QUESTION,
    REVIEWING,
    SURVEYOR,
    answered,
    script,
    surveyor,
)

from kgwb.errors import OverrideError, SettingError
from kgwb.llm import Scripted
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.systems.surveyor.records import Draft


def test_the_model_is_told_the_day_that_the_settings_have_and_none_without_it() -> None:
    without_day = Scripted(script())
    surveyor(without_day).go()
    with_day = Scripted(script())
    run = surveyor(with_day, settings=REVIEWING.with_changes(today="2026-01-31")).go()
    for task in ("surveyor/drafter", "surveyor/reviewer"):
        [plain] = [each for each in without_day.requests if each.task == task]
        [dated] = [each for each in with_day.requests if each.task == task]
        assert plain.variables["question"] == QUESTION
        assert dated.variables["question"].startswith(f"{QUESTION}\nToday is 2026-01-31")
    # Of a fork with another day, the draft is asked for anew.
    later = run.fork(settings=REVIEWING.with_changes(today="2026-02-01")).go()
    assert asked(with_day) == {"mention_finder": 1, "drafter": 2, "reviewer": 2}
    assert later.output("mention_finder") == run.output("mention_finder")


@pytest.mark.parametrize("day", ["31.1.2026", "2026-1-31", "2026-02-30", "20260131", "today"])
def test_a_day_that_is_none_is_refused(day: str) -> None:
    with pytest.raises(SettingError, match="2026-01-31"):
        SURVEYOR.settings.of_profile("fast", today=day)


def test_a_draft_by_hand_changes_the_answer() -> None:
    run, model = answered()
    own = Draft(
        "PREFIX : <http://example.org/>\nSELECT ?f WHERE { ?f :director :lynch }", columns=("film",)
    )
    run.override("drafter", own).go()
    assert (answer_of(run).labels, asked(model)["drafter"], asked(model)["reviewer"]) == (
        ("Dune",),
        1,
        2,
    )
    assert len(answer_of(run.remove_override("drafter").go()).values) == 3
    problems = {"DROP ALL": "change the graph", "DESCRIBE <a:b>": "DESCRIBE", "?": "parse"}
    for query, problem in problems.items():
        with pytest.raises(OverrideError, match=problem):
            run.override("drafter", Draft(query))


def test_a_draft_that_a_person_puts_in_says_why_it_has_no_query() -> None:
    run, _ = answered()
    for decision in (Draft(""), Draft("", more=("Studio",))):
        with pytest.raises(OverrideError):
            run.override("drafter", decision)
    run.override("drafter", Draft("", missing="a price")).go()
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: a price"
