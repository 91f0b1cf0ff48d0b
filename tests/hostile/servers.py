"""A server on loopback that keeps every byte that arrives, and answers what it is told to."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Said = tuple[int, dict[str, str], Any]
"""Status, headers and body (JSON data, text, bytes, or an iterator of bytes) of an answer."""


def said(
    body: Any, kind: str = "application/sparql-results+json", status: int = 200, **headers: str
) -> Said:
    """An answer of a kind, by default an endpoint's."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": kind, **named}, body


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def fields(self) -> dict[str, list[str]]:
        """The parameters of address and body."""
        query = urlsplit(self.path).query
        form = self.body if "form-urlencoded" in self.headers.get("Content-Type", "") else ""
        return parse_qs("&".join(filter(None, (query, form))), keep_blank_values=True)

    @property
    def query(self) -> str:
        """The SPARQL query, empty if there is none."""
        return self.fields.get("query", [""])[0]

    @property
    def data(self) -> Any:
        """The body's JSON data, None if it is no object."""
        return json.loads(self.body) if self.body.startswith("{") else None

    def __str__(self) -> str:
        return "\n".join(
            (f"{self.method} {self.path}", *map(": ".join, self.headers.items()), self.body)
        )


class Server:
    """``answer`` says what goes back for a request; ``seen`` is what came."""

    protocol = "HTTP/1.0"
    software = "test"
    """What it calls itself."""

    def __init__(self, answer: Callable[[Seen], Any]) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen on a free port, or on that of before."""
        self.closing = threading.Event()
        self._http = _Http(("127.0.0.1", self.port), _handler(self))
        self.port = self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def wrap(self, context: ssl.SSLContext) -> None:
        """Accept connections over TLS only."""
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)

    def stop(self) -> None:
        """From now on connections are refused."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def respond(self, handler: BaseHTTPRequestHandler, seen: Seen) -> None:
        status, headers, said = self.answer(seen)
        if not isinstance(said, Iterator):
            text = said if isinstance(said, str | bytes) else json.dumps(said)
            payload = text.encode() if isinstance(text, str) else text
            said, headers = [payload], {"Content-Length": str(len(payload)), **headers}
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        for part in said:
            handler.wfile.write(part)


def no_rows(seen: Seen) -> Said:
    """An endpoint's answer to any query: nothing found."""
    told = " ".join(seen.fields.get("query", []))
    kind = {"Content-Type": "application/sparql-results+json"}
    if "CONSTRUCT" in told or "DESCRIBE" in told:
        return 200, {"Content-Type": "text/turtle"}, ""
    return 200, kind, {"head": {"vars": []}, "results": {"bindings": []}, "boolean": False}


@contextmanager
def serving(answer: Callable[[Seen], Said] = no_rows) -> Iterator[Server]:
    """A server on a free port, ended on leaving."""
    server = Server(answer)
    try:
        yield server
    finally:
        server.stop()


class _Http(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are part of the tests."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = server.protocol

        def do_GET(self) -> None:
            self.close_connection = True
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            seen = Seen(self.command, self.path, dict(self.headers), body)
            server.seen.append(seen)
            server.respond(self, seen)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

        def version_string(self) -> str:
            return server.software

        def log_message(self, *_: Any) -> None:
            """Nothing on standard error."""

    return Handler
