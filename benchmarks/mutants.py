"""What the tests kill: one change of the code at a time, and whether a test fails.

    make mutants                                   400 mutants of the modules below
    python benchmarks/mutants.py record            which tests execute which lines: build/mutants/lines.json
    python benchmarks/mutants.py run --count 400   draw mutants by a seed, and run each against the tests of its line

A mutant is one of four changes: a comparison (``<`` becomes ``<=``), a limit (a whole number becomes the next one),
``and`` becomes ``or``, or a branch is never taken. It is applied in a copy of the project, never in the tree. It is
killed if one of the tests that execute its line fails or takes too long. Mutants that change nothing a person could see
stand in ``mutants_equivalent.txt``; they are listed and left out of the share.

mutmut 3 passes over functions with decorators, and every agent has one. That is why this is not mutmut.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
LINES_FILE = BUILD / "lines.json"
EQUIVALENT_FILE = Path(__file__).with_name("mutants_equivalent.txt")
SOURCES = (
    "kgwb/kg/sparql.py",
    "kgwb/kg/queries.py",
    "kgwb/run/*.py",
    "kgwb/bench/metrics.py",
    "kgwb/bench/statistics.py",
    "kgwb/labs/collecting.py",
    "kgwb/labs/points.py",
    "kgwb/labs/rows.py",
    "kgwb/labs/submissions.py",
    "kgwb/systems/*/*.py",
)
"""The modules that mutants are drawn from, as patterns of paths."""
LEFT_OUT = {"settings.py", "views.py"}
"""Names of files that hold no decision of an agent."""

MAX_RUN_S = 1800
"""Seconds after which the tests of a mutant are ended; it counts as killed, as one that never ends."""

BROKEN_IMPORT = "while loading conftest|ERROR collecting"
"""What pytest prints if it cannot import tests."""

PRELOADED = (
    "hypothesis",
    "pytest",
    "pytest_timeout",
    "rdflib",
    "oxrdflib",
    "numpy",
    "pydantic",
    "tokenizers",
)
"""What a process imports once for all tests that its children run. Nothing of kgwb is among them."""

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}


@dataclass(frozen=True)
class Mutant:
    """A change of one place in one file. Lines count from 1, columns are bytes from 0, as in ``ast``."""

    path: str
    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    """What stands in place of the text between the two positions."""
    source_line: str
    """The line as it was, without the space around it."""
    function: str
    """The function that holds the change, with its class, or an empty text for the module."""

    @property
    def identity(self) -> str:
        """What the file of equivalent mutants names it by: it holds when lines move."""
        return f"{self.path} {self.function} | {self.kind} | {self.source_line} -> {self.text}"


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    source = path.read_text()
    name = str(path.relative_to(ROOT))
    lines = source.splitlines()
    for function, node in nodes_with_function(ast.parse(source)):
        for kind, old, text in changes_of(node, source):
            assert old.end_lineno is not None
            assert old.end_col_offset is not None
            yield Mutant(
                name,
                kind,
                old.lineno,
                old.col_offset,
                old.end_lineno,
                old.end_col_offset,
                text,
                lines[old.lineno - 1].strip(),
                function,
            )


def nodes_with_function(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of a tree with the function it stands in. Imports for types and f-strings are passed over."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.JoinedStr):
            continue  # before Python 3.12, what stands in an f-string has no place of its own
        inner = function
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{function}.{node.name}".strip(".")
        yield inner, node
        yield from nodes_with_function(node, inner)


def changes_of(node: ast.AST, source: str) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield the kind of each change of a node, the expression that is replaced, and its new text."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left = ast.get_source_segment(source, node.left)
        right = ast.get_source_segment(source, node.comparators[0])
        yield "comparison", node, f"({left}) {COMPARISONS[type(node.ops[0])][1]} ({right})"
    elif isinstance(node, ast.BoolOp):
        word = "or" if isinstance(node.op, ast.And) else "and"
        parts = [f"({ast.get_source_segment(source, value)})" for value in node.values]
        yield "and/or", node, f"({f' {word} '.join(parts)})"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "limit", node, str(node.value + 1)
    elif isinstance(node, (ast.If, ast.While)):
        yield "branch", node.test, "False"


def apply_mutant(mutant: Mutant, source: str) -> str:
    """Return the source of a file with the change made."""
    lines = source.encode().splitlines(keepends=True)
    first, last = lines[mutant.line - 1], lines[mutant.end_line - 1]
    changed = first[: mutant.column] + mutant.text.encode() + last[mutant.end_column :]
    lines[mutant.line - 1 : mutant.end_line] = [changed]
    return b"".join(lines).decode()


def draw_mutants(patterns: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants by a seed, each place of the sources with equal chance."""
    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    paths = {path for path in paths if path.name not in LEFT_OUT}
    mutants = [mutant for path in sorted(paths) for mutant in find_mutants(path)]
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


