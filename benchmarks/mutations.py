"""Whether the tests of a paper's claims fail where the claim is violated.

    make mutations                          those of all systems
    python benchmarks/mutations.py dog      those of one system

`tests/conformance/claims.py` says how a test names what would violate its claim. Each of these changes is made by
itself, in a copy of the project, and its test is run there. This ends with 1 if a test passes all the same, or if it
fails without the change.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from mutants import ROOT, map_in_copies, run_tests, try_change

Task = tuple[tuple[str, ...], dict[str, str]]
"""Tests, and the change that is made before they are run, as a dict of the fields of a Mutation; empty for none."""


def tasks_of(systems: list[str], part: str) -> list[Task]:
    """Return each mutation with its test, and before them all tests of a system without a change.

    Tests without ``part`` in their names are left out.

    This imports the tests, and so kgwb as it is without a change: call it in a process of its own.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from conformance.table import mutations_of_system, systems_with_claims

    unchanged: list[Task] = []
    changed: list[Task] = []
    for system in systems or systems_with_claims():
        file = f"tests/conformance/test_{system}.py"
        tests: dict[str, None] = {}
        for mutation in mutations_of_system(system):
            if part not in mutation.test:
                continue
            test = f"{file}::{mutation.test}"
            tests[test] = None
            changed.append(((test,), asdict(mutation)))
        if tests:
            unchanged.append((tuple(tests), {}))
    return unchanged + changed


def try_task(task: Task) -> str:
    """Return what became of the tests: killed or survived of a mutation, else passed or failed."""
    tests, mutation = task
    if not mutation:
        passed, output = run_tests(list(tests))
        if not passed and not re.search(r"\d (failed|error)", output):
            # No test has failed: the process was ended, or pytest failed after its last test.
            print(f"{tests[0]} and others are run again: {output}", flush=True)
            passed, output = run_tests(list(tests))
        return "passed" if passed else f"failed\n{output}"

    def change(text: str) -> str:
        return text.replace(mutation["old"], mutation["new"])

    return try_change(mutation["path"], change, list(tests))


def main() -> None:
    """Try the mutations of the named systems, and print those that no test kills."""
    parser = argparse.ArgumentParser(description="Try what would violate the claims of the papers.")
    parser.add_argument("systems", nargs="*", help="names of systems; all, if none is given")
    parser.add_argument("--only", default="", help="part of the name of a test")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    started = time.monotonic()
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        tasks = pool.submit(tasks_of, chosen.systems, chosen.only).result()
    killed = 0
    wrong = 0
    for (tests, mutation), outcome in zip(
        tasks, map_in_copies(try_task, tasks, chosen.workers), strict=True
    ):
        killed += outcome == "killed"
        if outcome not in ("killed", "passed"):
            wrong += 1
            print(f"{outcome}: {tests[0]}{' and others' * (len(tests) > 1)}")
            if mutation:
                print("  {path}: {old!r} -> {new!r}".format_map(mutation), flush=True)
    print(f"{killed} mutations killed, {wrong} not, in {time.monotonic() - started:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
