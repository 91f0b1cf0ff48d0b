"""The second graph for Surveyor is frozen: its files are those that its README names."""

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

CLINIC = Path(__file__).parent.parent / "benchmarks" / "clinic"
FILES = ("clinic.ttl", "vocab.ttl", "questions.jsonl")
KINDS = {
    "lookup": 8,
    "join": 9,
    "count": 6,
    "yes-no": 3,
    "superlative": 7,
    "filter": 7,
    "group": 5,
    "negation": 3,
    "optional": 2,
    "path": 2,
    "set": 2,
    "unanswerable": 6,
}


def sums_of_readme() -> dict[str, str]:
    """Return the sha256 of each file that the README has one for."""
    text = (CLINIC / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", text, re.MULTILINE))


def test_the_checksums_are_those_of_the_files() -> None:
    sums = {name: hashlib.sha256((CLINIC / name).read_bytes()).hexdigest() for name in FILES}
    assert sums_of_readme() == sums


def test_the_questions_are_of_the_kinds_that_the_readme_counts() -> None:
    lines = (CLINIC / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert Counter(row["kind"] for row in rows) == KINDS
    assert [bool(row["answers"]) for row in rows] == [not row["unanswerable"] for row in rows]


@pytest.mark.long
def test_the_script_makes_the_same_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, CLINIC / "make_clinic.py", tmp_path], check=True)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (CLINIC / name).read_bytes(), name
