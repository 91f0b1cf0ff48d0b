"""The real Phoenix shows the traces that kgwb sends: all calls, none twice. `make phoenix` installs it."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import ROOT, EngineMissingError, free_port, leave_out, running

import kgwb
from kgwb.run import Run

VENV = ROOT / ".venv-phoenix"


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Phoenix on loopback, with an empty database."""
    try:
        folder = tmp_path_factory.mktemp("phoenix")
        yield from started(folder)
    except EngineMissingError as missing:
        leave_out(str(missing))


def started(folder: Path) -> Iterator[str]:
    if not (VENV / ".ready").exists():
        raise EngineMissingError("no Phoenix: install it with `make phoenix`, once, in a minute")
    port = free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = [str(VENV / "bin" / "python"), str(VENV / "bin" / "phoenix"), "serve"]
    with running(command, port, folder, os.environ | settings):
        yield f"http://127.0.0.1:{port}"


def spans_of(phoenix: str, trace_id: str, number: int) -> list[dict[str, Any]]:
    """The spans of a trace that Phoenix shows, once there are so many; it stores them after a while."""
    url = f"{phoenix}/v1/projects/kgwb/spans?limit=1000"
    found: list[dict[str, Any]] = []
    until = time.monotonic() + 30
    while len(found) < number and time.monotonic() < until:
        time.sleep(0.5)
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                spans = json.load(reply)["data"]
        except urllib.error.HTTPError:  # there is no project before its first span
            continue
        found = [span for span in spans if span["context"]["trace_id"] == trace_id]
    return found


def asked(run: Run) -> Counter[str]:
    """How often each kind of call was used, each call once."""
    keys = {key for step in run.steps for key in step.calls}
    return Counter(run.calls[key].kind for key in keys)


@pytest.mark.parametrize("name", ["films/chatty_kg/1", "films/ragonite/1"])
def test_phoenix_shows_every_call_once(phoenix: str, name: str) -> None:
    run = kgwb.recording(name)
    trace_id = run.export(phoenix)
    assert run.export(phoenix) == trace_id  # sent twice, shown once
    calls = asked(run)
    number = 1 + len(run.steps) + calls.total()
    spans = spans_of(phoenix, trace_id, number)
    time.sleep(2)  # a second copy would come late
    assert len(spans_of(phoenix, trace_id, number)) == len(spans) == number
    kinds = Counter(span["span_kind"] for span in spans)
    assert kinds["LLM"] == calls["model"]
    assert kinds["AGENT"] == 1 + len(run.steps)
    assert kinds["RETRIEVER"] == calls["search"] + calls["exact"] + calls["nearest"]
    tokens = sum(span["attributes"].get("llm.token_count.total", 0) for span in spans)
    assert tokens == run.totals.prompt_tokens + run.totals.completion_tokens
    [root] = [span for span in spans if not span["parent_id"]]
    assert root["attributes"]["input.value"] == run.question
