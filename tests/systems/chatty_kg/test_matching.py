"""Matching: entities side by side, then relations along their joins."""

import threading
import time
from typing import Any

from small import (
    FILMS,
    Alone,
    films,
    vertex,
)

from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run
from kgwb.run.answers import Context
from kgwb.systems.chatty_kg.matching import match_qir
from kgwb.systems.chatty_kg.records import QIR, Fact

FACTS = (Fact("?film", "director", "Denis Villeneuve"), Fact("?film", "starring", "Amy Adams"))


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
