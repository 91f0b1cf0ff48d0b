"""What kgwb itself costs a question: the whole pipeline with a replayed model, and the import.

    python benchmarks/pipeline.py [questions]

The model's replies are recorded first, with ``rules``; then every question is asked again of a new run whose
model answers from that recording in microseconds. Embeddings are warm. The same SPARQL, sent to the store
without kgwb, is timed in the same run. Without MetaQA (../shared/data or KGWB_DATA) the films sample serves.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs import metaqa
from table import Row, p95, show

import kgwb
from kgwb.errors import KgwbError
from kgwb.kg import Graph
from kgwb.kg.local import LocalGraph
from kgwb.llm.base import ChatReply
from kgwb.run import Run
from kgwb.run.models import Replay
from kgwb.workbench import Workbench

HERE = Path(__file__).parent
IMPORTS = 7


@dataclass(frozen=True, slots=True)
class Recorded:
    """Questions that ``rules`` answered, and a workbench whose model gives the same replies from memory."""

    name: str
    """Of the graph."""
    runs: tuple[Run, ...]
    bench: Workbench
    replies: tuple[tuple[Mapping[str, Any], ChatReply], ...]
    """With what each request held."""

    @property
    def questions(self) -> list[str]:
        return [run.question for run in self.runs]


def recorded(most: int) -> Recorded:
    """So many questions, asked once; those that ``rules`` cannot answer are left out."""
    source, questions = _questions(most)
    return recorded_on(kgwb.open_kg(source), Path(source).stem, questions)


def recorded_on(kg: Graph, name: str, questions: Iterable[str]) -> Recorded:
    """The same on any graph."""
    bench = Workbench(kg, "rules")
    done = tuple(
        run for run in [_ask(bench, question) for question in questions] if run.status == "done"
    )
    replies = tuple(
        (call.request["content"], call.result)
        for run in done
        for call in run.calls.values()
        if call.kind == "model"
    )
    again = Workbench(kg, Replay(replies, name="rules"), embeddings=bench.setup.embeddings)
    return Recorded(name, done, again, replies)


def pipeline(given: Recorded) -> list[Row]:
    """A question's time without its model's, and how it stands to its queries alone."""
    whole = [_timed(given.bench, question) for question in given.questions]
    bare = [_bare(given.bench.kg, run) for run in given.runs]
    times = statistics.median(
        one / max(other, 1e-9) for one, other in zip(whole, bare, strict=True)
    )
    what = f"a question without model time ({len(whole)}, {given.name})"
    return [
        Row(
            f"{what}: median",
            1000 * statistics.median(whole),
            "ms",
            times,
            "its SPARQL alone",
            value_most=15,
            p95=1000 * p95(whole),
        ),
        Row(f"{what}: its SPARQL alone, on the store", 1000 * statistics.median(bare), "ms"),
    ]


def importing() -> list[Row]:
    """CPU seconds of new interpreters that import kgwb or rdflib, less those of an empty one; and of a command."""
    empty = _start("-c", "pass")
    ours, theirs = (_start("-c", f"import {name}") - empty for name in ("kgwb", "rdflib"))
    full = _start("-c", "import kgwb; kgwb.Workbench, kgwb.open_kg, kgwb.model") - empty
    asked = _start("-m", "kgwb", "ask", "--kg", "films", "Who directed Arrival?") - empty
    return [
        Row("import kgwb", ours, "s", ours / theirs, "import rdflib", value_most=0.4),
        Row(
            "  with Workbench, open_kg and model loaded", full, "s", full / theirs, "import rdflib"
        ),
        Row("kgwb ask, in a new process", asked, "s", asked / theirs, "import rdflib"),
    ]


def _questions(most: int) -> tuple[str, list[str]]:
    graph = metaqa()
    questions = graph.with_name("metaqa_dev.jsonl")
    if not graph.exists():
        graph = HERE.parent / "sample_kgs" / "films.ttl"
        questions = graph.with_name("films.questions.jsonl")
    entries = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    alone = [entry["question"] for entry in entries if not entry.get("dialogue")]
    return str(graph), alone[:: max(1, len(alone) // most)][:most]


def _ask(bench: Workbench, question: str) -> Run:
    bench.new_dialogue()
    run = bench.begin(question)
    with suppress(KgwbError):  # left out below; the benchmark is about time
        run.go()
    return run


def _timed(bench: Workbench, question: str) -> float:
    bench.new_dialogue()
    started = time.perf_counter()
    bench.ask(question)
    return time.perf_counter() - started


def _bare(kg: Graph, run: Run) -> float:
    assert isinstance(kg, LocalGraph)
    queries = [
        call.request["query"] for call in run.calls.values() if call.kind in ("select", "ask")
    ]
    started = time.perf_counter()
    for query in queries:
        result = kg.store.query(query, use_default_graph_as_union=True)
        if not isinstance(result, bool) and hasattr(result, "__iter__"):
            for _ in result:
                pass
    return time.perf_counter() - started


def _start(*arguments: str) -> float:
    def once() -> float:
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        user = after.children_user - before.children_user
        return user + after.children_system - before.children_system

    return statistics.median(once() for _ in range(IMPORTS))


def main() -> None:
    """Prints the table."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    show([*pipeline(recorded(most)), *importing()])


if __name__ == "__main__":
    main()
