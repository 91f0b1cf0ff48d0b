"""Model servers on loopback that speak the protocols of OpenAI and Ollama, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kgwb.llm import ChatRequest, Message

SCHEMA = {
    "type": "object",
    "title": "Reply",
    "properties": {"answer": {"type": "string", "default": ""}},
}


def ask(**changes: Any) -> ChatRequest:
    """A small request with a schema."""
    defaults: dict[str, Any] = {
        "task": "chatty_kg/qir",
        "messages": (Message("system", "Answer in JSON."), Message("user", "Who wrote Faust?")),
        "schema": SCHEMA,
        "timeout_s": 5.0,
    }
    return ChatRequest(**{**defaults, **changes})


@dataclass(frozen=True)
class Answer:
    """What goes back for one request."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hang_up: bool = False

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
    """Gives the answers in ``queue`` first, then ``always`` if set, then what its protocol says."""

    prefix = ""
    chat_path = ""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.queue: deque[Answer] = deque()
        self.always: Answer | None = None
        self.model_names = ["tiny", "small"]
        self.refuses: set[str] = set()
        self.closing = threading.Event()
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}{self.prefix}"

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
            if self.queue:
                return self.queue.popleft()
            return self.always or self.chat(seen.body)
        return self.listing()

    def chat(self, body: dict[str, Any]) -> Answer:
        raise NotImplementedError

    def listing(self) -> Answer:
        raise NotImplementedError


class OpenAIServer(ModelServer):
    """Refuses the request fields and response formats in ``refuses``, in words like OpenAI's."""

    prefix = "/v1"
    chat_path = "/chat/completions"
    says_param = True

    def chat(self, body: dict[str, Any]) -> Answer:
        if body["model"] not in self.model_names:
            return openai_error(404, f"The model {body['model']} does not exist", code="model_not_found")
        if refused := sorted(self.refuses & set(_used(body))):
            named = refused[0] if refused[0] in body else "response_format"
            message = f"Unsupported parameter: '{named}' is not supported with this model."
            return openai_error(400, message, param=named if self.says_param else None)
        return openai_reply('{"answer": "Goethe"}')

    def listing(self) -> Answer:
        return Answer({"object": "list", "data": [{"id": name} for name in self.model_names]})


class OllamaServer(ModelServer):
    """Refuses the kinds of ``format`` in ``refuses``: "schema", "json"."""

    chat_path = "/api/chat"
    refusal_status = 500

    def chat(self, body: dict[str, Any]) -> Answer:
        if body["model"] not in self.model_names:
            return Answer({"error": f"model '{body['model']}' not found"}, 404)
        form = body.get("format")
        if form is not None and ("json" if form == "json" else "schema") in self.refuses:
            return Answer({"error": "invalid JSON schema in format"}, self.refusal_status)
        return ollama_reply('{"answer": "Goethe"}')

    def listing(self) -> Answer:
        return Answer({"models": [{"model": name, "name": name} for name in self.model_names]})


def openai_reply(content: Any, finish_reason: str = "stop", **message: Any) -> Answer:
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    return Answer(
        {"id": "c", "object": "chat.completion", "model": "tiny-1", "choices": [choice], "usage": usage}
    )


def openai_error(
    status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Answer:
    return Answer({"error": {"message": message, "type": "error", **more}}, status, headers or {})


def ollama_reply(content: str, **changes: Any) -> Answer:
    body = {
        "model": "tiny",
        "message": {"role": "assistant", "content": content},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 12,
        "eval_count": 5,
    }
    return Answer({**body, **changes})


def _used(body: dict[str, Any]) -> Iterable[str]:
    yield from body
    if "response_format" in body:
        yield body["response_format"]["type"]


class _QuietServer(ThreadingHTTPServer):
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
            if answer.hang_up:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.payload)))
            self.end_headers()
            self.wfile.write(answer.payload)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler
