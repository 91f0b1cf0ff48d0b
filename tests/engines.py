"""Real SPARQL engines on loopback: Virtuoso from Debian's package, and Oxigraph's own server.

Each is a context manager that starts one server with a folder of its own and ends it again; ``load`` puts an
RDF file into a graph of its own and returns the URL that asks this graph alone. tests/conftest.py makes
fixtures of them, benchmarks/graphs.py a comparison.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sysconfig
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
START_S = 120
INI = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
[TempDatabase]
DatabaseFile = temp.db
TransactionFile = temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DirsAllowed = {folder}
NumberOfBuffers = {buffers}
MaxDirtyBuffers = {dirty_buffers}
ThreadsPerQuery = 1
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = .
ServerThreads = 8
[SPARQL]
ResultSetMaxRows = {max_rows}
"""
"""A query has one thread: several would wait for each other where other work has the cores."""
LOAD = """
DB.DBA.RDF_OBJ_FT_RULE_ADD(null, null, 'All');
ld_dir('{folder}', '{file}', '{graph}');
rdf_loader_run();
DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ();
SELECT CONCAT('refused: ', ll_error) FROM DB.DBA.load_list WHERE ll_error IS NOT NULL;
"""
BUFFERS = 20_000
"""Pages of 8 KB that Virtuoso keeps in memory."""
PORTS = range(20_000, 32_000)
"""Where servers of tests listen: below the ports that a system gives to connections.

A connection of another test could be given the port of a server before the server has it. A
connection to a port where nobody listens yet could be given this very port, and connect to itself.
"""
_UNTRIED_PORTS = random.SystemRandom().sample(PORTS, len(PORTS))
"""In an order that is another one in each process, since tests run side by side."""
MAX_ROWS = 10_000
"""Rows that Virtuoso gives at most of any result, as in Debian's own configuration."""


def leave_out(reason: str) -> NoReturn:
    """Skip this test, or fail it where KGWB_REQUIRE_ALL=1 forbids that an engine is left out."""
    import pytest  # the benchmarks do without

    (pytest.fail if os.environ.get("KGWB_REQUIRE_ALL") == "1" else pytest.skip)(reason)
    raise AssertionError


class EngineMissingError(Exception):
    """The engine is not installed; says how to get it."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A server that is running."""

    name: str
    sparql: str
    """URL that asks everything the server holds, its own triples too."""
    put: Callable[[Path, str], None]
    loaded: dict[str, str]
    process_id: int

    def cpu_seconds(self) -> float:
        """The processor time that the server has taken. Linux only."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text(encoding="ascii").split()
        user, system = map(int, fields[13:15])
        return (user + system) / os.sysconf("SC_CLK_TCK")

    def load(self, file: Path) -> str:
        """The URL that asks the graph of this file alone; it is loaded, and indexed, the first time."""
        graph = graph_of(file)
        if self.loaded.setdefault(graph, str(file)) != str(file):
            raise ValueError(f"another {file.name} was loaded before: {self.loaded[graph]}")
        url = f"{self.sparql}?default-graph-uri={graph}"
        if not _holds_triples(url):
            self.put(file, graph)
            assert _holds_triples(url), f"nothing of {file} was loaded"
        return url


def graph_of(file: Path) -> str:
    """The IRI of the graph that a file is loaded into."""
    return f"http://graphs.example/{file.name}"


@contextmanager
def virtuoso(folder: Path, buffers: int = BUFFERS) -> Iterator[Engine]:
    """Virtuoso in an empty folder. Raises EngineMissingError where it is not installed."""
    server, client = _virtuoso_tool("virtuoso-t"), _virtuoso_tool("isql-vt", "isql-v")
    sql, http = free_port(), free_port()
    ini = INI.format(
        sql=sql,
        http=http,
        folder=folder,
        max_rows=MAX_ROWS,
        buffers=buffers,
        dirty_buffers=buffers // 2,
    )
    (folder / "virtuoso.ini").write_text(ini, encoding="utf-8")

    def put(file: Path, graph: str) -> None:
        shutil.copy(file, folder / file.name)  # Virtuoso reads from its own folder alone
        script = LOAD.format(folder=folder, file=file.name, graph=graph)
        command = [client, f"127.0.0.1:{sql}", "dba", "dba"]
        done = subprocess.run(
            command, input=script, cwd=folder, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0 and "*** Error" not in said and "refused:" not in said, said

    with running([server, "-f", "-c", "virtuoso.ini"], http, folder) as process:
        yield Engine("Virtuoso", f"http://127.0.0.1:{http}/sparql", put, {}, process.pid)


@contextmanager
def oxigraph(folder: Path) -> Iterator[Engine]:
    """Oxigraph's server in an empty folder, in the wheel `oxigraph`. Raises EngineMissingError without it."""
    binary = _oxigraph_tool()
    port = free_port()
    site = f"http://127.0.0.1:{port}"

    def put(file: Path, graph: str) -> None:
        kind = {".ttl": "text/turtle", ".nt": "application/n-triples"}[file.suffix]
        sent = urllib.request.Request(
            f"{site}/store?graph={graph}", file.read_bytes(), method="PUT"
        )
        sent.add_header("Content-Type", kind)
        urllib.request.urlopen(sent, timeout=START_S).close()

    command = [binary, "serve", "--bind", f"127.0.0.1:{port}", "--location", str(folder / "store")]
    with running(command, port, folder) as process:
        yield Engine("Oxigraph", f"{site}/query", put, {}, process.pid)


