"""A wrapped client of openai: what it sends and returns inside of a run and outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
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
TOOL_CALLS = {"chat": {"tool_calls": [CHAT_CALL]}, "responses": {"output": [CALL]}}


class Film(BaseModel):
    title: str


def client_of(chats: ChatServer, max_retries: int = 0) -> Any:
    return openai.OpenAI(api_key="no-key-needed", base_url=chats.url, max_retries=max_retries)


def run_of(work: Callable[[], Any]) -> Run:
    """A run whose one step does the work; not executed yet."""

    @agent
    def talk() -> Any:
        return work()

    system = System("talking", lambda *_: Answer("list", text=str(talk())), [talk])
    return Run(system, "Who?", kg=films(), models=None)


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


def arguments_of(reply: Any) -> list[str]:
    """What each function that a reply calls is called with."""
    if hasattr(reply, "choices"):
        return [call.function.arguments for call in reply.choices[0].message.tool_calls or ()]
    return [item.arguments for item in reply.output if item.type == "function_call"]


def stream(client: Any, api: str) -> Any:
    """The reply that openai makes of a stream."""
    if api == "chat":
        with client.chat.completions.stream(model="tiny", messages=[USER]) as events:
            return events.get_final_completion()
    with client.responses.stream(model="tiny", input="Hello") as events:
        return events.get_final_response()


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


SHORT = {"role": "system", "content": "Be short."}


@pytest.mark.parametrize(
    ("api", "sent", "edited"),
    [
        (
            "chat",
            {"messages": [SHORT, USER]},
            {"messages": [{**SHORT, "content": "Be long."}, {**USER, "content": "Bye"}]},
        ),
        (
            "responses",
            {"instructions": "Be short.", "input": "Hello"},
            {"instructions": "Be long.", "input": "Bye"},
        ),
    ],
)
def test_a_request_is_recorded_and_edited(
    server: ChatServer, api: str, sent: dict[str, Any], edited: dict[str, Any]
) -> None:
    client = wrap_openai(client_of(server))
    create = client.chat.completions.create if api == "chat" else client.responses.create
    run = run_of(lambda: text_of(create(model="tiny", **sent))).go()
    assert server.requests == [{"model": "tiny", **sent}]
    [call] = run.calls.values()
    assert call.request["content"]["messages"] == [["system", "Be short."], ["user", "Hello"]]
    assert call.result.text == run.output("talk") == "reply to Hello"
    assert (call.result.finish_reason, call.result.model) == ("stop", "tiny-1")
    assert (run.totals.prompt_tokens, run.totals.completion_tokens) == (12, 5)
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    assert run.output("talk") == "reply to Bye"
    assert server.requests[-1] == {"model": "tiny", **edited}
    run.edit_messages("talk", [Message("user", "One"), Message("user", "Two")]).go()
    two = [{"role": "user", "content": text} for text in ("One", "Two")]
    name = "messages" if api == "chat" else "input"
    assert server.requests[-1] == {"model": "tiny", name: two}


def send_edited(run: Run, number: int, *before: Message, end: int | None = None) -> None:
    """Send the messages of a recorded call again, after others; as a person does."""
    recorded = list(run.calls.values())[number].request["content"]["messages"][:end]
    messages = [Message(role, text) for role, text in recorded]
    run.edit_messages("talk", [*before, *messages], number).go()


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
        options["client"] = elsewhere
    elif what == "api":
        options["api"] = "chat"
    else:
        options["instructions"] = "Be short."
    for _ in range(2):
        run.go()
        assert len(server.requests) == 2


def test_a_system_message_of_the_input_is_not_taken_for_instructions(server: ChatServer) -> None:
    client = client_of(server)
    kinds: list[Any] = [{"instructions": "Be short.", "input": [USER]}, {"input": [SHORT, USER]}]
    run = run_of(lambda: [client.responses.create(model="tiny", **kind).id for kind in kinds]).go()
    assert len(server.requests) == 2
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    assert all("instructions" in body for body in server.requests[2:])


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
    send_edited(run, 1, end=2)
    said = {"role": "assistant", "content": "reply to Hello"}
    assert server.requests[-1]["input"] == [USER, said]


@pytest.mark.parametrize("text", ['{"message": {"content": "x"}}', "{", "[tool]\nx"])
@pytest.mark.parametrize("api", APIS)
def test_a_text_that_looks_like_a_message_stays_a_text(
    server: ChatServer, api: str, text: str
) -> None:
    client = client_of(server)
    server.script = lambda body: text
    run = run_of(lambda: text_of(ask(client, api, text))).go()
    assert run.output("talk") == text
    send_edited(run, 0, Message("system", "Be short."))
    assert last_text(server.requests[-1]) == text


# --- calls of tools, several choices, parsed replies


def test_calls_of_tools_come_back_and_are_sent_on(server: ChatServer) -> None:
    create = partial(client_of(server).chat.completions.create, model="tiny", tools=[CHAT_TOOL])
    server.script = lambda body: (
        "It is a film." if last_text(body) == "found" else {"tool_calls": [CHAT_CALL]}
    )

    def work() -> str:
        [choice] = create(messages=[USER]).choices
        [call] = choice.message.tool_calls or ()
        assert choice.finish_reason == "tool_calls"
        found = {"role": "tool", "tool_call_id": call.id, "content": "found"}
        return text_of(create(messages=[USER, choice.message, found]))

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    said, found = server.requests[1]["messages"][1:]
    assert said["tool_calls"] == [CHAT_CALL]
    assert found == {"role": "tool", "tool_call_id": "call-1", "content": "found"}
    run.go()
    assert len(server.requests) == 2
    send_edited(run, 1, Message("system", "Be short."))
    system, user, said, last = server.requests[-1]["messages"]
    assert (system, user, last) == (SHORT, USER, found)
    assert said["tool_calls"] == [CHAT_CALL]


@pytest.mark.parametrize("by_id", [True, False])
def test_calls_of_functions_come_back_and_are_sent_on(server: ChatServer, by_id: bool) -> None:
    create = partial(client_of(server).responses.create, model="tiny", tools=[TOOL])
    server.script = lambda body: (
        "It is a film." if last_text(body) == "found" else {"output": [CALL]}
    )

    def work() -> str:
        first = create(input="Hello")
        [call] = first.output
        assert call.type == "function_call"
        found: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "found"}
        more: Any = {"input": [USER, call, found]}
        if by_id:
            more = {"input": [found], "previous_response_id": first.id}
        return text_of(create(**more))

    run = run_of(work).go()
    assert run.output("talk") == "It is a film."
    first, second = run.calls.values()
    assert '"output"' in first.result.text
    assert second.request["content"]["messages"][-1][0] == "tool"
    assert ("previous_response_id" in server.requests[1]) == by_id
    run.go()
    assert len(server.requests) == 2
    send_edited(run, 1, Message("user", "Think."))
    think = {"role": "user", "content": "Think."}
    assert server.requests[-1]["input"] == [think, *server.requests[1]["input"]]


def choice(text: str, reason: str | None, index: int = 0) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"index": index, "message": message, "finish_reason": reason}


CUT_OFF = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FAILED = {"status": "failed", "error": {"code": "server_error", "message": "no"}}


@pytest.mark.parametrize(
    ("api", "reply", "text", "reason"),
    [
        ("chat", {"choices": [choice("0", "stop"), choice("1", "stop", 1)]}, '"1"', "stop"),
        ("chat", {"model": None, "usage": None, "choices": [choice("yes", None)]}, "yes", "stop"),
        ("responses", {"output": [], **CUT_OFF}, "", "length"),
        ("responses", {"output": [], **FAILED}, "server_error", "failed"),
    ],
)
def test_what_a_reply_says_of_itself_is_recorded_and_comes_back(
    server: ChatServer, api: str, reply: dict[str, Any], text: str, reason: str
) -> None:
    client = client_of(server)
    server.script = lambda body: {"id": "1", **reply}
    run = run_of(lambda: json.dumps(ask(client, api).model_dump(exclude_unset=True))).go()
    said = run.output("talk")
    assert run.go().output("talk") == said
    assert len(server.requests) == 1
    [call] = run.calls.values()
    assert text in call.result.text and call.result.finish_reason == reason


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("has_tool_call", [False, True])
@pytest.mark.parametrize("read", [ask, stream])
def test_a_reply_is_read_by_openai_from_the_record_and_as_a_person_put_it_in(
    server: ChatServer, tmp_path: Path, api: str, has_tool_call: bool, read: Any
) -> None:
    if has_tool_call:
        server.script = lambda body: TOOL_CALLS[api]
    client = client_of(server)

    def work() -> Any:
        reply = read(client, api)
        return arguments_of(reply) or text_of(reply)

    run = run_of(work).go()
    assert run.output("talk") == (['{"text": "Dune"}'] if has_tool_call else "reply to Hello")
    [call] = run.calls.values()
    assert ("Dune" in call.result.text) == has_tool_call
    assert call.result.prompt_tokens == 12
    assert has_tool_call or call.result.finish_reason == "stop"
    replay = kgwb.load_run(without_bodies(run.save(tmp_path / "run.jsonl")), system=run.system)
    assert replay.output("talk") == run.output("talk")
    edited = run.fork().edit_reply("talk", "Good bye").go()
    assert edited.output("talk") == "Good bye"
    edited.edit_reply("talk", json.dumps({"message": TOOL_CALLS[api]})).go()
    assert edited.output("talk") == ['{"text": "Dune"}']
    assert len(server.requests) == 1


def without_bodies(path: Path) -> Path:
    """A saved run as a version wrote it that did not keep the bodies of replies."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        if "call" in entry:
            del entry["call"]["reply"]["body"]
    path.write_text("\n".join(map(json.dumps, entries)) + "\n")
    return path


# --- what is not recorded


def test_what_is_no_reply_to_messages_is_recorded_as_it_is(server: ChatServer) -> None:
    client = client_of(server)
    run = run_of(lambda: str(ask(client, "responses", background=True).id)).go()
    before = run.output("talk")
    assert run.go().output("talk") == before
    assert [call.kind for call in run.calls.values()] == ["http"]


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
    assert run.output("talk").endswith("Error") and run.totals.model_calls == 0
    run.go()
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == run.output("talk")
    assert len(server.requests) == (1 if is_lasting else 2)


def test_a_request_that_the_client_sends_again_is_one_call(
    server: ChatServer, tmp_path: Path
) -> None:
    client = client_of(server, max_retries=1)
    server.script = lambda body: "yes" if len(server.requests) == 2 else {"status_code": 500}
    run = run_of(lambda: text_of(ask(client, "chat"))).go()
    assert [(call.kind, call.repeat) for call in run.calls.values()] == [("http", 0), ("model", 0)]
    assert run.go().output("talk") == "yes"
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == "yes"
    assert len(server.requests) == 2


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
