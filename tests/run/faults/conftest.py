from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def key_and_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for the model servers, and no long wait before a request is repeated."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-tests-0123456789")
    monkeypatch.setattr("kgwb.llm.remote.INITIAL_BACKOFF_S", 0.001)