def load_into_oxigraph(folder: Path, file: Path) -> None:
    """Load a file of any size into a folder for Oxigraph's server, before the server is started with it."""
    command = [_oxigraph_tool(), "load", "--location", str(folder / "store"), "--lenient"]
    command += ["--graph", graph_of(file), "--file", str(file)]
    subprocess.run(command, check=True, capture_output=True)


def _oxigraph_tool() -> str:
    scripts = sysconfig.get_path("scripts")
    binary = shutil.which("oxigraph", path=scripts) or shutil.which("oxigraph")
    if binary is None:
        raise EngineMissingError("no oxigraph server: pip install -e '.[dev]'")
    return binary


@contextmanager
def running(
    command: list[str], port: int, folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server's process, once it listens on the port; what it says goes to ``server.log`` in the folder."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        _wait(port, process, folder)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def free_port() -> int:
    """A port of loopback that nothing listens on, another one each time."""
    while True:
        port = _UNTRIED_PORTS.pop()
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def metaqa(name: str = "metaqa.nt.gz") -> Path:
    """A file of MetaQA, in the folder KGWB_DATA or ../shared/data; it may be absent."""
    return Path(os.environ.get("KGWB_DATA") or ROOT / "../shared/data").resolve() / "metaqa" / name


def harbour() -> Path:
    """The folder of the graph harbour, beside MetaQA. Without it the test is left out, see ``leave_out``."""
    folder = metaqa().parents[1] / "harbour"
    if not folder.is_dir():
        leave_out(f"no {folder}: KGWB_DATA names the folder that holds harbour/")
    return folder


def _virtuoso_tool(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise EngineMissingError(f"no {names[0]}: install Debian's virtuoso-opensource-7-bin")


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    said = "\n".join(
        path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.log"))
    )
    raise AssertionError(f"{process.args!r} did not listen within {START_S} s:\n{said}")


def _holds_triples(url: str) -> bool:
    asked = urllib.request.Request(f"{url}&query=SELECT%20*%20%7B%3Fs%20%3Fp%20%3Fo%7D%20LIMIT%201")
    asked.add_header("Accept", "application/sparql-results+json")
    with urllib.request.urlopen(asked, timeout=START_S) as reply:
        return b'"type"' in reply.read()
