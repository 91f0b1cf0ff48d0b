"""Where the CPU time of an import, of a cold command and of a question goes.

    python benchmarks/profiles.py import|ask|question|calls [lines]

The profile is of the checkout that it is run in: run it in another one, too, to compare two versions. ``import``
lists modules by the time of their own code, the least of several interpreters. ``ask`` and ``question`` list functions
by the time within them. A profiler makes small functions look dear, so compare its lists, and measure
totals with ``own_time.py``. ``calls`` lists what a question over films asks of the graph and of embeddings, with the
model ``rules``: the time of each kind of call by the two functions that ask, and how many ask again for what the same
question has asked before. ``question`` also tells how many calls of functions a question takes: that number is
the same on a busy machine. ``profiles.md`` has what was found.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import re
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORT = "import kgwb; kgwb.Workbench; kgwb.open_kg; kgwb.model"
INTERPRETERS = 7
QUESTIONS = 30
ASKED = ["ask", "--kg", "films", "Who directed Arrival?"]
RECORDING_FILES = (
    "steps.py",
    "engine.py",
    "record.py",
    "diagnostics.py",
    "local.py",
    "profiles.py",
)
SAMPLES = Path(__file__).parent.parent / "sample_kgs"


def profile_import(lines: int) -> None:
    """Print the modules whose own code takes longest, in milliseconds, and the sum of all."""
    least: dict[str, float] = {}
    for _ in range(INTERPRETERS):
        command = [sys.executable, "-X", "importtime", "-c", IMPORT]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        for own, module in re.findall(r"import time: +(\d+) \| +\d+ \| +(\S+)", output):
            least[module] = min(least.get(module, float("inf")), int(own) / 1000)
    print(f"{sum(least.values()):8.1f}  all {len(least)} modules")
    for module in sorted(least, key=least.__getitem__, reverse=True)[:lines]:
        print(f"{least[module]:8.1f}  {module}")


def profile_ask(lines: int) -> None:
    """Print the functions in which ``kgwb ask`` spends its time, with the imports."""
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    _without_threads()
    from kgwb.cli import main as run_command

    run_command(ASKED)
    profile.disable()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(lines)


def profile_question(lines: int) -> None:
    """Print the functions in which a question spends its time, asked again with recorded replies."""
    _without_threads()
    from own_time import chatty_kg

    files = (SAMPLES / "films.ttl", SAMPLES / "films.questions.jsonl")
    workbench, questions = chatty_kg(*files, QUESTIONS)
    for question in questions:
        workbench.new_dialogue()
        workbench.ask(question)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for question in questions:
        workbench.new_dialogue()
        workbench.ask(question)
    profile.disable()
    stats = pstats.Stats(profile)
    calls: int = stats.total_calls  # type: ignore[attr-defined]
    print(f"{calls / len(questions):,.0f} calls of functions a question")
    stats.sort_stats("tottime").print_stats(lines)


def profile_calls(lines: int) -> None:
    """Print the calls of a question, the kinds that take longest first, and those that are repeated."""
    _without_threads()
    import kgwb
    from kgwb.kg.embeddings import Embeddings
    from kgwb.kg.local import LocalGraph

    graph = kgwb.open_kg(SAMPLES / "films.ttl")
    workbench = kgwb.Workbench(graph, "rules")
    entries = (SAMPLES / "films.questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(entry)["question"] for entry in entries[:QUESTIONS]]
    calls: list[tuple[str, str, str, float]] = []

    def time_calls(owner: Any, name: str) -> None:
        """Let a method add each of its calls to ``calls``: name, arguments, who asks, and seconds."""
        method = getattr(owner, name)

        def timed(*arguments: Any) -> Any:
            started = time.process_time()
            try:
                return method(*arguments)
            finally:
                seconds = time.process_time() - started
                asked = [
                    each for each in arguments if not isinstance(each, Embeddings | LocalGraph)
                ]
                calls.append((name, repr(asked), _askers(), seconds))

        setattr(owner, name, timed)

    for question in questions:  # to warm up
        _ask_alone(workbench, question)
    for name in ("select", "ask", "construct"):
        time_calls(LocalGraph, name)
    for name in ("search", "exact", "names"):  # they are attributes of each graph
        time_calls(graph, name)
    time_calls(Embeddings, "similarity")
    seconds_by_kind: dict[tuple[str, str], float] = defaultdict(float)
    number_by_kind: Counter[tuple[str, str]] = Counter()
    repeated = 0
    for question in questions:
        calls.clear()
        _ask_alone(workbench, question)
        repeated += len(calls) - len({(name, asked) for name, asked, _, _ in calls})
        for name, _, askers, seconds in calls:
            seconds_by_kind[name, askers] += seconds
            number_by_kind[name, askers] += 1
    for kind in sorted(seconds_by_kind, key=seconds_by_kind.__getitem__, reverse=True)[:lines]:
        milliseconds = 1000 * seconds_by_kind[kind] / len(questions)
        print(f"{milliseconds:6.2f} ms  {number_by_kind[kind] / len(questions):5.2f} calls ", *kind)
    print(f"{repeated / len(questions):.1f} calls of a question ask for what it has asked before")


def _ask_alone(workbench: Any, question: str) -> None:
    """Ask a question in a dialogue of its own; one that ``rules`` cannot answer is left."""
    from kgwb.errors import KgwbError

    workbench.new_dialogue()
    with suppress(KgwbError):
        workbench.ask(question)


def _askers() -> str:
    """Return the names of the two functions that ask, without those that record a call."""
    names = []
    for frame in reversed(traceback.extract_stack()[:-2]):
        if Path(frame.filename).name not in RECORDING_FILES:
            names.append(frame.name)
    return " < ".join(names[:2])


def _without_threads() -> None:
    """Have the work of other threads done on this one, which the profiler sees."""
    from kgwb import background

    background.run_in_thread = lambda work, **_: work()
    background.shielded = lambda work, **_: work()


PROFILES = {
    "import": profile_import,
    "ask": profile_ask,
    "question": profile_question,
    "calls": profile_calls,
}

if __name__ == "__main__":
    PROFILES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 40)
