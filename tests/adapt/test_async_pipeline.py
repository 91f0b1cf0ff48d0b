"""An asynchronous pipeline of openai and rdflib with two branches."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pipeline_servers import ChatServer
from small import films, iri

import kgwb
from kgwb.build import System, check_system
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


def test_its_answer_has_support_without_naming_queries(run: Run) -> None:
    assert run.answer is not None
    assert run.answer.labels == ("Denis Villeneuve", "Amy Adams", "Jeremy Renner")
    assert (iri("arrival"), iri("director"), iri("denis")) in run.answer.support
    assert (iri("arrival"), iri("starring"), iri("amy")) in run.answer.support


def test_outside_of_a_run_it_is_the_plain_pipeline(system: System) -> None:
    module = sys.modules[system.answer.__module__]
    found = asyncio.run(module.answer(QUESTION))
    assert found == [iri("denis"), iri("amy"), iri("jeremy")]


def test_each_step_stops_before_the_other_branch_goes_on(system: System, chats: ChatServer) -> None:
    run = Run(system, QUESTION, kg=films(), models=None)
    for number, done in enumerate(["read", "choose", "directors", "choose#2", "actors"], 1):
        run.step()
        assert run.position == number
        assert run[done].done
    assert len(chats.requests) == 3
    run.step_back(2)
    assert run.position == 3
    assert run.go().status == "done"
    assert len(chats.requests) == 3


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


def test_a_check_finds_nothing_wrong(system: System) -> None:
    assert check_system(system, QUESTION, kg=films()).problems == ()
