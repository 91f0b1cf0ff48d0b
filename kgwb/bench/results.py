"""The folder of a benchmark: what is measured, and a line for each question that has been asked."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainValidator, ValidationError

from kgwb import disk
from kgwb.bench.questions import BenchQuestion
from kgwb.errors import InputError
from kgwb.flow import Turn
from kgwb.records import from_data
from kgwb.terms import name_from_iri

CONFIG_FILE, RESULTS_FILE = "config.json", "results.jsonl"
RUNS_FOLDER = "runs"
"""Folder of the saved runs, below that of the results."""
INFORMATIONAL_ENTRIES = frozenset({"source", "questions", "versions"})
"""Entries of the configuration that may differ; the latest are kept. Questions are compared one by one."""
BenchRow = dict[str, Any]
"""One line of the results file, as JSON data."""
NonNegativeInt = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1e12)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_OTHER_FOLDER_HINT = "give another --out folder"
_DISK_FULL_HINT = "free some space and give the same command again: it goes on from there"


class _TokenCounts(BaseModel):
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt


class _Usage(_TokenCounts):
    seconds: Seconds
    model_calls: NonNegativeInt
    models: dict[str, _TokenCounts]


class _LinkingCounts(BaseModel):
    gold: NonNegativeInt
    linked: NonNegativeInt
    candidates: NonNegativeInt


class RowSchema(BaseModel):
    """What every line holds, also one of the ladder; a field with a default may be absent, but not null."""

    id: str
    error: str | None
    f1: Share = 0
    hops: int | str = ""

    @classmethod
    def check_row(cls, row: object) -> BenchRow:
        """The data of a line. Raises ValueError saying what is wrong with it."""
        try:
            cls.model_validate(row)
        except ValidationError as exc:
            error = exc.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, error['loc']))}: {error['msg']}") from exc
        return row  # type: ignore[return-value]


class ResultRowSchema(RowSchema):
    """What is read of a line of the results file; what is not named here is only kept."""

    question: str
    type: str = ""
    language: str = ""
    source: str = ""
    answers: list[str]
    gold: list[str] | None
    seconds: Seconds
    model_calls: NonNegativeInt
    queries: NonNegativeInt
    prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0
    models: dict[str, _TokenCounts] = {}
    stages: dict[str, Seconds] = {}
    linking: dict[str, _LinkingCounts] = {}
    """How many of the gold query's vertices and predicates were linked, and among the candidates."""
    run: str = ""
    table: list[list[str | None]] = []
    """The cells of an answer that is a table."""
    gold_table: list[list[str | None]] = []
    by_column: dict[str, Share] = {}
    """F1 of each gold column against the column of the answer that fits it best."""
    labels: dict[str, str] = {}
    """What the vertices among answers and gold are called."""
    paid: _Usage | None = None
    """What its own calls cost, where other results lent it theirs."""
    repeats: NonNegativeInt = 1
    varies: str = ""
    """The agent whose decision varied when it was asked again."""
    remembered: Annotated[Any, PlainValidator(lambda data: from_data(data, Turn | None))] = None

    def model_post_init(self, context: object, /) -> None:
        if self.gold is not None and "f1" not in self.model_fields_set:
            raise ValueError("gold without f1")


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other benchmarks out of a folder, made if it is not there. Raises InputError if one is in it."""
    with disk.os_errors_as_input_error(f"{folder} cannot be used", _OTHER_FOLDER_HINT):
        folder.mkdir(parents=True, exist_ok=True)
        lock = disk.check_regular_file(folder / ".lock").open("a")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            hint = f"wait for it, or {_OTHER_FOLDER_HINT}"
            raise InputError(f"another benchmark is writing to {folder}", hint=hint) from exc
        yield


class RowFile:
    """A file of JSON lines, each with the id of a question; of two with one id the later counts."""

    def __init__(
        self, path: Path, form: type[RowSchema] = ResultRowSchema, *, writable: bool = True
    ) -> None:
        """Raises InputError for a damaged file, or one whose lines lack what ``form`` has.

        A last line that a killed process left unfinished is left out; ``writable`` cuts it off.
        """
        self.path, self.form = path, form
        self.rows: dict[str, BenchRow] = {}
        """What is there already, by question id, in the order it finished."""
        number = 0
        try:
            with disk.os_errors_as_input_error(f"{path} cannot be used", _OTHER_FOLDER_HINT):
                if writable:
                    disk.truncate_unfinished_line(path)
                for number, data in disk.read_json_lines(path) if path.exists() else ():  # noqa: B007
                    row = form.check_row(data)
                    self.rows[row["id"]] = row
        except ValueError as exc:
            number = getattr(exc, "line_number", number)
            hint = "delete this line: its question is then asked again"
            raise InputError(f"{path}, line {number}, is no result: {exc}", hint=hint) from exc

    def append(self, row: BenchRow) -> None:
        """Write one line. Raises InputError on a full disk, and for one that could not be read again."""
        try:
            self.form.check_row(row)
        except ValueError as exc:
            reason = f"the result of {row['id']!r} cannot be kept: {exc}"
            raise InputError(reason, hint="see which model, graph or question gives it") from exc
        with disk.os_errors_as_input_error(f"cannot write to {self.path}", _DISK_FULL_HINT):
            disk.append_text(self.path, _to_json_line(row), disk.JSON_ENCODING_ERRORS)
        self.rows[row["id"]] = row


class Results(RowFile):
    """``config.json`` and ``results.jsonl`` of one folder, made if it is not there."""

    def __init__(self, folder: str | Path, config: Mapping[str, Any]) -> None:
        """Raises InputError if the folder holds results of another configuration, or damaged ones."""
        self.folder = folder = Path(folder)
        path, results = folder / CONFIG_FILE, folder / RESULTS_FILE
        with disk.os_errors_as_input_error(f"{folder} cannot be used", _OTHER_FOLDER_HINT):
            earlier: Mapping[str, Any] = {}
            if path.exists() and results.exists() and results.stat().st_size:
                try:
                    earlier = _read_config(path)
                except (ValueError, RecursionError) as exc:
                    hint = f"{_OTHER_FOLDER_HINT}, or delete {CONFIG_FILE} if the results there are of this set-up"
                    raise InputError(f"{path} is not JSON: {exc}", hint=hint) from exc
                if changes := "; ".join(describe_config_changes(earlier, config)):
                    hint = f"{_OTHER_FOLDER_HINT}, go back to that set-up, or delete the folder to begin anew"
                    raise InputError(
                        f"{folder} holds results of another set-up: {changes}", hint=hint
                    )
            if earlier != config:
                disk.write_atomically(
                    path,
                    [json.dumps(config, indent=2, ensure_ascii=False), "\n"],
                    disk.JSON_ENCODING_ERRORS,
                )
        super().__init__(results)

    def drop_errors(self) -> None:
        """Forget the questions that ended in an error, so that they are asked again."""
        kept = {key: row for key, row in self.rows.items() if row["error"] is None}
        with disk.os_errors_as_input_error(f"cannot write to {self.path}", _DISK_FULL_HINT):
            disk.write_atomically(
                self.path, map(_to_json_line, kept.values()), disk.JSON_ENCODING_ERRORS
            )
        self.rows = kept

    def rows_for(self, questions: Sequence[BenchQuestion]) -> list[BenchRow]:
        """The lines of these questions. Raises InputError if one of them was asked otherwise then."""
        rows = [
            (question, self.rows[question.id]) for question in questions if question.id in self.rows
        ]
        for question, row in rows:
            if (row["question"], row["gold"]) != (question.question, question.gold):
                where = f"{self.path} holds another question or gold under the id {question.id!r}"
                raise InputError(where, hint=f"{_OTHER_FOLDER_HINT} for other questions")
        return [row for _, row in rows]


def read_results(folder: str | Path) -> tuple[dict[str, Any], list[BenchRow]]:
    """The configuration and the lines of a folder of results. Raises InputError if there are none."""
    try:
        config = _read_config(Path(folder) / CONFIG_FILE)
    except (OSError, ValueError, RecursionError) as exc:
        inside = sorted(str(path.parent) for path in Path(folder).glob(f"*/{CONFIG_FILE}"))
        which = (
            f"a folder in it: {', '.join(inside[:9])}"
            if inside
            else "the --out folder of a benchmark"
        )
        raise InputError(f"{folder} holds no results: {exc}", hint=f"give {which}") from exc
    return config, list(RowFile(Path(folder) / RESULTS_FILE, writable=False).rows.values())


def find_run_file(folder: Path, row: BenchRow) -> Path | None:
    """The saved run of a line, if it was kept; nothing outside the folder's runs is one."""
    try:
        path = folder / row.get("run", "")
        if not path.is_file():
            return None
        path = path.resolve()
        return path if path.is_relative_to(folder.resolve() / RUNS_FOLDER) else None
    except (OSError, ValueError, RuntimeError):  # no name of a file, or links in a circle
        return None


