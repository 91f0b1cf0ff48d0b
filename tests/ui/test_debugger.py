"""Stepping through any system: what the debugger shows, and what its buttons do."""

import re
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
import surveying
from ipywidgets import Widget
from page import Element, do, page, press, settle, text, wait_for
from small import (
    CALLS,
    DIRECTED,
    HOMONYMS,
    KEYS,
    SCRIPT,
    answer_of,
    chatty,
    made_up,
)

import kgwb
from kgwb.errors import SettingError
from kgwb.llm import Scripted
from kgwb.ui.debugger import Debugger
from kgwb.ui.live import shared_script
from kgwb.ui.session import Session, session_of
from ui.test_chat import LATEST, READ_OTHERWISE, REFUSED_HERE

LEAVES = [key for key in KEYS if key != "deciding"]


def debugger(script: Any = SCRIPT, **options: Any) -> tuple[Debugger, Session, Scripted]:
    model = Scripted(script, **options)
    session = Session(made_up(model))
    return Debugger(session), session, model


def chatty_debugger(
    script: Any = DIRECTED, question: str = "Who directed Arrival?"
) -> tuple[Debugger, Session]:
    session = Session(chatty(question, Scripted(script)))
    return Debugger(session), session


def rows(made: Debugger) -> dict[str, Element]:
    """The lines of the timeline by key."""
    return {
        one.attributes["data-arg"]: one
        for one in page(made).elements
        if one.attributes.get("class") == "go"
    }


def choose(made: Debugger, key: str) -> None:
    made.update({"do": "choose", "arg": key})


def test_a_supporting_triple_is_muted_and_it_is_told_whether_the_answer_stands() -> None:
    session = Session(kgwb.Workbench(kgwb.open_kg("films")).begin("Who directed Arrival?"))
    made = Debugger(session)
    do(made, "Continue")
    made.update({"do": "view", "arg": "answer"})
    press(made, "Mute")
    wait_for(lambda: "The answer does not stand without this triple." in text(made), 60)
    assert len(made.forks[0].session.run.kg.muted) == 1
    assert session.run.answer and session.run.answer.labels == ("Denis Villeneuve",)


def test_nothing_is_executed_until_step_and_back_go_over_agents_that_work() -> None:
    made, session, model = debugger()
    assert (model.call_count(), session.run.status) == (0, "new")
    assert list(rows(made)) == ["split", "look_up", "deciding", "guess"]
    assert "answer off" in made.html
    reached = []
    for _ in LEAVES:
        do(made, "Step")
        reached.append(made.key if made.key in LEAVES else session.run.steps[-1].key)
    assert reached == LEAVES
    do(made, "Step")
    assert session.run.status == "done"
    calls = model.call_count()
    do(made, "Back")
    assert "guess#3" not in session.run.steps_by_key
    assert session.run.steps_by_key["guess#2"].done
    do(made, "Back", "Step", "Step", "Step")
    assert (session.run.status, model.call_count()) == ("done", calls)
    do(made, "To the start")
    assert session.run.steps == []


def test_a_stop_holds_after_its_agent_every_round_with_its_result_open() -> None:
    made, session, _ = debugger()
    made.update({"do": "stop", "arg": "guess"})
    reached = []
    for _ in range(3):
        do(made, "Continue")
        reached.append(session.run.steps[-1].key)
        assert 'id="panel-result-' in made.html
        assert rows(made)[reached[-1]].attributes["aria-current"] == "step"
    assert reached == ["guess", "guess#2", "guess#3"]
    assert "stands here" in made.html
    made.update({"do": "stop", "arg": "guess#2"})
    assert session.run.breakpoints == set()
    do(made, "Continue")
    assert session.run.status == "done"


def test_the_breakpoints_of_the_steps_of_one_agent_are_told_apart_by_their_names() -> None:
    made, session, _ = debugger()
    session.go().result(10)
    stops = [one for one in page(made).elements if one.attributes.get("data-do") == "stop"]
    names = {one.attributes["data-arg"]: one.label for one in stops}
    assert len(set(names.values())) == len(names) == len(KEYS)
    assert names["guess"] == "stop after guess"
    assert names["guess#2"] == "stop after guess, 2"
    assert names["look_up[Arrival]"] == "stop after look up Arrival"


def test_the_step_that_was_done_last_is_shown_until_the_person_chooses_another() -> None:
    made, _, _ = debugger()
    do(made, "Step", "Step")
    assert made.key == "look_up[Arrival]"
    choose(made, "split")
    assert "Dune" in text(made)
    do(made, "Step")
    assert made.key == "look_up[Dune]"


