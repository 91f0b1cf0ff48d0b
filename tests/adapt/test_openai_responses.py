"""The Responses API of a wrapped client of openai, inside of a run and outside."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from pipeline_servers import ChatServer
from pydantic import BaseModel
from test_openai_client import client_of, run_of

import kgwb
from kgwb.build import wrap_openai
from kgwb.llm.base import Message

TOOL: Any = {"type": "function", "name": "search", "parameters": {"type": "object"}}
TOOL_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call-1",
    "name": "search",
    "arguments": '{"text": "Dune"}',
}


class Film(BaseModel):
    title: str


def last_text(body: dict[str, Any]) -> str:
    """What a request of the Responses API says last."""
    if isinstance(body["input"], str):
        return body["input"]
    item = body["input"][-1]
    return str(item.get("content") or item.get("output"))


@pytest.fixture
def server(chats: ChatServer) -> ChatServer:
    chats.script = lambda body: f"reply to {last_text(body)}"
    return chats


def messages_of(run: Any) -> list[list[str]]:
    [call] = run.calls.values()
    return call.request["content"]["messages"]  # type: ignore[no-any-return]


def test_a_response_is_recorded_edited_and_replayed(server: ChatServer, tmp_path: Path) -> None:
    client = client_of(server)

    def work() -> list[Any]:
        reply = client.responses.create(model="tiny", instructions="Be short.", input="Hello")
        return [reply.output_text, reply.usage.total_tokens if reply.usage else 0, reply.status]

    run = run_of(work).go()
    assert run.output("talk") == ["reply to Hello", 13, "completed"]
    assert server.requests == [{"model": "tiny", "instructions": "Be short.", "input": "Hello"}]
    assert messages_of(run) == [["system", "Be short."], ["user", "Hello"]]
    assert (run.totals.model_calls, run.totals.prompt_tokens) == (1, 10)
    run.go()
    assert len(server.requests) == 1
    assert not run.past_calls
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert loaded.output("talk") == run.output("talk")
    assert loaded.totals.live_model_calls == 0
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    assert run.output("talk")[0] == "reply to Bye"
    assert server.requests[-1] == {"model": "tiny", "instructions": "Be long.", "input": "Bye"}
    run.edit_messages("talk", [Message("user", "One"), Message("user", "Two")]).go()
    items = [{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}]
    assert server.requests[-1] == {"model": "tiny", "input": items}


def test_a_response_is_not_taken_for_a_chat_completion(server: ChatServer) -> None:
    client = client_of(server)
    server.script = lambda body: f"reply {len(server.requests)}"

    def work() -> list[Any]:
        messages: Any = [{"role": "user", "content": "Hello"}]
        chat = client.chat.completions.create(model="tiny", messages=messages)
        response = client.responses.create(model="tiny", input=messages)
        return [chat.choices[0].message.content, response.output_text]

    run = run_of(work).go()
    assert run.output("talk") == ["reply 1", "reply 2"]
    assert run.go().output("talk") == ["reply 1", "reply 2"]


@pytest.mark.parametrize("by_id", [True, False])
def test_calls_of_functions_come_back_and_are_sent_on(server: ChatServer, by_id: bool) -> None:
    client = client_of(server)

    def script(body: dict[str, Any]) -> Any:
        if last_text(body) == "found":
            return "It is a film."
        return {"output": [TOOL_CALL]}

    server.script = script

    def work() -> str:
        first = client.responses.create(model="tiny", instructions="1", input="Hello", tools=[TOOL])
        [call] = first.output
        assert call.type == "function_call"
        found: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "found"}
        asked: Any = [{"role": "user", "content": "Hello"}, call, found]
        more: Any = {"input": asked}
        if by_id:
            more = {"input": [found], "previous_response_id": first.id}
        second = client.responses.create(model="tiny", instructions="2", tools=[TOOL], **more)
        return str(second.output_text)

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    said, call, found = server.requests[1]["input"]
    assert said == {"role": "user", "content": "Hello"}
    assert call == TOOL_CALL
    assert found == {"type": "function_call_output", "call_id": "call-1", "output": "found"}
    assert "previous_response_id" not in server.requests[1]
    assert server.requests[1]["instructions"] == "2"
    run.go()
    assert len(server.requests) == 2


def test_a_text_that_came_back_is_sent_on_as_the_message_of_the_assistant(
    server: ChatServer,
) -> None:
    client = client_of(server)

    def work() -> str:
        first = client.responses.create(model="tiny", input="Hello")
        asked: Any = [*first.output, {"type": "message", "role": "user", "content": "And?"}]
        second = client.responses.create(model="tiny", input=asked)
        return str(second.output_text)

    assert run_of(work).go().output("talk") == "reply to And?"
    assert server.requests[1]["input"] == [
        {"role": "assistant", "content": "reply to Hello"},
        {"role": "user", "content": "And?"},
    ]


def test_a_response_is_parsed_again_from_the_record(server: ChatServer) -> None:
    client = client_of(server)
    server.script = lambda body: '{"title": "Dune"}'

    def work() -> str:
        reply = client.responses.parse(model="tiny", input="Hello", text_format=Film)
        assert isinstance(reply.output_parsed, Film)
        return reply.output_parsed.title

    run = run_of(work).go()
    run.go()
    assert run.output("talk") == "Dune"
    assert len(server.requests) == 1
    assert server.requests[0]["text"]["format"]["name"] == "Film"
    assert work() == "Dune"


def test_a_reply_that_was_cut_off_or_failed_says_so_again(server: ChatServer) -> None:
    client = client_of(server)
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    failed = {"status": "failed", "error": {"code": "server_error", "message": "no"}}
    replies: list[Any] = [{"output": [], **cut}, {"output": [], **failed}]
    server.script = lambda body: replies[len(server.requests) - 1]

    def work() -> list[Any]:
        first = client.responses.create(model="tiny", input="1")
        second = client.responses.create(model="tiny", input="2")
        assert first.incomplete_details is not None
        assert second.error is not None
        return [first.status, first.incomplete_details.reason, second.status, second.error.message]

    run = run_of(work).go()
    expected = ["incomplete", "max_output_tokens", "failed", "no"]
    assert run.output("talk") == expected
    assert run.go().output("talk") == expected
    assert [call.result.finish_reason for call in run.calls.values()] == ["length", "failed"]


def test_a_streamed_response_is_recorded_whole(server: ChatServer) -> None:
    client = client_of(server)

    def work() -> list[str]:
        said = []
        for event in client.responses.create(model="tiny", input="Hello", stream=True):
            if event.type == "response.output_text.delta":
                said.append(event.delta)
            if event.type == "response.completed":
                said.append(event.response.output_text)
        return said

    run = run_of(work).go()
    run.go()
    assert run.output("talk") == ["reply to Hello", "reply to Hello"]
    assert len(server.requests) == 1
    assert "stream" not in server.requests[0]


def test_a_streamed_response_has_the_calls_of_functions(server: ChatServer) -> None:
    client = client_of(server)
    server.script = lambda body: {"output": [TOOL_CALL]}

    def work() -> list[Any]:
        arguments = []
        for event in client.responses.create(model="tiny", input="Hello", stream=True):
            if event.type == "response.function_call_arguments.delta":
                arguments.append(json.loads(event.delta))
        return arguments

    assert run_of(work).go().output("talk") == [{"text": "Dune"}]


def test_an_asynchronous_client_is_asked_in_runs_and_outside(server: ChatServer) -> None:
    plain = openai.AsyncOpenAI(api_key="no-key-needed", base_url=server.url, max_retries=0)
    client = wrap_openai(plain)

    async def ask() -> str:
        return (await client.responses.create(model="tiny", input="Hello")).output_text

    async def stream() -> list[str]:
        said = []
        async for event in await client.responses.create(model="tiny", input="Hello", stream=True):
            if event.type == "response.output_text.delta":
                said.append(event.delta)
        return said

    run = run_of(lambda: [asyncio.run(ask()), *asyncio.run(stream())]).go()
    run.go()
    assert run.output("talk") == ["reply to Hello"] * 2
    assert len(server.requests) == 2
    assert asyncio.run(ask()) == "reply to Hello"
    assert len(server.requests) == 3


def test_what_comes_later_goes_past_the_run(server: ChatServer) -> None:
    client = client_of(server)

    def work() -> str:
        return client.responses.create(model="tiny", input="Hello", background=True).id

    run = run_of(work).go()
    assert run.output("talk") == "resp_1"
    assert sum(run.past_calls.values()) == 1
    assert run.totals.model_calls == 0


def test_the_stream_helper_of_openai_is_recorded_too(server: ChatServer) -> None:
    client = client_of(server)

    def work() -> list[str]:
        with client.responses.stream(model="tiny", input="Hello") as events:
            said = [
                event.snapshot for event in events if event.type == "response.output_text.delta"
            ]
            return [*said, events.get_final_response().output_text]

    run = run_of(work).go()
    run.go()
    assert run.output("talk") == ["reply to Hello", "reply to Hello"]
    assert len(server.requests) == 1
