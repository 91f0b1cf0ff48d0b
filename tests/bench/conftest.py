"""Results for the tests of tables, figures and captions."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import FILM, Rows, bench, change_rows, once, write_questions


def measure_twice() -> None:
    """Measure in two folders: the answers are right in good_one, and wrong in bad."""

    def lose(rows: Rows) -> None:
        for row in rows:
            row["answers"] = [f"{FILM}Dune"]

    write_questions(*[{"answers": [f"{FILM}Dune"]}] * 12, file="wrong.jsonl")
    write_questions(*[{}] * 12)
    assert bench(out="good_one") == 0
    assert bench("--set", "refuses_inexpressible=false", out="bad") == 0
    change_rows("bad", lose)


measured_twice = once(measure_twice)


@pytest.fixture
def measured(measured_twice: Path) -> list[Path]:
    """The two folders."""
    return [Path("good_one"), Path("bad")]
