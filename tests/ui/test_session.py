"""What a person does to a run, without a widget."""

from __future__ import annotations

import _thread
import threading
from pathlib import Path

import pytest
from page import wait_for
from small import DIRECTED, TEXTS, asked, chatty, iri, made_up

from kgwb.errors import ModelError, OverrideError, SettingError
from kgwb.llm import Scripted
from kgwb.run.prompts import Prompts
from kgwb.systems.chatty_kg.records import QIR, Fact
from kgwb.ui.session import Session, Worker, session_of

QUESTION = "Who directed Arrival?"


def directed(**options: object) -> tuple[Session, Scripted]:
    model = Scripted(DIRECTED, **options)  # type: ignore[arg-type]
    return Session(chatty(QUESTION, model)), model


def states(session: Session) -> dict[str, str]:
    return {key: session.state(key) for key in session.steps}


# --- peeking


def test_a_prompt_is_seen_as_it_will_be_sent_and_nobody_is_asked() -> None:
    session, model = directed()
    assert session.peek("predicate_selection") is None  # what qir will say decides what it is sent
    request = session.peek("qir")
    assert request is not None
    assert request.task == "chatty_kg/qir"
    assert QUESTION in request.messages[-1].content
    assert (model.calls(), session.run.status, session.run.calls) == (0, "new", {})
    session.go("qir").result()
    assert model.requests[0].content() == request.content()


def test_an_agent_that_asks_no_model_has_no_prompt_to_see() -> None:
    session, model = directed()
    session.go().result()
    calls = model.calls()
    assert session.peek("context") is None
    assert session.peek("qir") is not None
    assert model.calls() == calls


def test_a_prompt_is_seen_with_another_text() -> None:
    run = made_up(Scripted({}))
    session = Session(run)
    text = TEXTS["made_up/split"].replace("Split:", "Take apart:")
    request = session.peek("split", "made_up/split", text)
    assert request is not None
    assert request.messages[0].content == "Take apart: What is it?"
    assert "Take apart" not in run.prompts.text("made_up/split")


# --- stale


def test_what_follows_an_edit_is_stale_until_it_is_run_again() -> None:
    session, _ = directed()
    session.go().result()
    assert set(states(session).values()) == {"done"}
    facts = (Fact("Arrival", "director", "?who"),)
    session.replace("qir", QIR(facts, "?who")).result()
    now = states(session)
    assert (now["classifier"], now["qir"]) == ("done", "done")
    assert now["execution"] == now["query_generator"] == now["query_planning"] == "stale"
    assert session.steps["qir"].origin == "by hand"
    session.go().result()
    assert set(states(session).values()) == {"done"}
    assert next(one.key for one in session.compared() or () if one.status != "same") == "qir"


def test_running_less_far_makes_nothing_stale() -> None:
    session, model = directed()
    session.go().result()
    session.go("qir").result()
    now = states(session)
    assert (now["qir"], now["query_generator"], now["execution"]) == ("done", "ahead", "ahead")
    assert asked(model)["qir"] == 1


def test_an_edited_prompt_makes_its_step_stale_and_is_asked_when_run() -> None:
    session, model = directed()
    session.go().result()
    text = session.run.prompts.text("chatty_kg/qir")
    session.edit_prompt("chatty_kg/qir", text + "\nBe brief.")
    assert (states(session)["qir"], states(session)["classifier"]) == ("stale", "done")
    session.go("qir").result()
    assert asked(model)["qir"] == 2
    assert model.requests[-1].messages[-1].content.endswith("Be brief.")


def test_an_edit_that_breaks_a_check_changes_nothing() -> None:
    session, _ = directed()
    session.go().result()
    with pytest.raises(OverrideError, match="at least one entity"):
        session.replace("qir", QIR((Fact("?a", "director", "?b"),), "?a"))
    assert set(states(session).values()) == {"done"}
    assert session.versions == []


def test_a_value_put_in_by_hand_can_be_taken_out_again() -> None:
    session, _ = directed()
    session.go().result()
    before = session.steps["qir"].output
    session.replace("qir", QIR((Fact("Arrival", "starring", "?who"),), "?who")).result()
    session.restore("qir").result()
    assert (session.steps["qir"].output, session.steps["qir"].origin) == (before, "record")


def test_asking_anew_asks_that_step_alone() -> None:
    session, model = directed()
    session.go().result()
    session.refresh("qir").result()
    assert asked(model) == {"qir": 2, "predicate_selection": 1}


# --- the worker


def test_a_busy_run_refuses_a_second_command_and_can_be_cancelled() -> None:
    model = Scripted(DIRECTED, delay_s=30, remote=True)
    session = Session(chatty(QUESTION, model))
    running = session.go()
    wait_for(lambda: model.calls() == 1)
    assert session.busy
    for command in (session.go, session.step, lambda: session.replace("qir", QIR(()))):
        with pytest.raises(SettingError, match="busy"):
            command()
    session.cancel()
    running.result(timeout=5)
    assert (session.busy, session.run.status, session.failure) == ("", "cancelled", None)
    assert session.state("classifier") == "done"


