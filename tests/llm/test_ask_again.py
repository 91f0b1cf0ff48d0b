"""A pipeline's call with tools is asked again: every model gets the tools, whatever the protocol was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_servers import ModelServer, OllamaServer
from small import films
from tables import read_table

from kgwb.build import agent, system_from_function
from kgwb.llm import Scripted
from kgwb.llm.base import fields_of_text
from kgwb.run import Run

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
FUNCTION = {"name": "sparql", "description": "Asks the graph.", "parameters": SCHEMA}
TOOL = {"type": "function", "function": FUNCTION}
ARGUMENTS = {"query": "ASK {}"}
CALLED = {"name": "sparql", "arguments": json.dumps(ARGUMENTS)}
CHAT_CALLS = [
    {"id": "a", "type": "function", "function": CALLED},
    {"id": "b", "type": "function", "function": CALLED},
]
OLLAMA_CALL = {"function": {"name": "sparql", "arguments": ARGUMENTS}}
BLOCK = {"type": "tool_use", "name": "sparql", "input": ARGUMENTS}
HELLO = {"role": "user", "content": "Hello"}
PROTOCOLS = {name: row for name, *row in read_table(Path(__file__).with_name("asked_again.jsonl"))}
"""Of each protocol the path, the request, the reply, and the ids of the calls as they are sent on."""


def recorded_run(protocol: str, **changes: Any) -> Run:
    """A run with one call of a protocol; a field that is changed to None is left out."""
    path, fields, reply, _ = PROTOCOLS[protocol]
    body = {name: value for name, value in (fields | changes).items() if value is not None}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=reply))

    @agent
    def draft(question: str) -> Any:
        with httpx.Client(transport=transport) as client:
            client.post(f"http://models.test{path}", json={"model": "tiny", **body})
        return question

    def answer(question: str) -> Any:
        return draft(question)

    system = system_from_function("guest", answer, agents=[draft])
    return Run(system, "Who?", kg=films(), models=None).go()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_model_gets_tools_calls_and_outputs_as_a_chat_completion(protocol: str) -> None:
    run = recorded_run(protocol)
    model = Scripted(lambda _: "no call")
    asked = run.ask_again("draft", model)
    [request] = model.requests
    choice = (
        "auto" if protocol == "ollama" else {"type": "function", "function": {"name": "sparql"}}
    )
    assert request.tools == {"tools": [TOOL], "tool_choice": choice}
    roles = [message.role for message in request.messages]
    assert roles == ["user", "assistant", "tool", "tool"]
    fields = [json.loads(message.content)["message"] for message in request.messages[1:]]
    ids = PROTOCOLS[protocol][-1]
    expected = [{"id": call_id, "type": "function", "function": CALLED} for call_id in ids]
    assert fields[0]["tool_calls"] == expected
    outputs = {output["tool_call_id"]: output["content"] for output in fields[1:]}
    assert outputs == {ids[0]: "yes", ids[1]: "no"}
    assert json.loads(asked.before) == {"calls": [{"sparql": ARGUMENTS}]}
    assert asked.replies[0].text == "no call"


@pytest.mark.parametrize("protocol", ["anthropic", "ollama"])
def test_servers_of_both_protocols_get_the_tools_in_their_form(
    protocol: str, server: ModelServer
) -> None:
    calls = [OLLAMA_CALL]
    is_ollama = isinstance(server, OllamaServer)
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": calls if is_ollama else CHAT_CALLS[:1],
    }
    answer = server.reply("")
    if is_ollama:
        answer.body["message"] = message
    else:
        answer.body["choices"][0] |= {"message": message, "finish_reason": "tool_calls"}
    server.always = answer
    run = recorded_run(protocol)
    asked = run.ask_again("draft", server.tiny())
    assert asked.replies[0].text == asked.before  # the same call, though ids and form differ
    [body] = server.chats
    assert [tool["function"]["name"] for tool in body["tools"]] == ["sparql"]
    _, called, first, second = body["messages"]
    assert not body.get("stream")
    arguments = [call["function"]["arguments"] for call in called["tool_calls"]]
    assert arguments == [ARGUMENTS if is_ollama else json.dumps(ARGUMENTS)] * 2
    assert {first["content"], second["content"]} == {"yes", "no"}


REFUSED = {"role": "assistant", "content": None, "refusal": "I cannot"}
SILENT = {"role": "assistant", "content": None}
BESIDE = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "yes"},
        {"type": "text", "text": "Be brief"},
    ],
}


@pytest.mark.parametrize(
    ("protocol", "messages", "expected"),
    [
        ("chat", [HELLO, REFUSED], [("user", "Hello"), ("assistant", "I cannot")]),
        ("chat", [HELLO, SILENT], [("user", "Hello"), ("assistant", "")]),
        ("chat", [{"role": "tool", "tool_call_id": "gone", "content": "yes"}], [("user", "yes")]),
        (
            "anthropic",
            [{"role": "assistant", "content": [{**BLOCK, "id": "a"}]}, BESIDE],
            [("assistant", ""), ("tool", "yes"), ("user", "Be brief")],
        ),
    ],
)
def test_no_text_of_a_message_is_lost(
    protocol: str, messages: list[Any], expected: list[tuple[str, str]]
) -> None:
    model = Scripted(lambda _: "yes")
    recorded_run(protocol, messages=messages).ask_again("draft", model)
    [request] = model.requests
    sent = [(each.role, fields_of_text(each.content)["content"]) for each in request.messages]
    assert sent == expected


def test_a_call_without_tools_is_asked_again_as_text() -> None:
    run = recorded_run("chat", tools=None, tool_choice=None)
    written = '{"message": {"output": ["yes"]}}'
    model = Scripted(lambda _: written)
    asked = run.ask_again("draft", model)
    assert asked.replies[0].text == written
    [request] = model.requests
    assert not request.tools
    assert [message.role for message in request.messages] == ["user", "assistant", "user", "user"]
