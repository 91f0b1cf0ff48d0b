"""The folder of a benchmark: what is measured, and a line for each question that has been asked."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError
from kgwb.record import RunFile

CONFIG = "config.json"
RESULTS = "results.jsonl"
FOR_PEOPLE = frozenset({"source"})
"""Entries of the configuration that may differ: the same graph can lie elsewhere."""
Row = dict[str, Any]
"""One line of the results file, as JSON data."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other benchmarks out of a folder, made if it is not there. Raises InputError if one is in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as exc:
        raise InputError(f"{folder} cannot be used: {exc}", hint="give another --out folder") from exc
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            hint = "wait for it, or give another --out folder"
            raise InputError(f"another benchmark is writing to {folder}", hint=hint) from exc
        yield


class Results:
    """``config.json`` and ``results.jsonl`` of one folder, made if it is not there."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        """Raises InputError if the folder holds results of another configuration, or damaged ones."""
        self.folder = folder
        self.rows: dict[str, Row] = {}
        """What is there already, by question id, in the order it finished."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._agree(config)
            self._read()
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"{folder} cannot be used: {exc}", hint="give another --out folder") from exc

    def _agree(self, config: Mapping[str, Any]) -> None:
        path = self.folder / CONFIG
        if not path.exists():
            path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            return
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as exc:
            raise InputError(f"{path} is not JSON: {exc}", hint="give another --out folder") from exc
        changes = list(_changes(earlier, config))
        if changes:
            raise InputError(
                f"{self.folder} holds results of another set-up: {'; '.join(changes)}",
                hint="give another --out folder, go back to that set-up, or delete the folder to begin anew",
            )

    def _read(self) -> None:
        path = self.folder / RESULTS
        RunFile(path).mend()
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                self.rows[row["id"]] = row
            except (ValueError, KeyError, TypeError) as exc:
                hint = "delete this line: its question is then asked again"
                raise InputError(f"{path}, line {number}, is no result", hint=hint) from exc

    def retry_errors(self) -> None:
        """Forget the questions that ended in an error, so that they are asked again."""
        self.rows = {key: row for key, row in self.rows.items() if row["error"] is None}
        draft = self.folder / (RESULTS + ".part")
        draft.write_text("".join(map(_json_line, self.rows.values())), encoding="utf-8")
        draft.replace(self.folder / RESULTS)

    def add(self, row: Row) -> None:
        """Write one line and hand it to the operating system."""
        with (self.folder / RESULTS).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(_json_line(row))
        self.rows[row["id"]] = row

    def of(self, questions: Sequence[BenchQuestion]) -> list[Row]:
        """The lines of these questions. Raises InputError if one of them was asked otherwise then."""
        rows = [(question, self.rows[question.id]) for question in questions if question.id in self.rows]
        for question, row in rows:
            if (row["question"], row["gold"]) != (question.question, list(question.answers)):
                raise InputError(
                    f"{self.folder / RESULTS} holds another question or gold under the id {question.id!r}",
                    hint="give another --out folder for other questions",
                )
        return [row for _, row in rows]


def _json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _changes(earlier: Mapping[str, Any], present: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs between two configurations, down to single settings."""
    for name in [name for name in dict.fromkeys((*earlier, *present)) if name not in FOR_PEOPLE]:
        one, other = earlier.get(name), present.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _changes(one, other, f"{prefix}{name} ")
        elif one != other:
            yield f"{prefix}{name or 'default'} was {one!r} and is now {other!r}"
