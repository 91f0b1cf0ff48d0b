"""A pipeline's call with tools is asked again: every model gets the tools, whatever the protocol was."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from model_servers import ModelServer, OllamaServer
from small import films

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
ITEM = {"type": "function_call", **CALLED}
BLOCK = {"type": "tool_use", "name": "sparql", "input": ARGUMENTS}
HELLO = {"role": "user", "content": "Hello"}
USAGE = {"prompt_tokens": 4, "completion_tokens": 2, "input_tokens": 4, "output_tokens": 2}
MADE_IDS = ("call_1_0", "call_1_1")
PROTOCOLS: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                HELLO,
                {"role": "assistant", "content": None, "tool_calls": CHAT_CALLS},
                {"role": "tool", "tool_call_id": "b", "content": "no"},
                {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "yes"}]},
            ],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "sparql"}},
        },
        {"choices": [{"index": 0, "message": {"tool_calls": CHAT_CALLS[:1]}}], "usage": USAGE},
        ("a", "b"),
    ),
    "responses": (
        "/v1/responses",
        {
            "input": [
                HELLO,
                {**ITEM, "call_id": "a", "id": "fc_1"},
                {**ITEM, "call_id": "b", "id": "fc_2"},
                {"type": "function_call_output", "call_id": "b", "output": "no"},
                {"type": "function_call_output", "call_id": "a", "output": "yes"},
            ],
            "tools": [{"type": "function", **FUNCTION}, {"type": "web_search"}],
            "tool_choice": {"type": "function", "name": "sparql"},
        },
        {"output": [{**ITEM, "call_id": "a"}], "status": "completed", "usage": USAGE},
        ("a", "b"),
    ),
    "anthropic": (
        "/v1/messages",
        {
            "max_tokens": 9,
            "messages": [
                HELLO,
                {"role": "assistant", "content": [{**BLOCK, "id": "a"}, {**BLOCK, "id": "b"}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "b", "content": "no"},
                        {
                            "type": "tool_result",
                            "tool_use_id": "a",
                            "content": [{"type": "text", "text": "yes"}],
                        },
                    ],
                },
            ],
            "tools": [{"name": "sparql", "description": "Asks the graph.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "sparql"},
        },
        {"content": [{**BLOCK, "id": "a"}], "stop_reason": "tool_use", "usage": USAGE},
        ("a", "b"),
    ),
    "ollama": (
        "/api/chat",
        {
            "stream": False,
            "messages": [
                HELLO,
                {"role": "assistant", "content": "", "tool_calls": [OLLAMA_CALL, OLLAMA_CALL]},
                {"role": "tool", "tool_name": "sparql", "content": "yes"},
                {"role": "tool", "tool_name": "sparql", "content": "no"},
            ],
            "tools": [TOOL],
        },
        {"message": {"role": "assistant", "content": "", "tool_calls": [OLLAMA_CALL]}},
        MADE_IDS,
    ),
}


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
