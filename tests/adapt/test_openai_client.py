"""A wrapped client of openai: what it sends and returns inside of a run and outside."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest
from pipeline_servers import ChatServer
from pydantic import BaseModel
from small import films

from kgwb.adapt.clients import NOT_RECORDED_NOTE
from kgwb.build import Answer, System, agent, wrap_openai
from kgwb.errors import SettingError
from kgwb.llm.base import Message
from kgwb.run import Run

USER = {"role": "user", "content": "Hello"}
TOOL = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
TOOL_CALL = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"text": "Dune"}'},
}


class Film(BaseModel):
    title: str


def client_of(chats: ChatServer) -> openai.OpenAI:
    return wrap_openai(openai.OpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=0))


def run_of(work: Any) -> Run:
    """A run whose one step does the work; not executed yet."""

    @agent
    def talk() -> Any:
        return work()

    def answer(question: Any, dialogue: Any, run: Run) -> Answer:
        return Answer("list", text=str(talk()))

    return Run(System("talking", answer, [talk]), "Who?", kg=films(), models=None)


def test_every_parameter_decides_whether_a_reply_is_used_again(chats: ChatServer) -> None:
    client = client_of(chats)
    options: dict[str, Any] = {"top_p": 1.0}

    def work() -> str:
        reply = client.chat.completions.create(model="tiny", messages=[USER], **options)
        return str(reply.choices[0].message.content)

    run = run_of(work).go()
    run.go()
    assert len(chats.requests) == 1
    options["top_p"] = 0.5
    run.go()
    assert [body["top_p"] for body in chats.requests] == [1.0, 0.5]


def test_the_same_model_at_another_address_is_asked_anew(chats: ChatServer) -> None:
    elsewhere = chats.url.replace("127.0.0.1", "localhost")
    other = openai.OpenAI(api_key="no-key-needed", base_url=elsewhere, max_retries=0)
    clients = [client_of(chats)]

    def work() -> str:
        reply = clients[-1].chat.completions.create(model="tiny", messages=[USER])
        return str(reply.choices[0].message.content)

    run = run_of(work).go()
    clients.append(wrap_openai(other))
    run.go()
    assert len(chats.requests) == 2


def test_the_same_request_twice_has_two_replies(chats: ChatServer) -> None:
    client = client_of(chats)
    chats.script = lambda body: f"reply {len(chats.requests)}"

    def work() -> list[str]:
        replies = [client.chat.completions.create(model="tiny", messages=[USER]) for _ in range(2)]
        return [str(reply.choices[0].message.content) for reply in replies]

    run = run_of(work).go()
    assert run.output("talk") == ["reply 1", "reply 2"]
    run.go()
    assert run.output("talk") == ["reply 1", "reply 2"]
    assert len(chats.requests) == 2


def test_calls_of_tools_come_back_and_are_sent_on(chats: ChatServer) -> None:
    client = client_of(chats)

    def script(body: dict[str, Any]) -> Any:
        if body["messages"][-1]["role"] == "tool":
            return "It is a film."
        return {"tool_calls": [TOOL_CALL]}

    chats.script = script

    def work() -> str:
        messages: list[Any] = [USER]
        first = client.chat.completions.create(model="tiny", messages=messages, tools=[TOOL])
        [call] = first.choices[0].message.tool_calls
        assert first.choices[0].finish_reason == "tool_calls"
        messages += [first.choices[0].message]
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "found"}]
        second = client.chat.completions.create(model="tiny", messages=messages, tools=[TOOL])
        return str(second.choices[0].message.content)

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    sent = chats.requests[1]["messages"]
    assert sent[1]["tool_calls"] == [TOOL_CALL]
    assert sent[2] == {"role": "tool", "tool_call_id": "call-1", "content": "found"}
    run.go()
    assert len(chats.requests) == 2
    assert run_of(work).go().output("talk") == "It is a film."


def test_a_parsed_reply_is_parsed_again_from_the_record(chats: ChatServer) -> None:
    client = client_of(chats)
    chats.script = lambda body: '{"title": "Dune"}'

    def work() -> str:
        reply = client.chat.completions.parse(model="tiny", messages=[USER], response_format=Film)
        parsed = reply.choices[0].message.parsed
        assert isinstance(parsed, Film)
        return parsed.title

    run = run_of(work).go()
    run.go()
    assert run.output("talk") == "Dune"
    assert len(chats.requests) == 1
    assert chats.requests[0]["response_format"]["json_schema"]["name"] == "Film"
    assert work() == "Dune"
    assert len(chats.requests) == 2


def test_several_choices_come_back(chats: ChatServer) -> None:
    client = client_of(chats)
    plain = chats.completion

    def completion(body: dict[str, Any]) -> dict[str, Any]:
        made = plain(body)
        made["choices"] = [dict(made["choices"][0], index=number) for number in range(body["n"])]
        return made

    chats.completion = completion  # type: ignore[method-assign]

    def work() -> int:
        reply = client.chat.completions.create(model="tiny", messages=[USER], n=2)
        return len(reply.choices)

    run = run_of(work).go()
    run.go()
    assert run.output("talk") == 2
    assert len(chats.requests) == 1


@pytest.mark.parametrize("text", ['{"message": {"content": "x"}}', '{"a": 1}', "{", "[tool]\nx"])
def test_a_text_that_looks_like_a_message_is_sent_as_it_is(chats: ChatServer, text: str) -> None:
    client = client_of(chats)
    message = {"role": "user", "content": text}

    def work() -> str:
        reply = client.chat.completions.create(model="tiny", messages=[message])
        return str(reply.choices[0].message.content)

    chats.script = lambda body: text
    run = run_of(work).go()
    assert chats.requests[0]["messages"] == [message]
    assert run.output("talk") == text


def test_headers_and_keys_are_not_recorded(chats: ChatServer) -> None:
    client = client_of(chats)

    def work() -> str:
        secret = {"X-Secret": "hush-hush-hush"}
        client.chat.completions.create(model="tiny", messages=[USER], extra_headers=secret)
        return "done"

    run = run_of(work).go()
    recorded = str([call.to_data() for call in run.calls.values()])
    assert "hush" not in recorded
    assert "no-key-needed" not in recorded


def test_a_streamed_reply_is_recorded_whole(chats: ChatServer) -> None:
    client = client_of(chats)
    options: dict[str, Any] = {"stream_options": {"include_usage": True}}

    def work() -> list[Any]:
        stream = client.chat.completions.create(
            model="tiny", messages=[USER], stream=True, **options
        )
        said: list[Any] = []
        for chunk in stream:
            said += [choice.delta.content for choice in chunk.choices]
            said += [chunk.usage.total_tokens] if chunk.usage else []
        return said

    run = run_of(work).go()
    assert run.output("talk") == ["reply to Hello", None, 13]
    assert "stream" not in chats.requests[0]
    run.edit_messages("talk", "[user]\nBye\n").go()
    assert run.output("talk")[0] == "reply to Bye"
    run.go()
    assert len(chats.requests) == 2


def test_a_stream_has_the_calls_of_tools_and_the_events_of_openai(chats: ChatServer) -> None:
    client = client_of(chats)
    chats.script = lambda body: {"tool_calls": [TOOL_CALL]}

    def work() -> list[str]:
        with client.chat.completions.stream(model="tiny", messages=[USER], tools=[TOOL]) as events:
            for _ in events:
                pass
            [choice] = events.get_final_completion().choices
        return [call.function.arguments for call in choice.message.tool_calls or ()]

    assert run_of(work).go().output("talk") == ['{"text": "Dune"}']


def test_an_asynchronous_stream_is_recorded_whole(chats: ChatServer) -> None:
    plain = openai.AsyncOpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=0)
    client = wrap_openai(plain)

    async def ask() -> list[Any]:
        stream = await client.chat.completions.create(model="tiny", messages=[USER], stream=True)
        async with stream:
            return [chunk.choices[0].delta.content async for chunk in stream]

    run = run_of(lambda: asyncio.run(ask())).go()
    run.go()
    assert run.output("talk") == ["reply to Hello", None]
    assert len(chats.requests) == 1


def test_an_error_of_the_server_is_the_clients_own(chats: ChatServer) -> None:
    client = client_of(chats)

    def script(body: dict[str, Any]) -> Any:
        raise RuntimeError("the server breaks the connection")

    chats.script = script

    def work() -> str:
        try:
            client.chat.completions.create(model="tiny", messages=[USER])
        except openai.APIConnectionError:
            return "no connection"
        return "a reply"

    assert run_of(work).go().output("talk") == "no connection"


def test_an_asynchronous_client_is_asked_in_runs_and_outside(chats: ChatServer) -> None:
    plain = openai.AsyncOpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=0)
    client = wrap_openai(plain)

    async def ask() -> str:
        reply = await client.chat.completions.create(model="tiny", messages=[USER])
        return str(reply.choices[0].message.content)

    run = run_of(lambda: asyncio.run(ask())).go()
    run.go()
    assert run.output("talk") == "reply to Hello"
    assert len(chats.requests) == 1
    assert asyncio.run(ask()) == "reply to Hello"
    assert len(chats.requests) == 2


def test_messages_with_calls_of_tools_are_edited(chats: ChatServer) -> None:
    client = client_of(chats)
    said = {"role": "assistant", "tool_calls": [TOOL_CALL]}

    def work() -> str:
        reply = client.chat.completions.create(model="tiny", messages=[USER, said])
        return str(reply.choices[0].message.content)

    run = run_of(work).go()
    recorded = next(iter(run.calls.values())).request["content"]["messages"]
    messages = [Message(role, text) for role, text in recorded]
    run.edit_messages("talk", [Message("system", "Be short."), *messages]).go()
    assert chats.requests[-1]["messages"] == [
        {"role": "system", "content": "Be short."},
        USER,
        said,
    ]


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(SettingError, match="not a client"):
        wrap_openai(object())


@pytest.mark.parametrize("form", ["with_raw_response", "with_streaming_response"])
def test_a_raw_response_goes_past_the_run_and_is_counted(chats: ChatServer, form: str) -> None:
    chats.script = lambda body: "Hello to you"
    client = client_of(chats)

    def work() -> str:
        create = getattr(client.chat.completions, form).create
        if form == "with_raw_response":
            response = create(model="tiny", messages=[USER])
            return str(response.parse().choices[0].message.content)
        with create(model="tiny", messages=[USER]) as response:
            return str(response.parse().choices[0].message.content)

    run = run_of(work).go()
    assert run.output("talk") == "Hello to you"
    assert run.totals.model_calls == 0
    assert sum(run.past_calls.values()) == 1


def test_a_replay_says_that_the_pipeline_caught_a_missing_reply(
    chats: ChatServer, tmp_path: Path
) -> None:
    client = client_of(chats)

    def work() -> str:
        try:
            reply = client.chat.completions.create(model="tiny", messages=[USER])
        except Exception as error:  # noqa: BLE001 - as pipelines do
            return type(error).__name__
        return str(reply.choices[0].message.content)

    def fail(body: dict[str, Any]) -> str:
        raise RuntimeError

    chats.script = fail
    run = run_of(work).go()
    assert run.output("talk") != "NotRecordedError"
    assert not any(NOT_RECORDED_NOTE in step.notes for step in run.steps)
    replay = Run.load(run.save(tmp_path / "run.jsonl"), run.system).go()
    assert replay.output("talk") == "NotRecordedError"
    assert NOT_RECORDED_NOTE in replay["talk"].notes
