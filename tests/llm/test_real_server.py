"""OpenAI's protocol against a real model: llama.cpp's server with SmolLM2."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from model_server import MODEL
from model_servers import ask, complete

from kgwb.errors import Cancelled, ModelRefusedError
from kgwb.llm import ChatReply, Message, OpenAIModel, RemoteModel

pytestmark = pytest.mark.timeout(1200)  # a busy machine makes a slow model
POETS = {
    "type": "object",
    "properties": {
        "poet": {"enum": ["Goethe", "Schiller"]},
        "born": {"type": "integer", "default": 0},
    },
    "required": ["poet", "born"],
    "additionalProperties": False,
}


@pytest.fixture
def smollm(llama: str) -> RemoteModel:
    return OpenAIModel(MODEL, base_url=llama)


def say(model: RemoteModel, text: str, **changes: Any) -> ChatReply:
    """What a model replies to a text alone."""
    alone = {"messages": (Message("user", text),), "timeout_s": 600.0, "schema": None}
    return complete(model, **(alone | changes))


def test_a_schema_binds_the_model(smollm: RemoteModel) -> None:
    story = "Tell me a story about a cat."
    replies = [say(smollm, story, schema=POETS, max_output_tokens=60) for _ in range(2)]
    for reply in replies:
        data = json.loads(reply.text)
        assert data.keys() == {"poet", "born"}
        assert data["poet"] in ("Goethe", "Schiller")
        assert reply.mode == "schema"


def test_a_reply_is_cut_by_its_length(smollm: RemoteModel) -> None:
    reply = say(smollm, "Count to a thousand.", max_output_tokens=8)
    assert reply.finish_reason == "length"
    assert (reply.mode, reply.model) == ("none", MODEL)
    assert 0 < (reply.first_token_s or 0) < reply.seconds


def test_a_prompt_too_long_is_refused_in_the_servers_words(smollm: RemoteModel) -> None:
    with pytest.raises(ModelRefusedError, match="context") as caught:
        say(smollm, "word " * 9000)
    assert "shorten" in caught.value.hint


def test_a_cancelled_request_frees_the_server(smollm: RemoteModel) -> None:
    cancel = threading.Event()
    story = (Message("user", "Tell a long story."),)
    asked = ask(messages=story, timeout_s=600.0, schema=None, max_output_tokens=4000)
    threading.Timer(1.0, cancel.set).start()
    with pytest.raises(Cancelled):
        smollm.complete(asked, None, cancel)
    assert say(smollm, "Say hello.", max_output_tokens=4).text


def test_a_wrong_address_is_refused(llama: str) -> None:
    wrong = OpenAIModel(MODEL, base_url=llama.replace("/v1", "/v2"))
    with pytest.raises(ModelRefusedError, match="model") as caught:
        say(wrong, "Say hello.")
    assert "ends in /v1" in caught.value.hint