VERDICT_STATES = {
    "right": "ok",
    "wrong": "bad",
    "unanswered": "none",
    "error": "bad",
    "without gold": "off",
}
"""How an answer can be, with the sign it is shown by."""


def get_verdict(row: BenchRow) -> str:
    """Which of VERDICTS a line is; wrong is also what is right in part."""
    if row["error"] is not None:
        return "error"
    if row["gold"] is None:
        return "without gold"
    return "right" if not is_lost(row) else "wrong" if row["answers"] else "unanswered"


def get_label(row: BenchRow, value: str) -> str:
    """What a value among the answers or gold of a line is called; an IRI without a label by its last part."""
    return row.get("labels", {}).get(value) or (name_from_iri(value) if "://" in value else value)


def is_lost(row: BenchRow) -> bool:
    """Whether a question with gold was not answered by all of it and nothing else, strictly."""
    return row["gold"] is not None and (row["error"] is not None or row["f1"] < 1)


def _read_config(path: Path) -> dict[str, Any]:
    config = json.loads(disk.read_text(path))
    if not isinstance(config, dict):
        raise ValueError(f"{CONFIG_FILE} holds no object")
    return config


def _to_json_line(row: BenchRow) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def flatten_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a configuration says, down to single settings: ``{"settings theta": 3, ...}``."""
    parts = {
        name: value if isinstance(value, dict) else {"": value} for name, value in config.items()
    }
    return {
        f"{name} {part}".strip(): entry
        for name, about in parts.items()
        for part, entry in about.items()
    }


def describe_config_changes(
    earlier: Mapping[str, Any], present: Mapping[str, Any]
) -> Iterator[str]:
    """What differs between two configurations, down to single settings."""
    before, now = flatten_config(earlier), flatten_config(present)
    for name in dict.fromkeys((*before, *now)):
        if name.partition(" ")[0] not in INFORMATIONAL_ENTRIES and before.get(name) != now.get(
            name
        ):
            yield f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
