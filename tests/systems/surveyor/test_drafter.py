"""The draft of a query: what the drafter is shown, what it replies, and one that a person puts in."""

from __future__ import annotations

from typing import Any

import pytest
from small import answer_of, asked
from surveying import (
    FILMS_OF_ONE_NAME,
    FINE,
    NOT_HERE,
    ONE_CLASS,
    QUESTION,
    READ,
    REVIEWING,
    SURVEYOR,
    UNREVIEWED,
    WRITER,
    answered,
    ask_twins,
    described_classes,
    draft,
    mention,
    part_of,
    script,
    surveyor,
    variables_of,
)

from kgwb.errors import InvalidReplyError, OverrideError, SettingError
from kgwb.llm import Scripted
from kgwb.run.answers import NOT_IN_GRAPH
from kgwb.systems.surveyor.records import Draft


@pytest.mark.parametrize(
    ("drafts", "reviews", "calls"),
    [
        (draft("", missing="what a film cost"), FINE, 2),
        (draft(), NOT_HERE, 3),
        (draft("", reason="what a film cost"), FINE, 2),
    ],
)
def test_the_reason_is_what_the_graph_lacks(drafts: Any, reviews: Any, calls: int) -> None:
    run, model = answered(drafts, reviews)
    assert run.answer is not None and not run.answer
    assert run.answer.reason == f"{NOT_IN_GRAPH}: {NOT_HERE['missing']}"
    assert model.call_count() == calls


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


def test_another_reading_asks_again_from_the_draft_on_and_nothing_else() -> None:
    other = draft("SELECT ?film { ?film org:director org:lynch }", assumptions=[])
    run, model = answered([draft(assumptions=[READ]), other], settings=UNREVIEWED)
    assert [(each.taken, each.other) for each in run.readings][:2] == [
        (READ["taken"], "films that he wrote"),
        (READ["taken"], "both"),
    ]
    read = run.read_as(2).go()
    assert answer_of(read).labels == ("Dune",)
    assert [each.other for each in read.readings if not each.sparql] == []
    assert asked(model)["mention_finder"] == 1 and asked(model)["drafter"] == 2
    first, second = (r for r in model.requests if r.task == "surveyor/drafter")
    added = set(second.variables["question"].splitlines()) - {first.variables["question"]}
    assert any("both" in line for line in added)
    assert second.variables["survey"] == first.variables["survey"]
    assert set(answer_of(run).labels) == {"Arrival", "Dune", "Sicario"}
    for number in (0, len(run.readings) + 1):
        with pytest.raises(SettingError, match=f"no other reading {number}"):
            run.read_as(number)


NAMED_CLASSES = tuple(map(WRITER.format_title, WRITER.groups))
"""The classes as a survey names those that it has no room for."""


def test_classes_of_one_name_are_all_named_where_there_is_no_room() -> None:
    run, model = ask_twins(settings=ONE_CLASS)
    [excerpt] = variables_of(model, "drafter", "survey")
    named = excerpt.splitlines()[-1].partition("not shown here: ")[2].split(", ")
    curies = [*described_classes(excerpt), *(text.partition(" ")[0] for text in named)]
    assert {"a:Film", "b:Film", "a:Cafe", "b:Cafe"} < set(curies)
    assert len(curies) == len(set(curies)) == len(NAMED_CLASSES)
    assert len(set(part_of(run).left)) == len(named)


@pytest.mark.parametrize("named", NAMED_CLASSES)
def test_each_class_that_is_only_named_can_be_asked_for(named: str) -> None:
    curie = named.partition(" ")[0]
    first_shown = mention(classes=["Language C" if curie == "a:Id" else "id"])
    for name in (named, curie):
        more = draft("", more=[name])
        run, model = ask_twins([more, draft()], names=first_shown, settings=ONE_CLASS)
        shown = variables_of(model, "drafter", "survey")[1]
        assert described_classes(shown) == [curie]
        assert run.output("drafter").more == (name,)


def test_classes_are_shown_once_and_then_the_drafter_has_to_decide() -> None:
    more = draft("", more=["b:Film"])
    run, _ = ask_twins([more, more, draft(FILMS_OF_ONE_NAME)], settings=ONE_CLASS)
    assert len(answer_of(run).values) == 2
    assert [len(step.attempts) for step in run.steps if step.agent == "drafter"] == [1, 2]
    with pytest.raises(InvalidReplyError, match="b:Film"):
        ask_twins(more, settings=ONE_CLASS)


@pytest.mark.parametrize(
    ("drafts", "reviews"),
    [
        (draft("", reason="", more=["Studio"]), FINE),
        (draft("", reason=" ", more=[]), FINE),
        (draft(), {**FINE, "verdict": NOT_IN_GRAPH, "reason": ""}),
    ],
)
def test_no_run_ends_without_a_query_an_answer_or_a_reason(drafts: Any, reviews: Any) -> None:
    with pytest.raises(InvalidReplyError):
        ask_twins(drafts, reviews)


def test_a_draft_that_a_person_puts_in_says_why_it_has_no_query() -> None:
    run, _ = ask_twins()
    for decision in (Draft(""), Draft("", more=("Studio",))):
        with pytest.raises(OverrideError):
            run.override("drafter", decision)
    run.override("drafter", Draft("", missing="a price")).go()
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: a price"


def test_values_of_one_text_are_shown_differently_to_the_drafter() -> None:
    _, model = ask_twins(names=mention("Same", "5", classes=()))
    [names] = variables_of(model, "drafter", "names")
    lines = [line for line in names.splitlines() if "value of a:name" in line]
    assert sorted(line.split()[0] for line in lines) == ['"Same"@de', '"Same"@en']
    assert len(set(names.splitlines())) == len(names.splitlines())


@pytest.mark.parametrize("classes", [("Film", "Story"), ("Film",)])
def test_classes_that_the_question_does_not_name_fill_half_of_the_room(
    classes: tuple[str, ...],
) -> None:
    _, model = answered(names=mention(classes=("Film", "Story")))
    [whole] = variables_of(model, "drafter", "survey")
    film, story, *_ = whole.split("\norg:")
    chars = len(film) + len(f"org:{story}")
    settings = SURVEYOR.settings(survey_tokens=-(-chars // 4))
    _, model = answered(names=mention(classes=classes), settings=settings)
    [excerpt] = variables_of(model, "drafter", "survey")
    assert described_classes(excerpt)[:2] == [f"org:{name}" for name in classes]
