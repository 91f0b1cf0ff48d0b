from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from model_servers import OllamaServer, OpenAIServer

KEY = "sk-proj-0123456789abcdefTHEKEY"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, address or proxy of whoever runs the tests; and repeats that do not wait."""
    for name in list(os.environ):
        if name.upper().startswith(("OPENAI_", "OLLAMA_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setattr("kgwb.llm.remote.BACKOFF_S", 0.001)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    yield server
    server.close()


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.close()
