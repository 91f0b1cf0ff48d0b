"""Where the CPU time of an import, of a cold command and of a question goes.

    python benchmarks/profiles.py import|ask|question [lines]

The profile is of the checkout that it is run in: run it in another one, too, to compare two versions. ``import``
lists modules by the time of their own code, the least of several interpreters. ``ask`` and ``question`` list functions
by the time within them. A profiler makes small functions look dear, so compare its lists, and measure
totals with ``own_time.py``. ``question`` also tells how many calls of functions a question takes: that number is
the same on a busy machine. ``profiles.md`` has what was found.
"""

from __future__ import annotations

import cProfile
import pstats
import re
import subprocess
import sys
import time
from pathlib import Path

IMPORT = "import kgwb; kgwb.Workbench; kgwb.open_kg; kgwb.model"
INTERPRETERS = 7
QUESTIONS = 30
ASKED = ["ask", "--kg", "films", "Who directed Arrival?"]
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


def _without_threads() -> None:
    """Have the work of other threads done on this one, which the profiler sees."""
    from kgwb import background

    background.run_in_thread = lambda work, **_: work()
    background.shielded = lambda work, **_: work()


PROFILES = {"import": profile_import, "ask": profile_ask, "question": profile_question}

if __name__ == "__main__":
    PROFILES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 40)
