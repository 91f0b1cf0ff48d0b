"""A person in the place of a model, played by a thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from model_servers import ask, complete
from page import wait_for

from kgwb.errors import Cancelled, ModelError, SettingError
from kgwb.llm import Human, model
from kgwb.llm.base import PendingRequest
from kgwb.run import Run
from kgwb.workbench import load_run
from tests.small import CHATTY, chatty, films, predicates, qir


def answering(human: Human, say: Callable[[PendingRequest], str | None]) -> None:
    """Have a person reply to every request, on any thread; None leaves the request waiting."""

    def listen() -> None:
        for asked in human.pending_requests:
            text = say(asked)
            if text is not None:
                human.reply(text, asked)

    human.listeners[listen] = None


def test_there_is_one_person_who_has_no_time_limit() -> None:
    assert model("human") is model(" human")
    with pytest.raises(TypeError):
        model("human", base_url="http://localhost")
    human = Human()
    answering(human, lambda asked: f"to {asked.request.task}")
    reply = complete(human, task="a", timeout_s=0.001)
    assert (reply.text, reply.model, reply.prompt_tokens, human.pending_requests) == (
        "to a",
        "human",
        0,
        (),
    )
    with pytest.raises(ModelError, match="waiting"):
        human.reply("?", PendingRequest(ask(), threading.Event()))


def test_requests_queue_up_and_each_gets_its_own_reply() -> None:
    human = Human()
    human.listeners[lambda: None] = None

    with ThreadPoolExecutor(3) as pool:
        replies = []
        for task in "abc":
            replies.append(pool.submit(complete, human, task=task))
            wait_for(lambda: len(human.pending_requests) == len(replies))
        assert [asked.request.task for asked in human.pending_requests] == ["a", "b", "c"]
        human.reply("3", human.pending_requests[2])
        human.reply("1", human.pending_requests[0])
        human.reply("2", human.pending_requests[0])
        assert [reply.result(10).text for reply in replies] == ["1", "2", "3"]


def test_a_cancelled_request_waits_no_longer() -> None:
    human, cancel = Human(), threading.Event()
    human.listeners[lambda: cancel.set() if human.pending_requests else None] = cancel
    with pytest.raises(Cancelled):
        human.complete(ask(), None, cancel)
    assert human.pending_requests == ()


def test_without_a_listener_a_run_fails_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.llm.base.LISTENER_TIMEOUT_S", 0.1)
    run = chatty("Who directed Arrival?", Human())  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="chatty_kg/qir") as caught:
        run.go()
    assert "workbench.debug" in caught.value.hint
    assert (run.status, run.models[""].pending_requests) == ("failed", ())  # type: ignore[attr-defined]


def test_a_listener_of_another_run_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.llm.base.LISTENER_TIMEOUT_S", 0.1)
    human, mine, other = Human(), threading.Event(), threading.Event()
    human.listeners[
        lambda: [
            human.reply("me", asked) for asked in human.pending_requests if asked.cancel is mine
        ]
    ] = mine
    assert human.complete(ask(), None, mine).text == "me"
    with pytest.raises(ModelError):
        human.complete(ask(), None, other)


def test_a_person_plays_all_agents_of_a_question_and_is_replayed(tmp_path: Path) -> None:
    human = Human()
    wrong = qir("Arrival | directed by | Denis")  # no unknown
    right = qir("Arrival | directed by | ?person")
    script = {
        "chatty_kg/qir": [wrong, right],
        "chatty_kg/predicate_selection": [predicates(["director"])],
    }
    answering(human, lambda asked: json.dumps(script[asked.request.task].pop(0)))
    run = chatty("Who directed Arrival?", human).go()  # type: ignore[arg-type]
    assert str(run.answer) == "Denis Villeneuve"
    first, second = run["qir"].attempts
    assert [check.name for check in first.checks if check.problem] == [
        "at least one unknown unless boolean"
    ]
    assert second.accepted
    again = load_run(run.save(tmp_path / "run.jsonl"))
    assert (again.answer, again.status, again.model_name("qir")) == (run.answer, "done", "human")


def test_a_cancelled_run_keeps_its_replies_and_resumes(tmp_path: Path) -> None:
    human, path = Human(), tmp_path / "run.jsonl"
    right = json.dumps(qir("Arrival | directed by | ?person"))
    answering(human, lambda asked: right if asked.request.task == "chatty_kg/qir" else None)
    run = Run(CHATTY, "Who directed Arrival?", kg=films(), models=human, path=path)
    going = threading.Thread(target=run.go)
    going.start()
    wait_for(
        lambda: (
            [a.request.task for a in human.pending_requests] == ["chatty_kg/predicate_selection"]
        )
    )
    with pytest.raises(SettingError, match="being executed"):
        run.go()
    run.cancel()
    going.join(60)
    wait_for(lambda: not human.pending_requests)
    assert (run.status, run.output("qir").target) == ("cancelled", "?person")
    human.listeners.clear()
    answering(human, lambda asked: json.dumps(predicates(["director"])))
    resumed = load_run(path, kg=films(), model=human, resume=True)
    assert (str(resumed.answer), resumed.totals.live_model_calls) == ("Denis Villeneuve", 1)
