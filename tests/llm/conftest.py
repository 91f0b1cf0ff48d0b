from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from model_servers import ModelServer, OllamaServer, OpenAIServer

KEY = "sk-proj-0123456789abcdefTHEKEY"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove keys, addresses and proxies from the environment, and repeat without waiting."""
    for name in list(os.environ):
        if name.upper().startswith(("OPENAI_", "OLLAMA_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setattr("kgwb.llm.remote.INITIAL_BACKOFF_S", 0.001)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, KEY)
    return KEY


@pytest.fixture(params=[OpenAIServer, OllamaServer], ids=lambda protocol: protocol.kind)
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    """A server of each protocol."""
    with closing(request.param()) as made:
        yield made


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with closing(OpenAIServer()) as made:
        yield made


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    with closing(OllamaServer()) as made:
        yield made
