"""The wiring that kgwb is measured against asks the same agents, though LangGraph is not installed here."""

import sys
from pathlib import Path

import pytest

import kgwb
from kgwb.run.answers import Dialogue, Question

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import overhead

QUESTIONS = (
    "Who directed Arrival?",
    "When was the director of Arrival born?",
    "How many films did Denis Villeneuve direct?",
    "Is Arrival a film?",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_nodes_answer_what_the_workbench_answers(question: str) -> None:
    workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
    plain = overhead.plain_agents()
    run = overhead.Bare(workbench)
    run.question = question
    nodes, choices = overhead.nodes_of(plain, run), overhead.next_node(plain["chat"], run)
    following = dict(zip(nodes, [*nodes][1:], strict=False))
    state, name = (
        overhead.State(question=Question(question), dialogue=Dialogue()),
        next(iter(nodes)),
    )
    while name:
        state |= nodes[name](state)
        after = choices[name](state) if name in choices else following.get(name, "")
        assert after in overhead.BRANCHES.get(name, (after,))
        name = "" if overhead.BRANCHES.get(name) == ("",) else after
    assert state["answer"] == workbench.ask(question).answer
