"""How a question grows with a local graph whose labels share their words, and what an open graph takes.

    python benchmarks/lookups.py [most triples [folder]]

A made graph has things such as "Thing number 78 beta", each with a label, a class and three facts. Each question
names another one, and `rules` answers it. A process of its own asks them of a graph in the cache folder, so that
its memory is that of an open graph. Files are made in the folder, and used again if they are there. The curves
go to build/bench_lookups.svg.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from curve import Line, chart
from table import Row, show

from kgwb.kg.label_search import Label, LabelIndex

TRIPLES = (200_000, 2_000_000, 10_000_000)
MOST_TIMES = 2
MOST_MB = 200
MOST_SEARCH_MS = 50
SEED = 7
EXAMPLE = "http://example.org/"
GREEK = ("alpha", "beta", "gamma", "delta", "epsilon")
PICTURE = Path(__file__).parent.parent / "build" / "bench_lookups.svg"
CLIENT = """
import json, random, re, statistics, sys, time
from pathlib import Path
import kgwb

file, things, greek = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
before = time.process_time()
graph = kgwb.open_kg(file)
opening_s = time.process_time() - before
workbench = kgwb.Workbench(graph, "rules")

def ask(number):
    name = f"Thing number {number} {greek[number % len(greek)]}"
    started = time.process_time()
    run = workbench.ask(f"Who directed {name}?")
    assert run.answer.values, name
    return 1000 * (time.process_time() - started)

first, *others = random.Random(3).sample(range(things), 61)
ask(first)
milliseconds = [ask(number) for number in others]
status = Path("/proc/self/status").read_text()
megabytes = int(re.search(r"VmRSS:\\s+(\\d+) kB", status)[1]) / 1000
print(json.dumps([opening_s, statistics.median(milliseconds), megabytes]))
"""
"""Prints the seconds of opening, the median of 60 questions in ms (both processor time), and MB (on Linux)."""


def lookup_growth(most: int = TRIPLES[-1], folder: Path | None = None) -> list[Row]:
    """Return processor time a question and memory of an open graph, for graphs of growing size."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return lookup_growth(most, Path(made))
    rows = []
    questions: list[tuple[float, float]] = []
    for triples in TRIPLES:
        if triples > most:
            break
        file = folder / f"lookups{triples}.nt"
        if not file.exists():
            make_graph(file, triples)
        _measure(file, triples, folder)
        _, milliseconds, megabytes = _measure(file, triples, folder)
        questions.append((triples, milliseconds))
        smallest, first = questions[0]
        wanted = MOST_TIMES if triples > smallest else None
        name = f"{triples:,} triples"
        rows.append(
            Row(f"{name}: a question, processor time", milliseconds, "ms",
                milliseconds / first, f"{smallest:,.0f} triples", wanted)
        )  # fmt: skip
        rows.append(Row(f"{name}: memory of the process", megabytes, "MB", value_most=MOST_MB))
    line = Line("ms a question", tuple(questions))
    picture = chart("A question by number of triples", "triples", "median, ms", [line])
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(f"{picture}\n", encoding="utf-8")
    return rows


def shared_words(labels: int = 400_000, searches: int = 100) -> list[Row]:
    """Return the time of finding one name, where all labels share their words and where none does."""
    shared = [_thing_name(number) for number in range(labels)]
    own = [f"Single{number}" for number in range(searches)]
    names = [*shared, *own]
    made = [Label(f"{EXAMPLE}{number}", name, True, True) for number, name in enumerate(names)]
    with tempfile.TemporaryDirectory() as folder:
        index = LabelIndex.build(made, Path(folder) / "labels.sqlite")
        asked = random.Random(SEED).sample(shared, searches)
        taken = {
            "with a word of its own": _search_milliseconds(index, own),
            "whose words all labels share": _search_milliseconds(index, asked),
        }
        index.close()
    first, second = taken.items()
    return [
        Row(f"{labels:,} labels: a name {first[0]}", first[1], "ms"),
        Row(f"{labels:,} labels: a name {second[0]}", second[1], "ms",
            second[1] / first[1], f"one {first[0]}", value_most=MOST_SEARCH_MS),
    ]  # fmt: skip


def _search_milliseconds(index: LabelIndex, names: list[str]) -> float:
    """Return the median of searching names in ms. Raises AssertionError if one is not found."""
    milliseconds = []
    for name in names:
        started = time.perf_counter()
        hits = index.search(name, 40).hits
        milliseconds.append(1000 * (time.perf_counter() - started))
        assert hits[0].label == name, name
    return statistics.median(milliseconds)


def _thing_name(number: int) -> str:
    return f"Thing number {number} {GREEK[number % len(GREEK)]}"


def _measure(file: Path, triples: int, folder: Path) -> tuple[float, float, float]:
    """Return what CLIENT prints. The first time it puts the graph into the cache folder."""
    command = (sys.executable, "-c", CLIENT, str(file), str(triples // 5), json.dumps(GREEK))
    environment = {**os.environ, "KGWB_CACHE": str(folder / "cache")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    opening_s, milliseconds, megabytes = json.loads(done.stdout)
    return opening_s, milliseconds, megabytes


def make_graph(file: Path, triples: int) -> None:
    """Write N-Triples of things whose labels share their words."""
    numbers = random.Random(SEED)
    things = triples // 5
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    with file.open("w", encoding="utf-8") as out:
        for number in range(things):
            thing = f"<{EXAMPLE}thing/{number}>"
            director = f"<{EXAMPLE}thing/{numbers.randrange(things)}>"
            actor = f"<{EXAMPLE}thing/{numbers.randrange(things)}>"
            year = numbers.randint(1900, 2024)
            name = _thing_name(number)
            out.write(
                f'{thing} {label} "{name}" .\n'
                f"{thing} <{EXAMPLE}directedBy> {director} .\n"
                f"{thing} <{EXAMPLE}starring> {actor} .\n"
                f'{thing} <{EXAMPLE}releaseYear> "{year}" .\n'
                f"{thing} {kind} <{EXAMPLE}Class_{number % 20}> .\n"
            )


def main() -> None:
    """Print the table, and write the picture."""
    most = int(float(sys.argv[1])) if len(sys.argv) > 1 else TRIPLES[-1]
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    show(lookup_growth(most, folder) + shared_words())


if __name__ == "__main__":
    main()
