"""One step's call is asked many times, and its replies are grouped by the decision they lead to."""

from collections.abc import Mapping
from typing import Any

import pytest
from page import do, press, settle, text, wait_for
from small import films, predicates, qir, workbench

from kgwb.errors import SettingError
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest
from kgwb.run.sampled import NO_VALID_REPLY, sample_step
from kgwb.ui.debugger import Debugger
from kgwb.ui.session import Session

KG = films()
QIR = "chatty_kg/qir"


def moody(request: ChatRequest) -> Mapping[str, Any]:
    """Asks for the director, but with every fifth seed for the writer."""
    if request.task != QIR:
        return predicates(["director"])
    is_odd = (request.seed or 0) % 5 == 3
    relation = (
        "writer"
        if is_odd or "Ask for the writer." in request.messages[-1].content
        else "directed by"
    )
    return qir(f"Arrival | {relation} | ?x")


def other(request: ChatRequest) -> Mapping[str, Any]:
    return {"nonsense": True} if request.task == QIR else predicates(["director"])


def test_replies_are_grouped_by_decision_and_nothing_downstream_is_asked() -> None:
    model = Scripted(moody)
    run = workbench(model, KG).ask("Who directed Arrival?")
    asked_before = len(model.requests)
    calls = dict(run.calls)
    sample = sample_step(run, "qir", [model], 5)
    assert [decision.models.total() for decision in sample.decisions] == [4, 1]
    assert str(sample.decisions[0]).startswith("4 of 5 ")
    assert sample.decisions[0].output == run["qir"].output
    assert [request.task for request in model.requests[asked_before:]] == [QIR] * 5
    assert sample.calls == 5
    assert run.calls == calls and run.status == "done"


def test_several_models_and_invalid_replies_are_told_apart() -> None:
    model = Scripted(moody, name="m1")
    run = workbench(model, KG).ask("Who directed Arrival?")
    sample = sample_step(run, "qir", [model, Scripted(other, name="m2")], 2)
    counts = {decision.text: dict(decision.models) for decision in sample.decisions}
    assert counts.pop(NO_VALID_REPLY) == {"m2": 2}
    assert list(counts.values()) == [{"m1": 2}]
    [invalid] = [decision for decision in sample.decisions if not decision.is_valid]
    assert str(invalid) == f"m1 0 of 2, m2 2 of 2: {NO_VALID_REPLY}"


def test_what_cannot_be_asked_is_refused() -> None:
    model = Scripted(moody)
    begun = workbench(model, KG).begin("Who directed Arrival?")
    with pytest.raises(SettingError, match="0 times"):
        sample_step(begun, "qir", [model], 0)
    with pytest.raises(SettingError, match="no model can be asked at"):
        sample_step(begun, "predicate_selection", [model], 1)
    assert sample_step(begun, "qir", [model], 1).calls == 1
    assert begun.steps == []


def test_a_decision_is_taken_in_the_debugger_after_its_cost_was_said() -> None:
    model = Scripted(moody)
    session = Session(workbench(model, KG).begin("Who directed Arrival?"))
    debugger = Debugger(session)
    do(debugger, "Continue")
    debugger.update({"do": "choose", "arg": "qir"})
    debugger.update({"do": "section", "arg": "prompt"})
    asked = len(model.requests)
    press(debugger, "Estimate the cost", sample_times="10")
    assert "10 calls, about" in text(debugger)
    press(debugger, "Try many times", sample_times="x")
    assert "the number of times cannot be 'x'" in text(debugger)
    assert len(model.requests) == asked
    press(debugger, "Try many times", sample_times="5")
    settle(debugger.graph_worker)
    wait_for(lambda: "1 of 5" in text(debugger))
    assert len(model.requests) == asked + 5
    debugger.update({"do": "take_sample", "arg": "1"})
    settle(session)
    assert session.run["qir"].origin == "by hand"
    assert session.run["qir"].output.facts[0].relation == "writer"


def test_the_draft_of_a_prompt_is_tried() -> None:
    model = Scripted(moody)
    run = workbench(model, KG).ask("Who directed Arrival?")
    text_of_prompt = run.prompts.text(QIR).rstrip() + "\nAsk for the writer.\n"
    prompts = run.prompts.with_text(QIR, text_of_prompt)
    [decision] = sample_step(run, "qir", [model], 3, prompts=prompts).decisions
    assert decision.output.facts[0].relation == "writer"
    assert "writer" in str(decision)
