"""What the tests of traces share: the spans of a file, and a server that takes traces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

DATA = Path(__file__).parent / "traces"


def spans_of_file(path: Path) -> list[dict[str, Any]]:
    """The spans of a file of OTLP JSON, each with its attributes as a dictionary."""
    spans = []
    for resource in json.loads(path.read_text())["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                attributes = {each["key"]: each["value"] for each in span["attributes"]}
                span["attributes"] = {
                    name: next(iter(value.values())) for name, value in attributes.items()
                }
                spans.append(span)
    return spans


def of_kind(spans: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [span for span in spans if span["attributes"]["openinference.span.kind"] == kind]


class Receiver(BaseHTTPRequestHandler):
    """Takes traces as OTLP in protobuf, as collectors do."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def receiver(status: int = 200) -> Iterator[Any]:
    """A server on loopback; ``received`` has path, headers and body of each request."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received = []  # type: ignore[attr-defined]
    server.status = status  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def parsed(body: bytes) -> list[Any]:
    """The spans of a request, as protobuf reads them."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
