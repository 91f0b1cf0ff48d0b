"""Matching: entities side by side, then relations along their joins."""

import threading
import time
from typing import Any

from small import (
    FILMS,
    Alone,
    alone,
    films,
    vertex,
)

from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run
from kgwb.run.answers import Context
from kgwb.systems.chatty_kg.matching import match_qir
from kgwb.systems.chatty_kg.records import QIR, Fact

FACTS = (Fact("?film", "director", "Denis Villeneuve"), Fact("?film", "starring", "Amy Adams"))


def test_entities_and_relations_are_linked() -> None:
    linked, run, model = alone(
        lambda run: match_qir(QIR(FACTS, "?film"), "Which film?", Context(), run)
    )
    assert [link.entity for link in linked.links] == ["Denis Villeneuve", "Amy Adams"]
    assert all(link.vertex for link in linked.links)
    assert [relation.predicates[0].name for relation in linked.relations] == [
        "director",
        "starring",
    ]
    assert model.call_count() == 0
    assert [step.key for step in run.steps if step.parent == "matching"] == [
        "entity_linking[Denis Villeneuve]",
        "entity_linking[Amy Adams]",
        f"relation_linking[{FACTS[0]}]",
        f"relation_linking[{FACTS[1]}]",
    ]


def test_an_entity_named_twice_is_linked_once() -> None:
    facts = (Fact("Dune", "director", "?x"), Fact("Dune", "starring", "?y"))
    replies = {"vertex_selection": vertex(1, "Dune")}
    linked, _, model = alone(
        lambda run: match_qir(QIR(facts, "?x"), "Who?", Context(), run), replies, kg=films()
    )
    assert (len(linked.links), model.call_count()) == (1, 1)


def test_entities_are_linked_side_by_side_on_a_remote_model_in_their_order() -> None:
    twins = (
        ':amy2 rdfs:label "Amy Adams" ; :director :denis . :denis2 rdfs:label "Denis Villeneuve" .'
    )
    both = threading.Barrier(2, timeout=60)  # passed only if both are asked at the same time

    def choose(request: ChatRequest) -> Any:
        both.wait()
        time.sleep(0.1 if request.variables["entity"] == "Denis Villeneuve" else 0)
        return vertex(1, request.variables["entity"])

    system = Alone(lambda run: match_qir(QIR(FACTS, "?film"), "Which film?", Context(), run))
    model = Scripted(choose, remote=True)
    run = Run(system, "Which film?", kg=films(FILMS + twins), models=model).go()
    order = ["Denis Villeneuve", "Amy Adams"]
    assert [step.subject for step in run.steps if step.agent == "vertex_selection"] == order
    assert [link.entity for link in run.output("matching").links] == order
