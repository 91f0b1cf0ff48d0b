from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kgwb.llm.replay import content_key, read_replies, request_key
from model_servers import ask

from kgwb.errors import Cancelled, ModelError, ModelTimeoutError, NotRecordedError, RunFileError
from kgwb.llm import ChatModel, ChatReply, ChatRequest, Message, Replay, Scripted


def say(model: ChatModel, task: str = "a", **changes: Any) -> str:
    return model.complete(ask(task=task, **changes), None, threading.Event()).text


def test_one_line_serves_every_call() -> None:
    model = Scripted({"a": "yes", "b": {"name": "Zürich"}})
    assert [say(model), say(model), say(model, "b")] == ["yes", "yes", '{"name": "Zürich"}']


def test_a_list_is_told_in_turn_for_each_task() -> None:
    model = Scripted({"a": ["1", {"n": 2}], "b": ["3"]})
    assert [say(model), say(model, "b"), say(model)] == ["1", "3", '{"n": 2}']
    with pytest.raises(ModelError, match="2 answers for task 'a', and this is call 3"):
        say(model)


def test_a_function_sees_the_request() -> None:
    model = Scripted(lambda request: {"asked": request.task})
    assert say(model, "c") == '{"asked": "c"}'


def test_requests_are_kept_and_counted() -> None:
    model = Scripted({"a": "x", "b": "y"})
    for task in ("a", "b", "a"):
        say(model, task)
    with pytest.raises(ModelError):
        say(model, "c")
    assert [request.task for request in model.requests] == ["a", "b", "a", "c"]
    assert (model.calls(), model.calls("a"), model.calls("z")) == (4, 2, 0)


def test_a_task_without_a_script() -> None:
    with pytest.raises(ModelError, match="nothing for task 'c'") as caught:
        say(Scripted({"a": "x", "b": "y"}), "c")
    assert caught.value.hint == "it has a, b"


def test_an_exception_is_raised() -> None:
    model = Scripted({"a": [ModelTimeoutError("too slow"), "better"]})
    with pytest.raises(ModelTimeoutError, match="too slow"):
        say(model)
    assert say(model) == "better"


def test_a_whole_reply_is_given_as_it_is() -> None:
    model = Scripted({"a": ChatReply("cut", mode="schema", finish_reason="length", prompt_tokens=3)})
    reply = model.complete(ask(task="a"), None, threading.Event())
    assert (reply.text, reply.mode, reply.finish_reason, reply.prompt_tokens) == (
        "cut",
        "schema",
        "length",
        3,
    )


def test_a_delay_ends_with_a_cancel() -> None:
    model = Scripted({"a": "x"}, delay_s=30, remote=True)
    cancel = threading.Event()
    threading.Timer(0.05, cancel.set).start()
    started = time.perf_counter()
    with pytest.raises(Cancelled):
        model.complete(ask(task="a"), None, cancel)
    assert time.perf_counter() - started < 5
    assert model.remote
    assert not Scripted({}).remote


def test_threads_share_a_script() -> None:
    model = Scripted({"a": [str(number) for number in range(100)]})
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: say(model), range(100)))
    assert sorted(told, key=int) == [str(number) for number in range(100)]
    assert model.calls("a") == 100


def recorded(text: str, **changes: Any) -> tuple[str, ChatReply]:
    return request_key(ask(**changes)), ChatReply(text)


def test_recorded_replies_come_in_order_then_the_last_again() -> None:
    model = Replay([recorded("1"), recorded("other", seed=8), recorded("2")])
    assert [say(model), say(model), say(model), say(model, seed=8)] == ["1", "2", "2", "other"]


def test_a_request_that_is_not_recorded() -> None:
    with pytest.raises(NotRecordedError, match="no reply to this request of a"):
        say(Replay([recorded("1")]), temperature=0.5)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("user", "Who wrote Faust?"),)},
        {"schema": None},
        {"temperature": 1.0},
        {"seed": None},
        {"max_output_tokens": 1},
    ],
)
def test_the_key_changes_with_the_content(change: dict[str, Any]) -> None:
    assert request_key(ask(**change)) != request_key(ask())


def test_the_key_does_not_change_with_the_rest() -> None:
    same = ask(task="other", variables={"x": 1}, timeout_s=1.0)
    assert request_key(same) == request_key(ask())
    assert content_key(json.loads(json.dumps(ask().content()))) == request_key(ask())


def test_the_key_is_the_sha256_of_canonical_json() -> None:
    request = ChatRequest("t", (Message("user", "Zürich"),), seed=1, max_output_tokens=2)
    # Of {"max_output_tokens":2,"messages":[["user","Zürich"]],"schema":null,"seed":1,"temperature":0.0}
    assert request_key(request) == "be8d72bf3a000a35fcbc48835d72f5fe3c71f1585486af9d6f2a8c75322ae484"


def call_line(text: str, **changes: Any) -> str:
    request = ask(**changes)
    call = {
        "kind": "model",
        "step": "qir",
        "request": {"model": "openai:gpt-4o", "task": request.task, "content": request.content()},
        "reply": {"text": text, "mode": "schema", "prompt_tokens": 9, "seconds": 1.5, "later_field": 1},
    }
    return json.dumps({"call": call}, ensure_ascii=False)


def write(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_a_run_file_is_read(tmp_path: Path) -> None:
    select = {"call": {"kind": "select", "request": {"query": "ASK {}"}, "reply": {"rows": []}}}
    path = write(
        tmp_path / "run.jsonl",
        json.dumps({"kgwb": 1}),
        call_line("1"),
        json.dumps(select),
        json.dumps({"call": {"kind": "model", "request": {}, "reply": None}}),
        "",
        call_line("2"),
    )
    model = Replay.from_file(path)
    reply = model.complete(ask(), None, threading.Event())
    assert reply == ChatReply("1", mode="schema", prompt_tokens=9, seconds=1.5)
    assert say(model) == "2"
    assert (model.name, model.remote) == ("replay:run.jsonl", False)


@pytest.mark.parametrize("torn", ['{"call": {"ki', '{"call": {"kind": "model", "step": "Z\udcc3'])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(f"{call_line('1')}\n{torn}".encode("utf-8", "surrogateescape"))
    assert [reply.text for _, reply in read_replies(path)] == ["1"]


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", call_line("1"), '{"call": {"ki', call_line("2"))
    with pytest.raises(RunFileError, match="line 2 of"):
        Replay.from_file(path)


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "model", "request": {"task": "a"}, "reply": {"text": "x"}},
        {"kind": "model", "request": {"content": {}}, "reply": {"mode": "json"}},
        {"kind": "model", "request": {"content": {}}, "reply": "x"},
    ],
)
def test_a_call_of_another_version_is_an_error(tmp_path: Path, call: dict[str, Any]) -> None:
    path = write(tmp_path / "run.jsonl", json.dumps({"call": call}))
    with pytest.raises(RunFileError, match="line 1 of"):
        Replay.from_file(path)


def test_a_missing_run_file(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="cannot be read"):
        Replay.from_file(tmp_path / "none.jsonl")
