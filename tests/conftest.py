"""What every test stands on: no torch, and a cache folder of its own."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("kgwb", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("kgwb")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lexical embeddings and an empty cache; a test that wants others sets them itself."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", "lexical")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "cache"))
