"""How much memory the reply of an endpoint takes.

    python benchmarks/memory.py

A server on loopback sends a result of 31 MB, whatever it is asked. A process of its own reads it, so
that the peak of its memory is that of one query.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from table import Row, show

REPLY_BYTES = 31_000_000
WANTED_MB = 200
CLIENT = """
import re, sys
from pathlib import Path
from kgwb.kg import QueryLimits
from kgwb.kg.endpoint import Endpoint

def read_mb(name):
    # Not from the module resource, whose peak may be that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\\s+(\\d+) kB", status)[1]) / 1000

kg = Endpoint(sys.argv[1], dialect="generic", limits=QueryLimits(row_limit=int(sys.argv[2])))
kg.select("SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 1")
before = read_mb("VmRSS")
result = kg.select("SELECT ?s ?p ?o { ?s ?p ?o }")
print(len(result.rows), read_mb("VmHWM") - before)
"""
"""Prints the number of rows, and the MB that the memory has grown by at its peak (on Linux)."""


def select_memory() -> list[Row]:
    """Return the MB that a result of REPLY_BYTES takes, if few of its rows are kept and if all are."""
    body = make_reply(REPLY_BYTES)
    rows = []
    with _Server(body) as server:
        for row_limit in (10_000, 1_000_000):
            command = (sys.executable, "-c", CLIENT, server.url, str(row_limit))
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            count, megabytes = printed.split()
            what = f"a SELECT reply of {len(body) / 1e6:.0f} MB, {int(count):,} rows kept"
            rows.append(Row(what, float(megabytes), "MB", value_most=WANTED_MB))
    return rows


def make_reply(size: int) -> bytes:
    """Return a SELECT result in JSON with about this many bytes, of short IRIs and literals."""
    head = json.dumps({"vars": ["s", "p", "o"]})
    bindings: list[str] = []
    total = 0
    while total < size:
        number = len(bindings)
        binding = {
            "s": {"type": "uri", "value": f"http://example.org/thing/{number}"},
            "p": {"type": "uri", "value": f"http://example.org/p{number % 50}"},
            "o": {"type": "literal", "value": f"value {number}"},
        }
        bindings.append(json.dumps(binding))
        total += len(bindings[-1]) + 1
    return f'{{"head":{head},"results":{{"bindings":[{",".join(bindings)}]}}}}'.encode()


class _Server(ThreadingHTTPServer):
    """Sends one body for every request; a query with "LIMIT 1" gets the result without rows."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/sparql"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    def server_close(self) -> None:
        self.shutdown()
        self._thread.join()
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send the body of the server."""
        is_small = self.path.endswith("LIMIT+1") or "LIMIT%201&" in self.path
        body = make_reply(0) if is_small else self.server.body
        self.send_response(200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


if __name__ == "__main__":
    show(select_memory())
