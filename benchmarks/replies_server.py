"""A model server on loopback that answers as recorded; a process of its own, so that it shares no lock.

    python replies_server.py REPLIES.json [SECONDS]

It speaks OpenAI's chat protocol, whole or streamed, keeps connections open, and answers by the messages alone
after SECONDS; messages that nobody recorded get a 500. The first line it prints is its address. It ends when its
standard input does.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from model_servers import OpenAIServer


class RepliesServer(ThreadingHTTPServer):
    """Answers as recorded."""

    request_queue_size = 128

    def __init__(self, replies: dict[str, str], delay_s: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.delay_s = replies, delay_s

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is none of its business."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: RepliesServer
    protocol_version = "HTTP/1.1"  # connections stay open, as those of real servers do
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.replies.get(key_of(body["messages"]))
        time.sleep(self.server.delay_s)
        if reply is None:
            said = OpenAIServer.error(500, f"nobody recorded {body['messages']!r}")
        else:
            said = OpenAIServer.reply(reply)
        if body.get("stream"):
            said = OpenAIServer.as_stream(said, body)
        kind = said.headers.get("Content-Type", "application/json")
        self._send(said.status, kind, said.payload)

    def _send(self, status: int, kind: str, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


def key_of(messages: list[dict[str, str]]) -> str:
    """What a reply is found by: roles and contents."""
    return json.dumps(
        [[message["role"], message["content"]] for message in messages], ensure_ascii=False
    )


def main() -> None:
    """Serves until standard input ends."""
    socketserver.ThreadingMixIn.daemon_threads = True
    replies = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with RepliesServer(replies, float(sys.argv[2]) if len(sys.argv) > 2 else 0.0) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
