"""Every benchmark of speed and memory: ``make bench``. Figures are set against something timed in the same run.

    python benchmarks/run.py [part ...]

The parts are those of PARTS; without any, all. The table goes to build/bench.json too, and the curves of what
grows to build/bench_growth.html and build/bench_lookups.svg.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import collecting
import graphs
import growth
import load
import lookups
import memory
import opening
import overhead
import pipeline
import retrying
import throughput
import wrapped
from table import Row, save, seconds_rows, show

BUILD = Path(__file__).parent.parent / "build"
QUESTIONS = 200


def _graphs() -> list[Row]:
    file = graphs.metaqa()
    if not file.exists():
        print(
            "MetaQA is not here (KGWB_DATA names its folder): the figures for a large graph are left out."
        )
        return []
    return [
        *seconds_rows(f"opening {file.name}", graphs.opening(file)),
        *seconds_rows(f"survey, {file.name}", graphs.surveys(file)),
        *seconds_rows(f"label search, {file.name}", graphs.label_search(file)),
        *seconds_rows(f"label search, {file.name}", _virtuoso(graphs.virtuoso_search(file))),
    ]


def _virtuoso(figures: dict[str, float]) -> dict[str, float]:
    """With the ratio under the full name of what it is of."""
    ratio = "FILTER / full text"
    return {f"Virtuoso {name}" if name == ratio else name: value for name, value in figures.items()}


def _overhead() -> list[Row]:
    given = pipeline.recorded(QUESTIONS)
    rows = [*pipeline.pipeline(given), *pipeline.importing(), *overhead.recording_cost(given)]
    if find_spec("langgraph"):
        return rows + overhead.overhead(given)
    print(
        "LangGraph is not installed (pip install 'kgwb[bench]'): the figures beside it are left out."
    )
    return rows


def _growth() -> list[Row]:
    searches, lines = growth.search_growth()
    questions, more = growth.overhead_growth()
    growth.draw(lines, more, BUILD / "bench_growth.html")
    return searches + questions


PARTS: dict[str, Callable[[], list[Row]]] = {
    "graphs": _graphs,
    "overhead": _overhead,
    "throughput": lambda: throughput.throughput(pipeline.recorded(20)),
    "load": load.many_at_once,
    "opening": opening.opening_in_pairs,
    "lookups": lambda: lookups.lookup_growth(2_000_000),
    "linking": lookups.shared_words,
    "memory": memory.select_memory,
    "retry": retrying.retrying,
    "growth": _growth,
    "wrapped": wrapped.wrapped_overhead,
    "collecting": collecting.collecting,
}


def main() -> None:
    """Prints the table, and how long each part took."""
    chosen = sys.argv[1:] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        sys.exit(f"there is no {', '.join(sorted(unknown))}: name some of {', '.join(PARTS)}")
    rows: list[Row] = []
    for name in chosen:
        started = time.perf_counter()
        rows += PARTS[name]()
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
    show(rows)
    save(rows, BUILD / "bench.json")


if __name__ == "__main__":
    main()
