"""Results for the tests of tables, figures and captions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgwb.cli import main


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two folders of results: the questions are right in the first, and mostly wrong in the second."""
    monkeypatch.chdir(tmp_path)
    film = "https://kgwb.example/films/"
    rows = []
    for number in range(12):
        rows.append(
            {"id": f"{number}", "question": "Who directed Arrival?", "answers": [f"{film}Dune"]}
        )
    wrong = Path("wrong.jsonl")
    wrong.write_text("\n".join(map(json.dumps, rows)))
    for row in rows:
        row["answers"] = [f"{film}Denis_Villeneuve"]
    right = Path("right.jsonl")
    right.write_text("\n".join(map(json.dumps, rows)))
    for name, settings in (("good_one", []), ("bad", ["--set", "refuses_inexpressible=false"])):
        command = ["bench", "--kg", "films", "--questions", str(right), "--out", name, *settings]
        assert main(command) == 0
    results = Path("bad/results.jsonl")
    lines = []
    for line in results.read_text().splitlines():
        row = json.loads(line)
        if row.get("answers"):
            row["answers"] = [f"{film}Dune"]
        lines.append(json.dumps(row))
    results.write_text("\n".join(lines) + "\n")
    return [Path("good_one"), Path("bad")]