def test_a_failure_is_kept_and_the_run_goes_on_when_it_is_mended() -> None:
    replies = [ModelError("the server is down", hint="start it"), DIRECTED["chatty_kg/qir"]]
    model = Scripted({**DIRECTED, "chatty_kg/qir": replies})
    session = Session(chatty(QUESTION, model))
    session.go().result()
    assert (session.state("qir"), str(session.failure)) == (
        "failed",
        "the server is down\n  What to do: start it",
    )
    session.go().result()
    assert (session.failure, str(session.run.answer)) == (None, "Denis Villeneuve")


def test_a_bug_does_not_leave_the_session_busy() -> None:
    session, _ = directed()
    session.do("breaking", lambda: 1 // 0).result()
    assert session.busy == ""
    assert "ZeroDivisionError" in str(session.failure)


def test_listeners_hear_of_the_beginning_and_the_end_on_any_thread() -> None:
    session, _ = directed()
    heard: list[tuple[str, str]] = []
    session.listen(lambda: heard.append((session.busy, session.run.status)))
    worker = threading.Thread(target=lambda: session.go().result())
    worker.start()
    worker.join()
    assert heard[0][0] == "running to the end"
    assert heard[-1] == ("", "done")


def test_every_widget_of_a_run_has_the_same_session() -> None:
    run = chatty(QUESTION, Scripted(DIRECTED))
    assert session_of(run) is session_of(run)
    assert session_of(run) is not session_of(run.fork())


def test_another_vertex_by_hand_asks_only_for_what_follows() -> None:
    session, model = directed()
    session.go().result()
    [step] = session.steps_of("vertex_selection")
    link = step.output
    other = link.vertex.__class__(iri("dune"), "Dune")
    session.replace(step.key, link.__class__(link.entity, other, link.candidates, "by hand")).result()
    session.go().result()
    assert asked(model)["qir"] == 1
    assert str(session.run.answer) == "Denis Villeneuve"
    assert iri("dune") in {triple[0] for triple in session.run.answer.support}  # type: ignore[union-attr]


def test_a_run_that_code_executes_is_shown_too() -> None:
    session = session_of(chatty(QUESTION, Scripted(DIRECTED)))
    heard: list[str] = []
    session.listen(lambda: heard.append(session.run.status))
    session.run.go()
    wait_for(lambda: heard and heard[-1] == "done")
    assert "execution" in session.steps


def test_code_that_executes_the_run_keeps_others_out_and_can_be_cancelled() -> None:
    model = Scripted(DIRECTED, delay_s=30, remote=True)
    session = Session(chatty(QUESTION, model))
    running = threading.Thread(target=session.run.go)
    running.start()
    wait_for(lambda: model.calls() == 1)
    for command in (session.go, lambda: session.replace("classifier", {"label": "dependent"})):
        with pytest.raises(SettingError, match="code executes it"):
            command()
    assert session.run.overrides == {}
    session.cancel()
    running.join(5)
    assert session.run.status == "cancelled"


def test_a_prompt_saved_to_its_file_is_an_edit_too(tmp_path: Path) -> None:
    run = chatty(QUESTION, Scripted(DIRECTED), prompts=Prompts(tmp_path))
    session = Session(run)
    session.go().result()
    session.save_prompt("chatty_kg/qir", run.prompts.text("chatty_kg/qir") + "\nBe brief.")
    assert session.state("qir") == "stale"
    assert len(session.versions) == 1


def test_what_was_before_is_told_whole_after_going_back() -> None:
    session, _ = directed()
    session.go().result()
    session.go("qir").result()
    session.edit_prompt("chatty_kg/qir", session.run.prompts.text("chatty_kg/qir") + "\nBe brief.")
    [before] = session.versions
    assert (before.totals.model_calls, str(before.answer)) == (2, "Denis Villeneuve")


def test_asking_anew_in_vain_keeps_what_was_recorded() -> None:
    replies = [DIRECTED["chatty_kg/qir"], ModelError("the server is down")]
    model = Scripted({**DIRECTED, "chatty_kg/qir": replies})
    session = Session(chatty(QUESTION, model))
    session.go().result()
    session.refresh("qir").result()
    assert "the server is down" in str(session.failure)
    session.go().result()
    assert (session.failure, str(session.run.answer)) == (None, "Denis Villeneuve")


def test_an_interrupt_while_work_begins_does_not_leave_it_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(threading.Thread):
        def start(self) -> None:
            _thread.interrupt_main()
            super().start()

    worker = Worker()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("kgwb.ui.session.threading.Thread", Interrupted)
        worker.do("working", lambda: None)
    wait_for(lambda: not worker.busy)
    worker.do("working again", lambda: None).result()


def test_work_for_which_there_is_no_thread_does_not_leave_it_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    worker = Worker()
    worker.do("working", lambda: None).result()  # the thread that starts it is there
    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr("kgwb.ui.session.threading.Thread", NoThread)
        worker.do("working", lambda: None)
    assert not worker.busy
