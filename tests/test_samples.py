"""The sample graphs: gold answers follow from gold queries, and ``rules`` answers enough of the questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rdflib import URIRef

from kgwb import open_kg
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.kg.embeddings import DEFAULT
from kgwb.workbench import Workbench

FOLDER = Path(__file__).parents[1] / "sample_kgs"
NAMES = ("films", "scholars", "cars", "wikidata_slice")
ENOUGH = 0.85


def questions(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def kg(name: str) -> Graph:
    return open_kg(FOLDER / f"{name}.ttl")


def test_every_gold_query_gives_the_gold_answers(name: str, kg: Graph) -> None:
    for question in questions(name):
        if question["sparql"] is None:  # the graph has no such relation
            found = []
        elif "ASK" in question["sparql"]:
            found = [str(kg.ask(question["sparql"])).lower()]
        else:
            found = [str(row[0]) for row in kg.select(question["sparql"]).rows]
        assert sorted(found) == sorted(question["answers"]), question["id"]
        assert len(question["answers"]) == len(question["answer_labels"]), question["id"]


def test_gold_labels_are_the_graphs_own(name: str, kg: Graph) -> None:
    for question in questions(name):
        iris = [URIRef(answer) for answer in question["answers"] if "://" in answer]
        if iris:
            known = kg.names(iris)
            assert sorted(known[iri] for iri in iris) == sorted(question["answer_labels"]), question["id"]


def answered(name: str, kg: Graph) -> dict[str, tuple[bool, list[str], dict[str, Any]]]:
    """Each question's id with whether rules got exactly the gold, what it got, and the question."""
    bench = Workbench(kg, "rules")
    done: dict[str, tuple[bool, list[str], dict[str, Any]]] = {}
    last = None
    for question in questions(name):
        if not last or question.get("dialogue") != last:
            bench.forget()
        last = question.get("dialogue")
        try:
            answer = bench.ask(question["question"]).answer
        except KgwbError:  # a question that names nothing has no QIR
            answer = None
        got = sorted(str(value.term) for value in answer.values) if answer else []
        right = answer is not None and got == sorted(question["answers"])
        done[question["id"]] = (right, got, question)
    return done


def test_rules_answers_enough_and_invents_nothing(
    name: str, kg: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    done = answered(name, kg)
    wrong = [key for key, (right, _, _) in done.items() if not right]
    assert len(wrong) <= (1 - ENOUGH) * len(done), wrong
    invented = {
        key: got for key, (_, got, question) in done.items() if question["type"] == "unanswerable" and got
    }
    assert not invented
    dialogue = [right for key, (right, _, _) in done.items() if key.startswith("films-hp-")]
    assert all(dialogue) and len(dialogue) == (5 if name == "films" else 0)


@pytest.mark.parametrize(
    "question",
    ["Where was Andrei Tarkovsky buried?", "When was Stalker born?", "When did Stalker win an Oscar?"],
)
def test_another_time_or_place_is_no_answer(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGWB_EMBEDDINGS", DEFAULT)
    answer = Workbench(open_kg("films"), "rules").ask(question).answer
    assert answer is not None
    assert answer.reason.startswith("not in this graph")
