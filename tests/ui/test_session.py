"""What a person does to a run, without a widget, and the worker that does it."""

import _thread
import threading
from pathlib import Path
from typing import Any

import pytest
from page import wait_for
from small import DIRECTED, asked, chatty

from kgwb.errors import ModelError, SettingError
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.run.differences import compare_steps
from kgwb.run.prompts import Prompts
from kgwb.systems.chatty_kg.records import QIR, Fact
from kgwb.ui.session import Session, session_of
from kgwb.ui.worker import Worker

QUESTION = "Who directed Arrival?"
DOWN = ModelError("the server is down", hint="start it")


def directed(**changed: Any) -> tuple[Session, Scripted]:
    model = Scripted(
        {**DIRECTED, **{f"chatty_kg/{name}": reply for name, reply in changed.items()}}
    )
    return Session(chatty(QUESTION, model)), model


def slow() -> tuple[Session, Scripted]:
    model = Scripted(DIRECTED, delay_s=30, remote=True)
    return Session(chatty(QUESTION, model)), model


@pytest.fixture
def done() -> tuple[Session, Scripted]:
    session, model = directed()
    session.go().result()
    return session, model


def states(session: Session) -> dict[str, str]:
    return {key: session.run_state().step_state(key) for key in session.steps}


def brief(session: Session) -> str:
    return session.run.prompts.text("chatty_kg/qir") + "\nBe brief."


# --- the worker


def test_work_waits_its_turn_and_listeners_hear_of_every_end() -> None:
    worker, go_on, order = Worker(), threading.Event(), list[str]()
    worker.subscribe(
        lambda: order.append(f"busy with {worker.current_task}" if worker.current_task else "free")
    )
    first = worker.submit("first", lambda: go_on.wait(60))
    second = worker.submit("second", lambda: order.append("second is done"))
    assert (worker.current_task, worker.queued_tasks) == ("first", ("second",))
    with pytest.raises(SettingError, match="busy: first"):
        worker.require_idle()
    wait_for(lambda: order)
    go_on.set()
    first.result(60)
    second.result(60)
    assert order[:3] == ["busy with first", "busy with second", "second is done"]
    assert order[-1] == "free"


@pytest.mark.parametrize("how", ["cancel", "failure"])
def test_a_cancel_and_a_failure_drop_what_waits(how: str) -> None:
    worker, go_on = Worker(), threading.Event()

    def fail() -> None:
        go_on.wait(60)
        if how == "failure":
            raise DOWN

    worker.submit("first", fail)
    dropped = worker.submit("second", lambda: pytest.fail("it was dropped"))
    if how == "cancel":
        worker.cancel()
        assert worker.cancelled
    go_on.set()
    dropped.result(60)
    wait_for(lambda: not worker.current_task)
    assert worker.failure is (DOWN if how == "failure" else None)
    worker.submit("third", lambda: None).result(60)
    assert worker.failure is None


