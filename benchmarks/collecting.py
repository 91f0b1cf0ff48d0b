"""What collecting the hand-ins of a class takes, beside the checks of their answers alone: processor time, and memory.

    python benchmarks/collecting.py [students [pairs]]

Each student does eight tasks of lab 1, with a query and a run that nobody else has. They are collected with
checks from a folder, in a process of its own with those that it starts. The checks alone are those of the
stored answers, each different one once, in one process without limits. Both count from the import of kgwb.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, show

import kgwb
from kgwb.labs.one import open_lost_run

MOST_TIMES = 1.5
MOST_MEMORY_MB = 300
QUERY = """PREFIX fl: <https://kgwb.example/films/>
SELECT ?film {{ ?film fl:director fl:Stanley_Kubrick ; fl:runtime ?m FILTER(?m > {}) }} ORDER BY DESC(?m) LIMIT 1"""
CLIENT = """
import json, resource, sys, time
from pathlib import Path

what, folder = sys.argv[1:]
started = time.perf_counter()
if what == "collect":
    from kgwb.labs.collecting import collect_hand_ins
    [collected] = collect_hand_ins(folder, check=True)
    count = sum(work.is_solved(task) for work in collected.works for task in collected.lab.tasks)
else:
    from kgwb.labs.answers import check_stored_answer
    from kgwb.labs.hand_ins import read_hand_in
    from kgwb.labs.tasks import load_lab
    lab, count, results = load_lab(1), 0, {}
    for path in sorted(Path(folder).iterdir()):
        for task, progress in read_hand_in(path).tasks.items():
            key = task, progress.data.model_dump_json()
            if key not in results:
                results[key] = check_stored_answer(lab.tasks[task], progress.data)
            count += progress.state == "solved" and not results[key]
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
processor_s = sum(each.ru_utime + each.ru_stime for each in used)
peak_mb = max(each.ru_maxrss for each in used) / 1000
print(json.dumps([processor_s, time.perf_counter() - started, peak_mb, count]))
"""
"""Prints the seconds of processor time, the seconds, the peak memory of a process in MB, and the solved tasks."""


def hand_in_class(folder: Path, students: int) -> None:
    """Write the hand-ins of a class."""
    for number in range(students):
        work = kgwb.lab(1, None)
        work.check("1.1", [number % 4])
        work.check("1.1", [2, 4, 5])
        work.check("1.2", f"When was the first Harry Potter movie released in the end, {number}?")
        triples = [
            ("?film", "directed by", "Christopher Nolan"),
            ("?film", "starring", "Michael Caine"),
        ]
        work.check("1.3", triples)
        work.check("1.4", "https://kgwb.example/films/Solaris_novel")
        work.check("1.5", ["based on"])
        work.check("1.6", QUERY.format(number))
        run = open_lost_run(4)
        fact = {
            "subject": "?answer",
            "relation": "composer" + " " * number,
            "object": "Joe Hisaishi",
        }
        work.check("1.10", run.override("qir", {"facts": [fact], "target": "?answer"}).go())
        work.hand_in(f"Student {number}", folder)


def collecting(students: int = 40, pairs: int = 3) -> list[Row]:
    """Medians of collecting, with the median of its ratios to the checks alone that were timed beside it."""
    figures: dict[str, list[list[float]]] = {"checks": [], "collect": []}
    with tempfile.TemporaryDirectory() as folder:
        hand_in_class(Path(folder), students)
        for _ in range(pairs):
            for what, measured in figures.items():
                command = [sys.executable, "-c", CLIENT, what, folder]
                printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                measured.append(json.loads(printed))
    solved = {measured[3] for of_one in figures.values() for measured in of_one}
    assert len(solved) == 1, f"the two differ in what is solved: {solved}"
    ratios = [
        own[0] / alone[0] for own, alone in zip(figures["collect"], figures["checks"], strict=True)
    ]
    rows = []
    for what, name in (
        ("checks", "the checks alone"),
        ("collect", f"collecting {students} hand-ins"),
    ):
        processor_s, wall_s, peak_mb, _ = map(statistics.median, zip(*figures[what], strict=True))
        ratio = statistics.median(ratios) if what == "collect" else None
        most = MOST_TIMES if what == "collect" else None
        most_mb = MOST_MEMORY_MB if what == "collect" else None
        rows += [
            Row(f"{name}: processor time", processor_s, "s", ratio, "the checks alone", most),
            Row(f"{name}: seconds", wall_s, "s"),
            Row(f"{name}: peak memory of a process", peak_mb, "MB", value_most=most_mb),
        ]
    return rows


if __name__ == "__main__":
    show(collecting(*map(int, sys.argv[1:])))
