"""The second graph for Surveyor is frozen: its files are those that its README names."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

CLINIC = Path(__file__).parent.parent / "benchmarks" / "clinic"
FILES = ("clinic.ttl", "vocab.ttl", "questions.jsonl")


def sums_of_readme() -> dict[str, str]:
    """Return the sha256 of each file that the README has one for."""
    text = (CLINIC / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", text, re.MULTILINE))


def test_the_checksums_are_those_of_the_files() -> None:
    sums = {name: hashlib.sha256((CLINIC / name).read_bytes()).hexdigest() for name in FILES}
    assert sums_of_readme() == sums


@pytest.mark.long
def test_the_script_makes_the_same_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, CLINIC / "make_clinic.py", tmp_path], check=True)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (CLINIC / name).read_bytes(), name
