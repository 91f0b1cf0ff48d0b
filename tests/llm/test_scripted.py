from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_servers import ask, complete

from kgwb.errors import Cancelled, ModelError, ModelTimeoutError
from kgwb.llm import ChatReply, Scripted


def reply_text(model: Scripted, task: str = "a") -> str:
    return complete(model, task=task).text


def test_a_script_by_task() -> None:
    """One answer serves every call; those of a list serve one call each; requests are kept."""
    replies = ["1", {"name": "Zürich"}, ModelTimeoutError("too slow")]
    model = Scripted({"a": lambda request: "yes", "b": replies})
    assert [reply_text(model, task) for task in "abab"] == ["yes", "1", "yes", '{"name": "Zürich"}']
    with pytest.raises(ModelTimeoutError, match="too slow"):
        reply_text(model, "b")
    with pytest.raises(ModelError, match=r"call 4 .*prompt 'b'"):
        reply_text(model, "b")
    with pytest.raises(ModelError, match="'c'") as caught:
        reply_text(model, "c")
    assert caught.value.hint.endswith("replies for: a, b")
    assert "".join(request.task for request in model.requests) == "ababbbc"
    assert (model.call_count(), model.call_count("a"), model.call_count("z")) == (7, 2, 0)


def test_a_function_sees_the_request_and_may_give_a_whole_reply() -> None:
    whole = ChatReply("cut", mode="schema", finish_reason="length", prompt_tokens=3)
    reply = complete(Scripted(lambda request: whole))
    assert (reply.text, reply.mode, reply.finish_reason) == ("cut", "schema", "length")


def test_what_is_no_reply_is_an_error() -> None:
    script: dict[str, object] = {"a": 5}
    with pytest.raises(ModelError, match="'a' is no reply: 5"):
        reply_text(Scripted(script))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="no reply: None"):
        reply_text(Scripted(lambda request: None))  # type: ignore[arg-type, return-value]


def test_a_delay_ends_with_a_cancel() -> None:
    model, cancel = Scripted({"a": "x"}, delay_s=30, remote=True), threading.Event()
    threading.Timer(0.05, cancel.set).start()
    started = time.perf_counter()
    with pytest.raises(Cancelled):
        model.complete(ask(task="a"), None, cancel)
    assert time.perf_counter() - started < 30


def test_threads_share_a_script() -> None:
    model = Scripted({"a": [str(number) for number in range(100)]})
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: reply_text(model), range(100)))
    assert sorted(texts, key=int) == [str(number) for number in range(100)]
