"""A graph server and a model server on loopback that answer rightly until they are told to misbehave."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pyoxigraph
import rdflib
from hostile import servers
from hostile.servers import Seen
from model_servers import OllamaServer, OpenAIServer
from small import FILMS

from kgwb.kg.local import LocalGraph


@dataclass(frozen=True)
class Right:
    """The right answer to a SPARQL query or a chat."""

    kind: str
    body: bytes


Fault = Callable[[BaseHTTPRequestHandler, Right, "Server"], None]


class Server(servers.Server):
    """Gives ``answer(seen)``, or what ``fault`` does instead."""

    protocol = "HTTP/1.1"

    def __init__(self, answer: Callable[[Seen], Right], path: str) -> None:
        self.path = path
        self.fault: Fault | None = None
        self.hit = lambda seen: True
        """Which requests the fault befalls."""
        super().__init__(answer)

    @property
    def url(self) -> str:
        return super().url + self.path

    def respond(self, handler: BaseHTTPRequestHandler, seen: Seen) -> None:
        right = self.answer(seen)
        if self.fault is not None and self.hit(seen):
            self.fault(handler, right, self)
        else:
            send(handler, right)


@contextmanager
def serving(*servers: Server) -> Iterator[None]:
    try:
        yield
    finally:
        for server in servers:
            server.stop()


# --- right answers


def graph_server() -> Server:
    """SPARQL over the films."""
    store = LocalGraph.from_rdflib(rdflib.Graph().parse(data=FILMS, format="turtle")).store

    def answer(seen: Seen) -> Right:
        result = store.query(seen.query)
        if isinstance(result, pyoxigraph.QueryTriples):
            body = result.serialize(format=pyoxigraph.RdfFormat.N_TRIPLES)
            return Right("application/n-triples", body or b"")
        body = result.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        return Right("application/sparql-results+json", body or b"")

    return Server(answer, "/sparql")


def model_server(protocol: str, reply: Callable[[dict[str, Any]], str]) -> Server:
    """``reply`` to the body of a chat, in the protocol "openai" or "ollama"."""
    api = {"openai": OpenAIServer, "ollama": OllamaServer}[protocol]

    def answer(seen: Seen) -> Right:
        if not seen.data:
            return Right("application/json", b"{}")
        said = api.reply(reply(seen.data))
        if seen.data.get("stream"):
            said = api.as_stream(said, seen.data)
        return Right(said.headers.get("Content-Type", "application/json"), said.payload)

    return Server(answer, "/v1" if protocol == "openai" else "")


def large_graph(folder: Path) -> Path:
    """A file of 15,000 labels, large enough to be kept in the cache folder."""
    path, label = folder / "large.nt", "<http://www.w3.org/2000/01/rdf-schema#label>"
    path.write_text(
        "".join(f'<urn:v{n}> {label} "vertex {n} of the large graph" .\n' for n in range(15_000))
    )
    return path


# --- faults


def send(handler: BaseHTTPRequestHandler, right: Right, status: int = 200, **headers: str) -> None:
    begin(handler, right.kind, status, **{"Content_Length": str(len(right.body)), **headers})
    handler.wfile.write(right.body)


def begin(handler: BaseHTTPRequestHandler, kind: str, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content_Type": kind, **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def reset(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def slow(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    server.closing.wait(60)


def trickling_head(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Padding: ")
    _trickle(handler, server)


def trickling_body(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    begin(handler, right.kind)
    _trickle(handler, server)


def _trickle(handler: BaseHTTPRequestHandler, server: Server) -> None:
    while not server.closing.wait(0.05):
        handler.wfile.write(b" ")


def endless(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    begin(handler, right.kind)
    while not server.closing.is_set():
        handler.wfile.write(b" " * 1_000_000)


def cut(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
    send(handler, Right(right.kind, _half(right.body)), Content_Length=str(len(right.body)))


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _wrong(change: Callable[[Right], Right], **options: Any) -> Fault:
    """Another body than the right one, or other headers."""

    def fault(handler: BaseHTTPRequestHandler, right: Right, server: Server) -> None:
        send(handler, change(right), **options)

    return fault


def _error_later(right: Right) -> Right:
    event = b"data: " if "event" in right.kind else b""
    error = b'{"error": {"message": "out of memory"}}\n' if event else b'{"error": "out of memory"}'
    return Right(right.kind, _half(right.body) + b"\n" + event + error + b"\n")


html = _wrong(
    lambda _: Right("text/html", b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>")
)
error_inside = _wrong(lambda _: Right("application/json", b'{"error": "out of memory"}'))
error_later = _wrong(_error_later)
partial = _wrong(lambda right: right, status=206)
partial_state = _wrong(lambda right: right, X_SQL_State="S1TAT")
