"""Every command that asks a model, with servers that behave like those of known providers, and in trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from providers import (
    OUTAGES,
    PEOPLE,
    PROVIDERS,
    TROUBLES,
    TURTLE,
    Provider,
    ProviderServer,
    Trouble,
    ask_for,
)

import kgwb
from kgwb.cli import main

BY_NAME = {provider.name: provider for provider in PROVIDERS}
OPENAI = BY_NAME["openai"]
BOTH_PROTOCOLS = [OPENAI, BY_NAME["ollama"]]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def graph_and_questions(here: Path) -> None:
    (here / "people.ttl").write_text(TURTLE)
    rows = [{"id": name, "question": ask_for(name), "answers": [f"x:{name}ton"]} for name in PEOPLE]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def command(name: str, server: ProviderServer, *arguments: str) -> list[str]:
    return [name, "--kg", "people.ttl", "--model", server.tiny().name, *arguments]


def bench_command(server: ProviderServer, *arguments: str) -> list[str]:
    return command("bench", server, "--questions", "questions.jsonl", "--out", "r", *arguments)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_ask_gets_an_answer_of_every_provider(provider: Provider, capsys: Capture) -> None:
    with provider.started() as server:
        assert main(command("ask", server, ask_for("Ann"))) == 0
    assert "Annton" in capsys.readouterr().out


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
@pytest.mark.parametrize("provider", BOTH_PROTOCOLS, ids=lambda provider: provider.name)
def test_ask_gets_an_answer_in_trouble(
    provider: Provider, trouble: Trouble, capsys: Capture
) -> None:
    with provider.started(trouble) as server:
        assert main(command("ask", server, "--save", "run.jsonl", ask_for("Ann"))) == 0
        assert server.answered > len(server.well_answered)  # there was trouble
    assert "Annton" in capsys.readouterr().out
    run = kgwb.load_run("run.jsonl")
    assert run.go().answer
    failed = [attempt for step in run.steps for attempt in step.attempts if attempt.problems]
    assert bool(failed) != trouble.is_repeated


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The last row of each question."""
    rows = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    return {row["id"]: row for row in rows if "id" in row}


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_benchmark_stops_at_the_first_question_whose_key_is_refused(
    workers: str,
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
    outage: Trouble,
) -> None:
    with OPENAI.started() as server:
        assert main(bench_command(server, "--out", "whole")) == 0
        whole = rows_of(Path("whole"))

    with OPENAI.started(outage) as server:
        retry = bench_command(server, "--retry-errors")
        assert main(retry) in (0, 2)
        assert any(row["error"] for row in rows_of(Path("r")).values())
        server.trouble = None
        assert main(retry) == 0
        assert set(server.well_answered.values()) == {1}
    rows = rows_of(Path("r"))
    for id_, row in whole.items():
        assert rows[id_]["error"] is None
        assert rows[id_]["answers"] == row["answers"]
