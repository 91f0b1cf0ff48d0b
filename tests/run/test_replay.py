"""The model that answers from a run file. tests/run/test_run_files.py has files that are not valid."""

import threading
from pathlib import Path
from typing import Any

import pytest

import kgwb
from kgwb.errors import NotRecordedError
from kgwb.llm import ChatModel, ChatReply, ChatRequest, Message, Scripted
from kgwb.run.models import Replay
from tests.small import DIRECTED, chatty

ASKED = "Who wrote Faust?"


def asked(**changes: Any) -> ChatRequest:
    return ChatRequest(**{"task": "a", "messages": (Message("system", ASKED),), **changes})


def say(model: ChatModel, **changes: Any) -> str:
    return model.complete(asked(**changes), None, threading.Event()).text


def recorded(text: str, **changes: Any) -> tuple[Any, ChatReply]:
    return asked(**changes).recorded_content(), ChatReply(text)


def test_replies_come_in_order_and_the_last_is_repeated() -> None:
    model = Replay([recorded("1"), recorded("other", seed=8), recorded("2")])
    assert [say(model), say(model), say(model), say(model, seed=8)] == ["1", "2", "2", "other"]


def test_a_reply_is_used_for_a_request_with_the_same_content() -> None:
    assert say(Replay([recorded("1")]), task="other", variables={"x": 1}, timeout_s=1.0) == "1"
    choices: Any = {"enum": ["a", "b"]}
    assert say(Replay([recorded("1", schema=choices)]), schema={"enum": ("a", "b")}) == "1"


@pytest.mark.parametrize(
    ("change", "differs_in"),
    [
        ({"schema": {"type": "object"}}, ["no reply", "schema"]),
        ({"max_output_tokens": 1}, ["max_output_tokens", "2048", "1"]),
        ({"temperature": 1.0}, ["temperature", "0.0", "1.0"]),
        ({"seed": None}, ["seed", "None"]),
        (
            {"messages": (Message("system", f"{ASKED} "),)},
            ["messages[0][1]", "Faust? '", "Faust?'"],
        ),
        ({"messages": (Message("user", ASKED),)}, ["messages[0][0]", "system", "user"]),
        (
            {"messages": (Message("system", ASKED), Message("user", "?"))},
            ["messages[1]", "'?'", "None"],
        ),
    ],
)
def test_another_request_is_an_error_that_says_in_what_it_differs_from_the_nearest_recorded_one(
    change: dict[str, Any], differs_in: list[str]
) -> None:
    far = recorded("far", messages=(Message("user", "Something else"),), temperature=0.3)
    model = Replay([far, recorded("1")])
    with pytest.raises(NotRecordedError) as caught:
        say(model, **change)
    for part in differs_in:
        assert part in caught.value.message
    assert "0.3" not in caught.value.message


def test_a_run_file_is_a_model(tmp_path: Path) -> None:
    run = chatty("Who directed Arrival?", Scripted(DIRECTED)).go()
    path = run.save(tmp_path / "run.jsonl")
    path.write_bytes(
        path.read_bytes() + b'{"call": {"kind": "model", "step": "Z\xc3'
    )  # killed while it wrote
    model = kgwb.model(f"replay:{path}")
    again = chatty("Who directed Arrival?", model).go()  # type: ignore[arg-type]
    assert (model.name, model.remote, str(again.answer)) == (
        "replay:run.jsonl",
        False,
        str(run.answer),
    )
    assert again.totals.completion_tokens == run.totals.completion_tokens
