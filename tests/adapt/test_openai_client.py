"""A wrapped client of openai: what it sends and returns inside of a run and outside."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from pipeline_servers import ChatServer
from pydantic import BaseModel
from small import films

import kgwb
from kgwb.adapt.clients import json_options
from kgwb.build import Answer, System, agent, wrap_openai
from kgwb.errors import SettingError
from kgwb.llm.base import Message
from kgwb.run import Run
from kgwb.run.http_recorder import NOT_RECORDED_NOTE

USER = {"role": "user", "content": "Hello"}
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object"}},
}
CHAT_CALL = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"text": "Dune"}'},
}
TOOL: Any = {"type": "function", "name": "search", "parameters": {"type": "object"}}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call-1",
    "name": "search",
    "arguments": '{"text": "Dune"}',
}
APIS = ("chat", "responses")


class Film(BaseModel):
    title: str


def client_of(chats: ChatServer, max_retries: int = 0) -> openai.OpenAI:
    plain = openai.OpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=max_retries)
    return wrap_openai(plain)


def async_client_of(chats: ChatServer, max_retries: int = 0) -> openai.AsyncOpenAI:
    plain = openai.AsyncOpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=max_retries)
    return wrap_openai(plain)


def run_of(work: Callable[[], Any]) -> Run:
    """A run whose one step does the work; not executed yet."""

    @agent
    def talk() -> Any:
        return work()

    def answer(question: Any, dialogue: Any, run: Run) -> Answer:
        return Answer("list", text=str(talk()))

    return Run(System("talking", answer, [talk]), "Who?", kg=films(), models=None)


def ask(client: Any, api: str, text: str = "Hello", **options: Any) -> Any:
    """The reply of an API to a text; of an asynchronous client, a coroutine."""
    if api == "chat":
        messages = [{"role": "user", "content": text}]
        return client.chat.completions.create(model="tiny", messages=messages, **options)
    return client.responses.create(model="tiny", input=text, **options)


def text_of(reply: Any) -> str:
    return str(
        reply.output_text if hasattr(reply, "output_text") else reply.choices[0].message.content
    )


def said_in(event: Any) -> str | None:
    """The text in a chunk or an event of a stream; None if it has none."""
    if hasattr(event, "choices"):
        return event.choices[0].delta.content if event.choices else None
    return event.delta if event.type == "response.output_text.delta" else None


def last_text(body: dict[str, Any]) -> str:
    """What a request says last."""
    given = body["messages"] if "messages" in body else body["input"]
    if isinstance(given, str):
        return given
    return str(given[-1].get("content") or given[-1].get("output"))


@pytest.fixture
def server(chats: ChatServer) -> ChatServer:
    chats.script = lambda body: f"reply to {last_text(body)}"
    return chats


# --- recorded, found again, edited


@pytest.mark.parametrize(
    ("api", "system", "sent", "edited"),
    [
        (
            "chat",
            {"messages": [{"role": "system", "content": "Be short."}, USER]},
            {"messages": [{"role": "system", "content": "Be short."}, USER]},
            {
                "messages": [
                    {"role": "system", "content": "Be long."},
                    {"role": "user", "content": "Bye"},
                ]
            },
        ),
        (
            "responses",
            {"instructions": "Be short.", "input": "Hello"},
            {"instructions": "Be short.", "input": "Hello"},
            {"instructions": "Be long.", "input": "Bye"},
        ),
    ],
)
def test_a_request_is_recorded_edited_and_replayed(
    server: ChatServer,
    tmp_path: Path,
    api: str,
    system: dict[str, Any],
    sent: dict[str, Any],
    edited: dict[str, Any],
) -> None:
    client = client_of(server)

    def work() -> str:
        if api == "chat":
            return text_of(client.chat.completions.create(model="tiny", **system))
        return text_of(client.responses.create(model="tiny", **system))

    run = run_of(work).go()
    assert run.output("talk") == "reply to Hello"
    assert server.requests == [{"model": "tiny", **sent}]
    [call] = run.calls.values()
    assert call.request["content"]["messages"] == [["system", "Be short."], ["user", "Hello"]]
    assert call.result.text == "reply to Hello"
    assert call.result.finish_reason == "stop"
    assert (run.totals.model_calls, run.totals.prompt_tokens) == (1, 10)
    assert (run.totals.completion_tokens, call.result.model) == (3, "tiny-1")
    run.go()
    assert len(server.requests) == 1
    assert not run.past_calls
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert loaded.output("talk") == run.output("talk")
    assert loaded.totals.live_model_calls == 0
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    assert run.output("talk") == "reply to Bye"
    assert server.requests[-1] == {"model": "tiny", **edited}
    run.edit_messages("talk", [Message("user", "One"), Message("user", "Two")]).go()
    name = "messages" if api == "chat" else "input"
    two = [{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}]
    assert server.requests[-1] == {"model": "tiny", name: two}


@pytest.mark.parametrize("what", ["parameter", "address", "api", "instructions"])
def test_what_decides_a_reply_decides_whether_it_is_used_again(
    server: ChatServer, what: str
) -> None:
    elsewhere = openai.OpenAI(
        api_key="no-key-needed", base_url=server.url.replace("127.0.0.1", "localhost")
    )
    options: dict[str, Any] = {"client": client_of(server), "api": "responses"}
    run = run_of(lambda: text_of(ask(**options))).go()
    if what == "parameter":
        options["top_p"] = 0.5
    elif what == "address":
        options["client"] = wrap_openai(elsewhere)
    elif what == "api":
        options["api"] = "chat"
    else:
        options["instructions"] = "Be short."
    run.go()
    assert len(server.requests) == 2
    run.go()
    assert len(server.requests) == 2


@pytest.mark.parametrize("api", APIS)
def test_the_same_request_twice_has_two_replies(server: ChatServer, api: str) -> None:
    client = client_of(server)
    server.script = lambda body: f"reply {len(server.requests)}"
    run = run_of(lambda: [text_of(ask(client, api)), text_of(ask(client, api))]).go()
    assert run.output("talk") == ["reply 1", "reply 2"]
    assert run.go().output("talk") == ["reply 1", "reply 2"]


def test_a_system_message_of_the_input_is_not_taken_for_instructions(server: ChatServer) -> None:
    client = client_of(server)
    system: Any = {"role": "system", "content": "Be short."}
    kinds: list[dict[str, Any]] = [
        {"instructions": "Be short.", "input": [USER]},
        {"input": [system, USER]},
    ]
    run = run_of(lambda: [client.responses.create(model="tiny", **kind).id for kind in kinds]).go()
    assert len(server.requests) == 2
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    assert {tuple(sorted(body)) for body in server.requests[2:]} == {
        ("input", "instructions", "model")
    }


def test_messages_of_an_input_are_recorded_as_texts(server: ChatServer) -> None:
    client = client_of(server)

    def work() -> str:
        first = client.responses.create(model="tiny", input="Hello")
        given: Any = [{"type": "message", **USER}, *first.output, USER]
        return text_of(client.responses.create(model="tiny", input=given))

    run = run_of(work).go()
    assert server.requests[1]["input"][1]["type"] == "message"
    recorded = list(run.calls.values())[1].request["content"]["messages"]
    assert recorded == [["user", "Hello"], ["assistant", "reply to Hello"], ["user", "Hello"]]
    run.edit_messages("talk", [Message(role, text) for role, text in recorded[:2]], 1).go()
    said = {"role": "assistant", "content": "reply to Hello"}
    assert server.requests[-1]["input"] == [USER, said]


@pytest.mark.parametrize("text", ['{"message": {"content": "x"}}', '{"a": 1}', "{", "[tool]\nx"])
@pytest.mark.parametrize("api", APIS)
def test_a_text_that_looks_like_a_message_stays_a_text(
    server: ChatServer, api: str, text: str
) -> None:
    client = client_of(server)
    server.script = lambda body: text
    run = run_of(lambda: text_of(ask(client, api, text))).go()
    assert run.output("talk") == text
    [[role, recorded]] = next(iter(run.calls.values())).request["content"]["messages"]
    run.edit_messages("talk", [Message("system", "Be short."), Message(role, recorded)]).go()
    assert last_text(server.requests[-1]) == text


# --- calls of tools, several choices, parsed replies


def test_calls_of_tools_come_back_and_are_sent_on(server: ChatServer) -> None:
    client = client_of(server)

    def script(body: dict[str, Any]) -> Any:
        return "It is a film." if last_text(body) == "found" else {"tool_calls": [CHAT_CALL]}

    server.script = script

    def work() -> str:
        messages: list[Any] = [USER]
        first = client.chat.completions.create(model="tiny", messages=messages, tools=[CHAT_TOOL])
        [call] = first.choices[0].message.tool_calls or ()
        assert first.choices[0].finish_reason == "tool_calls"
        found = {"role": "tool", "tool_call_id": call.id, "content": "found"}
        messages += [first.choices[0].message, found]
        return text_of(
            client.chat.completions.create(model="tiny", messages=messages, tools=[CHAT_TOOL])
        )

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    said, found = server.requests[1]["messages"][1:]
    assert said["tool_calls"] == [CHAT_CALL]
    assert found == {"role": "tool", "tool_call_id": "call-1", "content": "found"}
    run.go()
    assert len(server.requests) == 2
    recorded = list(run.calls.values())[1].request["content"]["messages"]
    messages = [Message(role, text) for role, text in recorded]
    run.edit_messages("talk", [Message("system", "Be short."), *messages], 1).go()
    sent = server.requests[-1]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[2]["tool_calls"] == [CHAT_CALL]
    assert sent[3] == found


@pytest.mark.parametrize("by_id", [True, False])
def test_calls_of_functions_come_back_and_are_sent_on(server: ChatServer, by_id: bool) -> None:
    client = client_of(server)
    server.script = lambda body: (
        "It is a film." if last_text(body) == "found" else {"output": [CALL]}
    )

    def work() -> str:
        first = client.responses.create(model="tiny", input="Hello", tools=[TOOL])
        [call] = first.output
        assert call.type == "function_call"
        found: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "found"}
        more: Any = {"input": [USER, call, found]}
        if by_id:
            more = {"input": [found], "previous_response_id": first.id}
        return text_of(client.responses.create(model="tiny", tools=[TOOL], **more))

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    first, second = run.calls.values()
    assert '"output"' in first.result.text
    assert second.request["content"]["messages"][-1][0] == "tool"
    assert ("previous_response_id" in server.requests[1]) == by_id
    run.go()
    assert len(server.requests) == 2
    recorded = second.request["content"]["messages"]
    messages = [Message(role, text) for role, text in recorded]
    run.edit_messages("talk", [Message("user", "Think."), *messages], 1).go()
    sent = server.requests[-1]["input"]
    assert sent[0] == {"role": "user", "content": "Think."}
    assert sent[1:] == server.requests[1]["input"]


@pytest.mark.parametrize("api", APIS)
def test_a_reply_is_parsed_again_from_the_record(server: ChatServer, api: str) -> None:
    client = client_of(server)
    server.script = lambda body: '{"title": "Dune"}'

    def work() -> str:
        if api == "chat":
            messages: Any = [USER]
            reply: Any = client.chat.completions.parse(
                model="tiny", messages=messages, response_format=Film
            )
            film = reply.choices[0].message.parsed
        else:
            film = client.responses.parse(
                model="tiny", input="Hello", text_format=Film
            ).output_parsed
        assert isinstance(film, Film)
        return film.title

    run = run_of(work).go()
    assert run.go().output("talk") == "Dune"
    assert len(server.requests) == 1
    assert "Film" in str(server.requests[0])
    assert work() == "Dune"
    assert len(server.requests) == 2


def test_several_choices_come_back_and_are_recorded(server: ChatServer) -> None:
    client = client_of(server)
    choices = [
        {
            "index": number,
            "message": {"role": "assistant", "content": f"{number}"},
            "finish_reason": "stop",
        }
        for number in range(2)
    ]
    server.script = lambda body: {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "choices": choices,
    }
    run = run_of(lambda: len(ask(client, "chat", n=2).choices)).go()
    assert run.go().output("talk") == 2
    assert len(server.requests) == 1
    assert '"1"' in next(iter(run.calls.values())).result.text


def test_what_a_completion_does_not_say_is_empty(server: ChatServer) -> None:
    client = client_of(server)
    message = {"role": "assistant", "content": "yes"}
    choices = [{"index": 0, "message": message, "finish_reason": None}]
    server.script = lambda body: {"id": "1", "model": None, "usage": None, "choices": choices}
    [call] = run_of(lambda: text_of(ask(client, "chat"))).go().calls.values()
    assert (call.result.text, call.result.model, call.result.finish_reason) == ("yes", "", "stop")


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "incomplete",
            "length",
        ),
        (
            {"status": "failed", "error": {"code": "server_error", "message": "no"}},
            "failed",
            "failed",
        ),
    ],
)
def test_a_reply_that_was_cut_off_or_failed_says_so_again(
    server: ChatServer, fields: dict[str, Any], status: str, reason: str
) -> None:
    client = client_of(server)
    server.script = lambda body: {"output": [], **fields}
    run = run_of(lambda: ask(client, "responses").status).go()
    assert run.go().output("talk") == status
    [call] = run.calls.values()
    assert call.result.finish_reason == reason
    assert ("server_error" in call.result.text) == (status == "failed")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("has_tool_call", [False, True])
def test_a_reply_that_was_recorded_without_its_body_is_replayed(
    server: ChatServer, tmp_path: Path, api: str, has_tool_call: bool
) -> None:
    if has_tool_call:
        server.script = lambda body: (
            {"tool_calls": [CHAT_CALL]} if api == "chat" else {"output": [CALL]}
        )
    client = client_of(server)

    def read() -> Any:
        reply = ask(client, api)
        if not has_tool_call:
            return text_of(reply)
        return str(
            reply.choices[0].message.tool_calls[0].function.arguments
            if api == "chat"
            else reply.output[0].arguments
        )

    run = run_of(read).go()
    lines = run.save(tmp_path / "run.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    [call] = [entry["call"] for entry in entries if "call" in entry]
    del call["reply"]["body"]
    (tmp_path / "earlier.jsonl").write_text("\n".join(map(json.dumps, entries)) + "\n")
    replayed = kgwb.load_run(tmp_path / "earlier.jsonl", system=run.system)
    assert replayed.output("talk") == run.output("talk")
    assert len(server.requests) == 1


# --- streams


@pytest.mark.parametrize("api", APIS)
def test_a_stream_is_recorded_chunk_for_chunk(server: ChatServer, api: str) -> None:
    client = client_of(server)
    run = run_of(lambda: [said_in(event) for event in ask(client, api, stream=True)]).go()
    said = list(filter(None, run.output("talk")))
    assert said == ["reply", " to Hello"]
    [call] = run.calls.values()
    assert call.result.text == "reply to Hello"
    assert (call.result.prompt_tokens, call.result.finish_reason) == (10, "stop")
    before = run.output("talk")
    assert run.go().output("talk") == before
    assert len(server.requests) == 1
    run.edit_messages("talk", "[user]\nBye\n").go()
    assert "".join(filter(None, run.output("talk"))) == "reply to Bye"
    assert server.requests[-1]["stream"] is True


@pytest.mark.parametrize("api", APIS)
def test_the_stream_helper_of_openai_reads_the_record(server: ChatServer, api: str) -> None:
    client: Any = client_of(server)
    server.script = lambda body: (
        {"tool_calls": [CHAT_CALL]} if api == "chat" else {"output": [CALL]}
    )

    def work() -> str:
        if api == "chat":
            streamed = client.chat.completions.stream(
                model="tiny", messages=[USER], tools=[CHAT_TOOL]
            )
        else:
            streamed = client.responses.stream(model="tiny", input="Hello", tools=[TOOL])
        with streamed as events:
            list(events)
            if api == "chat":
                [call] = events.get_final_completion().choices[0].message.tool_calls
                return str(call.function.arguments)
            return str(events.get_final_response().output[0].arguments)

    run = run_of(work).go()
    assert run.go().output("talk") == '{"text": "Dune"}'
    assert len(server.requests) == 1
    assert "Dune" in next(iter(run.calls.values())).result.text


@pytest.mark.parametrize("form", ["whole", "stream", "helper"])
@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_put_in_is_read_by_openai(server: ChatServer, api: str, form: str) -> None:
    client: Any = client_of(server)

    def work() -> str:
        if form == "whole":
            return text_of(ask(client, api))
        if form == "stream":
            return "".join(filter(None, map(said_in, ask(client, api, stream=True))))
        if api == "chat":
            with client.chat.completions.stream(model="tiny", messages=[USER]) as events:
                return text_of(events.get_final_completion())
        with client.responses.stream(model="tiny", input="Hello") as events:
            return text_of(events.get_final_response())

    run = run_of(work).go()
    edited = run.fork().edit_reply("talk", "Good bye").go()
    assert edited.output("talk") == "Good bye"
    assert len(server.requests) == 1
    tool_call = {"tool_calls": [CHAT_CALL]} if api == "chat" else {"output": [CALL]}
    edited.edit_reply("talk", json.dumps({"message": tool_call}))

    def call_tool() -> str:
        if form == "whole":
            reply = ask(client, api)
        elif api == "chat":
            with client.chat.completions.stream(model="tiny", messages=[USER]) as events:
                reply = events.get_final_completion()
        else:
            with client.responses.stream(model="tiny", input="Hello") as events:
                reply = events.get_final_response()
        return str(
            reply.choices[0].message.tool_calls[0].function.arguments
            if api == "chat"
            else reply.output[0].arguments
        )

    called = run_of(call_tool)
    called.record.edited_replies.update(edited.record.edited_replies)
    assert called.go().output("talk") == '{"text": "Dune"}'
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_an_asynchronous_client_is_asked_in_runs_and_outside(server: ChatServer, api: str) -> None:
    client = async_client_of(server)

    async def whole() -> str:
        return text_of(await ask(client, api))

    async def streamed() -> str:
        said = [said_in(event) async for event in await ask(client, api, stream=True)]
        return "".join(filter(None, said))

    run = run_of(lambda: [asyncio.run(whole()), asyncio.run(streamed())]).go()
    assert run.go().output("talk") == ["reply to Hello"] * 2
    assert len(server.requests) == 2
    assert asyncio.run(whole()) == "reply to Hello"
    assert asyncio.run(whole()) == "reply to Hello"
    assert len(server.requests) == 4


# --- what is not recorded


def test_headers_and_keys_are_not_recorded(server: ChatServer) -> None:
    client = client_of(server)
    secret = {"X-Secret": "hush-hush-hush"}
    run = run_of(lambda: text_of(ask(client, "chat", extra_headers=secret))).go()
    recorded = str([call.to_data() for call in run.calls.values()])
    assert "hush" not in recorded
    assert "no-key-needed" not in recorded


@pytest.mark.parametrize("form", ["with_raw_response", "with_streaming_response", "with_options"])
def test_other_doors_of_a_wrapped_client_are_recorded_too(server: ChatServer, form: str) -> None:
    client = client_of(server)
    messages: Any = [USER]

    def work() -> str:
        if form == "with_options":
            return text_of(ask(client.with_options(timeout=5.0), "chat"))
        create = getattr(client.chat.completions, form).create
        if form == "with_raw_response":
            return text_of(create(model="tiny", messages=messages).parse())
        with create(model="tiny", messages=messages) as response:
            return text_of(response.parse())

    run = run_of(work).go()
    assert run.go().output("talk") == "reply to Hello"
    assert len(server.requests) == 1
    assert not run.past_calls


@pytest.mark.parametrize("what", ["background", "embeddings"])
def test_what_is_no_reply_to_messages_is_recorded_as_it_is(server: ChatServer, what: str) -> None:
    client = client_of(server)

    def work() -> str:
        if what == "background":
            return str(ask(client, "responses", background=True).id)
        return str(client.embeddings.create(model="tiny", input="Hello").model)

    server.script = lambda body: "reply"
    run = run_of(work)
    if what == "embeddings":
        vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
        made = {"model": "tiny-1", "data": [vector], "object": "list"}
        server.completion = lambda body: made  # type: ignore[method-assign]
    run.go()
    before = run.output("talk")
    assert run.go().output("talk") == before
    assert [call.kind for call in run.calls.values()] == ["http"]
    assert not run.past_calls
    assert run.totals.model_calls == 0


@pytest.mark.parametrize(
    ("reply", "is_lasting"),
    [
        ({"status_code": 429}, False),
        ({"status_code": 500}, False),
        ({"status_code": 400}, True),
        ({"choices": None}, True),
    ],
)
def test_a_refusal_is_the_clients_own_and_is_replayed(
    server: ChatServer, tmp_path: Path, reply: dict[str, Any], is_lasting: bool
) -> None:
    client = client_of(server)
    server.script = lambda body: reply

    def work() -> str:
        try:
            return text_of(ask(client, "chat"))
        except (openai.APIStatusError, TypeError) as error:
            return type(error).__name__

    run = run_of(work).go()
    assert run.output("talk").endswith("Error")
    assert run.totals.model_calls == 0
    run.go()
    assert len(server.requests) == (1 if is_lasting else 2)
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == run.output("talk")
    assert len(server.requests) == (1 if is_lasting else 2)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_that_the_client_sends_again_is_one_call(
    server: ChatServer, tmp_path: Path, is_async: bool
) -> None:
    client = async_client_of(server, 1) if is_async else client_of(server, 1)
    server.script = lambda body: "yes" if len(server.requests) == 2 else {"status_code": 500}

    async def wait() -> str:
        return text_of(await ask(client, "chat"))

    run = run_of(lambda: asyncio.run(wait()) if is_async else text_of(ask(client, "chat"))).go()
    assert [(call.kind, call.repeat) for call in run.calls.values()] == [("http", 0), ("model", 0)]
    assert run.go().output("talk") == "yes"
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == "yes"
    assert len(server.requests) == 2


def test_a_broken_connection_is_the_clients_own_error(server: ChatServer) -> None:
    client = client_of(server)

    def script(body: dict[str, Any]) -> Any:
        raise RuntimeError("the server breaks the connection")

    server.script = script
    with pytest.raises(openai.APIConnectionError):
        ask(client, "chat")

    def work() -> str:
        try:
            return text_of(ask(client, "chat"))
        except openai.APIConnectionError:
            return "no connection"

    assert run_of(work).go().output("talk") == "no connection"


def test_a_replay_says_that_the_pipeline_caught_a_missing_reply(
    server: ChatServer, tmp_path: Path
) -> None:
    client = client_of(server)

    def work() -> str:
        try:
            return text_of(ask(client, "chat"))
        except Exception as error:  # noqa: BLE001 - as pipelines do
            return type(error).__name__

    def script(body: dict[str, Any]) -> Any:
        raise RuntimeError("the server breaks the connection")

    server.script = script
    run = run_of(work).go()
    assert not any(NOT_RECORDED_NOTE in step.notes for step in run.steps)
    replay = Run.load(run.save(tmp_path / "run.jsonl"), run.system).go()
    assert replay.output("talk") == "NotRecordedError"
    assert NOT_RECORDED_NOTE in replay["talk"].notes


def test_a_client_without_wrapper_is_recorded(server: ChatServer) -> None:
    plain = openai.OpenAI(api_key="no-key-needed", base_url=server.url, max_retries=0)
    assert wrap_openai(plain) is plain
    run = run_of(lambda: text_of(ask(plain, "chat"))).go()
    assert run.go().output("talk") == "reply to Hello"
    assert len(server.requests) == 1
    assert not run.past_calls


def test_the_connections_outlive_the_given_client(server: ChatServer) -> None:
    client = client_of(server)
    gc.collect()
    assert text_of(ask(client, "chat")) == "reply to Hello"


def test_options_of_any_client_are_json_data() -> None:
    options = {
        "tools": [{"n": 1, "strict": None}],
        "format": Film,
        "film": Film(title="Dune"),
        "callback": print,
    }
    assert json_options(options) == {
        "tools": [{"n": 1, "strict": None}],
        "format": Film.model_json_schema(),
        "film": {"title": "Dune"},
        "callback": "builtin_function_or_method",
    }


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(SettingError):
        wrap_openai(object())
