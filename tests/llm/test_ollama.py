"""What is special to Ollama's protocol; what both protocols share is in test_api_matrix.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model_servers import GOETHE, SCHEMA, Answer, OllamaServer, complete

from kgwb.errors import ModelRefusedError
from kgwb.llm import Message


def test_a_request_carries_schema_and_options(ollama_server: OllamaServer) -> None:
    complete(ollama_server.tiny())
    (body,) = ollama_server.chats
    assert (body["model"], body["stream"], body["format"]) == ("tiny", True, SCHEMA)
    assert body["options"] == {"temperature": 0.0, "seed": 7, "num_predict": 2048, "num_ctx": 4096}
    assert [message["content"] for message in body["messages"]] == [
        "Answer in JSON.",
        "Who wrote Faust?",
    ]


def test_the_context_grows_with_the_prompt_and_stays(ollama_server: OllamaServer) -> None:
    model, long = ollama_server.tiny(), (Message("user", "word " * 6000),)
    for changes in ({}, {"messages": long}, {}):
        complete(model, **changes)
    assert [body["options"]["num_ctx"] for body in ollama_server.chats] == [4096, 16384, 16384]


@pytest.mark.parametrize(
    ("refuses", "mode", "formats", "status"),
    [
        ({"schema"}, "json", [SCHEMA, "json", "json"], 400),
        ({"schema"}, "json", [SCHEMA, "json", "json"], 500),
        ({"schema", "json"}, "prompt", [SCHEMA, "json", None, None], 422),
    ],
)
def test_a_refused_way_to_enforce_the_form_is_tried_once(
    ollama_server: OllamaServer, refuses: set[str], mode: str, formats: list[object], status: int
) -> None:
    ollama_server.refuses, ollama_server.refusal_status = refuses, status
    model = ollama_server.tiny()
    replies = [complete(model), complete(model)]
    assert [body.get("format") for body in ollama_server.chats] == formats
    assert [(reply.mode, reply.tries) for reply in replies] == [(mode, len(formats) - 1), (mode, 1)]


def test_the_hint_for_a_missing_model_has_the_command(ollama_server: OllamaServer) -> None:
    ollama_server.model_names = []
    with pytest.raises(ModelRefusedError, match="tiny") as caught:
        complete(ollama_server.tiny())
    assert "ollama pull tiny" in caught.value.hint


@pytest.mark.parametrize("streams", [True, False])
def test_a_reply_in_a_tool_call_is_read(ollama_server: OllamaServer, streams: bool) -> None:
    call = {"function": {"name": "Reply", "arguments": {"answer": "Goethe"}}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    ollama_server.streams = False  # one line, which is the whole of a stream as well
    body = {**OllamaServer.reply("").body, "message": message}
    ollama_server.always = Answer(body)
    model = ollama_server.tiny()
    if not streams:
        model._request_format = replace(model._request_format, omitted_fields={"stream"})
    assert complete(model).text == GOETHE
