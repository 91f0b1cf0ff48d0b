"""The pipelines of the notebook: at most ten added lines, a replay without requests, and an edit in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from notebook_pipelines import FOLDER, PUBLISHED, QUESTIONS
from pipeline_scripts import MARK, PIPELINES, plain_text
from small import answer_of

import kgwb
from kgwb.kg import sample_path
from kgwb.run import Run
from kgwb.show.subgraph import build_subgraph

MAX_ADDED_LINES = 10
LIBRARIES = {"plain": "SPARQLWrapper", "looping": "langgraph", "branches": "openai"}


@pytest.fixture(params=QUESTIONS)
def name(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FILMS", str(sample_path("films")))
    pytest.importorskip(LIBRARIES[request.param])
    return str(request.param)


def load(name: str) -> Run:
    return kgwb.load_run(FOLDER / f"{name}.jsonl", system=FOLDER / f"{name}.py")


@pytest.mark.parametrize(
    "path",
    [*(FOLDER / f"{name}.py" for name in (*QUESTIONS, *PUBLISHED)), *PIPELINES.glob("*.py")],
    ids=lambda path: f"{path.parts[-3]} {path.stem}",
)
def test_without_the_added_lines_it_is_the_plain_program(path: Path) -> None:
    plain = plain_text(path)
    assert 0 < path.read_text().count(MARK) <= MAX_ADDED_LINES
    assert "kgwb import" not in plain
    assert "build." not in plain
    compile(plain, path.name, "exec")


def test_a_replay_makes_no_request(name: str) -> None:
    run = load(name)
    assert run.question == QUESTIONS[name]
    assert run.status == "done"
    assert run.is_replay
    assert all(value.support for value in answer_of(run).values)
    assert run.totals.model_calls > 0
    assert run.totals.live_model_calls == 0
    assert run.past_calls == {}


STEPS = {
    "smolagents_agent": ["think", "look_up", "think#2", "look_up#2", "think#3"],
    "sparql_chain": [
        "look_up",
        "look_up#2",
        "choose_form",
        "draft",
        "look_up#3",
        "say",
    ],
    "dspy_react": ["find_thing", "sparql"],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_pipeline_is_shown_without_its_packages(name: str) -> None:
    file = FOLDER / f"{name}.jsonl"
    assert file.stat().st_size <= 100_000
    run = kgwb.load_run(file)
    assert (run.question, run.status) == (PUBLISHED[name][0], "done")
    assert [step.key for step in run.steps] == ["answer", *STEPS[name], "to_answer"]
    assert answer_of(run).values
    assert all(value.support for value in answer_of(run).values)
    assert build_subgraph(run).edges
    assert all(call.result.body for call in run.calls.values() if call.kind == "model")
