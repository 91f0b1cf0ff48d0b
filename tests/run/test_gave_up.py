"""Not in this graph is said of what was looked up there; an agent that gave up says why, and is counted apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import CHATTY, answer_of, chatty, qir

import kgwb
from kgwb.llm import Scripted
from kgwb.show.run_state import judge_answer

GRAPH = """@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a rdfs:label "Acme" ; :founder :b ; :seat "Oslo" . :b rdfs:label "Mia Berg" . :k rdfs:label "かいこく" ; :founder :b .
:i rdfs:label "علي" ; :founder :b . :h rdfs:label "भारत" ; :founder :b . :founder rdfs:label "founder" ."""
QUESTIONS = {
    "Who is the founder of Acme?": "given",
    "Who is the founder of かいこく?": "given",
    "Who is the founder of علي?": "given",
    "Who is the founder of भारत?": "given",
    "Who is the founder of 上海?": "gave up",
    "Who is the founder of Zork?": "gave up",
    "Who is the composer of Acme?": "unanswered",
}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.ttl"
    path.write_text(GRAPH, encoding="utf-8")
    return path


@pytest.mark.parametrize("system", ["chatty_kg", "dog", "triad"])
@pytest.mark.parametrize(("question", "state"), QUESTIONS.items())
def test_what_was_not_looked_up_is_not_said_to_be_absent(
    question: str, state: str, system: str, graph: Path
) -> None:
    answer = answer_of(kgwb.Workbench(str(graph), system=system).ask(question))
    assert judge_answer(question, answer).name == state
    assert answer.reason.startswith("not in this graph") == (state == "unanswered")


def test_the_answer_of_a_dropped_query_is_told() -> None:
    replies = {
        "chatty_kg/qir": qir("Arrival | directors | ?person"),
        "chatty_kg/predicate_selection": {"reasoning": "", "predicates": [[]]},
    }
    settings = CHATTY.settings(unasked_predicates=False)
    run = chatty("Who were the directors of Arrival?", Scripted(replies), settings=settings)
    answer = answer_of(run.go())
    assert not answer.values
    assert "Denis Villeneuve" in answer.reason
    assert judge_answer(run.question, answer).name == "gave up"
