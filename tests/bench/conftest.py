"""Results for the tests of tables, figures and captions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import FILM, Rows, bench, change_rows, working_in, write_questions


@pytest.fixture(scope="session")
def measured_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of results: the answers are right in good_one, and wrong in bad."""

    def lose(rows: Rows) -> None:
        for row in rows:
            row["answers"] = [f"{FILM}Dune"]

    with working_in(tmp_path_factory.mktemp("measured")) as folder:
        write_questions(*[{"answers": [f"{FILM}Dune"]}] * 12, file="wrong.jsonl")
        write_questions(*[{}] * 12)
        assert bench(out="good_one") == 0
        assert bench("--set", "refuses_inexpressible=false", out="bad") == 0
        change_rows("bad", lose)
    return folder


@pytest.fixture
def measured(measured_once: Path, here: Path) -> list[Path]:
    """Copies of these folders in the working one."""
    shutil.copytree(measured_once, here, dirs_exist_ok=True)
    return [Path("good_one"), Path("bad")]
