"""Whole runs, kept as files: what each request sends, what each step makes, and the answer.

    python tests/conformance/whole_runs.py            write tests/conformance/whole_runs/SYSTEM.jsonl anew
    python tests/conformance/whole_runs.py SYSTEM     the same of one system

Questions, replies and settings are in SYSTEM.toml beside it, gold queries in gold.toml. They are made into
runs by the test of the system, which compares them, see ``check_whole_runs``. So nothing that a model is sent,
and nothing that comes of its replies, changes unseen. Where it changes on purpose, read the difference against
the paper.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("whole_runs")
MAX_CHARS = 160
"""Characters of a text that are kept as they are."""
MODULES = {"surveyor": "systems.surveyor.test_whole_runs"}
"""Where the runs of a system are made that has no claims."""

if str(TESTS) not in sys.path:  # as pytest does
    sys.path.insert(0, str(TESTS))

from conformance.table import systems_with_claims  # noqa: E402  # needs the path
from kgwb import open_kg  # noqa: E402  # needs the path
from kgwb.bench.ladder import load_gold_query  # noqa: E402
from kgwb.bench.questions import BenchQuestion  # noqa: E402
from kgwb.errors import KgwbError  # noqa: E402  # needs the path
from kgwb.kg import Graph  # noqa: E402  # needs the path
from kgwb.kg.algebra import patterns_to_sparql  # noqa: E402
from kgwb.llm import Scripted  # noqa: E402  # needs the path
from kgwb.records import to_data  # noqa: E402  # needs the path
from kgwb.run import Run  # noqa: E402

WholeRuns = Mapping[str, tuple[Run, Scripted]]
"""Executed runs with their models, by a name."""


def read_cases(system: str) -> dict[str, Any]:
    """Read the questions and replies of a system's whole runs that are kept as data."""
    return tomllib.loads((FOLDER / f"{system}.toml").read_text(encoding="utf-8"))


def read_golds(system: str) -> list[str]:
    """Read the gold queries that stand for those of the questions of a system's whole runs."""
    queries: list[str] = read_cases("gold")[system]
    return [f"PREFIX : <http://example.org/> {query}" for query in queries]


def open_in_order(turtle: str) -> Graph:
    """Open a graph whose triples always come in one order, as those of a file do."""
    file = Path(tempfile.mkdtemp()) / "graph.ttl"
    file.write_text(turtle, encoding="utf-8")
    return open_kg(file)


def run_to_end(run: Run) -> Run:
    """Execute a run to its answer, or to its error, which its steps have."""
    with suppress(KgwbError):
        run.go()
    return run


def describe_runs(runs: WholeRuns, golds: Iterable[str] = ()) -> Iterator[str]:
    """Yield a line of JSON for the settings, each request, graph query, step and the answer of some runs.

    There is one also for what each run linked, for what each of some gold queries would put in, and
    for what is refused of the outputs of earlier runs.

    A request to a model has its variables. Of its messages with the form of the reply, and of the
    whole output of a step, there is a fingerprint, and so there is of other long values.
    """
    outputs: dict[str, Any] = {}
    for name, (run, model) in runs.items():
        yield _line(run=name, settings=_without_paths(run.settings.to_data()))
        for request in model.requests:
            sent = [[message.role, message.content] for message in request.messages]
            yield _line(
                run=name,
                prompt=request.task,
                variables=_short(request.variables),
                messages=_fingerprint([sent, request.schema]),
                seed=request.seed,
                temperature=request.temperature,
            )
        for call in run.calls.values():
            if call.kind != "model":
                asked = _short(_without_paths(call.request))
                yield _line(run=name, call=call.kind, step=call.step, request=asked)
        for step in run.steps:
            if not step.done:
                yield _line(run=name, step=step.key, failed=True)
                continue
            output_type = run.system.agent_spec(step.key).output_type
            yield _line(
                run=name,
                step=step.key,
                output=str(step.output)[:MAX_CHARS],
                notes=step.notes,
                data=_fingerprint(to_data(step.output, output_type)),
            )
        answer = run.answer
        if answer is not None:
            support = [len(value.support) for value in answer.values]
            yield _line(
                run=name,
                answer=answer.labels,
                kind=answer.kind,
                terms=[type(value.term).__name__ for value in answer.values],
                support=support,
                ungrounded=answer.ungrounded,
                text=answer.text,
                reason=answer.reason,
                doubt=answer.doubt,
                queries=answer.queries,
            )
        yield from describe_gold(name, run, golds)
        yield from describe_refusals(name, run, outputs)
        outputs |= {step.agent: step.output for step in run.steps if step.done}


