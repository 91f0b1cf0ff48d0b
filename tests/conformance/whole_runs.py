"""Whole runs in profile ``paper``, kept as files: what each request sends, what each step makes, and the answer.

    python tests/conformance/whole_runs.py          write tests/conformance/whole_runs/SYSTEM.jsonl anew

A test of each system compares them, see ``check_whole_runs``. So nothing that a model is sent, and nothing that comes
of its replies, changes unseen. Where it changes on purpose, read the difference against the paper.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("whole_runs")
MAX_TEXT_CHARS = 600

if str(TESTS) not in sys.path:  # as pytest does
    sys.path.insert(0, str(TESTS))

from conformance.table import systems_with_claims  # noqa: E402  # needs the path
from kgwb.llm import Scripted  # noqa: E402  # needs the path
from kgwb.run import Run  # noqa: E402

WholeRuns = Mapping[str, tuple[Run, Scripted]]
"""Executed runs with their models, by a name."""


def describe_runs(runs: WholeRuns) -> Iterator[str]:
    """Yield a line of JSON for each request, step and answer of some runs.

    A request has its variables as they are, long texts by their beginning and a fingerprint. Of its
    messages, which are long, it has a fingerprint.
    """
    for name, (run, model) in runs.items():
        for request in model.requests:
            sent = json.dumps([[message.role, message.content] for message in request.messages])
            yield _line(
                run=name,
                prompt=request.task,
                variables={name: _shorten(value) for name, value in request.variables.items()},
                messages=_fingerprint(sent),
                seed=request.seed,
                temperature=request.temperature,
            )
        for step in run.steps:
            yield _line(run=name, step=step.key, output=str(step.output), notes=step.notes)
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
                reason=answer.reason,
                queries=answer.queries,
            )


def _shorten(value: Any) -> Any:
    """Return a variable, a long text as its beginning with a fingerprint of all of it."""
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return f"{value[: MAX_TEXT_CHARS // 2]} … {_fingerprint(value)}"
    return value


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _line(**entry: Any) -> str:
    return json.dumps(entry, ensure_ascii=False, default=str)


def check_whole_runs(system: str, runs: WholeRuns) -> None:
    """Check that the runs of a system are those of its file, line by line."""
    recorded = (FOLDER / f"{system}.jsonl").read_text(encoding="utf-8").splitlines()
    for number, (now, before) in enumerate(zip(describe_runs(runs), recorded, strict=True), 1):
        assert now == before, f"line {number} of {system}.jsonl: see {Path(__file__).name}"


def main() -> None:
    os.environ["KGWB_EMBEDDINGS"] = "lexical"
    FOLDER.mkdir(exist_ok=True)
    for system in systems_with_claims():
        module = importlib.import_module(f"conformance.test_{system}")
        if hasattr(module, "make_whole_runs"):
            lines = describe_runs(module.make_whole_runs())
            path = FOLDER / f"{system}.jsonl"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
