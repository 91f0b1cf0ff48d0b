"""``rules`` in Chatty-KG's roles: the dialogue, homonyms and predicates."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import rdflib

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatRequest
from kgwb.llm.rules import Rules
from kgwb.systems import system

EARLIER = [
    {"question": "Who directed Echo in 1987?", "answers": ["Ada Byron"], "about": ["Echo"]},
    {"question": "What is Echo based on?", "answers": ["Fog over Elm"], "about": ["Echo"]},
]
HOMONYMS = [
    {"number": 1, "label": "Echo", "type": "film", "description": "of 1987", "relations": ["director"]},
    {"number": 2, "label": "Echo", "type": "novel", "description": "novel by A", "relations": ["author"]},
]


@pytest.fixture(scope="module")
def kg() -> Graph:
    graph = rdflib.Graph()
    for number, label in enumerate(("Ada Byron", "Echo", "Fog over Elm", "Orion", "poet")):
        graph.add((rdflib.URIRef(f"http://e/{number}"), rdflib.RDFS.label, rdflib.Literal(label)))
    return open_kg(graph)


def reply(task: str, kg: Graph | None = None, **variables: Any) -> Any:
    system("chatty_kg")
    request = ChatRequest(task=task if "/" in task else f"chatty_kg/{task}", variables=variables, messages=())
    return json.loads(Rules(Embeddings("lexical")).complete(request, kg, threading.Event()).text)


@pytest.mark.parametrize(
    ("question", "turns", "standalone"),
    [
        ("Where was she born?", 1, "Where was Ada Byron born?"),
        ("When was it released?", 1, "When was Echo released?"),
        ("And who wrote that?", 2, "Who wrote Fog over Elm?"),
        ("And the one from 1999?", 1, "Who directed Echo in 1999?"),
        ("What about Orion?", 1, "Who directed Orion in 1987?"),
        ("And when?", 2, "When is Echo based on?"),
        ("How long is the film?", 1, "How long is the film Echo?"),
        ("Who is her sister?", 1, "Who is Ada Byron's sister?"),
    ],
)
def test_a_follow_up_is_made_standalone(question: str, turns: int, standalone: str, kg: Graph) -> None:
    assert reply("classifier", kg, question=question)["label"] == "dependent"
    assert reply("rephraser", kg, question=question, dialogue=EARLIER[:turns])["question"] == standalone


def test_a_question_with_a_name_stands_alone(kg: Graph) -> None:
    question = "Who directed films that share a poet with Echo?"
    assert reply("classifier", kg, question=question)["label"] == "self-contained"
    assert reply("rephraser", kg, question=question, dialogue=[]) == {"question": question}


@pytest.mark.parametrize(
    "question", ["", "?!", "who " * 400, "\u202e\u0000 𝕎𝕙𝕠 wrote it\u200b", "?x a <http://evil>"]
)
def test_hostile_text_does_no_harm(question: str, kg: Graph) -> None:
    reply("rephraser", kg, question=question, dialogue=EARLIER)
    reply("classifier", None, question=question)


@pytest.mark.parametrize(
    ("question", "number"), [("Who wrote the novel Echo?", 2), ("Who made Echo of 1987?", 1)]
)
def test_homonyms_are_told_apart_by_year_and_description(question: str, number: int, kg: Graph) -> None:
    vertex = reply("linking/vertex_selection", kg, question=question, entity="Echo", candidates=HOMONYMS)
    assert vertex["number"] == number


@pytest.mark.parametrize(("names", "kept"), [(["director", "shoe size"], ["director"]), (["shoe size"], [])])
def test_a_predicate_must_be_like_the_relation(names: list[str], kept: list[str]) -> None:
    relations = [{"triple": ["Echo", "director", "?answer"], "predicates": names}]
    assert reply("predicate_selection", question="", relations=relations)["predicates"] == [kept]