def test_unused_agents_stand_greyed_where_they_would_work() -> None:
    made, _ = chatty_debugger()
    do(made, "Continue")
    assert "not needed" in rows(made)["rephraser"].text
    order = list(rows(made))
    assert order.index("classifier") < order.index("rephraser") < order.index("qir")
    nodes = re.findall(r'class="node ([^"]*)"', made.html)
    assert sum("unused" in one for one in nodes) == 4
    assert "Denis Villeneuve" in text(made)
    assert "1 triple" in text(made)


def test_compare_shows_the_first_decision_that_differs_on_top() -> None:
    made, session = chatty_debugger(HOMONYMS, "Who directed Dune?")
    do(made, "Continue")
    choose(made, "vertex_selection[Dune]")
    made.update({"do": "take", "arg": "1"})
    settle(session)
    do(made, "Continue")
    press(made, "Compare")
    shown = text(made)
    assert shown.index("First decision") < shown.index("vertex selection Dune")
    press(made, "Run under profile paper")
    [fork] = made.forks
    settle(fork.session)
    assert fork.session.run.settings.profile == "paper"
    assert fork.name in text(made)


def test_a_fork_that_takes_long_can_be_cancelled() -> None:
    session = Session(chatty("Who directed Arrival?", Scripted(DIRECTED, delay_s=60)))
    made = Debugger(session)
    press(made, "Compare")
    press(made, "Run under profile paper")
    [fork] = made.forks
    wait_for(lambda: fork.session.run.steps)
    press(made, "Cancel this run")
    settle(fork.session)
    assert fork.session.run.status == "cancelled"
    assert "Cancel this run" not in text(made)
    assert session.run.status == "new"


def test_a_question_that_a_system_cannot_express_goes_to_the_one_that_can() -> None:
    made, session = chatty_debugger(REFUSED_HERE, LATEST)
    do(made, "Continue")
    press(made, "Ask surveyor")
    [fork] = made.forks
    settle(fork.session)
    assert fork.session.run.system.name == "surveyor"
    assert sorted(answer_of(fork.session.run).labels) == ["Arrival", "Dune", "Sicario"]
    assert not answer_of(session.run).values
    made.update({"do": "view", "arg": "compare"})
    assert "asked surveyor" in text(made)


def test_cancel_cancels_and_buttons_wait() -> None:
    made, session, model = debugger(delay_s=30, remote=True)
    press(made, "Continue")
    wait_for(lambda: model.call_count() == 1)
    wait_for(lambda: page(made).find("Step").attributes.get("aria-disabled") == "true")
    do(made, "Cancel")
    assert session.run.status == "cancelled"
    assert "Cancelled" in text(made)


def test_a_failure_is_said_and_the_page_goes_on() -> None:
    made, session, _ = debugger()
    prompts = session.run.prompts
    wrong = prompts.text("made_up/split").replace("Split", "Look")
    session.run.prompts = prompts.with_text("made_up/look_up", wrong)
    do(made, "Continue")
    assert session.run.status == "failed"
    assert session.failure is not None and session.failure.hint in text(made)
    assert "isbad" in made.html
    do(made, "Back")
    assert session.run.steps == []


def test_a_saved_run_opens_without_model_or_graph(tmp_path: Path) -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    made = kgwb.debug(kgwb.load_run(run.save(tmp_path / "run.jsonl")))
    assert "Denis Villeneuve" in text(made)
    do(made, "To the start", "Step", "Continue")
    assert made.session.run.status == "done"


def test_a_finished_run_goes_no_further() -> None:
    made, session, model = debugger()
    do(made, "Continue")
    assert {page(made).find(name).attributes["aria-disabled"] for name in ("Step", "Continue")} == {
        "true"
    }
    made.update({"do": "go"})
    assert "has ended" in text(made)
    assert ("three" in made.static_html(), repr(made)) == (True, repr(session.run))
    assert (session.run.status, model.call_count()) == ("done", CALLS)


def test_the_steps_of_a_supervisor_stand_below_it_and_what_lies_ahead_stays_and_is_marked() -> None:
    made, _, _ = debugger()
    do(made, "Continue")
    depth = {key: one.attributes["style"] for key, one in rows(made).items()}
    assert list(depth) == KEYS
    assert [depth[key] for key in ("deciding", "guess", "guess#3")] == ["--d:0", "--d:1", "--d:1"]
    do(made, "To the start", "Step")
    assert made.html.count('class="ahead"') + made.html.count("sup ahead") == len(KEYS) - 1


