"""What kgwb adds to a pipeline that is brought in, beside the same pipeline by itself.

    python benchmarks/wrapped.py

The pipelines are those of ``tests/adapt/pipelines``: one of openai and SPARQLWrapper, and a graph of LangGraph with
a loop. Their servers are on loopback; the model's server takes REPLY_S for each reply, which is less than any
real model. Both forms of a pipeline are asked in turn, each time with an empty record.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from table import Row, show

import kgwb
from kgwb.run import Run
from kgwb.run.systems import load_file, resolve_system

ADAPT_TESTS = Path(__file__).parent.parent / "tests" / "adapt"
REPLY_S = 0.05
"""How long the model's server takes for a reply."""
TIMES = 15
"""How often each form of a pipeline is asked; the median counts."""
MOST = 1.3
"""How many times as long the wrapped form may take."""
QUESTION = "Who directed Arrival?"


@contextmanager
def started_servers() -> Iterator[None]:
    """Start the servers that the pipelines ask, and tell them where these are.

    They are those of the tests, whose folder can be imported from afterwards.
    """
    sys.path += [str(ADAPT_TESTS), str(ADAPT_TESTS.parent)]
    import pipeline_scripts
    import pipeline_servers as servers
    import small

    def slow_reply(body: dict[str, Any]) -> Any:
        """Return the scripted reply after REPLY_S."""
        time.sleep(REPLY_S)
        return pipeline_scripts.reply_to(body)

    with (
        servers.chat_server(slow_reply) as chats,
        servers.sparql_endpoint(small.FILMS) as endpoint,
        tempfile.TemporaryDirectory() as folder,
    ):
        films = Path(folder) / "films.ttl"
        films.write_text(small.FILMS, encoding="utf-8")
        os.environ |= {"CHAT_URL": chats.url, "SPARQL_URL": endpoint.url, "FILMS": str(films)}
        yield


def medians(native: Callable[[], Any], wrapped: Callable[[], Any]) -> tuple[float, float]:
    """Return the median seconds of two functions, which are called in turn; the first calls warm up."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(TIMES + 1):
        for seconds, ask in zip(taken, (native, wrapped), strict=True):
            began = time.perf_counter()
            ask()
            if number:
                seconds.append(time.perf_counter() - began)
    return statistics.median(taken[0]), statistics.median(taken[1])


def row_of(name: str, native: Callable[[], Any], system_file: Path) -> Row:
    """Return the time of the wrapped form of a pipeline as a ratio to that of the native one."""
    system = resolve_system(system_file)
    kg = kgwb.open_kg(os.environ["FILMS"])

    def wrapped() -> Any:
        return Run(system, QUESTION, kg=kg, models=None).go()

    native_s, wrapped_s = medians(native, wrapped)
    ratio = wrapped_s / native_s
    return Row(name, wrapped_s * 1000, "ms", ratio, "the native form", most=MOST)


def wrapped_overhead() -> list[Row]:
    """Return the row of each pipeline; that of LangGraph only if it is installed."""
    folder = ADAPT_TESTS / "pipelines"
    rows = []
    with started_servers():
        plain = load_file(folder / "plain.py")
        rows.append(
            row_of(
                "openai and SPARQLWrapper, wrapped",
                lambda: plain.answer(QUESTION),
                folder / "plain_added.py",
            )
        )
        if find_spec("langgraph"):
            import scripted_chat

            scripted_chat.ScriptedChat.delay_s = REPLY_S
            looping = load_file(folder / "looping.py")
            rows.append(
                row_of(
                    "LangGraph with a loop, wrapped",
                    lambda: looping.app.invoke({"question": QUESTION}),
                    folder / "looping_added.py",
                )
            )
    return rows


if __name__ == "__main__":
    show(wrapped_overhead())
