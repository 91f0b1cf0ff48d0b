"""A person in the place of a model, played by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_servers import ask, complete
from page import wait_for

from kgwb.errors import Cancelled, ModelError
from kgwb.llm import Human, model
from kgwb.llm.base import PendingRequest


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
