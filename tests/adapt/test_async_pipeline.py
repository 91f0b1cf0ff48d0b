"""An asynchronous pipeline of openai and rdflib with two branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pipeline_servers import ChatServer
from small import films, iri

import kgwb
from kgwb.build import System
from kgwb.run import Run
from kgwb.run.systems import resolve_system

QUESTION = "Who made Arrival?"
KEYS = ["answer", "read", "directors", "choose", "actors", "choose#2", "to_answer"]


@pytest.fixture
def system(chats: ChatServer, films_file: Path, pipeline: Any) -> System:
    return resolve_system(pipeline("branches_added"))


@pytest.fixture
def run(system: System) -> Run:
    return Run(system, QUESTION, kg=films(), models=None).go()


def test_its_branches_are_steps_in_the_same_order_each_time(run: Run) -> None:
    assert [step.key for step in run.steps] == KEYS
    assert [step.parent for step in run.steps[:4]] == ["", "answer", "answer", "directors"]
    assert run["choose#2"].parent == "actors"
    assert run.output("directors") == [iri("denis")]
    again = run.fork().go()
    assert [step.key for step in again.steps] == KEYS
    assert again.totals.live_model_calls == 0


def test_an_edit_in_one_branch_changes_only_what_follows(run: Run, chats: ChatServer) -> None:
    asked = len(chats.requests)
    run.override("choose#2", [iri("amy")]).go()
    assert run.answer is not None
    assert run.answer.labels == ("Denis Villeneuve", "Amy Adams")
    run.edit_messages("choose", "[user]\nChoose directors: http://example.org/lynch\n").go()
    assert run.answer.labels == ("David Lynch", "Amy Adams")
    assert len(chats.requests) == asked + 1


def test_muting_saving_and_replaying(run: Run, system: System, tmp_path: Path) -> None:
    muted = run.mute((iri("arrival"), iri("starring"), iri("amy"))).go()
    assert muted.output("actors") == [iri("jeremy")]
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=system)
    assert loaded.answer == run.answer