def test_a_person_who_plays_is_asked_in_the_debugger_whatever_step_is_shown() -> None:
    made = Debugger(Session(chatty("Who directed Arrival?", kgwb.model("human"))))
    press(made, "Continue")
    wait_for(lambda: "waiting for your reply" in text(made))
    choose(made, "classifier")
    assert "waiting for" in text(made)
    press(made, "Cancel")
    settle(made.session)


def test_the_keys_of_the_page() -> None:
    """j and k move along the timeline from the chosen step; s, c and b are on what they press."""
    made, _ = chatty_debugger()
    do(made, "Continue")
    choose(made, "qir")
    keyed = {
        one.attributes["data-key"]: one
        for one in page(made).elements
        if "data-key" in one.attributes
    }
    assert keyed["j ArrowDown"].attributes["data-arg"] == "query_planning"
    assert keyed["b"].attributes["data-arg"] == "qir"
    assert {"s", "c", "Enter"} <= set(keyed)


# --- events that no button sends


@pytest.mark.parametrize("event", ["choose", "which", "stop", "handover"])
def test_what_a_page_does_not_offer_is_refused_and_everything_stays(event: str) -> None:
    made, session = chatty_debugger()
    do(made, "Continue")
    assert "Ask surveyor" not in text(made)
    before, stops = made.view(), set(session.run.breakpoints)
    made.update({"do": event, "arg": "<img>"})
    assert isinstance(made.event_error, SettingError)
    assert (made.view(), session.run.breakpoints) == (before, stops)


def test_a_key_typed_in_the_place_of_a_model_is_not_kept() -> None:
    made, _, _ = debugger()
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    made.update({"do": "model", "form": {"model": key}})
    assert "in a cell" in text(made)
    assert key not in made.html + str(made.get_state())


def test_a_drawing_that_is_interrupted_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made, session, _ = debugger()
    page(made)  # it is displayed
    settle(session)
    view = made.view
    this_thread = threading.current_thread()

    def interrupted() -> str:
        if threading.current_thread() is this_thread:
            raise KeyboardInterrupt
        return view()

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(made, "view", interrupted)
        wait_for(made.redraw)  # a thread that is just drawing would draw in place of this one
    made.update({"do": "view", "arg": "answer"})
    assert "No answer" in text(made)


def test_another_reading_is_executed_beside_the_run() -> None:
    run = surveying.surveyor(Scripted(READ_OTHERWISE)).go()
    made = Debugger(session_of(run))
    press(made, "the film that Lynch directed")
    [fork] = made.forks
    settle(fork.session)
    assert answer_of(fork.session.run).labels == ("Dune",)
    assert len(answer_of(run).values) == 3
    made.update({"do": "reading", "arg": "9"})
    assert isinstance(made.event_error, SettingError)


def test_the_picture_of_the_graph_and_the_comparison_have_the_room_of_the_timeline() -> None:
    made, session, _ = debugger()
    session.go().result(10)
    for label in ("Subgraph", "Compare"):
        press(made, label)
        assert rows(made) == {}
        press(made, "Answer")
        assert rows(made)


def test_the_end_of_a_run_is_announced_once_also_where_its_last_step_does_not_say_it() -> None:
    made, _ = chatty_debugger()
    do(made, "Continue")
    elements = page(made).elements
    assert elements[0].attributes["data-say"].count("Denis Villeneuve") == 1
    assert not [one for one in elements if one.attributes.get("role") == "status"]
    made, session = chatty_debugger(REFUSED_HERE, LATEST)
    do(made, "Continue")
    answer = str(answer_of(session.run))
    assert answer in page(made).elements[0].attributes["data-say"]
    made.update({"do": "choose", "arg": "qir"})
    assert answer not in page(made).elements[0].attributes["data-say"]


def test_a_state_is_packed_and_the_script_is_sent_once_for_all_widgets() -> None:
    made, other = chatty_debugger()[0], chatty_debugger()[0]
    do(made, "Continue")
    assert zlib.decompress(made.packed).decode() == made.html
    assert made.model_id != other.model_id
    assert made.script_id == other.script_id
    Widget.close_all()
    later, _ = chatty_debugger()
    assert later.model_id
    assert later.script_id == shared_script().model_id != made.script_id
