"""Pipelines with at most ten added lines, in all that a run can do: plain, asynchronous, of LangGraph, of threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import bench, rows, write_questions
from pipeline_servers import ChatServer, Endpoint
from small import answer_of, films, iri

import kgwb
from kgwb.bench import Report
from kgwb.build import System, check_system
from kgwb.llm.rules import BASELINE_REMARK
from kgwb.run import Run
from kgwb.run.systems import load_file, resolve_system

DENIS, AMY, JEREMY = "Denis Villeneuve", "Amy Adams", "Jeremy Renner"
FULL = "PREFIX : <http://example.org/> SELECT ?x WHERE { :arrival :director ?x }"


class Pipeline(NamedTuple):
    """What a pipeline does when it is asked."""

    question: str
    plainly: Callable[[Any, str], Any]
    """Asks the module outside of a run."""
    found: Any
    """What it returns then."""
    steps: tuple[str, ...]
    """Each after the step that it stands below."""
    stops: tuple[str, ...]
    """The steps after which ``step`` stops, in order."""
    labels: tuple[str, ...]
    model_calls: int
    edit: tuple[str, Any]
    """A step, and an output that is put in for it."""
    edited_labels: tuple[str, ...]


TABLE = {
    "plain": Pipeline(
        "Who directed Arrival?",
        lambda module, question: module.answer(question)["values"],
        [str(iri("denis"))],
        ("answer", "answer > mentions", "answer > link", "answer > draft", "to_answer"),
        ("mentions", "link", "draft"),
        (DENIS,),
        2,
        ("draft", FULL.replace(":arrival :director", ":lynchs_dune :director")),
        ("David Lynch",),
    ),
    "branches": Pipeline(
        "Who made Arrival?",
        lambda module, question: asyncio.run(module.answer(question)),
        [iri("denis"), iri("amy"), iri("jeremy")],
        (
            "answer",
            "answer > read",
            "answer > directors",
            "directors > choose",
            "answer > actors",
            "actors > choose#2",
            "to_answer",
        ),
        ("read", "choose", "directors", "choose#2", "actors"),
        (DENIS, AMY, JEREMY),
        3,
        ("choose#2", [iri("amy")]),
        (DENIS, AMY),
    ),
    "looping": Pipeline(
        "Who directed Arrival?",
        lambda module, question: module.app.invoke({"question": question})["rows"],
        [str(iri("denis"))],
        (
            "langgraph",
            "langgraph > mention",
            "langgraph > draft",
            "langgraph > look_up",
            "langgraph > draft#2",
            "langgraph > look_up#2",
            "langgraph > phrase",
            "to_answer",
        ),
        ("mention", "draft", "look_up", "draft#2", "look_up#2", "phrase"),
        (DENIS,),
        4,
        ("draft", {"query": FULL, "drafts": 1}),
        (DENIS,),
    ),
    "expert": Pipeline(
        "Who made Arrival?",
        lambda module, question: module.Expert().answer(question),
        [iri("denis"), iri("amy"), iri("jeremy")],
        ("answer", "answer > find_film", "answer > people", "answer > people#2", "to_answer"),
        ("find_film", "people", "people#2"),
        (DENIS, AMY, JEREMY),
        3,
        ("people#2", [str(iri("amy"))]),
        (DENIS, AMY),
    ),
}


@pytest.fixture(params=TABLE)
def name(request: Any) -> str:
    if request.param == "looping":
        pytest.importorskip("langgraph")
    return str(request.param)


@pytest.fixture
def row(name: str) -> Pipeline:
    return TABLE[name]


@pytest.fixture
def path(name: str, chats: ChatServer, endpoint: Endpoint, films_file: Path, pipeline: Any) -> Path:
    file: Path = pipeline(name)
    return file


@pytest.fixture
def system(path: Path) -> System:
    return resolve_system(path)


@pytest.fixture
def run(system: System, row: Pipeline) -> Run:
    return Run(system, row.question, kg=films(), models=None).go()


def steps_of(run: Run) -> tuple[str, ...]:
    return tuple(" > ".join(filter(None, (step.parent, step.key))) for step in run.steps)


def model_calls(run: Run) -> int:
    return len([call for call in run.calls.values() if call.kind == "model"])


def test_its_functions_are_steps_and_its_answer_has_support(
    system: System, run: Run, row: Pipeline
) -> None:
    assert steps_of(run) == row.steps
    assert run.totals.model_calls == run.totals.live_model_calls == row.model_calls
    assert not run.past_calls
    again = run.fork().go()
    assert (steps_of(again), again.totals.live_model_calls) == (row.steps, 0)
    answer = answer_of(run)
    assert answer.labels == row.labels
    assert (iri("arrival"), iri("director"), iri("denis")) in answer.support
    assert all(value.support for value in answer.values)
    checked = check_system(system, row.question, kg=films())
    assert checked.problems == () and checked


def test_outside_of_a_run_it_is_the_plain_pipeline(
    path: Path, system: System, row: Pipeline
) -> None:
    module = load_file(path)
    for _ in range(2):
        assert row.plainly(module, row.question) == row.found


def test_it_is_stepped_and_stopped_at_breakpoints(system: System, row: Pipeline) -> None:
    run = Run(system, row.question, kg=films(), models=None)
    for number, done in enumerate(row.stops, 1):
        run.step()
        assert run.position == number
        assert run[done].done
    run.step_back(2)
    assert run.position == len(row.stops) - 2
    run.breakpoints.add(row.stops[-2])
    assert run.go().status == "paused"
    assert run.position == len(row.stops) - 1
    run.breakpoints.clear()
    assert run.go().status == "done"
    assert model_calls(run) == row.model_calls


def test_an_edited_output_changes_only_what_follows(run: Run, row: Pipeline) -> None:
    run.override(*row.edit).go()
    assert answer_of(run).labels == row.edited_labels
    assert model_calls(run) == row.model_calls


def test_it_is_saved_and_replayed_without_network(
    run: Run, system: System, row: Pipeline, tmp_path: Path
) -> None:
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=system)
    assert loaded.answer == run.answer
    assert [step.output for step in loaded.steps] == [step.output for step in run.steps]
    assert loaded.totals.live_model_calls == 0


def test_a_benchmark_and_its_report_have_it(
    path: Path, row: Pipeline, films_file: Path, here: Path
) -> None:
    answers = [str(iri(label.split()[0].lower())) for label in row.labels]
    write_questions({"question": row.question, "answers": answers})
    assert bench("--system", str(path), kg=str(films_file)) == 0
    [result] = rows()
    figures = (result["f1"], result["model_calls"], result["error"])
    assert figures == (1.0, row.model_calls, None)
    page = Report("r")._repr_html_()
    assert resolve_system(path).name in page and BASELINE_REMARK not in page
