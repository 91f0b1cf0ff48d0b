"""A graph of LangGraph with a loop, and a chat model of LangChain, in all that a run can do."""

from __future__ import annotations

import asyncio
import operator
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from small import answer_of, iri, run_of

import kgwb
from kgwb.build import System, system_from_langgraph, wrap_langchain
from kgwb.errors import NotRecordedError, SettingError
from kgwb.run import Run
from kgwb.run.systems import resolve_system

pytest.importorskip("langgraph")

from langgraph.graph import START, StateGraph
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
    return run_of(system, QUESTION, None).go()


def test_the_steps_of_nodes_have_the_state_and_what_it_took(run: Run) -> None:
    assert run["draft"].inputs["state"]["name"] == "Arrival"
    assert run.output("draft#2") == {"query": FULL, "drafts": 2}
    assert run.totals.prompt_tokens == 28


def test_an_edited_node_and_edited_messages_change_only_what_follows(run: Run) -> None:
    run.override("draft", {"query": FULL, "drafts": 1}).go()
    nodes = [step.key for step in run.steps if step.parent]
    assert nodes == ["mention", "draft", "look_up", "phrase"]
    assert len(ScriptedChat.asked) == 4
    run.edit_messages("phrase", "[user]\nSay: it shortly\n").go()
    assert run.output("phrase") == {"text": "reply to Say: it shortly"}
    assert ScriptedChat.asked[4:] == ["Say: it shortly"]


def test_it_is_muted_compared_saved_and_replayed(run: Run, system: System, tmp_path: Path) -> None:
    muted = run.mute(DIRECTED).go()
    assert not answer_of(muted).values
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


def system_of(builder: Any) -> System:
    return system_from_langgraph(
        builder.compile(),
        start=lambda question: {"question": question, "found": []},
        answer=lambda state: state["found"],
    )


@pytest.mark.parametrize("awaited", [False, True])
def test_branches_are_steps_in_one_order(awaited: bool) -> None:
    """Nodes that are functions, or coroutine functions."""
    ScriptedChat.asked.clear()
    llm = wrap_langchain(ScriptedChat())

    def node_that_asks(text: str) -> Any:
        def ask(state: Branching) -> Branching:
            return {"found": [str(llm.invoke(text).content)]}

        async def ask_awaited(state: Branching) -> Branching:
            return {"found": [str((await llm.ainvoke(text)).content)]}

        return ask_awaited if awaited else ask

    builder = StateGraph(Branching)
    for name in ("left", "right"):
        builder.add_node(name, node_that_asks(name))
        builder.add_edge(START, name)
    builder.add_node("join", lambda state: {"found": []})
    builder.add_edge(["left", "right"], "join")
    run = run_of(system_of(builder), QUESTION, None)
    run.step()
    assert [step.key for step in run.steps if step.parent] == ["left"]
    run.go()
    assert [step.key for step in run.steps if step.parent] == ["left", "right", "join"]
    assert answer_of(run).labels == ("reply to left", "reply to right")
    assert ScriptedChat.asked == ["left", "right"]


def test_only_what_was_put_in_must_have_the_types_of_the_state() -> None:
    builder = StateGraph(Branching)
    builder.add_node("find", lambda state: {"found": ["plain"]})
    builder.add_node("rate", lambda state: {"question": 7})
    builder.add_edge(START, "find")
    builder.add_edge("find", "rate")
    run = run_of(system_of(builder), QUESTION, None).override("find", {"found": ["mine"]}).go()
    assert answer_of(run).labels == ("mine",)


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
