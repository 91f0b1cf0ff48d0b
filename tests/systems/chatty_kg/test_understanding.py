"""Understanding: a dependent question is rephrased, and no other."""

from typing import Any

import pytest
from small import (
    CHATTY,
    DIRECTED,
    chatty,
)

from kgwb import profile
from kgwb.llm import Scripted
from kgwb.run.answers import Dialogue, Turn

SAID = Dialogue((Turn("Which film is it?", ("Dune",), entities=("Dune",)),))


FOLLOW_UP = {
    **DIRECTED,
    "chatty_kg/classifier": {"reason": "the film", "label": "dependent"},
    "chatty_kg/rephraser": {"question": "Who directed Arrival?"},
}


def steps(run: Any) -> list[str]:
    return [step.agent for step in run.steps]


@pytest.mark.parametrize(
    ("label", "settings", "agents"),
    [
        ("dependent", None, ["classifier", "rephraser"]),  # once
        ("self-contained", None, ["classifier"]),
        ("dependent", profile("fast", multi_turn=False), []),
    ],
)
def test_a_dependent_question_is_rephrased_and_no_other(
    label: str, settings: Any, agents: list[str]
) -> None:
    script = {**FOLLOW_UP, "chatty_kg/classifier": {"reason": "", "label": label}}
    run = chatty("Who directed the film?", Scripted(script), dialogue=SAID, settings=settings).go()
    assert [agent for agent in steps(run) if agent in ("classifier", "rephraser")] == agents
    assert (
        run.output("understanding")
        == f"Who directed {'Arrival' if len(agents) == 2 else 'the film'}?"
    )
    assert str(run.answer) == "Denis Villeneuve"
    order = [spec.name for spec in CHATTY.agents]
    places = [order.index(name) for name in dict.fromkeys(steps(run))]
    assert places == sorted(places)
