"""Stepping through any system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pressing import button, parts, settled, shown, wait_for
from small import CALLS, DIRECTED, KEYS, SCRIPT, asked, chatty, made_up, sure, unsure

import kgwb
from kgwb.llm import Scripted
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import Session


def debugger(script: Any = SCRIPT, **options: Any) -> tuple[Debugger, Session, Scripted]:
    model = Scripted(script, **options)
    session = Session(made_up(model))
    return Debugger(session), session, model


def timeline(made: Debugger) -> list[str]:
    return [one.description for one in parts(made._timeline) if hasattr(one, "click")]


def do(made: Debugger, *texts: str) -> None:
    for text in texts:
        made._controls[
            {"Step": "step", "Continue": "go", "Back": "back", "To the start": "start"}[text]
        ].click()
        settled(made.session)


def test_nothing_is_executed_until_the_person_says_so() -> None:
    made, session, model = debugger()
    assert (model.calls(), session.run.status) == (0, "new")
    assert timeline(made) == ["○ split", "○ look_up", "○ deciding", "○ guess"]


def test_steps_forward_and_back() -> None:
    made, session, model = debugger()
    do(made, "Step", "Step")
    assert [step.key for step in session.run.steps] == KEYS[:2]
    calls = model.calls()
    do(made, "Back")
    assert [step.key for step in session.run.steps] == KEYS[:1]
    do(made, "Step")
    assert model.calls() == calls
    do(made, "To the start")
    assert session.run.steps == []


def test_the_steps_of_a_supervisor_stand_below_it() -> None:
    made, _, _ = debugger()
    do(made, "Continue")
    rows = {row.key: row for row in made._timeline.children[1:]}
    assert list(rows) == KEYS
    indents = [rows[key]._open.layout.margin for key in ("deciding", "guess", "guess#3")]
    assert indents == ["1px 0 1px 0px", "1px 0 1px 14px", "1px 0 1px 14px"]


def test_a_breakpoint_stops_after_its_agent_every_round() -> None:
    made, session, _ = debugger()
    [row] = [row for row in made._timeline.children[1:] if row.key == "guess"]
    row._stop.value = True
    reached = []
    for _ in range(3):
        do(made, "Continue")
        reached.append(session.run.steps[-1].key)
    assert reached == ["guess", "guess#2", "guess#3"]
    assert session.run.status == "paused"
    row._stop.value = False
    do(made, "Continue")
    assert session.run.status == "done"


def test_the_step_that_was_done_last_is_shown_until_the_person_chooses_another() -> None:
    made, _, _ = debugger()
    do(made, "Step", "Step")
    assert made._cell.key == "look_up[Arrival]"
    made.choose("split")
    assert made._cell.key == "split"
    assert "Dune" in shown(made._cell)


def test_an_edit_in_the_middle_is_gone_on_from() -> None:
    made, session, model = debugger({**SCRIPT, "made_up/guess": [unsure("one"), *[sure("two")] * 2]})
    do(made, "Continue")
    session.replace("split", ("Arrival",)).result()
    assert [text for text in timeline(made) if "stale" in text]
    do(made, "Continue")
    assert not [text for text in timeline(made) if "stale" in text]
    assert "look_up[Dune]" not in session.steps
    assert asked(model) == {"split": 1, "look_up": 2, "guess": 3}  # it guesses anew, knowing less


def test_cancel_cancels() -> None:
    made, session, model = debugger(delay_s=30, remote=True)
    made._controls["go"].click()
    wait_for(lambda: model.calls() == 1)
    assert "kgwb-dim" in made._controls["step"]._dom_classes
    made._controls["cancel"].click()
    settled(session)
    assert session.run.status == "cancelled"
    assert "cancelled" in shown(made)


def test_every_view_says_something_before_and_after() -> None:
    model = Scripted(DIRECTED)
    made = Debugger(Session(chatty("Who directed Arrival?", model)))
    for _ in range(2):
        for view in made._views.options:
            made._views.value = view
            assert made.message.value == ""
            assert made._view.children
        do(made, "Continue")
    made._views.value = "Answer"
    assert "Denis Villeneuve" in shown(made)
    made._views.value = "Time"
    assert "model (M)" in shown(made)


def test_a_failure_is_said_and_the_page_goes_on() -> None:
    made, session, _ = debugger()
    made.session.run.prompts = made.session.run.prompts.with_text(
        "made_up/look_up", session.run.prompts.text("made_up/split").replace("Split", "Look")
    )
    do(made, "Continue")
    assert session.run.status == "failed"
    assert "What to do" in made.message.value
    assert [text for text in timeline(made) if "✗ failed: look_up" in text]


def test_a_saved_run_opens_without_model_or_graph(tmp_path: Path) -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    made = kgwb.debug(kgwb.load_run(run.save(tmp_path / "run.jsonl")))
    assert "Denis Villeneuve" in shown(made)
    do(made, "To the start", "Step", "Continue")
    assert made.session.run.status == "done"


@pytest.mark.parametrize("name", ["Step", "Continue"])
def test_a_finished_run_goes_no_further(name: str) -> None:
    made, session, model = debugger()
    do(made, "Continue")
    assert "kgwb-dim" in button(made, name)._dom_classes
    do(made, name)
    assert (session.run.status, model.calls()) == ("done", CALLS)


def test_without_widgets_the_run_is_seen() -> None:
    made, session, _ = debugger()
    do(made, "Continue")
    assert "three" in made.static()
    assert repr(made) == repr(session.run)


def test_what_lies_ahead_after_going_back_is_told_from_what_is_done() -> None:
    made, _, _ = debugger()
    do(made, "Continue", "To the start", "Step")
    marks = [text.partition(" ")[0] for text in timeline(made)]
    assert marks == ["✓", *"◌" * (len(KEYS) - 1)]


def test_a_breakpoint_on_one_step_is_shown_and_can_be_taken_away() -> None:
    made, session, _ = debugger()
    session.run.breakpoints.add("look_up[Dune]")
    do(made, "Continue")
    rows = {row.key: row for row in made._timeline.children[1:]}
    assert rows["look_up[Dune]"]._stop.value
    assert not rows["look_up[Arrival]"]._stop.value
    rows["look_up[Dune]"]._stop.value = False
    assert session.run.breakpoints == set()
    rows["look_up[Arrival]"]._stop.value = True
    assert rows["look_up[Dune]"]._stop.value


def test_a_person_who_plays_is_asked_in_the_debugger_whatever_step_is_shown() -> None:
    human = kgwb.model("human")
    made = Debugger(Session(chatty("Who directed Arrival?", human)))
    made._controls["go"].click()
    wait_for(lambda: "Waiting for you" in shown(made))
    made.choose("classifier")
    assert "Waiting for you" in shown(made)
    made._controls["cancel"].click()
    settled(made.session)
