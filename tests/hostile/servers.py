"""A server on loopback that keeps every byte that arrives, and answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Said = tuple[int, dict[str, str], Any]
"""Status, headers and body (JSON data, text, bytes, or an iterator of bytes) of an answer."""


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

    def __str__(self) -> str:
        return "\n".join((f"{self.method} {self.path}", *map(": ".join, self.headers.items()), self.body))


@dataclass
class Server:
    """``answer`` says what goes back for a request; ``seen`` is what came."""

    answer: Callable[[Seen], Said]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""
    software: str = "test"
    """What it calls itself."""


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
    made = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            seen = Seen(self.command, self.path, dict(self.headers), body)
            made.seen.append(seen)
            status, headers, said = made.answer(seen)
            if isinstance(said, Iterator):
                self.stream(status, headers, said)
                return
            payload = (
                said
                if isinstance(said, bytes)
                else (said if isinstance(said, str) else json.dumps(said)).encode()
            )
            self.send_response(status)
            for name, value in {"Content-Length": str(len(payload)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

        def stream(self, status: int, headers: dict[str, str], parts: Iterator[bytes]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # whoever asked has left
                for part in parts:
                    self.wfile.write(part)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

        def version_string(self) -> str:
            return made.software

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield made
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
