"""Pipelines from outside: messages of LangChain, data that is changed later, graphs of endpoints, interrupts."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
import rdflib
from pipeline_servers import Endpoint
from pydantic import BaseModel
from rdflib.plugins.stores.sparqlstore import SPARQLStore
from small import FILMS, answer_of, films, run_of
from tables import read_table

import kgwb
from kgwb.build import (
    Answer,
    agent,
    check_system,
    make_answer,
    open_kg,
    system_from_function,
    wrap_rdflib,
)
from kgwb.errors import OverrideError, SettingError
from kgwb.kg.endpoint import Endpoint as OpenEndpoint
from kgwb.llm.base import text_of_fields
from kgwb.records import comparable, copy_containers, decision_of, one_line
from kgwb.run import Run
from kgwb.run.differences import find_difference
from kgwb.run.http_protocols import shown_text


def run_of_function(function: Any, agents: list[Any], **options: Any) -> Run:
    system = system_from_function("guest", function, agents=agents, **options)
    return run_of(system, "Who?", None).go()


# --- comparing


def test_a_message_of_langchain_is_its_role_content_and_tool_calls() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    call = {"name": "search", "args": {"q": "Dune"}, "id": "1", "type": "tool_call"}
    first = messages.AIMessage("Hi", id="a", response_metadata={"created": 1}, tool_calls=[call])
    second = messages.AIMessage("Hi", id="b", tool_calls=[{**call, "id": "2"}])
    assert first != second
    assert comparable([first]) == comparable([second])
    assert comparable([first]) != comparable([messages.HumanMessage("Hi")])
    assert one_line({"messages": [first]}) == one_line({"messages": [second]})
    assert find_difference([first], [messages.AIMessage("Hello", tool_calls=[call])]) == (
        "[0].content",
        "Hi",
        "Hello",
    )


def test_a_state_of_another_dataclass_is_compared_by_its_fields() -> None:
    messages = pytest.importorskip("langchain_core.messages")

    @dataclass
    class State:
        messages: list[Any]

    first, second = (State([messages.HumanMessage("Hi", id=name)]) for name in "ab")
    assert first != second
    assert comparable({"state": first}) == comparable({"state": second})
    assert decision_of({"state": first}) == decision_of({"state": second})


class Found(BaseModel):
    id: str
    name: str


@pytest.mark.parametrize("varying", [["id"], ["Found.id"]])
def test_fields_that_are_drawn_by_chance_can_be_named(varying: list[str]) -> None:
    @agent
    def find(question: str) -> Any:
        return {"found": [Found(id=str(random.random()), name="Dune")]}

    def answer(question: str) -> Any:
        return [find(question)["found"][0].name]

    system = system_from_function("guest", answer, agents=[find])
    [problem] = [text for text in check_system(system, "Who?").problems if text.startswith("find")]
    assert "found[0].id" in problem
    run = run_of_function(answer, [find], varying=varying)
    assert check_system(run.system, "Who?")
    assert all(pair.status == "same" for pair in run.diff(run.fork().go()))


def test_what_differs_is_shown_and_not_two_whole_values() -> None:
    rest = "word " * 10_000
    first = {"rows": [{"text": rest + "Dune"}, {"text": rest}], "n": 1}
    second = {"rows": [{"text": rest + "Arrival"}, {"text": rest}], "n": 1}
    place, one, other = find_difference(first, second)
    assert place == "rows[0].text"
    assert one.endswith("Dune") and other.endswith("Arrival")
    assert len(one) < 100
    assert find_difference([1, 2], [1, 2, 3]) == ("[2]", "None", "3")
    assert find_difference({"a": 1}, {"a": 1})[0] == ""

    @agent
    def say() -> Any:
        return first

    run = run_of_function(lambda question: [str(say()["n"])], [say])
    edited = run.fork().override("say", second).go()
    lines = run.diff(edited).summary().splitlines()
    assert any("rows[0].text" in line and len(line) < 200 for line in lines)
    assert max(map(len, lines)) < 2_500


# --- what a step returned


def test_the_output_of_a_step_is_what_it_returned_then() -> None:
    log: list[Any] = []

    @agent
    def draft(state: dict[str, Any]) -> Any:
        return {"log": log, "found": Found(id="1", name="Dune")}

    @agent
    def change(state: dict[str, Any]) -> str:
        state["log"].append("later")
        state["found"].name = "Arrival"
        return "changed"

    def answer(question: str) -> list[str]:
        state = draft({"question": question})
        change(state)
        assert state["log"] is log
        return [state["found"].name]

    run = run_of_function(answer, [draft, change])
    assert answer_of(run).labels == ("Arrival",)
    assert run.output("draft") == {"log": [], "found": Found(id="1", name="Dune")}
    assert run["change"].inputs["state"]["log"] == []


def test_copies_share_what_is_no_container() -> None:
    graph = rdflib.Graph()
    value = {"graph": graph, "items": [(1, [2])]}
    copied = copy_containers(value)
    assert copied == value
    assert copied["graph"] is graph
    assert copied["items"] is not value["items"]
    assert copied["items"][0][1] is not value["items"][0][1]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"content": [{"type": "text", "text": "a\nb"}, {"type": "text", "text": "c"}]}, "a\nb\nc"),
        ({"content": "plain"}, "plain"),
        ({"content": [{"type": "image_url", "image_url": "x"}]}, None),
        ({"content": [{"type": "text", "text": "a"}], "tool_calls": [{}]}, None),
    ],
)
def test_parts_of_a_message_are_shown_as_their_text(
    fields: dict[str, Any], shown: str | None
) -> None:
    recorded = text_of_fields(fields)
    assert shown_text(recorded) == (recorded if shown is None else shown)


# --- graphs of endpoints


def test_a_graph_of_an_endpoint_is_known_by_its_address(endpoint: Endpoint, tmp_path: Path) -> None:
    graph = wrap_rdflib(rdflib.Graph(SPARQLStore(endpoint.url)))
    assert endpoint.queries == []
    kg = open_kg(graph)
    assert isinstance(kg, OpenEndpoint)

    @agent
    def look(question: str) -> list[str]:
        query = "SELECT ?film { ?film <http://example.org/director> ?person } ORDER BY ?film"
        return [str(row.film) for row in graph.query(query)]  # type: ignore[union-attr]

    run = run_of_function(look, [])
    assert len(run.output("look")) == 4
    assert len(endpoint.queries) == 1
    assert not run.past_calls
    assert check_system(run.system, "Who?", kg=films()).problems == ()
    count = len(endpoint.queries)
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("look") == run.output("look")
    assert len(endpoint.queries) == count


# --- sentences


DIRECTED = "SELECT ?person { <http://example.org/arrival> <http://example.org/director> ?person }"


def says(returned: Any, queries: Any = None, query: str = DIRECTED) -> Answer:
    """The answer of a pipeline that asks a query and returns something."""
    graph = wrap_rdflib(rdflib.Graph().parse(data=FILMS, format="turtle"))

    @agent
    def look(question: str) -> Any:
        list(graph.query(query))
        return returned

    return answer_of(run_of_function(look, [], to_answer=lambda found: make_answer(found, queries)))


@pytest.mark.parametrize(
    "row",
    read_table(Path(__file__).with_name("sentences.jsonl")),
    ids=lambda row: str(row["returned"]),
)
def test_a_sentence_has_the_rows_of_its_query_as_values(row: dict[str, Any]) -> None:
    answer = says(row["returned"], row.get("queries"))
    assert answer.text == row["text"]
    if row["labels"] is not None:
        assert list(answer.labels) == row["labels"]
    assert bool(answer.support) == (row["labels"] == ["Denis Villeneuve"])


def test_an_empty_cell_is_named_in_no_sentence() -> None:
    answer = says("It was Denis.", query='SELECT ?text { VALUES ?text { "" } }')
    assert answer.labels == ("It was Denis.",)


# --- LangGraph


class Intent(BaseModel):
    intent: str


def graph_of(*nodes: Any, **options: Any) -> Any:
    langgraph = pytest.importorskip("langgraph.graph")
    messages = pytest.importorskip("langgraph.graph.message")

    fields: Any = {
        "question": str,
        "intent": Intent,
        "messages": Annotated[list[Any], messages.add_messages],
        "values": list[str],
    }
    State: Any = TypedDict("State", fields, total=False)  # type: ignore[operator]
    builder = langgraph.StateGraph(State)
    before = langgraph.START
    for node in nodes:
        builder.add_node(node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    builder.add_edge(before, langgraph.END)
    return builder.compile(**options)


def find_intent(state: Any) -> Any:
    messages = pytest.importorskip("langchain_core.messages")
    return {"intent": Intent(intent="director"), "messages": [messages.AIMessage("found")]}


def answer_it(state: Any) -> Any:
    return {"values": [state["intent"].intent, state["messages"][-1].content]}


def system_of(graph: Any) -> Any:
    def start(question: str) -> Any:
        return {"question": question}

    return kgwb.build.system_from_langgraph(
        graph, start=start, answer=lambda state: state["values"]
    )


def test_an_edited_output_of_a_node_keeps_the_types_of_the_state(tmp_path: Path) -> None:
    run = run_of(system_of(graph_of(find_intent, answer_it)), "Who?", None).go()
    messages = [{"role": "assistant", "content": "edited"}]
    value = {"intent": {"intent": "composer"}, "messages": messages}
    edited = run.fork().override("find_intent", value).go()
    assert answer_of(edited).labels == ("composer", "edited")
    loaded = kgwb.load_run(edited.save(tmp_path / "run.jsonl"), system=edited.system)
    assert loaded.answer == edited.answer
    with pytest.raises(OverrideError, match="intent"):
        run.fork().override("find_intent", {"intent": {"wrong": 1}}).go()


def test_an_unedited_fork_of_a_graph_with_messages_differs_nowhere() -> None:
    run = run_of(system_of(graph_of(find_intent, answer_it)), "Who?", None).go()
    again = run.fork().go()
    before, after = (each["answer_it"].inputs["state"]["messages"] for each in (run, again))
    assert before != after  # LangGraph draws the ids of messages
    assert {pair.status for pair in run.diff(again)} == {"same"}


def ask_back(state: Any) -> Any:
    types = pytest.importorskip("langgraph.types")
    return {"values": [types.interrupt("Which one?")]}


def test_a_graph_that_stops_at_an_interrupt_says_so() -> None:
    run = run_of(system_of(graph_of(ask_back)), "Who?", None)
    with pytest.raises(SettingError, match="Which one"):
        run.go()
    assert run.override("ask_back", {"values": ["Dune"]}).go().answer
    with pytest.raises(SettingError, match="interrupt"):
        system_of(graph_of(find_intent, interrupt_before=["find_intent"]))
