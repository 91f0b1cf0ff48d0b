"""The adapters against a real model: llama.cpp's server with SmolLM2, and it behind Ollama's protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from model_server import MODEL
from model_servers import ask

from kgwb.errors import Cancelled, ModelRefusedError
from kgwb.llm import Message, OllamaModel, OpenAIModel, available
from kgwb.llm.remote import RemoteModel

pytestmark = pytest.mark.timeout(1200)  # a busy machine makes a slow model
POETS = {
    "type": "object",
    "properties": {"poet": {"enum": ["Goethe", "Schiller"]}, "born": {"type": "integer", "default": 0}},
    "required": ["poet", "born"],
    "additionalProperties": False,
}


@pytest.fixture(params=["openai", "ollama"])
def smollm(request: pytest.FixtureRequest) -> RemoteModel:
    if request.param == "openai":
        return OpenAIModel(MODEL, base_url=request.getfixturevalue("llama"))
    return OllamaModel(MODEL, base_url=request.getfixturevalue("ollama"))


def told(text: str, **changes: Any) -> Any:
    return ask(**({"messages": (Message("user", text),), "timeout_s": 600.0, "schema": None} | changes))


def complete(model: RemoteModel, request: Any) -> Any:
    return model.complete(request, None, threading.Event())


def test_a_schema_binds_the_model(smollm: RemoteModel) -> None:
    asked = told("Tell me a story about a cat.", schema=POETS, max_output_tokens=60)
    replies = [complete(smollm, asked) for _ in range(2)]
    for reply in replies:
        said = json.loads(reply.text)
        assert said.keys() == {"poet", "born"}
        assert said["poet"] in ("Goethe", "Schiller")
    # This server knows the schema in JSON mode only: learned once
    by_openai = isinstance(smollm, OpenAIModel)
    assert [reply.mode for reply in replies] == (["json"] * 2 if by_openai else ["schema"] * 2)
    assert [reply.tries for reply in replies] == ([2, 1] if by_openai else [1, 1])


def test_plain_text(smollm: RemoteModel) -> None:
    reply = complete(smollm, told("Say hello.", max_output_tokens=12))
    assert (reply.mode, reply.model) == ("none", MODEL)
    assert reply.text.strip()


def test_a_reply_is_cut_by_its_length_and_seen_arriving(smollm: RemoteModel) -> None:
    arrived: list[str] = []
    reply = complete(smollm, told("Count to a thousand.", max_output_tokens=8, on_text=arrived.append))
    assert reply.finish_reason == "length"
    assert arrived[-1] == reply.text
    assert len(arrived) > 2
    assert 0 < reply.first_token_s < reply.seconds


def test_counts_come_with_a_reply_in_one_piece(llama: str) -> None:
    """This server counts in whole replies, and says nothing of cost in streams."""
    model = OpenAIModel(MODEL, base_url=llama)
    asked = told("Say hello.", max_output_tokens=8)
    assert complete(model, asked).completion_tokens == 0
    model._form = model._form.__class__(tokens_field="max_tokens", without=frozenset({"stream"}))
    reply = complete(model, asked)
    assert reply.first_token_s is None
    assert (reply.completion_tokens, reply.prompt_tokens > 5) == (8, True)


def test_a_prompt_too_long_is_refused_in_the_servers_words(smollm: RemoteModel) -> None:
    with pytest.raises(ModelRefusedError, match="context") as caught:
        complete(smollm, told("word " * 9000))
    assert "shorten the request" in caught.value.hint


def test_who_cancels_leaves_the_server_to_others(smollm: RemoteModel) -> None:
    cancel = threading.Event()
    story = told("Tell a long story.", max_output_tokens=4000, on_text=lambda text: cancel.set())
    with pytest.raises(Cancelled):
        smollm.complete(story, None, cancel)
    assert complete(smollm, told("Say hello.", max_output_tokens=4)).text


def test_models_are_listed(llama: str, ollama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", llama)
    monkeypatch.setenv("OLLAMA_HOST", ollama)
    found = {state.kind: state.models for state in available(30.0)}
    assert (found["openai"], found["ollama"]) == ((MODEL,), (MODEL,))


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda llama, ollama: OpenAIModel(MODEL, base_url=llama.removesuffix("/v1")), "ends in /v1"),
        (lambda llama, ollama: OllamaModel("none", base_url=ollama), f"it has {MODEL}"),
    ],
)
def test_a_wrong_address_and_an_unknown_model(
    make: Callable[[str, str], RemoteModel], hint: str, llama: str, ollama: str
) -> None:
    with pytest.raises(ModelRefusedError, match="no model named") as caught:
        complete(make(llama, ollama), told("Say hello."))
    assert hint in caught.value.hint