def test_what_ends_soon_is_told_once_and_those_preferred_are_told_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgwb.ui.worker.NOTIFY_DELAY_S", 60)  # so that anything ends soon
    worker, told = Worker(), list[str]()
    first, second = (lambda: told.append("first")), (lambda: told.append("second"))
    worker.subscribe(first)
    worker.subscribe(second)
    worker.prioritize(second)
    worker.submit("something short", lambda: None).result(60)
    assert told == ["second", "first"]
    assert not worker.has_pending_notification
    wait_for(lambda: not any(isinstance(one, threading.Timer) for one in threading.enumerate()))
    worker.unsubscribe(first)
    worker.notify()
    assert told == ["second", "first", "second"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_work_that_is_kept_from_beginning_does_not_leave_it_busy(
    problem: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Thread(threading.Thread):
        def start(self) -> None:
            if problem is RuntimeError:
                raise RuntimeError("can't start new thread")
            _thread.interrupt_main()
            super().start()

    worker = Worker()
    worker.submit("working", lambda: None).result()  # the thread that starts it is there
    with monkeypatch.context() as patched, pytest.raises(problem):
        patched.setattr("kgwb.ui.worker.threading.Thread", Thread)
        worker.submit("working", lambda: None)
    wait_for(lambda: not worker.current_task)
    worker.submit("working again", lambda: None).result()


def test_a_bug_does_not_leave_the_session_busy() -> None:
    session, _ = directed()
    session.submit("breaking", lambda: 1 // 0).result()
    assert session.current_task == ""
    assert "ZeroDivisionError" in str(session.failure)


# --- peeking


def test_a_prompt_is_seen_as_it_will_be_sent_and_nobody_is_asked() -> None:
    session, model = directed()
    assert session.peek("predicate_selection") is None  # what qir will say decides what it is sent
    request = session.peek("qir")
    assert request is not None and QUESTION in request.messages[-1].content
    assert (model.call_count(), session.run.status, session.run.calls) == (0, "new", {})
    session.go("qir").result()
    assert model.requests[0].recorded_content() == request.recorded_content()
    assert session.peek("context") is None  # it asks no model


# --- stale


def test_what_follows_an_edit_is_stale_until_it_is_run_again(
    done: tuple[Session, Scripted],
) -> None:
    session, _ = done
    assert set(states(session).values()) == {"done"}
    before = session.steps["qir"].output
    session.replace("qir", QIR((Fact("Arrival", "director", "?who"),), "?who")).result()
    now = states(session)
    assert [now[key] for key in ("classifier", "qir")] == ["done", "done"]
    assert [now[key] for key in ("query_generator", "execution")] == ["stale", "stale"]
    assert session.steps["qir"].origin == "by hand"
    session.go().result()
    assert set(states(session).values()) == {"done"}
    differences = compare_steps(session.history[-1].steps, session.steps)
    assert next(step.key for step in differences if step.status != "same") == "qir"
    session.restore("qir").result()
    assert (session.steps["qir"].output, session.steps["qir"].origin) == (before, "record")


def test_running_less_far_makes_nothing_stale_and_is_kept_whole(
    done: tuple[Session, Scripted],
) -> None:
    session, model = done
    session.go("qir").result()
    now = states(session)
    assert (now["qir"], now["query_generator"], now["execution"]) == ("done", "ahead", "ahead")
    assert asked(model)["qir"] == 1
    session.edit_prompt("chatty_kg/qir", brief(session))
    [before] = session.history
    assert (before.totals.model_calls, str(before.answer)) == (2, "Denis Villeneuve")


@pytest.mark.parametrize("edit", [Session.edit_prompt, Session.save_prompt])
def test_a_prompt_edited_or_saved_makes_its_step_stale_and_is_asked_when_run(
    edit: Any, tmp_path: Path
) -> None:
    model = Scripted(DIRECTED)
    session = Session(chatty(QUESTION, model, prompts=Prompts(tmp_path)))
    session.go().result()
    edit(session, "chatty_kg/qir", brief(session))
    now = states(session)
    assert (now["qir"], now["classifier"], len(session.history)) == ("stale", "done", 1)
    session.go("qir").result()
    assert asked(model)["qir"] == 2
    assert model.requests[-1].messages[-1].content.endswith("Be brief.")


# --- running


def test_asking_anew_asks_that_step_alone_and_in_vain_keeps_what_was_recorded() -> None:
    session, model = directed(qir=[DOWN, *[DIRECTED["chatty_kg/qir"]] * 2, DOWN])
    session.go().result()
    assert (session.run_state().step_state("qir"), session.failure) == ("failed", DOWN)
    session.go().result()
    assert (session.failure, str(session.run.answer)) == (None, "Denis Villeneuve")
    session.refresh("qir").result()
    assert asked(model) == {"qir": 3, "predicate_selection": 1}
    session.refresh("qir").result()
    assert session.failure is DOWN
    session.go().result()
    assert (session.failure, str(session.run.answer)) == (None, "Denis Villeneuve")


def test_a_busy_run_refuses_edits_queues_commands_and_can_be_cancelled() -> None:
    session, model = slow()
    running = session.go()
    wait_for(lambda: model.call_count() == 1)
    after = session.step()
    assert len(session.queued_tasks) == 1
    with pytest.raises(SettingError, match="busy"):
        session.replace("qir", QIR(()))
    session.cancel()
    for promise in (running, after):
        promise.result(timeout=60)
    assert (session.current_task, session.run.status, session.failure) == ("", "cancelled", None)
    assert session.run_state().step_state("classifier") == "done"


def test_embeddings_load_from_the_start_and_a_press_waits_for_them_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loading, loaded = threading.Event(), threading.Event()

    def load(_: Embeddings) -> None:
        loading.set()
        loaded.wait(60)

    monkeypatch.setattr(Embeddings, "load", load)
    session, model = directed()
    assert loading.wait(60)  # although nothing was pressed yet
    heard: list[str] = []
    session.subscribe(lambda: heard.append(session.current_task))
    going = session.go()
    wait_for(lambda: "loading the embeddings, once" in heard)
    assert model.call_count() == 0
    loaded.set()
    going.result(60)
    assert str(session.run.answer) == "Denis Villeneuve"


def test_a_run_that_code_executes_is_shown_too() -> None:
    session, heard = session_of(chatty(QUESTION, Scripted(DIRECTED))), list[str]()
    session.subscribe(lambda: heard.append(session.run.status))
    session.run.go()
    wait_for(lambda: heard and heard[-1] == "done")
    assert "execution" in session.steps


def test_code_that_executes_the_run_keeps_others_out_and_can_be_cancelled() -> None:
    session, model = slow()
    running = threading.Thread(target=session.run.go)
    running.start()
    wait_for(lambda: model.call_count() == 1)
    for command in (session.go, lambda: session.replace("classifier", {"label": "dependent"})):
        with pytest.raises(SettingError, match="busy: a cell"):
            command()
    assert session.run.overrides == {}
    session.cancel()
    running.join(5)
    assert session.run.status == "cancelled"
