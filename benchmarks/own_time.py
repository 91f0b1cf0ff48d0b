"""The CPU time of kgwb itself for a question, with recorded replies: no model, and no time of ``rules``.

For Chatty-KG also how many times that of its SPARQL, sent to the store without kgwb.

    python benchmarks/own_time.py films|metaqa|harbour [questions] [rounds]

Chatty-KG answers over the films sample and over MetaQA, Surveyor over the harbour; the last two are in
../shared/data or KGWB_DATA. To compare two versions, run it in a checkout of each, in turn: the figures of
one busy machine differ more from hour to hour than from version to version.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from graphs import metaqa
from pipeline import HERE, Recorded, recorded_on
from table import Row, show

import kgwb
from kgwb.kg.local import LocalGraph
from kgwb.workbench import Workbench

HARBOUR_REPLIES = HERE / "recordings" / "harbour.surveyor.jsonl.gz"
SAMPLES = HERE.parent / "sample_kgs"


def chatty_kg(graph: Path, questions: Path, most: int) -> tuple[Workbench, list[str]]:
    """Return a workbench with the replies that ``rules`` gave, and the questions that it answered."""
    given = recorded_chatty_kg(graph, questions, most)
    return given.bench, given.questions


def recorded_chatty_kg(graph: Path, questions: Path, most: int) -> Recorded:
    """Return the questions that ``rules`` answered, with their runs."""
    return recorded_on(kgwb.open_kg(graph), graph.stem, _read_questions(questions, most))


def surveyor(folder: Path, most: int) -> tuple[Workbench, list[str]]:
    """Return a workbench over the harbour with the replies of the recording, and its questions."""
    replies = Path(tempfile.mkdtemp()) / "replies.jsonl"
    replies.write_bytes(gzip.decompress(HARBOUR_REPLIES.read_bytes()))
    workbench = kgwb.Workbench(kgwb.open_kg(folder), f"replay:{replies}", system="surveyor")
    return workbench, _read_questions(folder / "questions.jsonl", most)


def _read_questions(path: Path, most: int) -> list[str]:
    """Return so many of the questions of a file that need no dialogue, from all parts of it."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    alone = [entry["question"] for entry in entries if not entry.get("dialogue")]
    return alone[:: max(1, len(alone) // most)][:most]


def own_time(workbench: Workbench, questions: list[str], rounds: int) -> list[float]:
    """Return the CPU seconds of each question, the least of all rounds. The first one warms up."""
    taken = [float("inf")] * len(questions)
    for round_number in range(rounds + 1):
        for place, question in enumerate(questions):
            started = time.process_time()
            _ask(workbench, question)
            seconds = time.process_time() - started
            if round_number:
                taken[place] = min(taken[place], seconds)
    return taken


def sparql_time(given: Recorded, rounds: int) -> list[float]:
    """Return the CPU seconds of each question's queries alone, the least of all rounds.

    The question is asked before them, as it is for ``own_time``: at once after each other, the queries take a third.
    """
    graph = given.bench.kg
    assert isinstance(graph, LocalGraph)
    taken = [float("inf")] * len(given.runs)
    for _ in range(rounds):
        for place, run in enumerate(given.runs):
            _ask(given.bench, run.question)
            started = time.process_time()
            for call in run.calls.values():
                if call.kind in ("select", "ask"):
                    query = call.request["query"]
                    result = graph.store.query(query, use_default_graph_as_union=True)
                    if call.kind == "select":
                        deque(result, maxlen=0)  # type: ignore[arg-type]
            taken[place] = min(taken[place], time.process_time() - started)
    return taken


def _ask(workbench: Workbench, question: str) -> None:
    workbench.new_dialogue()
    workbench.ask(question)


def main() -> None:
    """Print the median and the mean."""
    name = sys.argv[1]
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    data = metaqa().parent
    if name == "harbour":
        workbench, questions = surveyor(data.parent / "harbour", most)
    else:
        files = (metaqa(), data / "metaqa_dev.jsonl")
        if name == "films":
            files = (SAMPLES / "films.ttl", SAMPLES / "films.questions.jsonl")
        given = recorded_chatty_kg(*files, most)
        workbench, questions = given.bench, given.questions
    taken = own_time(workbench, questions, rounds)
    ratio = None
    if name != "harbour":
        alone = sparql_time(given, rounds)
        ratio = statistics.median(one / other for one, other in zip(taken, alone, strict=True))
    what = f"own CPU of a question ({len(questions)}, {name})"
    show(
        [
            Row(
                f"{what}: median", 1000 * statistics.median(taken), "ms", ratio, "its SPARQL alone"
            ),
            Row(f"{what}: mean", 1000 * statistics.fmean(taken), "ms"),
        ]
    )


if __name__ == "__main__":
    main()
