"""Chatty-KG with a real model that is too small for it: answers are bad, but each run is sound."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import small
from model_server import MODEL
from rdflib import URIRef

import kgwb
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.kg.queries import CandidateQuery
from kgwb.llm import ChatModel
from kgwb.run import Run
from kgwb.run.steps import Step
from kgwb.settings import Settings

QUESTIONS = Path(__file__).parents[3] / "sample_kgs" / "films.questions.jsonl"
EVERY = 20
"""Every so many questions one is asked; 1 asks all, in an hour on two cores."""
SETTINGS = Settings(max_output_tokens=160, shown_candidates=8, workers=1, model_timeout_s=600.0)
"""Short replies and short lists: a token costs this model as much as a call costs others."""


@pytest.mark.timeout(3600)
def test_the_whole_pipeline(llama: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = kgwb.llm.model(f"openai:{MODEL}@{llama}")
    kg = kgwb.open_kg("films")
    known = {term for triple in _triples(kg) for term in triple}
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()[::EVERY]
    outcomes, judged = Counter[str](), Counter[tuple[str, str]]()
    for number, line in enumerate(lines):
        run = _asked(json.loads(line)["question"], kg, model)
        outcomes[type(run.error).__name__ if run.error else "an answer"] += 1
        _invents_no_vertex(run, known)
        _keeps_every_attempt(run)
        _replays_alike(run, tmp_path / f"{number}.jsonl")
        judged.update(_results_of_checks(run))
    assert sum(outcomes.values()) == len(lines)
    assert sum(judged.values()) >= len(lines)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(lines)} questions, {dict(outcomes)}\n{_table(judged)}\n")


def _asked(question: str, kg: Graph, model: ChatModel) -> Run:
    """Execute a run to its end or its error. An error that is not a KgwbError fails the test."""
    run = Run(small.CHATTY, question, kg=kg, models=model, settings=SETTINGS)
    try:
        run.go()
    except KgwbError as error:
        assert run.error is error
        assert run.status == "failed"
    else:
        assert run.status == "done"
    return run


def _invents_no_vertex(run: Run, known: set[Any]) -> None:
    """Check that each IRI in an output or a query is in the graph, and each link is a candidate."""
    seen = [run.answer, *(step.output for step in run.steps if step.done)]
    assert {iri for value in seen for iri in _iris(value)} <= known
    for step in run.steps:
        if step.agent == "vertex_selection" and step.done and step.output.vertex:
            assert step.output.vertex in step.inputs["retrieved"].candidates


def _keeps_every_attempt(run: Run) -> None:
    """Check that each model call of a step is an attempt with its reply and at least one check."""
    for step in run.steps:
        calls = [run.calls[key] for key in step.calls if run.calls[key].kind == "model"]
        assert [call.key for call in calls] == [attempt.call for attempt in step.attempts]
        assert [call.result.text for call in calls] == [attempt.reply for attempt in step.attempts]
        assert all(attempt.checks for attempt in step.attempts)
        if not step.done:
            assert step.error
    if run.error:
        assert any(not step.done for step in run.steps)


def _replays_alike(run: Run, path: Path) -> None:
    """Check that the saved run has every step, and that loading it asks no model and no graph."""
    again = kgwb.load_run(run.save(path))
    assert again.unrecorded_graph is None
    assert [_facts(step) for step in again.steps] == [_facts(step) for step in run.steps]
    assert (again.answer, again.status) == (run.answer, run.status)
    assert str(again.error) == str(run.error)
    assert again.totals.live_model_calls == 0


def _facts(step: Step) -> tuple[Any, ...]:
    return step.key, step.done, step.output, step.calls, step.attempts, step.notes, step.error


def _results_of_checks(run: Run) -> Iterator[tuple[str, str]]:
    """Yield for each reply its agent, and the check that it failed or "accepted"."""
    for step in run.steps:
        for attempt in step.attempts:
            failed = next((check.name for check in attempt.checks if check.problem), "accepted")
            yield step.agent, failed


def _table(judged: Counter[tuple[str, str]]) -> str:
    agents = sorted({agent for agent, _ in judged})
    checks = sorted({check for _, check in judged})
    rows = [["replies", *agents]]
    rows += [[check, *(str(judged[agent, check]) for agent in agents)] for check in checks]
    return "\n".join(f"  {row[0]:28}" + "".join(f"{cell:>22}" for cell in row[1:]) for row in rows)


def _triples(kg: Graph) -> Iterator[tuple[Any, ...]]:
    yield from kg.select("SELECT ?s ?p ?o WHERE { ?s ?p ?o }").rows


def _iris(value: Any) -> set[URIRef]:
    if isinstance(value, URIRef):
        return {value}
    if isinstance(value, dict):
        return {iri for pair in value.items() for part in pair for iri in _iris(part)}
    if isinstance(value, list | tuple | frozenset | set):
        return {iri for part in value for iri in _iris(part)}
    if isinstance(value, CandidateQuery):  # datatypes of literals are no vertices
        written = " ".join(term for pattern in value.patterns for term in pattern)
        return {URIRef(iri) for iri in re.findall(r"(?<!\^)<([^<>]+)>", written)}
    if is_dataclass(value):
        return {iri for field in fields(value) for iri in _iris(getattr(value, field.name))}
    return set()
