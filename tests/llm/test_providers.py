"""Every command that asks a model, with servers that behave like those of known providers, and in trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from providers import OUTAGES, PROVIDERS, RECORDINGS, TROUBLES, Provider, Trouble

import kgwb
from kgwb.cli import main

BY_NAME = {provider.name: provider for provider in PROVIDERS}
OPENAI = BY_NAME["openai"]
BOTH_PROTOCOLS = [OPENAI, BY_NAME["ollama"]]
QUESTIONS = RECORDINGS.with_name("films.questions.jsonl")
Capture = pytest.CaptureFixture[str]


def spec(server: object) -> str:
    return server.tiny().name  # type: ignore[attr-defined,no-any-return]


# --- ask, bench, experiment, retry, pack


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_ask_gets_an_answer_of_every_provider(
    provider: Provider, here: Path, capsys: Capture
) -> None:
    with provider.started() as server:
        assert ask(server, "triad") == 0
    assert "2001-07-20" in capsys.readouterr().out


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
@pytest.mark.parametrize("provider", BOTH_PROTOCOLS, ids=lambda provider: provider.name)
def test_ask_gets_an_answer_in_trouble(
    provider: Provider, trouble: Trouble, here: Path, capsys: Capture
) -> None:
    with provider.started(trouble) as server:
        assert ask(server, "triad", "--save", "run.jsonl") == 0
        assert server.answered > len(server.well_answered)  # there was trouble
    assert "2001-07-20" in capsys.readouterr().out
    run = kgwb.load_run("run.jsonl")
    assert run.go().answer
    failed = [attempt for step in run.steps for attempt in step.attempts if attempt.problems]
    assert bool(failed) != trouble.is_repeated


def ask(server: Any, system: str, *arguments: str) -> int:
    setup = ["--kg", "films", "--model", spec(server), "--system", system]
    return main(["ask", *setup, *arguments, "When did Spirited Away come out?"])


def bench_command(server: Any, *arguments: str) -> list[str]:
    setup = ["--kg", "films", "--model", spec(server), "--system", "triad"]
    questions = ["--questions", str(QUESTIONS), "--limit", "4", "--out", "r"]
    return ["bench", *setup, *questions, *arguments]


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The last row of each question."""
    rows = {}
    for line in (folder / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "id" in row:
            rows[row["id"]] = row
    return rows


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_benchmark_stops_at_the_first_question_whose_key_is_refused(
    workers: str, here: Path, capsys: Capture
) -> None:
    refused = Trouble("401", lambda server, good: server.error(401, "Incorrect key"), every=0)
    with OPENAI.started(refused) as server:
        assert main(bench_command(server, "--workers", workers)) != 0
        assert server.answered <= int(workers)
        [row] = rows_of(Path("r")).values()
        assert "401" in row["error"]
        server.trouble = None
        assert main(bench_command(server)) == 0
    rows = rows_of(Path("r"))
    assert len(rows) == 4
    assert not any(row["error"] for row in rows.values())


@pytest.mark.long
@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.name)
def test_a_benchmark_continues_after_an_outage_and_asks_nothing_twice(
    outage: Trouble, here: Path, capsys: Capture
) -> None:
    with OPENAI.started() as server:
        assert main(bench_command(server, "--out", "whole")) == 0
        whole = rows_of(Path("whole"))

    with OPENAI.started(outage) as server:
        command = bench_command(server, "--retry-errors")
        assert main(command) in (0, 2)
        assert any(row["error"] for row in rows_of(Path("r")).values())
        server.trouble = None
        assert main(command) == 0
        assert set(server.well_answered.values()) == {1}
    rows = rows_of(Path("r"))
    for id_, row in whole.items():
        assert rows[id_]["error"] is None
        assert rows[id_]["answers"] == row["answers"]
