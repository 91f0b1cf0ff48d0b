"""What opening a large file for the first time takes, in pairs with Oxigraph's own bulk load into a disk store.

    python benchmarks/opening.py [triples [pairs]]

The graph is that of lookups.py: canonical N-Triples, where each fifth triple is a label. Each load is in a
process of its own, with its processor time, that of the process that parses, and its peak memory (Linux).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lookups import make_graph
from table import Row, show

MOST_TIMES = 1.5
MOST_MEMORY = 1.2
CLIENT = """
import json, os, resource, sys, time
import kgwb, pyoxigraph

what, file, folder = sys.argv[1:]

def processor_s():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)

before, started = processor_s(), time.perf_counter()
if what == "kgwb":
    graph = kgwb.open_kg(file)
else:
    store = pyoxigraph.Store(folder)
    store.bulk_load(path=file, format=pyoxigraph.RdfFormat.N_TRIPLES)
wall_s = time.perf_counter() - started
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps([processor_s() - before, wall_s, peak_mb]))
"""
"""Prints the seconds of processor time, the seconds, and the peak memory in MB."""


def opening_in_pairs(triples: int = 2_000_000, pairs: int = 3) -> list[Row]:
    """Medians of opening, each with the median of its ratios to the bulk load beside it."""
    figures: dict[str, list[list[float]]] = {"Oxigraph": [], "kgwb": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.nt"
        make_graph(file, triples)
        for _ in range(pairs):
            for what, measured in figures.items():
                measured.append(_measure(what, file))
    rows = []
    measures = (
        ("processor time", "s", MOST_TIMES),
        ("time", "s", None),
        ("memory", "MB", MOST_MEMORY),
    )
    for number, (name, unit, most) in enumerate(measures):
        own = [figure[number] for figure in figures["kgwb"]]
        bulk = [figure[number] for figure in figures["Oxigraph"]]
        ratios = [a / b for a, b in zip(own, bulk, strict=True)]
        what = f"opening {triples:,} triples the first time: {name}"
        ratio = statistics.median(ratios)
        rows.append(
            Row(what, statistics.median(own), unit, ratio, "Oxigraph's bulk load", most=most)
        )
    return rows


def _measure(what: str, file: Path) -> list[float]:
    """Return what CLIENT prints. Its store or cache folder is removed."""
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-c", CLIENT, what, str(file), f"{folder}/store")
        environment = {**os.environ, "KGWB_CACHE": f"{folder}/cache"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print the table."""
    triples = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000_000
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    show(opening_in_pairs(triples, pairs))


if __name__ == "__main__":
    main()