def describe_refusals(name: str, run: Run, outputs: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each step that would not take what its agent made in an earlier run: what is wrong with it."""
    for step in run.steps:
        check = run.system.agent_spec(step.key).check
        if step.done and check and step.agent in outputs:
            problems = list(check(outputs[step.agent], *step.inputs.values()))
            if problems:
                yield _line(run=name, step=step.key, **_short({"refused": problems}))


def describe_gold(name: str, run: Run, golds: Iterable[str]) -> Iterator[str]:
    """Yield a line for what a run linked, and one for each gold query with a result in its graph.

    That has what each rung of the ladder would put in, and whom it would blame.
    """
    kg, decisions = run.unrecorded_graph, run.system.gold
    assert kg is not None and decisions is not None
    linked = {each: sorted(iris) for each, iris in decisions.linked(run)._asdict().items()}
    yield _line(run=name, linked=_short(linked))
    for sparql in golds:
        question = BenchQuestion(
            id=name,
            question=run.question,
            sparql=sparql,
            dialogue="1",
            standalone=f"{run.question} So.",
        )
        gold = load_gold_query(question, kg)
        if gold is None or not kg.ask(f"ASK {{ {patterns_to_sparql(gold.patterns)} }}"):
            continue
        for title, make_rung in decisions.ladder.items():
            rung = make_rung(run, gold)
            if rung is not None:
                values = {}
                for key, value in rung.values.items():
                    data = to_data(value, run.system.agent_spec(key).output_type)
                    values[key] = [str(value)[:MAX_CHARS], _fingerprint(data)]
                yield _line(run=name, rung=title, gold=sparql, blamed=rung.agent, values=values)


def _without_paths(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name, but for what names a graph or a file, which another run has elsewhere."""
    left_out = ("graph", "source", "identity", "annotations", "documents")
    return {name: value for name, value in data.items() if name not in left_out}


def _short(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by name; of a long one, its beginning and a fingerprint."""
    values = {}
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        values[name] = value
        if len(text) > MAX_CHARS:
            values[name] = f"{text[:MAX_CHARS]} … {_fingerprint(text)}"
    return values


def _line(**entry: Any) -> str:
    return json.dumps(entry, ensure_ascii=False, default=str)


def _fingerprint(data: Any) -> str:
    """Return 12 hexadecimal digits that stand for JSON data, without what varies by machine or run."""
    text = json.dumps(_stable(data), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _stable(data: Any) -> Any:
    """Return JSON data with rounded fractions, without the ids of blank nodes and measured seconds."""
    if isinstance(data, float):
        return round(data, 4)
    if isinstance(data, dict):
        if data.get("type") == "bnode":
            return "bnode"
        return {key: _stable(value) for key, value in data.items() if key != "seconds"}
    if isinstance(data, list | tuple):
        return [_stable(value) for value in data]
    return data


def check_whole_runs(system: str, runs: WholeRuns) -> None:
    """Check that the runs of a system are those of its file, line by line."""
    recorded = (FOLDER / f"{system}.jsonl").read_text(encoding="utf-8").splitlines()
    lines = describe_runs(runs, read_golds(system))
    for number, (now, before) in enumerate(zip(lines, recorded, strict=True), 1):
        assert now == before, f"line {number} of {system}.jsonl: see {Path(__file__).name}"


def main() -> None:
    os.environ["KGWB_EMBEDDINGS"] = "lexical"
    os.environ["KGWB_CACHE"] = tempfile.mkdtemp()  # as in tests: no database of other code
    FOLDER.mkdir(exist_ok=True)
    for system in sys.argv[1:] or [*systems_with_claims(), *MODULES]:
        module = importlib.import_module(MODULES.get(system, f"conformance.test_{system}"))
        if hasattr(module, "make_whole_runs"):
            lines = describe_runs(module.make_whole_runs(), read_golds(system))
            path = FOLDER / f"{system}.jsonl"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
