"""The servers that the pipelines of this folder ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import reply_to
from servers import ChatServer, Endpoint, chat_server, sparql_endpoint
from small import FILMS

PIPELINES = Path(__file__).parent / "pipelines"


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with chat_server(reply_to) as server:
        monkeypatch.setenv("CHAT_URL", server.url)
        yield server


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with sparql_endpoint(FILMS) as server:
        monkeypatch.setenv("SPARQL_URL", server.url)
        yield server


@pytest.fixture
def films_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "films.ttl"
    file.write_text(FILMS)
    monkeypatch.setenv("FILMS", str(file))
    return file


@pytest.fixture
def pipeline(tmp_path: Path) -> Any:
    """A function that returns the path of a pipeline's file, copied so that it is loaded anew."""

    def copied(name: str) -> Path:
        folder = tmp_path / "pipelines"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.py"
        path.write_text((PIPELINES / path.name).read_text())
        return path

    return copied
