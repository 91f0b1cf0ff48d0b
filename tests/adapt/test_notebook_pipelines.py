"""The pipelines of the notebook: at most ten added lines, a replay without requests, and an edit in the middle."""

from __future__ import annotations

from typing import Any

import pytest
from notebook_pipelines import FOLDER, PUBLISHED, QUESTIONS

import kgwb
from kgwb.kg import sample_path
from kgwb.run import Run
from kgwb.show.subgraph import build_subgraph

MARK = "# added"
MAX_ADDED_LINES = 10
LIBRARIES = {"plain": "SPARQLWrapper", "looping": "langgraph", "branches": "openai"}


@pytest.fixture(params=QUESTIONS)
def name(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FILMS", str(sample_path("films")))
    pytest.importorskip(LIBRARIES[request.param])
    return str(request.param)


def load(name: str) -> Run:
    return kgwb.load_run(FOLDER / f"{name}.jsonl", system=FOLDER / f"{name}.py")


@pytest.mark.parametrize("name", [*QUESTIONS, *PUBLISHED])
def test_without_the_added_lines_it_is_the_plain_program(name: str) -> None:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    plain = [line for line in lines if MARK not in line]
    assert 0 < len(lines) - len(plain) <= MAX_ADDED_LINES
    text = "\n".join(plain)
    assert "kgwb import" not in text
    assert "build." not in text
    compile(text, f"{name}.py", "exec")


def test_a_replay_makes_no_request(name: str) -> None:
    run = load(name)
    assert run.question == QUESTIONS[name]
    assert run.status == "done"
    assert run.is_replay
    assert run.answer is not None
    assert all(value.support for value in run.answer.values)
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
    assert run.answer is not None
    assert run.answer.values
    assert all(value.support for value in run.answer.values)
    assert build_subgraph(run).edges
    assert all(call.result.body for call in run.calls.values() if call.kind == "model")
