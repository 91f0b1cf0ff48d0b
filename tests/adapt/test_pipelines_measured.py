"""An asynchronous pipeline, one of LangGraph and one of threads: benchmarks, reports and comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pipeline_servers import ChatServer
from small import films, iri

import kgwb
from kgwb.bench.results import read_results
from kgwb.cli import main
from kgwb.run.systems import resolve_system

QUESTIONS = {
    "branches_added": ("Who made Arrival?", ["denis", "amy", "jeremy"], 3),
    "looping_added": ("Who directed Arrival?", ["denis"], 4),
    "expert_added": ("Who made Arrival?", ["denis", "amy", "jeremy"], 3),
}
"""The question of each pipeline, the local names of its answers, and its calls of a model."""
SYSTEM_NAMES = {
    "branches_added": "branches",
    "looping_added": "langgraph",
    "expert_added": "expert",
}


@pytest.fixture(params=QUESTIONS)
def name(request: Any) -> str:
    if request.param == "looping_added":
        pytest.importorskip("langgraph")
    return str(request.param)


def test_a_benchmark_and_its_report_have_it(
    name: str, chats: ChatServer, films_file: Path, pipeline: Any, here: Path
) -> None:
    text, answers, model_calls = QUESTIONS[name]
    question = {"id": "1", "question": text, "answers": [str(iri(each)) for each in answers]}
    Path("q.jsonl").write_text(json.dumps(question))
    options = ["--kg", str(films_file), "--questions", "q.jsonl", "--out", "out", "--save-runs"]
    assert main(["bench", *options, "--systems", str(pipeline(name))]) == 0
    [folder] = filter(Path.is_dir, Path("out").iterdir())
    [row] = read_results(folder)[1]
    assert (row["f1"], row["model_calls"], row["error"]) == (1.0, model_calls, None)
    assert main(["report", str(folder), "--out", "report.html"]) == 0
    assert SYSTEM_NAMES[name] in Path("report.html").read_text()


def test_it_is_compared_with_others(
    name: str, chats: ChatServer, films_file: Path, pipeline: Any
) -> None:
    text, answers, _ = QUESTIONS[name]
    system = resolve_system(pipeline(name))
    compared = kgwb.Workbench(films(), "rules").ask_all(text, [system, "chatty_kg"])
    mine, other = compared.answers
    assert (mine.system, other.system) == (system.name, "chatty_kg")
    assert mine.run.answer is not None
    assert len(mine.run.answer.values) == len(answers)
