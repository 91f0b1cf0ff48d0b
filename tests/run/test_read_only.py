"""A run whose system is not there opens read-only, and a file makes nothing be imported."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import films, keys
from test_mistakes import answer, mention
from triads import QUESTION, SCRIPT, TRIAD

import kgwb
from kgwb.errors import SettingError
from kgwb.llm import Scripted
from kgwb.run import Run, System
from kgwb.run.steps import call_key

SYSTEM = System("not_installed", answer, [mention])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a run of a system that is not installed."""
    run = kgwb.Workbench("films", Scripted({}), system=SYSTEM).ask("Who?")
    return run.save(tmp_path / "run.jsonl")


def test_the_run_is_shown_from_its_steps(file: Path) -> None:
    run = kgwb.load_run(file)
    assert run.status == "done"
    assert run.answer and run.answer.labels == ("Who?",)
    [step] = run.steps
    assert (step.key, step.output, step.done) == ("mention", {"name": "Who?"}, True)
    assert step.inputs == {"text": "Who?"}
    assert run.error is None
    assert "not_installed" in run.read_only
    assert "test_mistakes" in run.read_only
    assert "can only be read" in str(run)
    assert "mention" in run.summary()


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.go(),
        lambda run: run.step(),
        lambda run: run.override("mention", {"name": "x"}),
        lambda run: run.refresh("mention"),
        lambda run: run.fork().go(),
    ],
)
def test_it_cannot_be_executed_or_edited(file: Path, change: Callable[[Run], Any]) -> None:
    run = kgwb.load_run(file)
    with pytest.raises(SettingError):
        change(run)
    assert keys(run) == ["mention"]


def test_the_file_says_where_a_system_of_others_came_from(file: Path) -> None:
    run = kgwb.Workbench("films", "rules").ask("Who directed Arrival?")
    own = run.save(file.with_name("own.jsonl"))
    assert ["system_from" in each.read_text() for each in (file, own)] == [True, False]


@pytest.mark.parametrize(
    "name", ["evil", "evil:SYSTEM", "evil.pipeline", "evil.py", "./evil.py", "os", "../evil", ""]
)
def test_a_hostile_name_makes_nothing_be_imported(
    file: Path, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.syspath_prepend(str(file.parent))
    (file.parent / "evil.py").write_text("raise SystemExit('imported')")
    header, *lines = file.read_text().splitlines()
    data = json.loads(header) | {"system": name, "system_from": "evil:SYSTEM"}
    file.write_text("\n".join([json.dumps(data), *lines]) + "\n")
    before = set(sys.modules)
    run = kgwb.load_run(file)
    assert run.read_only
    assert "evil" not in sys.modules
    assert {name for name in set(sys.modules) - before if not name.startswith("kgwb")} == set()


def test_muted_triples_of_an_earlier_version_are_read_from_the_steps(tmp_path: Path) -> None:
    run = kgwb.Workbench("films", "rules").ask("Which films did Christopher Nolan direct?")
    assert run.answer
    muted = run.mute(run.answer.support[0]).go()
    lines = muted.save(tmp_path / "muted.jsonl").read_text().splitlines()
    # An earlier version recorded its queries as rewritten texts, so that none is found by its own.
    calls = [json.loads(line).get("call", {"kind": ""}) for line in lines]
    earlier = [line for line, call in zip(lines, calls, strict=True) if call["kind"] != "select"]
    (tmp_path / "earlier.jsonl").write_text("\n".join(earlier) + "\n")

    assert kgwb.load_run(tmp_path / "muted.jsonl").read_only == ""
    read = kgwb.load_run(tmp_path / "earlier.jsonl")
    assert read.read_only
    assert read.answer and muted.answer and read.answer.labels == muted.answer.labels
    with_graph = kgwb.load_run(tmp_path / "earlier.jsonl", kg="films", model="rules")
    assert with_graph.read_only == ""
    assert with_graph.answer and with_graph.answer.labels == muted.answer.labels


JUDGEMENT = "triad/query_choice_judgement"


@pytest.mark.parametrize("added", ["", " Be brief.", " Of {{thought}}."])
def test_a_run_whose_prompt_has_another_name_or_text_today_is_read_from_the_steps(
    tmp_path: Path, added: str
) -> None:
    run = Run(TRIAD, QUESTION, kg=films(), models=Scripted(SCRIPT)).go()
    text = run.save(tmp_path / "now.jsonl").read_text()
    if not added:
        text = text.replace(JUDGEMENT, "triad/query_judgement")
    header, *entries = map(json.loads, text.splitlines())
    if added:
        header["prompts"][JUDGEMENT] += added
    for entry in entries:
        if call := entry.get("call"):
            call["key"] = call_key(call["kind"], call["request"], call["repeat"])
    path = tmp_path / "earlier.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in (header, *entries)))
    read = kgwb.load_run(path)
    assert read.read_only
    assert (read.answer, keys(read)) == (run.answer, keys(run))
