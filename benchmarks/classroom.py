"""A class at work at once on a JupyterHub: seconds until each student sees something, and what it takes.

    KGWB_HUB_TOKEN=... python benchmarks/classroom.py http://127.0.0.1:8000 [users]

The token may create users, start their servers and enter them (docs/how-to/class-server.md). Each user's server is
started, then notebooks/00_start.ipynb is executed in a kernel of that user, all users at once and without a
pause, through the hub's proxy. Memory and processor time are read while all kernels are there, so the hub
must run on this machine, its servers as processes. Users and servers are removed afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from table import Row, show
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "00_start.ipynb"
FIRST_ANSWER = 2
"""The cell of the notebook that asks the first question."""
HEADERS = {"Authorization": f"token {os.environ.get('KGWB_HUB_TOKEN', '')}"}
COSTS = {"processor time": "s", "resident memory": "MB", "proportional memory": "MB"}
PATIENT = {"request_timeout": 300, "connect_timeout": 300}


async def ask(hub: str, method: str, path: str) -> Any:
    """What the hub, or a user's server behind it, answers."""
    body = "{}" if method == "POST" else None
    request = HTTPRequest(f"{hub}/{path}", method, HEADERS, body, **PATIENT)
    reply = await AsyncHTTPClient().fetch(request)
    return json.loads(reply.body) if reply.body else None


async def start(hub: str, user: str) -> float:
    """Start a user's server; the seconds until it can be used. Raises RuntimeError if the hub gives up."""
    started = time.perf_counter()
    await ask(hub, "POST", f"hub/api/users/{user}/server")
    while server := (await ask(hub, "GET", f"hub/api/users/{user}"))["servers"].get(""):
        if server["ready"]:
            return time.perf_counter() - started
        await asyncio.sleep(0.5)
    raise RuntimeError(f"the hub gave up starting the server of {user}: its log says why")


async def remove(hub: str, user: str) -> None:
    """Stop a user's server and, when it has ended, remove the user."""
    await ask(hub, "DELETE", f"hub/api/users/{user}/server")
    while (await ask(hub, "GET", f"hub/api/users/{user}"))["servers"]:
        await asyncio.sleep(0.5)
    await ask(hub, "DELETE", f"hub/api/users/{user}")


async def work(hub: str, user: str) -> tuple[float, float]:
    """Execute the notebook in a new kernel; the seconds until the first answer, and until the last cell."""
    cells = [
        cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    started, first = time.perf_counter(), 0.0
    kernel = (await ask(hub, "POST", f"user/{user}/api/kernels"))["id"]
    address = f"{hub.replace('http', 'ws', 1)}/user/{user}/api/kernels/{kernel}/channels"
    socket = await websocket_connect(HTTPRequest(address, headers=HEADERS, **PATIENT))
    for number, cell in enumerate(cells, 1):
        await execute(socket, "".join(cell["source"]))
        if number == FIRST_ANSWER:
            first = time.perf_counter() - started
    return first, time.perf_counter() - started


async def execute(socket: Any, code: str) -> None:
    """Execute a cell and wait until the kernel is idle again. Raises RuntimeError with the cell's error."""
    header = {
        "msg_id": uuid4().hex,
        "msg_type": "execute_request",
        "session": "",
        "username": "",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    message = {
        "header": header,
        "content": content,
        "channel": "shell",
        "parent_header": {},
        "metadata": {},
    }
    await socket.write_message(json.dumps(message))
    while reply := json.loads(await socket.read_message()):
        if reply["parent_header"].get("msg_id") == header["msg_id"]:
            if reply["msg_type"] == "error":
                raise RuntimeError("\n".join(reply["content"]["traceback"]))
            if reply["content"].get("execution_state") == "idle":
                return


def processes(users: list[str]) -> Iterator[tuple[str, float, float, float]]:
    """Of each process of these users: "kernel" or "server", its processor seconds, RSS and PSS in MB."""
    names = {f"JUPYTERHUB_USER={user}".encode() for user in users}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if names.isdisjoint((process / "environ").read_bytes().split(b"\0")):
                continue
            rollup = (process / "smaps_rollup").read_text().splitlines()[1:]
            ticks = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
            kind = "kernel" if b"ipykernel" in (process / "cmdline").read_bytes() else "server"
        except OSError:  # it ended, or is of somebody else
            continue
        size = {line.split()[0]: int(line.split()[1]) / 1024 for line in rollup}
        yield kind, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), size["Rss:"], size["Pss:"]


async def classroom(hub: str, count: int) -> list[Row]:
    """The figures of a class of so many users."""
    users = [f"trial-{number}" for number in range(1, count + 1)]
    for user in users:
        await ask(hub, "POST", f"hub/api/users/{user}")
    try:
        servers = await asyncio.gather(*(start(hub, user) for user in users))
        answers, notebooks = zip(
            *await asyncio.gather(*(work(hub, user) for user in users)), strict=True
        )
        costs = list(processes(users))
    finally:
        await asyncio.gather(*(remove(hub, user) for user in users))
    waits = {
        "server ready": servers,
        "kernel and first answer": answers,
        "whole notebook": notebooks,
    }
    rows = [Row("users at once", count, "")]
    rows += [Row(f"{name}, slowest", max(seconds), "s") for name, seconds in waits.items()]
    for kind in ("server", "kernel"):
        of_kind = [cost for name, *cost in costs if name == kind]
        assert len(of_kind) == count, f"{len(of_kind)} processes of {count} users are a {kind}"
        for what, values in zip(COSTS, zip(*of_kind, strict=True), strict=True):
            rows.append(Row(f"a {kind}'s {what}", sum(values) / count, COSTS[what]))
    return [*rows, Row("proportional memory of all", sum(cost[-1] for cost in costs), "MB")]


if __name__ == "__main__":
    AsyncHTTPClient.configure(None, max_clients=1000)
    show(asyncio.run(classroom(sys.argv[1].rstrip("/"), int((sys.argv[2:] or ["10"])[0]))))