class LineRecorder:
    """A plugin of pytest that records which lines of kgwb each test executes, and how long it takes."""

    def __init__(self) -> None:
        from coverage import Coverage

        self.coverage = Coverage(data_file=str(BUILD / "coverage"), source=[str(ROOT / "kgwb")])
        self.coverage.erase()
        self.coverage.start()
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: object) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[attr-defined]

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        data = self.coverage.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        for path in data.measured_files():
            lines[str(Path(path).relative_to(ROOT))] = dict(data.contexts_by_lineno(path))
        LINES_FILE.write_text(json.dumps({"lines": lines, "seconds": self.seconds}))


def record_lines(arguments: list[str]) -> int:
    """Run the tests once, in one process, and record the lines of each."""
    import pytest

    BUILD.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    options = [
        "-q",
        "-m",
        "not long",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-o",
        "timeout=600",
    ]
    return int(pytest.main([*options, *arguments], plugins=[LineRecorder()]))


class TestsOfLines:
    """Which tests execute a line, the fastest first."""

    def __init__(self) -> None:
        recorded = json.loads(LINES_FILE.read_text())
        self.lines: dict[str, dict[str, list[str]]] = recorded["lines"]
        self.seconds: dict[str, float] = recorded["seconds"]

    def of(self, mutant: Mutant, limit_s: float) -> list[str]:
        """The tests of a mutant's line that fit in ``limit_s`` seconds.

        A line outside of functions is executed once, by an import, and so are the fields of a class and
        the defaults of parameters. Its tests are those of its file. A line that is not recorded, as some
        of a statement in several lines, has the tests of the one before it.
        """
        of_file = self.lines.get(mutant.path, {})
        recorded = sorted(map(int, of_file))
        before = [line for line in recorded if line <= mutant.line]
        if not before:
            return []
        tests = set(of_file[str(before[-1])])
        if tests <= set(of_file[str(recorded[0])]):
            tests = {test for tests in of_file.values() for test in tests}
        tests.discard("")
        chosen: list[str] = []
        total = 0.0
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 1.0), test)):
            total += self.seconds.get(test, 1.0)
            if total > limit_s and chosen:
                break
            chosen.append(test)
        return chosen


def copy_project(folder: Path) -> Path:
    """Copy the project into a folder, with what Python compiled, without what set-ups and builds have made."""
    unwanted = shutil.ignore_patterns(
        ".git", ".venv*", "build", "dist", ".*_cache", ".hypothesis", "mutants"
    )
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT, folder, ignore=unwanted, symlinks=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def try_mutant(task: tuple[Mutant, list[str]]) -> str:
    """Return what became of a mutant by its tests: killed, survived, or not executed by any."""
    mutant, tests = task
    if not tests:
        return "not executed"
    return try_change(mutant.path, partial(apply_mutant, mutant), tests)


