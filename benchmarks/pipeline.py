"""What kgwb itself costs a question: the whole pipeline with a replayed model, and the import.

    python benchmarks/pipeline.py [questions]

The model's replies are recorded first, with ``rules``; then every question is asked again of a new run whose
model answers from that recording in microseconds. Embeddings are warm. The same SPARQL, sent to the store
without kgwb, is timed in the same run. Without MetaQA (../shared/data or KGWB_DATA) the films sample serves.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphs import metaqa

import kgwb
from kgwb.errors import KgwbError
from kgwb.kg.local import LocalGraph
from kgwb.llm.replay import Replay, content_key
from kgwb.run import Run
from kgwb.workbench import Workbench

Row = tuple[str, str, str, str]
HERE = Path(__file__).parent
IMPORTS = 7


def pipeline(most: int = 300) -> list[Row]:
    """Median and 95th percentile of a question in milliseconds, and the ratio to its bare queries."""
    source, questions = _questions(most)
    kg = kgwb.open_kg(source)
    bench = Workbench(kg, "rules")
    recorded = [_ask(bench, question) for question in questions]
    done = [run for run in recorded if run.status == "done"]
    replies = [
        (content_key(call.request["content"]), call.result)
        for run in done
        for call in run.calls.values()
        if call.kind == "model"
    ]
    again = Workbench(kg, Replay(replies, name="rules"), embeddings=bench.embeddings)
    whole = [_timed(again, run.question) for run in done]
    bare = [_bare(kg, run) for run in done]
    ratio = statistics.median(one / max(other, 1e-9) for one, other in zip(whole, bare, strict=True))
    what = f"pipeline without model time, {len(done)} questions, {Path(str(source)).stem}"
    return [
        (what, f"median {1000 * statistics.median(whole):.2f} ms", "target 15 ms", ""),
        ("  95th percentile", f"{1000 * statistics.quantiles(whole, n=20)[-1]:.2f} ms", "", ""),
        (
            "  its SPARQL alone, on the store",
            f"median {1000 * statistics.median(bare):.2f} ms",
            "",
            f"{ratio:.1f} times",
        ),
    ]


def importing() -> list[Row]:
    """Seconds to import kgwb and rdflib, each in a new interpreter, less the interpreter's own start."""
    empty = _start("pass")
    ours, theirs = _start("import kgwb") - empty, _start("import rdflib") - empty
    full = _start("import kgwb; kgwb.Workbench, kgwb.open_kg, kgwb.model") - empty
    return [
        ("import kgwb", f"median {ours:.3f} s", "target 0.4 s", f"{ours / theirs:.2f} times import rdflib"),
        (
            "  with Workbench, open_kg and model loaded",
            f"median {full:.3f} s",
            "",
            f"{full / theirs:.2f} times",
        ),
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
    bench.forget()
    run = bench.begin(question)
    with suppress(KgwbError):  # left out below; the benchmark is about time
        run.go()
    return run


def _timed(bench: Workbench, question: str) -> float:
    bench.forget()
    started = time.perf_counter()
    bench.ask(question)
    return time.perf_counter() - started


def _bare(kg: Any, run: Run) -> float:
    assert isinstance(kg, LocalGraph)
    queries = [call.request["query"] for call in run.calls.values() if call.kind in ("select", "ask")]
    started = time.perf_counter()
    for query in queries:
        result = kg.store.query(query, use_default_graph_as_union=True)
        if not isinstance(result, bool) and hasattr(result, "__iter__"):
            for _ in result:
                pass
    return time.perf_counter() - started


def _start(code: str) -> float:
    def once() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return statistics.median(once() for _ in range(IMPORTS))


def show(rows: Sequence[Row]) -> None:
    """Print rows as a table."""
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    """Prints the table."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    show([*pipeline(most), *importing()])


if __name__ == "__main__":
    main()
