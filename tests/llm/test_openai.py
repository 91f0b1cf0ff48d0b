"""What is special to OpenAI's protocol; what both protocols share is in test_api_matrix.py."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from model_servers import GOETHE, SCHEMA, Answer, OpenAIServer, complete

from kgwb.errors import ModelRefusedError, UnknownModelError
from kgwb.llm import OpenAIModel

FIELDS = ("max_tokens", "temperature", "seed", "stream", "stream_options")


error, reply_of = OpenAIServer.error, OpenAIServer.reply


def test_a_request_carries_the_schema_and_asks_for_a_stream(openai_server: OpenAIServer) -> None:
    complete(openai_server.tiny())
    texts = ("system", "Answer in JSON."), ("user", "Who wrote Faust?")
    messages = [{"role": role, "content": content} for role, content in texts]
    limits = {"max_tokens": 2048, "temperature": 0.0, "seed": 7}
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    named = {"name": "chatty_kg_qir", "strict": True, "schema": SCHEMA}
    form = {"response_format": {"type": "json_schema", "json_schema": named}}
    assert openai_server.chats == [
        {"model": "tiny", "messages": messages, **limits, **streamed, **form}
    ]
    free = {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }  # which cannot be called strict
    complete(openai_server.tiny(), schema=free)
    loose = {"type": "json_schema", "json_schema": named | {"strict": False, "schema": free}}
    assert openai_server.chats[-1]["response_format"] == loose


# --- what a server refuses


@pytest.mark.parametrize("says_param", [True, False])
@pytest.mark.parametrize(
    ("refuses", "mode", "formats"),
    [
        ({"json_schema"}, "json", "json_schema json_object json_object"),
        ({"json_schema", "json_object"}, "prompt", "json_schema json_object json_object - -"),
    ],
)
def test_a_refused_way_to_enforce_the_form_is_tried_once(
    openai_server: OpenAIServer, refuses: set[str], mode: str, formats: str, says_param: bool
) -> None:
    openai_server.refuses, openai_server.says_param = refuses, says_param
    model = openai_server.tiny()
    first, second = complete(model), complete(model)
    used = [body.get("response_format", {}).get("type", "-") for body in openai_server.chats]
    assert used == formats.split()
    assert (first.mode, first.tries, second.mode, second.tries) == (mode, len(used) - 1, mode, 1)


def test_a_refused_schema_does_not_change_the_format_if_others_were_accepted(
    openai_server: OpenAIServer,
) -> None:
    model = openai_server.tiny()
    complete(model)
    for refusal in (Answer({"detail": "no"}, 422), error(400, "bad", param="response_format")):
        openai_server.queue.append(refusal)
        assert [complete(model).mode, complete(model).mode] == ["json", "schema"]


@pytest.mark.parametrize(
    ("refusal", "chats"),
    [
        (error(400, "maximum context length is 512 tokens"), 4),
        (error(400, "too long", param="messages", code="context_length_exceeded"), 1),
    ],
)
def test_a_request_that_is_refused_in_every_format_leaves_the_format(
    openai_server: OpenAIServer, refusal: Answer, chats: int
) -> None:
    model, openai_server.always = openai_server.tiny(), refusal
    with pytest.raises(ModelRefusedError, match="400"):
        complete(model)
    assert len(openai_server.chats) == chats
    openai_server.always = None
    assert complete(model).mode == "schema"


@pytest.mark.parametrize(
    ("field", "says_param"), [("seed", False), *((field, True) for field in FIELDS)]
)
def test_a_refused_field_is_left_out_from_then_on(
    openai_server: OpenAIServer, field: str, says_param: bool
) -> None:
    openai_server.refuses, openai_server.says_param = {field}, says_param
    model = openai_server.tiny()
    replies = [complete(model), complete(model)]
    assert [field in body for body in openai_server.chats] == [True, False, False]
    assert [(reply.mode, reply.tries) for reply in replies] == [("schema", 2), ("schema", 1)]
    assert ("max_completion_tokens" in openai_server.chats[-1]) == (field == "max_tokens")


def test_a_server_that_refuses_much_is_still_asked(openai_server: OpenAIServer) -> None:
    openai_server.refuses = {"json_schema"}
    model = openai_server.tiny()
    complete(model)
    assert openai_server.chats[-1]["response_format"] == {"type": "json_object", "schema": SCHEMA}
    openai_server.queue.append(error(400, "Unknown parameter", param="response_format.schema"))
    assert complete(model).mode == "json"
    assert openai_server.chats[-1]["response_format"] == {"type": "json_object"}
    openai_server.refuses = {"json_schema", "json_object", "max_completion_tokens", *FIELDS}
    assert complete(openai_server.tiny()).mode == "prompt"
    assert openai_server.chats[-1].keys() == {"model", "messages"}


def test_openai_itself_gets_the_newer_field_for_the_length(
    openai_server: OpenAIServer, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *how, **more: resolve("127.0.0.1", *how, **more)
    )
    url = openai_server.url.replace("127.0.0.1", "eu.api.openai.com")
    complete(OpenAIModel("tiny", base_url=url))
    assert {"max_tokens", "max_completion_tokens"} & {*openai_server.chats[0]} == {
        "max_completion_tokens"
    }


def test_many_threads_share_one_model(openai_server: OpenAIServer) -> None:
    openai_server.refuses = {"json_schema", "temperature"}
    model = openai_server.tiny()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: complete(model), range(24)))
    assert {reply.mode for reply in replies} == {"json"}
    assert complete(model).tries == 1


# --- replies


@pytest.mark.parametrize(
    ("content", "usage", "text"),
    [
        (None, None, ""),
        ("x", "many", "x"),
        (
            [{"type": "text", "text": "a"}, "b"],
            {"prompt_tokens": 2**63, "completion_tokens": -1},
            "ab",
        ),
    ],
)
def test_odd_contents_and_counts(
    openai_server: OpenAIServer, content: Any, usage: Any, text: str
) -> None:
    openai_server.always = Answer({**reply_of(content).body, "usage": usage})
    reply = complete(openai_server.tiny())
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (text, 0, 0)


CALL = {"index": 0, "type": "function", "function": {"name": "Reply", "arguments": GOETHE}}


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"tool_calls": [CALL]}, GOETHE, "tool_calls"),
        ({"refusal": "I cannot help with that."}, "I cannot help with that.", "refusal"),
        ({"content": "I call it.", "tool_calls": [CALL]}, "I call it." + GOETHE, "tool_calls"),
        ({"content": GOETHE, "tool_calls": []}, GOETHE, "stop"),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "No.", "refusal"),
    ],
)
def test_a_reply_is_read_wherever_the_model_puts_it(
    openai_server: OpenAIServer, streams: bool, message: Any, text: str, finish: str
) -> None:
    openai_server.streams = streams
    message = {"content": None, **message}
    openai_server.always = reply_of(message.pop("content"), finish, **message)
    reply = complete(openai_server.tiny())
    assert (reply.text, reply.finish_reason) == (text, finish)


@pytest.mark.parametrize("arguments", [{"answer": "Goethe"}, GOETHE])
def test_the_arguments_of_a_tool_may_be_data_or_text(
    openai_server: OpenAIServer, arguments: Any
) -> None:
    openai_server.streams = False
    openai_server.always = reply_of(None, function_call={"name": "Reply", "arguments": arguments})
    assert complete(openai_server.tiny()).text == GOETHE


# --- keys


def test_a_key_in_a_reply_is_masked(openai_server: OpenAIServer, key: str) -> None:
    openai_server.always = reply_of(f"My key is {key}, and yours is sk-none")
    assert complete(openai_server.tiny()).text == "My key is ***, and yours is sk-none"


@pytest.mark.parametrize(("sent", "hint"), [("sk-wrong", "check"), ("", "set")])
def test_a_refused_key_says_what_to_do(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, sent: str, hint: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", sent)
    openai_server.always = error(403, "no")
    with pytest.raises(ModelRefusedError, match="answers with HTTP status 403: no") as caught:
        complete(openai_server.tiny())
    assert caught.value.hint.startswith(hint)
    assert "OPENAI_API_KEY" in caught.value.hint
    assert len(openai_server.chats) == 1


def test_keys_with_odd_characters(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-THEKEY–with–dashes")
    with pytest.raises(UnknownModelError) as caught:
        openai_server.tiny()
    assert "THEKEY" not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local\n")
    complete(openai_server.tiny())
    assert openai_server.seen[0].headers["authorization"] == "Bearer sk-local"
