"""Benchmarks of films in the terminal: what is measured, what is asked again, and the rows in their folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kgwb.bench.results import RESULTS_FILE, read_results
from kgwb.cli import main
from kgwb.kg import sample_path

FILM = "https://kgwb.example/films/"
DENIS = f"{FILM}Denis_Villeneuve"
QUESTION = "Who directed Arrival?"
FILMS_QUESTIONS = str(sample_path("films").with_suffix(".questions.jsonl"))
"""The questions on films that kgwb brings."""
Rows = list[dict[str, Any]]


def write_lines(path: Path | str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    Path(path).write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")


def write_questions(*questions: Mapping[str, Any], file: str = "q.jsonl") -> None:
    """Write a question set: who directed Arrival, with its answer, where a question says nothing else."""
    asked = []
    for number, question in enumerate(questions or ({},), 1):
        asked.append({"id": f"{number}", "question": QUESTION, "answers": [DENIS], **question})
    write_lines(file, asked)


def bench(*options: str, out: str = "r", kg: str = "films", questions: str = "q.jsonl") -> int:
    """Measure a question set, and return the exit status."""
    return main(["bench", "--kg", kg, "--questions", questions, "--out", out, *options])


def measure(*questions: Mapping[str, Any], options: Iterable[str] = ()) -> Path:
    """Write a question set, measure it in the folder r, and return this folder."""
    write_questions(*questions)
    assert bench(*options) == 0
    return Path("r")


def retry(*options: str) -> int:
    """Ask again what was measured in the folder r, and return the exit status."""
    return main(["retry", "r", *options])


def retries(folder: str = "r") -> set[Path]:
    """The folders of what was asked again."""
    return {path.parent for path in Path(folder).glob(f"retries/*/{RESULTS_FILE}")}


def rows(folder: Path | str = "r") -> Rows:
    """The rows of a folder of results."""
    return read_results(folder)[1]


def change_rows(folder: Path | str, change: Callable[[Rows], None]) -> None:
    """Change the rows of a folder of results."""
    changed = rows(folder)
    change(changed)
    write_lines(Path(folder, RESULTS_FILE), changed)


def once(set_up: Callable[[], object]) -> Any:
    """A fixture: the working folder with a copy of what was set up there, which is done for one test only."""
    folders: list[Path] = []

    @pytest.fixture
    def copied(here: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
        if not folders:
            folder = tmp_path_factory.mktemp("once")
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                set_up()
            folders.append(folder)
        shutil.copytree(folders[0], here, dirs_exist_ok=True)
        return here

    return copied
