"""The reader of the tables that stand beside tests: cases, each with what is given and what is expected."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any


def read_table(path: Path, key: str = "case") -> list[Any]:
    """The rows of a table: each line of JSON lines, or a list of a TOML file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    rows: list[Any] = tomllib.loads(text)[key]
    return rows
