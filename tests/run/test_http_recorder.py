"""What a run records of its own HTTP requests: by client and by protocol, replayed without a server."""

from __future__ import annotations

import json
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from hostile import servers
from http_clients import CLIENTS, by_httpx, by_requests, by_urllib
from small import films, system_of
from tables import read_table

import kgwb
from kgwb.build import agent
from kgwb.errors import NotRecordedError
from kgwb.llm.base import fields_of_text, text_of_fields
from kgwb.run import Run, http_protocols
from kgwb.run.http_protocols import (
    ANTHROPIC,
    APIS,
    body_of_reply,
    message_from_data,
    read_model_request,
    reply_of_body,
)

SECRET = "kg7Hq2-secret-key-93"


class Protocol(NamedTuple):
    """A request, and what the server replies; see http_protocols.toml."""

    path: str
    kind: str
    reply: str
    body: str = ""
    """What is posted; empty for a GET."""
    text: str = ""
    """What a model says in the reply."""
    content_type: str = "application/json"
    sent_type: str = "application/json"


ROWS = tomllib.loads(Path(__file__).with_name("http_protocols.toml").read_text(encoding="utf-8"))
PROTOCOLS = {name: Protocol(**row) for name, row in ROWS.items()}
OF_MODELS = [name for name, protocol in PROTOCOLS.items() if protocol.text]


class Server(servers.Server):
    """Replies with what it was given last: a status, a content type, and a body."""

    reply: tuple[int, str, str | bytes] = (200, "text/plain", "")

    def __init__(self) -> None:
        super().__init__(lambda seen: self.said())

    def said(self) -> servers.Said:
        status, content_type, body = self.reply
        return status, {"Content-Type": content_type}, body


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def run_of(work: Callable[[], Any]) -> Run:
    """A run whose one step does the work; not executed yet."""

    @agent
    def talk(text: str, run: Run) -> Any:
        return work()

    return Run(system_of(talk), "Who?", kg=films(), models=None)


def asking(server: Server, client: str, protocol: Protocol) -> Callable[[], Any]:
    """Work that sends the request of a protocol by a client."""
    server.reply = (200, protocol.content_type, protocol.reply)
    body = protocol.body.encode() or None
    headers = (
        {"Authorization": f"Bearer {SECRET}", "Content-Type": protocol.sent_type} if body else {}
    )
    return lambda: list(CLIENTS[client](server.url + protocol.path, body, headers))


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections that are opened from now on."""
    opened: list[Any] = []
    connect = socket.socket.connect

    def counted(self: socket.socket, address: Any) -> None:
        opened.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", counted)
    return opened


@pytest.mark.parametrize(
    ("client", "protocol_name"),
    [
        *product(CLIENTS, ["chat", "chat stream", "sparql", "other"]),
        *product(["httpx", "urllib"], OF_MODELS[2:]),
        *product(["httpx"], ["sparql form", "sparql body", "other get", "other reply"]),
    ],
)
def test_a_request_is_recorded_and_replayed_without_a_server(
    server: Server, tmp_path: Path, connections: list[Any], client: str, protocol_name: str
) -> None:
    protocol = PROTOCOLS[protocol_name]
    run = run_of(asking(server, client, protocol)).go()
    status, text = run.output("talk")
    assert (status, text.strip()) == (200, protocol.reply.strip())
    [call] = run.calls.values()
    assert call.kind == protocol.kind
    assert not run.past_calls
    if protocol.kind == "model":
        assert call.result.text == protocol.text
        assert (call.result.prompt_tokens, call.result.completion_tokens) == (4, 2)
        assert call.result.finish_reason == "stop"
        system = [["system", "Be short."]] * ("system" in protocol.body)
        assert call.request["content"]["messages"] == [*system, ["user", "Hello"]]
    if protocol.kind == "select":
        assert [str(cell) for (cell,) in call.result.rows] == ["http://example.org/dune"]
    if protocol.body:
        sent = server.seen[0]
        assert (sent.path, sent.body) == (protocol.path, protocol.body)
        assert SECRET in str(sent.headers)

    assert run.go().output("talk") == run.output("talk")
    path = run.save(tmp_path / "run.jsonl")
    assert SECRET not in path.read_text()
    server.stop()
    connections.clear()
    replay = kgwb.load_run(path, system=run.system)
    assert replay.is_replay
    shown = json.dumps(run.output("talk")).replace(SECRET, "***")
    assert json.dumps(replay.output("talk")) == shown
    assert connections == []
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("client", "protocol_name"),
    [*product(CLIENTS, ["chat stream"]), *product(["httpx"], OF_MODELS[2:])],
)
def test_edited_messages_are_sent_in_place_of_those_of_the_request(
    server: Server, client: str, protocol_name: str
) -> None:
    protocol = PROTOCOLS[protocol_name]
    run = run_of(asking(server, client, protocol)).go()
    run.edit_messages("talk", "[system]\nBe long.\n\n[user]\nBye\n").go()
    _, sent = server.seen
    assert "Bye" in sent.body and "Be long." in sent.body and "Hello" not in sent.body
    assert int(sent.headers["Content-Length"]) == len(sent.body)
    assert sent.data["model"] == "tiny"
    assert bool(sent.data.get("stream")) == ('"stream": true' in protocol.body)
    assert SECRET in str(sent.headers)


@pytest.mark.parametrize(
    ("client", "status"), [*product(CLIENTS, [400, 503]), *product(["httpx"], [413, 414, 422])]
)
def test_a_refusal_of_an_endpoint_is_replayed(
    server: Server, tmp_path: Path, client: str, status: int
) -> None:
    work = asking(server, client, PROTOCOLS["sparql"])
    server.reply = (status, "text/plain", "malformed")
    run = run_of(work).go()
    assert run.output("talk") == [status, "malformed"]
    asked = len(server.seen)
    run.go()
    assert (len(server.seen) == asked) == (status != 503)
    asked = len(server.seen)
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == [status, "malformed"]
    server.reply = (200, "application/sparql-results+json", PROTOCOLS["sparql"].reply)
    assert replay.fork().go().output("talk") == [status, "malformed"]
    assert len(server.seen) == asked


def test_a_request_that_is_sent_until_its_reply_is_another_one_is_recorded_each_time(
    server: Server,
) -> None:
    def work() -> list[str]:
        texts = []
        for number in range(3):
            server.reply = (200, "text/plain", f"state {number}")
            texts.append(by_requests(f"{server.url}/job", None, {})[1])
        return texts

    run = run_of(work).go()
    assert run.output("talk") == ["state 0", "state 1", "state 2"]
    assert run.go().output("talk") == ["state 0", "state 1", "state 2"]
    assert len(server.seen) == 3


@pytest.mark.parametrize("accepted", ["text/csv", "application/sparql-results+xml"])
def test_a_recorded_result_is_written_in_the_format_that_is_asked_for(
    server: Server, accepted: str
) -> None:
    given = {"Accept": "application/sparql-results+json"}
    url = server.url + PROTOCOLS["sparql"].path.replace("&format=json", "")
    server.reply = (200, "application/sparql-results+json", PROTOCOLS["sparql"].reply)
    run = run_of(lambda: by_urllib(url, None, given)[1]).go()
    given["Accept"] = accepted
    text = run.go().output("talk")
    assert "http://example.org/dune" in text
    assert not text.startswith("{")
    assert len(server.seen) == 1


def test_what_is_no_text_comes_back_byte_for_byte(server: Server, tmp_path: Path) -> None:
    server.reply = (200, "application/octet-stream", b"\xff\xfe binary")

    def fetch() -> str:
        return requests.get(server.url, timeout=5).content.hex()

    run = run_of(fetch).go()
    assert run.output("talk") == b"\xff\xfe binary".hex()
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == run.output("talk")


def test_a_streamed_message_of_anthropic_may_cite_and_call_a_tool_without_input() -> None:
    reply = reply_of_body(ANTHROPIC, PROTOCOLS["anthropic tool"].reply)
    fields = fields_of_text(reply.text)
    tool = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    assert fields["content"] == [{"type": "text", "text": "Hi"}, tool]
    assert reply.finish_reason == "tool_calls"


APIS_BY_NAME = dict(zip(("chat", "responses", "ollama", "anthropic"), APIS, strict=True))


def read_form(form: str, given: Any) -> Any:
    """What is read of a request or a reply, and what is made of it again, as JSON data."""
    name, _, part = form.partition(" ")
    api = APIS_BY_NAME[name]
    if part == "messages":
        return http_protocols.as_chat_messages(map(message_from_data, given))
    if part == "tools":
        return http_protocols.tools_of_options(given)
    if part == "text":
        text = text_of_fields(given)
        return [http_protocols.shown_text(text), http_protocols.comparable_reply(text)]
    if part == "request":
        items = api.items_of(given)
        fewer = api.with_items(given, items[-1:])
        return [items, api.options_of(given), api.with_items(given, items), fewer]
    reply = api.reply_of(given)
    made = api.data_of(reply)
    tokens = [reply.prompt_tokens, reply.completion_tokens]
    streamed = [] if api.streams_lines else list(api.events_of(made))
    return [reply.text, reply.model, tokens, reply.finish_reason, reply.fingerprint, made, streamed]


@pytest.mark.parametrize(
    ("form", "given", "expected"), read_table(Path(__file__).with_name("protocol_forms.jsonl"))
)
def test_messages_tools_and_replies_of_a_protocol_are_read_and_made_again(
    form: str, given: Any, expected: Any
) -> None:
    assert json.loads(json.dumps(read_form(form, given))) == expected


# --- a reply that a person put in


@pytest.mark.parametrize("name", OF_MODELS)
def test_a_reply_that_is_put_in_comes_as_the_server_would_send_it(
    server: Server, tmp_path: Path, name: str
) -> None:
    protocol = PROTOCOLS[name]
    run = run_of(asking(server, "httpx", protocol)).go()
    edited = run.fork().edit_reply("talk", "Bye, äöü").go()
    status, text = edited.output("talk")
    assert status == 200
    request = read_model_request("POST", protocol.path, protocol.body.encode())
    assert request is not None
    reply = reply_of_body(request[0], text)
    assert reply.text == "Bye, äöü"
    assert ("event: " in text) == ("event: " in protocol.reply)
    assert (text, protocol.content_type) == body_of_reply(
        request[0],
        replace(reply, body=""),
        is_streamed=request[1].get("stream", "ollama" in name),
    )
    assert len(server.seen) == 1
    assert edited.totals.live_model_calls == 0
    replay = kgwb.load_run(edited.save(tmp_path / "run.jsonl"), system=edited.system)
    assert replay.output("talk") == edited.output("talk")
    assert edited.edit_reply("talk", None).go().output("talk") == run.output("talk")
    assert len(server.seen) == 1


# --- replays


def test_a_replay_opens_no_connection_and_names_what_wanted_one(
    server: Server, tmp_path: Path
) -> None:
    host, port = server.url.removeprefix("http://").split(":")

    def work() -> str:
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return raw.recv(100).decode()[:8]

    run = run_of(work).go()
    assert run.output("talk") == "HTTP/1.0"
    replay = Run.load(run.save(tmp_path / "run.jsonl"), run.system)
    with pytest.raises(NotRecordedError, match=r"127\.0\.0\.1"):
        replay.go()
    assert any("127.0.0.1" in note for note in replay["talk"].notes)
    assert len(server.seen) == 1
    assert run.go().output("talk") == "HTTP/1.0"
    assert len(server.seen) == 2


def test_a_replay_sends_nothing_from_its_threads(server: Server, tmp_path: Path) -> None:
    def work() -> list[str]:
        said: list[str] = []

        def ask() -> None:
            try:
                said.append(by_httpx(server.url, None, {})[1])
            except Exception as error:  # noqa: BLE001 - as pipelines do
                said.append(type(error).__name__)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return said

    server.reply = (200, "text/plain", "ok")
    run = run_of(work).go()
    assert run.output("talk") == ["ok"]
    assert sum(run.past_calls.values()) == 1
    replay = kgwb.load_run(run.save(tmp_path / "run.jsonl"), system=run.system)
    assert replay.output("talk") == ["NotRecordedError"]
    assert len(server.seen) == 1
