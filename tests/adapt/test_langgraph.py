"""A graph of LangGraph with a loop, and a chat model of LangChain, in all that a run can do."""

from __future__ import annotations

import asyncio
import operator
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from small import films, iri

import kgwb
from kgwb.build import System, system_from_langgraph, wrap_langchain
from kgwb.errors import NotRecordedError, SettingError
from kgwb.run import Run
from kgwb.run.systems import resolve_system

pytest.importorskip("langgraph")

from langgraph.graph import END, START, StateGraph
from scripted_chat import FULL, ScriptedChat
from typing_extensions import TypedDict

QUESTION = "Who directed Arrival?"
DIRECTED = (iri("arrival"), iri("director"), iri("denis"))


@pytest.fixture
def system(films_file: Path, pipeline: Any) -> System:
    ScriptedChat.asked.clear()
    return resolve_system(pipeline("looping"))


@pytest.fixture
def run(system: System) -> Run:
    return Run(system, QUESTION, kg=films(), models=None).go()


def test_the_steps_of_nodes_have_the_state_and_what_it_took(run: Run) -> None:
    assert run["draft"].inputs["state"]["name"] == "Arrival"
    assert run.output("draft#2") == {"query": FULL, "drafts": 2}
    assert run.totals.prompt_tokens == 28


def test_an_edited_node_and_edited_messages_change_only_what_follows(run: Run) -> None:
    run.override("draft", {"query": FULL, "drafts": 1}).go()
    assert [step.key for step in run.steps if step.parent] == [
        "mention",
        "draft",
        "look_up",
        "phrase",
    ]
    assert len(ScriptedChat.asked) == 4
    run.edit_messages("phrase", "[user]\nSay: it shortly\n").go()
    assert run.output("phrase") == {"text": "reply to Say: it shortly"}
    assert ScriptedChat.asked[4:] == ["Say: it shortly"]


def test_it_is_muted_compared_saved_and_replayed(run: Run, system: System, tmp_path: Path) -> None:
    muted = run.mute(DIRECTED).go()
    assert muted.answer is not None
    assert not muted.answer.values
    assert muted["draft#3"].done
    assert run.diff(muted) is not None
    asked = len(ScriptedChat.asked)
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=system)
    assert loaded.answer == run.answer
    loaded.override("mention", {"name": "Dune", "drafts": 0})
    with pytest.raises(NotRecordedError):
        loaded.go()
    assert len(ScriptedChat.asked) == asked


# --- other graphs


class Branching(TypedDict, total=False):
    question: str
    found: Annotated[list[str], operator.add]


def branching(*, awaited: bool) -> Any:
    """A graph with two branches of nodes that are functions or coroutine functions."""
    llm = wrap_langchain(ScriptedChat())

    def left(state: Branching) -> Branching:
        return {"found": [str(llm.invoke("left").content)]}

    def right(state: Branching) -> Branching:
        return {"found": [str(llm.invoke("right").content)]}

    async def left_awaited(state: Branching) -> Branching:
        reply = await llm.ainvoke("left")
        return {"found": [str(reply.content)]}

    async def right_awaited(state: Branching) -> Branching:
        reply = await llm.ainvoke("right")
        return {"found": [str(reply.content)]}

    def join(state: Branching) -> Branching:
        return {"found": []}

    builder = StateGraph(Branching)
    builder.add_node("left", left_awaited if awaited else left)
    builder.add_node("right", right_awaited if awaited else right)
    builder.add_node("join", join)
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "join")
    builder.add_edge("join", END)
    return builder.compile()


@pytest.mark.parametrize("awaited", [False, True])
def test_branches_are_steps_in_one_order(awaited: bool) -> None:
    ScriptedChat.asked.clear()
    system = system_from_langgraph(
        branching(awaited=awaited),
        start=lambda question: {"question": question, "found": []},
        answer=lambda state: state["found"],
    )
    run = Run(system, QUESTION, kg=films(), models=None)
    run.step()
    assert [step.key for step in run.steps if step.parent] == ["left"]
    run.go()
    assert [step.key for step in run.steps if step.parent] == ["left", "right", "join"]
    assert run.answer is not None
    assert run.answer.labels == ("reply to left", "reply to right")
    assert ScriptedChat.asked == ["left", "right"]


def test_only_what_was_put_in_must_have_the_types_of_the_state() -> None:
    builder = StateGraph(Branching)
    builder.add_node("find", lambda state: {"found": ["plain"]})
    builder.add_node("rate", lambda state: {"question": 7})
    builder.add_edge(START, "find")
    builder.add_edge("find", "rate")
    builder.add_edge("rate", END)
    system = system_from_langgraph(
        builder.compile(),
        start=lambda question: {"question": question, "found": []},
        answer=lambda state: state["found"],
    )
    run = Run(system, QUESTION, kg=films(), models=None).override("find", {"found": ["mine"]}).go()
    assert run.answer is not None
    assert run.answer.labels == ("mine",)


def test_the_wrapped_model_is_the_plain_one_outside_of_a_run() -> None:
    ScriptedChat.asked.clear()
    llm = wrap_langchain(ScriptedChat())
    assert llm.invoke("Hello").content == "reply to Hello"
    assert asyncio.run(llm.ainvoke("Hello")).content == "reply to Hello"
    assert ScriptedChat.asked == ["Hello", "Hello"]


def test_without_langgraph_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.pregel", None)
    with pytest.raises(SettingError) as caught:
        system_from_langgraph(object(), start=str)
    assert "kgwb[langgraph]" in caught.value.hint


def test_what_is_no_graph_and_no_model_is_refused() -> None:
    with pytest.raises(SettingError, match="not a compiled graph"):
        system_from_langgraph(StateGraph(Branching), start=str)
    with pytest.raises(SettingError, match="not a chat model"):
        wrap_langchain(object())
