"""A graph server and a model server on loopback that answer rightly until they are told to misbehave."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyoxigraph

TEN_MB = 10_000_000


@dataclass(frozen=True)
class Asked:
    """One request: a SPARQL query, or the JSON body of a chat."""

    path: str
    query: str
    body: Any


@dataclass(frozen=True)
class Right:
    """The right answer to it."""

    kind: str
    body: bytes


Fault = Callable[[BaseHTTPRequestHandler, Right, "Server"], None]


class Server:
    """Gives ``answer(asked)``, or what ``fault`` does instead; ``seen`` is what was asked."""

    def __init__(self, answer: Callable[[Asked], Right], path: str) -> None:
        self.answer, self.path = answer, path
        self.fault: Fault | None = None
        self.hit = lambda asked: True
        """Which requests the fault befalls."""
        self.seen: list[Asked] = []
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        self.closing = threading.Event()
        self._http = _Quiet(("127.0.0.1", self.port), _handler(self))
        self.port = self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        """From now on connections are refused."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def serving(*servers: Server) -> Iterator[None]:
    try:
        yield
    finally:
        for server in servers:
            server.stop()


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that left early are part of the tests."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.close_connection = True
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            form = parse_qs(urlsplit(self.path).query if self.command == "GET" else sent)
            body = json.loads(sent) if sent.startswith("{") else None
            asked = Asked(self.path, form.get("query", [""])[0], body)
            server.seen.append(asked)
            right = server.answer(asked)
            if server.fault is not None and server.hit(asked):
                server.fault(self, right, server)
            else:
                send(self, right.kind, right.body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler


# --- right answers


def graph_server(store: pyoxigraph.Store) -> Server:
    """SPARQL over a store."""

    def answer(asked: Asked) -> Right:
        result = store.query(asked.query)
        if isinstance(result, pyoxigraph.QueryTriples):
            body = result.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES)
            return Right("application/n-triples", body or b"")
        body = result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        return Right("application/sparql-results+json", body or b"")

    return Server(answer, "/sparql")


def model_server(protocol: str, reply: Callable[[dict[str, Any]], str]) -> Server:
    """``reply`` to the body of a chat, in the protocol "openai" or "ollama"."""
    whole = {"openai": _openai, "ollama": _ollama}[protocol]

    def answer(asked: Asked) -> Right:
        return whole(reply(asked.body), asked.body) if asked.body else Right("application/json", b"{}")

    return Server(answer, "/v1" if protocol == "openai" else "")


def _openai(text: str, body: dict[str, Any], finish: str = "stop") -> Right:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "c", "model": "tiny", "created": 0}
    if not body.get("stream"):
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": finish, "message": message}
        data = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Right("application/json", json.dumps(data).encode())
    parts: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]} for part in _cut(text)
    ]
    parts.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
    lines = [json.dumps({**head, "object": "chat.completion.chunk", **part}) for part in parts]
    return Right("text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode())


def _ollama(text: str, body: dict[str, Any], finish: str = "stop") -> Right:
    counts = {"done_reason": finish, "prompt_eval_count": 1, "eval_count": 1}
    pieces = _cut(text) if body.get("stream") else [text]
    lines = [
        {"model": "tiny", "message": {"role": "assistant", "content": piece}, "done": False}
        for piece in pieces
    ]
    lines[-1] |= {"done": True, **counts}
    kind = "application/x-ndjson" if body.get("stream") else "application/json"
    return Right(kind, "\n".join(map(json.dumps, lines)).encode())


def _cut(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


# --- faults


def send(
    handler: BaseHTTPRequestHandler,
    kind: str,
    body: bytes,
    *,
    length: int = 0,
    status: int = 200,
    state: str = "",
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    if state:
        handler.send_header("X-SQL-State", state)
    handler.send_header("Content-Length", str(length or len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def reset(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def slow(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    server.closing.wait(60)


def trickling_head(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Padding: ")
    _trickle(handler, server)


def trickling_body(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", right.kind)
    handler.end_headers()
    _trickle(handler, server)


def trickling_error(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.send_response(500)
    handler.send_header("Content-Type", "text/plain")
    handler.end_headers()
    _trickle(handler, server)


def _trickle(handler: BaseHTTPRequestHandler, server: Server) -> None:
    while not server.closing.wait(0.05):
        handler.wfile.write(b" ")


def cut(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, right.kind, right.body[: len(right.body) // 2], length=len(right.body))


def broken_chunk(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", right.kind)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    half = right.body[: len(right.body) // 2]
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(half), half))


def html(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, "text/html", b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>")


def error_inside(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, "application/json", b'{"error": "out of memory"}')


def error_in_words(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, "text/plain", b"Virtuoso 42000 Error The estimated execution time exceeds the limit")


def error_later(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    line = b'\ndata: {"error": {"message": "out of memory"}}\n\n' if "event" in right.kind else b""
    line = line or b'\n{"error": "out of memory"}\n'
    send(handler, right.kind, right.body[: len(right.body) // 2] + line)


def partial(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, right.kind, right.body, status=206)


def partial_state(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, right.kind, right.body, state="S1TAT")


def cut_by_length(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, right.kind, right.body.replace(b'"stop"', b'"length"').replace(b'\\"', b""))


def big(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    """The right answer with 10 MB more: rows and triples again and again, or letters of the reply."""
    send(handler, right.kind, _swollen(right))


def _swollen(right: Right) -> bytes:
    if "triples" in right.kind:
        return right.body * (TEN_MB // len(right.body))
    if "sparql" not in right.kind:
        return right.body.replace(b'"content": "', b'"content": "' + b"x" * TEN_MB, 1)
    data = json.loads(right.body)
    if "boolean" in data or not data["results"]["bindings"]:
        return json.dumps({**data, "comment": "x" * TEN_MB}).encode()
    data["results"]["bindings"] *= TEN_MB // len(right.body)
    return json.dumps(data).encode()


def endless(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", right.kind)
    handler.end_headers()
    while not server.closing.is_set():
        handler.wfile.write(b" " * 1_000_000)


def broken_iri(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, right.kind, right.body.replace(b"http://example.org/", b"http://example.org/\xff"))


def broken_text(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    """No UTF-8 in what the model writes, or in a literal."""
    body = right.body
    for before in (b'"content": "', b'"type":"literal","value":"'):
        body = body.replace(before, before + b"\xff")
    send(handler, right.kind, body)
