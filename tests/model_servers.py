"""Servers on loopback with the protocols of OpenAI and Ollama, which can be made to misbehave."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from kgwb.llm import ChatReply, ChatRequest, Message, OllamaModel, OpenAIModel

SCHEMA = {
    "type": "object",
    "title": "Reply",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


GOETHE = '{"answer": "Goethe"}'


def ask(**changes: Any) -> ChatRequest:
    """Return a small request with a schema, and with these changes."""
    defaults: dict[str, Any] = {
        "task": "chatty_kg/qir",
        "messages": (Message("system", "Answer in JSON."), Message("user", "Who wrote Faust?")),
        "schema": SCHEMA,
        "timeout_s": 5.0,
    }
    return ChatRequest(**{**defaults, **changes})


def complete(model: Any, **changes: Any) -> ChatReply:
    """Return the reply of a model to that request."""
    return model.complete(ask(**changes), None, threading.Event())


@dataclass(frozen=True)
class Answer:
    """What the server sends for one request."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hang_up: bool = False
    sent: int | None = None
    """Bytes of the body that are sent, where it is cut."""
    end: Literal["whole", "reset", "stall", "drip", "silence"] = "whole"
    """More is announced, and then comes: a reset, nothing, or keep-alive comments until the client leaves.

    With "silence" not even a header comes.
    """

    @property
    def payload(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any


class ModelServer:
    """Sends the answers in ``queue`` first, then ``always`` if set, else a reply of its protocol."""

    kind = prefix = chat_path = ""
    streams_unasked = False
    model: type[OpenAIModel] | type[OllamaModel]
    """The class of the model that uses it."""
    reply: Callable[..., Answer]
    error: Callable[..., Answer]
    beginning: Callable[[str], str]
    """The body of a stream with the first half of a reply, and no end."""
    said: Callable[[str], str]
    """The text of an error inside a stream."""
    as_stream: Callable[[Answer, dict[str, Any]], Answer]
    """Return the same reply in parts. An answer that is not a reply stays as it is."""
    chat: Callable[[dict[str, Any]], Answer]
    listing: Callable[[], Answer]

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.queue: deque[Answer] = deque()
        self.always: Answer | None = None
        self.model_names = ["tiny", "small"]
        self.refuses: set[str] = set()
        self.streams = True
        """False for a server that ignores the field ``stream``."""
        self.closing = threading.Event()
        self.left = threading.Event()
        """Set when a client closed the connection before the end of a reply."""
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}{self.prefix}"

    @property
    def connections(self) -> int:
        return self._http.connections

    @property
    def chats(self) -> list[dict[str, Any]]:
        """Bodies of the chat requests seen."""
        return [seen.body for seen in self.seen if seen.path == self.prefix + self.chat_path]

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> Answer:
        self.seen.append(seen)
        if seen.path == self.prefix + self.chat_path:
            answer = self.queue.popleft() if self.queue else self.always or self.chat(seen.body)
            wanted = self.streams and seen.body.get("stream", self.streams_unasked)
            return self.as_stream(answer, seen.body) if wanted else answer
        return self.listing()

    def tiny(self) -> Any:
        """Return a model that the server has."""
        return self.model("tiny", base_url=self.url)


class OpenAIServer(ModelServer):
    """Refuses the request fields and response formats in ``refuses``, with errors like OpenAI's."""

    kind, model, prefix, chat_path = "openai", OpenAIModel, "/v1", "/chat/completions"
    says_param = True

    @staticmethod
    def reply(content: Any, finish: str = "stop", **message: Any) -> Answer:
        message = {"role": "assistant", "content": content, **message}
        choices = [{"index": 0, "finish_reason": finish, "message": message}]
        usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
        return Answer(
            {"object": "chat.completion", "model": "tiny-1", "choices": choices, "usage": usage}
        )

    @staticmethod
    def error(
        status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        return Answer(
            {"error": {"message": message, "type": "error", **more}}, status, headers or {}
        )

    @staticmethod
    def beginning(text: str) -> str:
        return sse(*openai_events({"content": text}, None, None)[:-2])

    @staticmethod
    def said(message: str) -> str:
        return sse({"error": {"message": message, "code": 500}})

    def chat(self, body: dict[str, Any]) -> Answer:
        if body["model"] not in self.model_names:
            return self.error(
                404, f"The model {body['model']} does not exist", code="model_not_found"
            )
        used = {*body, body.get("response_format", {}).get("type")}
        if refused := sorted(self.refuses & used):
            named = refused[0] if refused[0] in body else "response_format"
            message = f"Unsupported parameter: '{named}' is not supported with this model."
            return self.error(400, message, param=named if self.says_param else None)
        return self.reply(GOETHE)

    @staticmethod
    def as_stream(answer: Answer, body: dict[str, Any]) -> Answer:
        choices = answer.body.get("choices") if isinstance(answer.body, dict) else None
        message = choices[0].get("message") if choices else None
        if not message:
            return answer
        usage = (
            answer.body.get("usage")
            if body.get("stream_options", {}).get("include_usage")
            else None
        )
        events = openai_events(message, choices[0].get("finish_reason"), usage)
        return replace(answer, body=sse(*events, "[DONE]"), headers=EVENT_STREAM | answer.headers)

    def listing(self) -> Answer:
        return Answer({"object": "list", "data": [{"id": name} for name in self.model_names]})


class OllamaServer(ModelServer):
    """Refuses the kinds of ``format`` in ``refuses``: "schema", "json"."""

    kind, model, chat_path = "ollama", OllamaModel, "/api/chat"
    refusal_status = 500
    streams_unasked = True

    @staticmethod
    def reply(content: str, finish: str = "stop", **changes: Any) -> Answer:
        message = {"role": "assistant", "content": content}
        end = {"done": True, "done_reason": finish, "prompt_eval_count": 12, "eval_count": 5}
        return Answer({"model": "tiny", "message": message, **end, **changes})

    @staticmethod
    def error(
        status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        return Answer({"error": message}, status, headers or {})

    @staticmethod
    def beginning(text: str) -> str:
        return ndjson(*ollama_parts(OllamaServer.reply(text).body)[:-1])

    @staticmethod
    def said(message: str) -> str:
        return ndjson({"error": message})

    def chat(self, body: dict[str, Any]) -> Answer:
        if body["model"] not in self.model_names:
            return self.error(404, f"model '{body['model']}' not found")
        form = body.get("format")
        if form is not None and ("json" if form == "json" else "schema") in self.refuses:
            return self.error(self.refusal_status, "invalid JSON schema in format")
        return self.reply(GOETHE)

    @staticmethod
    def as_stream(answer: Answer, body: dict[str, Any]) -> Answer:
        if not isinstance(answer.body, dict) or "message" not in answer.body:
            return answer
        return replace(answer, body=ndjson(*ollama_parts(answer.body)))

    def listing(self) -> Answer:
        return Answer({"models": [{"model": name, "name": name} for name in self.model_names]})


EVENT_STREAM = {"Content-Type": "text/event-stream"}


def openai_events(message: dict[str, Any], finish: str | None, usage: Any) -> list[dict[str, Any]]:
    """Return the chunks of a reply: its role, its text in pieces, finish reason, and usage."""
    text = [
        {name: piece}
        for name in ("content", "refusal")
        for piece in _pieces(message.get(name) or "")
    ]
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        for number, piece in enumerate(_pieces(arguments)):
            named = {"index": 0} | (call if number == 0 else {})
            delta = {**named, "function": {**named.get("function", {}), "arguments": piece}}
            text.append({"tool_calls": [delta]})
    chunks = [
        {"model": "tiny-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in ({"role": "assistant"}, *text)
    ]
    last = {"model": "tiny-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return [*chunks, last, {"model": "tiny-1", "choices": [], "usage": usage}]


def ollama_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a reply: its text in pieces, then the end with the counts."""
    messages = [
        {"role": "assistant", "content": piece} for piece in _pieces(body["message"]["content"])
    ]
    parts = [{"model": "tiny", "message": message, "done": False} for message in messages]
    return [*parts, {**body, "message": {"role": "assistant", "content": ""}}]


def sse(*events: Any) -> str:
    """Return a stream of events. Text is sent as it is."""
    texts = (
        event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        for event in events
    )
    return "".join(f"data: {text}\n\n" for text in texts)


def ndjson(*parts: dict[str, Any]) -> str:
    return "".join(json.dumps(part) + "\n" for part in parts)


def _pieces(text: Any) -> list[Any]:
    if not isinstance(text, str):  # content in parts goes as it is
        return [text]
    return [text[at : at + 8] for at in range(0, len(text), 8)]


class _QuietServer(ThreadingHTTPServer):
    request_queue_size = 128
    connections = 0

    def process_request(self, *connected: Any) -> None:
        self.connections += 1
        super().process_request(*connected)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that left early are part of the tests."""


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open, as those of real servers do

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.answer(Seen(self.path, headers, body))
            server.closing.wait(answer.delay_s)
            if answer.hang_up or answer.end == "silence":
                self._end(answer)
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            withheld = 0 if answer.end == "whole" else 1_000_000
            self.send_header("Content-Length", str(len(answer.payload) + withheld))
            self.end_headers()
            self.wfile.write(answer.payload[: answer.sent])
            self._end(answer)

        def _end(self, answer: Answer) -> None:
            self.close_connection |= answer.end != "whole" or answer.sent is not None
            if answer.end == "reset":
                self.connection.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                os.close(self.connection.detach())  # at once, without a farewell
            elif answer.end in ("stall", "silence"):
                self._wait_until_left()
            try:
                while answer.end == "drip" and not server.closing.wait(0.01):
                    self.wfile.write(b": still at it\n\n")
            except OSError:
                server.left.set()

        def _wait_until_left(self) -> None:
            self.connection.settimeout(0.1)
            while not server.closing.is_set():
                with suppress(TimeoutError):
                    if self.connection.recv(1) == b"":
                        server.left.set()
                        return

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler
