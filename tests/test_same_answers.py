"""A question has the answer it had, and the same, or the same error, from a file and a real engine."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import answers
import engines
import pytest

from kgwb import Workbench, open_kg
from kgwb.errors import KgwbError
from kgwb.kg import SAMPLE_NAMES, Graph, sample_path
from kgwb.kg.embeddings import DEFAULT_MODEL, Embeddings
from kgwb.run import Run

METAQA = 50
WORKERS = 4
Outcome = tuple[str, frozenset[object], str]


@pytest.mark.timeout(900)
def test_answers_are_those_that_were_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are changed on purpose, `python tests/answers.py --write` records them anew."""
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT_MODEL)
    before, now = answers.recorded(), answers.answers()
    assert {
        key: (before.get(key), answer) for key, answer in now.items() if before.get(key) != answer
    } == {}


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
@pytest.mark.parametrize("engine", ["virtuoso", "oxigraph"])
def test_samples(engine: str, sample: str, request: pytest.FixtureRequest) -> None:
    server: engines.Engine = request.getfixturevalue(engine)
    every = questions(sample_path(sample).with_name(f"{sample}.questions.jsonl"))
    some = [turn for turns in conversations(every)[::4] for turn in turns]
    compare(sample_path(sample), some, server)


def test_metaqa(virtuoso: engines.Engine, metaqa: Path) -> None:
    every = questions(metaqa.with_name("metaqa_dev.jsonl"))
    compare(metaqa, every[:: len(every) // METAQA][:METAQA], virtuoso)


def questions(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def compare(graph: Path, asked: Sequence[dict[str, Any]], server: engines.Engine) -> None:
    """Ask both, print how many outcomes are equal and the seconds that each took, and fail if one differs."""
    embeddings = Embeddings(DEFAULT_MODEL)
    started = time.perf_counter()
    here = outcomes(open_kg(graph), asked, embeddings)
    half = time.perf_counter()
    there = outcomes(open_kg(server.load(graph)), asked, embeddings)
    seconds = f"file {half - started:.1f} s, engine {time.perf_counter() - half:.1f} s"
    different = {key: (here[key], there[key]) for key in here if here[key] != there[key]}
    errors = sum(kind.endswith("Error") for kind, _, _ in here.values())
    answered = sum(bool(values) for _, values, _ in here.values())
    equal = f"{len(here) - len(different)} of {len(here)} equal ({answered} with answers, {errors} errors)"
    sys.stdout.write(f"{graph.name} on {server.name}: {equal}; {seconds}\n")
    assert len(here) == len(asked) and answered > len(asked) / 2
    assert not different


def outcomes(
    kg: Graph, asked: Sequence[dict[str, Any]], embeddings: Embeddings
) -> dict[str, Outcome]:
    """What came of each question, by its id: conversations side by side, dialogues turn by turn."""

    def hold(turns: Sequence[dict[str, Any]]) -> list[tuple[str, Outcome]]:
        runs = held(kg, turns, embeddings)
        return [(turn["id"], outcome(run)) for turn, run in zip(turns, runs, strict=True)]

    with ThreadPoolExecutor(WORKERS) as pool:
        return dict(each for turns in pool.map(hold, conversations(asked)) for each in turns)


def conversations(asked: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The turns of each dialogue in their order, and each other question alone."""
    key = lambda question: (question.get("dialogue") or question["id"], question.get("turn", 0))  # noqa: E731
    return [
        list(turns)
        for _, turns in groupby(sorted(asked, key=key), lambda question: key(question)[0])
    ]


def held(kg: Graph, turns: Sequence[dict[str, Any]], embeddings: Embeddings) -> Iterator[Run]:
    """The run of each question of a conversation."""
    bench = Workbench(kg, "rules", embeddings=embeddings)
    for question in turns:
        outcome(run := bench.begin(question["question"]))
        yield run


def outcome(run: Run) -> Outcome:
    try:
        answer = run.go().answer
    except KgwbError as error:
        return type(error).__name__, frozenset(), error.message
    assert answer is not None
    # repr, as rdflib takes "1"^^xsd:integer and "01"^^xsd:integer for equal
    return answer.kind, frozenset(repr(value.term) for value in answer.values), answer.reason