def try_change(path: str, change: Callable[[str], str], tests: list[str]) -> str:
    """Change the text of a file in this process's copy of the project, and run tests: killed, or survived.

    The copy is as before afterwards, with the file's time, so that what Python compiled stays valid.
    """
    file = Path(path)
    before, times = file.read_text(encoding="utf-8"), file.stat()
    file.write_text(change(before), encoding="utf-8")
    try:
        passed, output = run_tests(tests)
    finally:
        file.write_text(before, encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    if passed is None:
        raise RuntimeError(output[-4000:])
    return "survived" if passed else "killed"


def run_tests(tests: list[str], *options: str) -> tuple[bool | None, str]:
    """Run tests in a child of this process. Return whether they pass, and what pytest printed.

    None means that pytest could not run them at all. Tests that take too long do not pass.
    """
    output_file = Path("tests_output.txt")
    child = multiprocessing.get_context("fork").Process(
        target=run_pytest, args=(output_file, ["-x", "-q", *options], tests)
    )
    child.start()
    child.join(MAX_RUN_S)
    if child.is_alive():
        child.kill()
        child.join()
        return False, "too slow"
    output = output_file.read_text(errors="replace")
    if child.exitcode == 0:
        return True, output
    output += f"\npytest's process ended with {child.exitcode}"
    # A change may break even the import of the tests, end the process, or break what reports a failure.
    is_run = child.exitcode in (1, 2) or child.exitcode < 0
    has_failed = re.match(r"[.sxX]*[FE]", output) or re.search(BROKEN_IMPORT, output)
    return (False if is_run or has_failed else None), output


def run_pytest(output_file: Path, options: list[str], tests: list[str]) -> None:
    """Run pytest in this process, which has no module of kgwb yet, and end with its exit code."""
    import pytest

    with output_file.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    plugins = ["-p", "no:xdist", "-p", "no:cacheprovider"]
    # Modules that are imported before are not rewritten
    plugins += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    tests_file = Path("tests_to_run.txt")
    tests_file.write_text("\n".join(tests))
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        code = int(pytest.main([*options, *plugins, f"@{tests_file}"]))
    except BaseException:
        # Nothing else would print it: the process ends at once, since a mutant may have left threads behind.
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        os._exit(code)


def enter_project(projects: SimpleQueue[Path]) -> None:
    """Make one of the copies the current folder of this process, and import what most tests need.

    Nothing of kgwb is imported: each child of this process imports it as the change has left it. What a child
    compiles is not kept, since it may be changed.
    """
    project = projects.get()
    os.chdir(project)
    sys.path[:0] = [str(project), str(project / "tests")]
    os.environ["PYTHONPATH"] = str(project)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for module in PRELOADED:
        importlib.import_module(module)


def map_in_copies(
    function: Callable[[Task], Outcome], tasks: Iterable[Task], workers: int
) -> Iterator[Outcome]:
    """Yield what a function makes of each task, in processes that each have a copy of the project."""
    context = multiprocessing.get_context("fork")
    projects: SimpleQueue[Path] = context.SimpleQueue()
    for number in range(workers):
        projects.put(copy_project(BUILD / f"project{number}"))
    with ProcessPoolExecutor(workers, context, enter_project, (projects,)) as pool:
        yield from pool.map(function, tasks)


def run_mutants(mutants: list[Mutant], limit_s: float, workers: int, out: Path) -> None:
    """Try mutants, several at a time, and write a line of JSON for each."""
    tests = TestsOfLines()
    equivalent = read_equivalent()
    tasks = [(mutant, tests.of(mutant, limit_s)) for mutant in mutants]
    outcomes = map_in_copies(try_mutant, tasks, workers)
    counts: Counter[str] = Counter()
    started = time.monotonic()
    with out.open("w") as file:
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            row = asdict(mutant) | {"outcome": outcome, "identity": mutant.identity}
            if outcome != "killed" and mutant.identity in equivalent:
                row["outcome"] = "changes nothing"
            file.write(json.dumps(row) + "\n")
            file.flush()
            counts[str(row["outcome"])] += 1
            if row["outcome"] != "killed":
                print(
                    f"{row['outcome']}: {row['path']}:{row['line']} {row['identity']}", flush=True
                )
    tried = sum(counts.values()) - counts["changes nothing"]
    share = counts["killed"] / max(1, tried)
    seconds = time.monotonic() - started
    print(f"{dict(counts)}; killed share {share:.3f} of {tried}; {seconds:.0f} s")


def read_equivalent() -> set[str]:
    """The identities of mutants that change nothing, each on a line; what follows a tab is the reason."""
    if not EQUIVALENT_FILE.exists():
        return set()
    return {line.partition("\t")[0] for line in EQUIVALENT_FILE.read_text().splitlines()}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record")
    record.add_argument("arguments", nargs="*", help="arguments for pytest")
    run = commands.add_parser("run")
    run.add_argument("--count", type=int, default=400)
    run.add_argument("--seed", type=int, default=47)
    run.add_argument("--limit-s", type=float, default=60, help="seconds of tests for a mutant")
    run.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    run.add_argument("--out", type=Path, default=BUILD / "mutants.jsonl")
    run.add_argument("sources", nargs="*", default=SOURCES, help="patterns of paths")
    chosen = parser.parse_args()
    if chosen.command == "record":
        sys.exit(record_lines(chosen.arguments))
    run_mutants(
        draw_mutants(chosen.sources, chosen.count, chosen.seed),
        chosen.limit_s,
        chosen.workers,
        chosen.out,
    )


if __name__ == "__main__":
    main()
