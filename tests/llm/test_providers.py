"""Every command that asks a model, with servers that behave like those of known providers, and in trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from providers import OUTAGES, PROVIDERS, RECORDINGS, TROUBLES, Provider, Trouble

import kgwb
from kgwb.cli import main
from kgwb.run import systems

BY_NAME = {provider.name: provider for provider in PROVIDERS}
OPENAI = BY_NAME["openai"]
BOTH_PROTOCOLS = [OPENAI, BY_NAME["ollama"]]
QUESTIONS = RECORDINGS.with_name("films.questions.jsonl")
EVERY_SYSTEM = systems.list_systems()
QUESTION = "When did Spirited Away come out?"
Capture = pytest.CaptureFixture[str]


def spec(server: object) -> str:
    return server.tiny().name  # type: ignore[attr-defined,no-any-return]


@pytest.mark.long
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_every_system_answers_with_a_provider(provider: Provider, here: Path) -> None:
    with provider.started() as server:
        for system in EVERY_SYSTEM:
            answer = kgwb.Workbench("films", spec(server), system=system).ask(QUESTION).answer
            assert "2001-07-20" in str(answer)


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
    return [
        "bench",
        *setup,
        "--questions",
        str(QUESTIONS),
        "--limit",
        "4",
        "--out",
        "r",
        *arguments,
    ]


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The last row of each question."""
    rows = {}
    for line in (folder / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "id" in row:
            rows[row["id"]] = row
    return rows


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("provider", BOTH_PROTOCOLS, ids=lambda provider: provider.name)
def test_a_benchmark_stops_at_the_first_question_whose_key_is_refused(
    provider: Provider, workers: str, here: Path, capsys: Capture
) -> None:
    refused = Trouble("401", lambda server, good: server.error(401, "Incorrect key"), every=0)
    with provider.started(refused) as server:
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
@pytest.mark.parametrize("provider", BOTH_PROTOCOLS, ids=lambda provider: provider.name)
def test_a_benchmark_continues_after_an_outage_and_asks_nothing_twice(
    provider: Provider, outage: Trouble, here: Path, capsys: Capture
) -> None:
    with provider.started() as server:
        assert main(bench_command(server, "--out", "whole")) == 0
        whole = rows_of(Path("whole"))

    with provider.started(outage) as server:
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


@pytest.mark.long
def test_an_experiment_continues_after_an_outage(here: Path, capsys: Capture) -> None:
    write_qald(Path("qald-9-test-multilingual.json"))
    name = "chatty_kg.table3"
    command = ["experiment", name, "--sets", "qald-9", "--graph", "dbpedia=films"]
    with OPENAI.started() as server:
        assert main([*command, "--model", spec(server), "--out", "whole"]) == 0
        asked = server.well_answered

    with OPENAI.started(OUTAGES[0]) as server:
        command += ["--model", spec(server), "--out", "stopped"]
        assert main(command) in (0, 2)
        assert server.well_answered != asked
        server.trouble = None
        capsys.readouterr()
        assert main(command) == 0
        assert server.well_answered == asked
    [folder] = Path("stopped").glob("*/qald-9 *")
    rows = rows_of(folder)
    assert len(rows) == 4
    assert not any(row["error"] for row in rows.values())


def write_qald(path: Path) -> None:
    """Write four recorded questions in QALD's form."""
    entries = []
    for line in QUESTIONS.read_text().splitlines()[:4]:
        question = json.loads(line)
        bindings = [{"x": {"type": "literal", "value": text}} for text in question["answers"]]
        results = {"head": {"vars": ["x"]}, "results": {"bindings": bindings}}
        entries.append(
            {
                "id": question["id"],
                "question": [{"language": "en", "string": question["question"]}],
                "query": {"sparql": question["sparql"]},
                "answers": [results],
            }
        )
    path.write_text(json.dumps({"dataset": {"id": "excerpt"}, "questions": entries}))


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_a_retry_with_an_edited_prompt_gets_through(
    trouble: Trouble, here: Path, capsys: Capture
) -> None:
    prompt = Path("mine/triad/triplets.md")
    prompt.parent.mkdir(parents=True)
    text = (Path(kgwb.__file__).parents[1] / "prompts" / "triad" / "triplets.md").read_text()
    prompt.write_text(text.replace("\n[user]", "\nBe exact.\n\n[user]", 1))
    with OPENAI.started() as server:
        assert main(bench_command(server)) == 0
        before = rows_of(Path("r"))
        server.trouble = trouble
        server.answered = 0
        assert (
            main(["retry", "r", "--prompts", "mine", "--only", "all", "--model", spec(server)]) == 0
        )
    [folder] = [file.parent for file in Path("r/retries").rglob("results.jsonl")]
    after = rows_of(folder)
    assert after.keys() == before.keys()
    assert not any(row["error"] for row in after.values())


def test_results_of_a_provider_are_packed_and_open_without_it(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefTHEKEY")
    with BY_NAME["openai, reasoning"].started() as server:
        assert main(bench_command(server, "--save-runs")) == 0
    assert main(["pack", "r", "--to", "artifact.zip"]) == 0
    with ZipFile("artifact.zip") as archive:
        contents = [archive.read(name) for name in archive.namelist()]
    assert not any(b"THEKEY" in content for content in contents)
    assert main(["report", "artifact.zip"]) == 0
    [results] = Path("artifact").rglob("results.jsonl")
    assert len(rows_of(results.parent)) == 4
