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
from kgwb.terms import local_name

CONFIG, RESULTS = "config.json", "results.jsonl"
RUNS = "runs"
"""Folder of the saved runs, below that of the results."""
FOR_PEOPLE = frozenset({"source", "questions", "versions"})
"""Entries of the configuration that may differ; the latest are kept. Questions are compared one by one."""
Row = dict[str, Any]
"""One line of the results file, as JSON data."""
Whole = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1e12)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_ANOTHER = "give another --out folder"
_FULL = "free some space and give the same command again: it goes on from there"


class _Tokens(BaseModel):
    prompt_tokens: Whole
    completion_tokens: Whole


class _Used(_Tokens):
    seconds: Seconds
    model_calls: Whole
    models: dict[str, _Tokens]


class _Linked(BaseModel):
    gold: Whole
    linked: Whole
    candidates: Whole


class Line(BaseModel):
    """What every line holds, also one of the ladder; a field with a default may be absent, but not null."""

    id: str
    error: str | None
    f1: Share = 0
    hops: int | str = ""

    @classmethod
    def check(cls, row: object) -> Row:
        """The data of a line. Raises ValueError saying what is wrong with it."""
        try:
            cls.model_validate(row)
        except ValidationError as exc:
            error = exc.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, error['loc']))}: {error['msg']}") from exc
        return row  # type: ignore[return-value]


class Result(Line):
    """What is read of a line of the results file; what is not named here is only kept."""

    question: str
    type: str = ""
    language: str = ""
    source: str = ""
    answers: list[str]
    gold: list[str] | None
    seconds: Seconds
    model_calls: Whole
    queries: Whole
    prompt_tokens: Whole = 0
    completion_tokens: Whole = 0
    models: dict[str, _Tokens] = {}
    stages: dict[str, Seconds] = {}
    linking: dict[str, _Linked] = {}
    """How many of the gold query's vertices and predicates were linked, and among the candidates."""
    run: str = ""
    table: list[list[str | None]] = []
    """The cells of an answer that is a table."""
    gold_table: list[list[str | None]] = []
    by_column: dict[str, Share] = {}
    """F1 of each gold column against the column of the answer that fits it best."""
    labels: dict[str, str] = {}
    """What the vertices among answers and gold are called."""
    paid: _Used | None = None
    """What its own calls cost, where other results lent it theirs."""
    repeats: Whole = 1
    varies: str = ""
    """The agent whose decision varied when it was asked again."""
    remembered: Annotated[Any, PlainValidator(lambda data: from_data(data, Turn | None))] = None

    def model_post_init(self, context: object, /) -> None:
        if self.gold is not None and "f1" not in self.model_fields_set:
            raise ValueError("gold without f1")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other benchmarks out of a folder, made if it is not there. Raises InputError if one is in it."""
    with disk.explained(f"{folder} cannot be used", _ANOTHER):
        folder.mkdir(parents=True, exist_ok=True)
        lock = disk.plain(folder / ".lock").open("a")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            hint = f"wait for it, or {_ANOTHER}"
            raise InputError(f"another benchmark is writing to {folder}", hint=hint) from exc
        yield


class Lines:
    """A file of JSON lines, each with the id of a question; of two with one id the later counts."""

    def __init__(self, path: Path, form: type[Line] = Result, *, writable: bool = True) -> None:
        """Raises InputError for a damaged file, or one whose lines lack what ``form`` has.

        A last line that a killed process left unfinished is left out; ``writable`` cuts it off.
        """
        self.path, self.form = path, form
        self.rows: dict[str, Row] = {}
        """What is there already, by question id, in the order it finished."""
        number = 0
        try:
            with disk.explained(f"{path} cannot be used", _ANOTHER):
                if writable:
                    disk.cut_unfinished(path)
                for number, data in disk.json_lines(path) if path.exists() else ():  # noqa: B007
                    row = form.check(data)
                    self.rows[row["id"]] = row
        except ValueError as exc:
            number = getattr(exc, "number", number)
            hint = "delete this line: its question is then asked again"
            raise InputError(f"{path}, line {number}, is no result: {exc}", hint=hint) from exc

    def add(self, row: Row) -> None:
        """Write one line. Raises InputError on a full disk, and for one that could not be read again."""
        try:
            self.form.check(row)
        except ValueError as exc:
            reason = f"the result of {row['id']!r} cannot be kept: {exc}"
            raise InputError(reason, hint="see which model, graph or question gives it") from exc
        with disk.explained(f"cannot write to {self.path}", _FULL):
            disk.append(self.path, _json_line(row), disk.AS_JSON)
        self.rows[row["id"]] = row


class Results(Lines):
    """``config.json`` and ``results.jsonl`` of one folder, made if it is not there."""

    def __init__(self, folder: str | Path, config: Mapping[str, Any]) -> None:
        """Raises InputError if the folder holds results of another configuration, or damaged ones."""
        self.folder = folder = Path(folder)
        path, results = folder / CONFIG, folder / RESULTS
        with disk.explained(f"{folder} cannot be used", _ANOTHER):
            earlier: Mapping[str, Any] = {}
            if path.exists() and results.exists() and results.stat().st_size:
                try:
                    earlier = _read_config(path)
                except (ValueError, RecursionError) as exc:
                    hint = f"{_ANOTHER}, or delete {CONFIG} if the results there are of this set-up"
                    raise InputError(f"{path} is not JSON: {exc}", hint=hint) from exc
                if changes := "; ".join(changed_entries(earlier, config)):
                    hint = f"{_ANOTHER}, go back to that set-up, or delete the folder to begin anew"
                    raise InputError(
                        f"{folder} holds results of another set-up: {changes}", hint=hint
                    )
            if earlier != config:
                disk.replace(
                    path, [json.dumps(config, indent=2, ensure_ascii=False), "\n"], disk.AS_JSON
                )
        super().__init__(results)

    def retry_errors(self) -> None:
        """Forget the questions that ended in an error, so that they are asked again."""
        kept = {key: row for key, row in self.rows.items() if row["error"] is None}
        with disk.explained(f"cannot write to {self.path}", _FULL):
            disk.replace(self.path, map(_json_line, kept.values()), disk.AS_JSON)
        self.rows = kept

    def of(self, questions: Sequence[BenchQuestion]) -> list[Row]:
        """The lines of these questions. Raises InputError if one of them was asked otherwise then."""
        rows = [
            (question, self.rows[question.id]) for question in questions if question.id in self.rows
        ]
        for question, row in rows:
            if (row["question"], row["gold"]) != (question.question, question.gold):
                where = f"{self.path} holds another question or gold under the id {question.id!r}"
                raise InputError(where, hint=f"{_ANOTHER} for other questions")
        return [row for _, row in rows]


def read_results(folder: str | Path) -> tuple[dict[str, Any], list[Row]]:
    """The configuration and the lines of a folder of results. Raises InputError if there are none."""
    try:
        config = _read_config(Path(folder) / CONFIG)
    except (OSError, ValueError, RecursionError) as exc:
        inside = sorted(str(path.parent) for path in Path(folder).glob(f"*/{CONFIG}"))
        which = (
            f"a folder in it: {', '.join(inside[:9])}"
            if inside
            else "the --out folder of a benchmark"
        )
        raise InputError(f"{folder} holds no results: {exc}", hint=f"give {which}") from exc
    return config, list(Lines(Path(folder) / RESULTS, writable=False).rows.values())


def run_file(folder: Path, row: Row) -> Path | None:
    """The saved run of a line, if it was kept; nothing outside the folder's runs is one."""
    try:
        path = folder / row.get("run", "")
        if not path.is_file():
            return None
        path = path.resolve()
        return path if path.is_relative_to(folder.resolve() / RUNS) else None
    except (OSError, ValueError, RuntimeError):  # no name of a file, or links in a circle
        return None


VERDICTS = {
    "right": "ok",
    "wrong": "bad",
    "unanswered": "none",
    "error": "bad",
    "without gold": "off",
}
"""How an answer can be, with the sign it is shown by."""


def verdict(row: Row) -> str:
    """Which of VERDICTS a line is; wrong is also what is right in part."""
    if row["error"] is not None:
        return "error"
    if row["gold"] is None:
        return "without gold"
    return "right" if not lost(row) else "wrong" if row["answers"] else "unanswered"


def label_of(row: Row, value: str) -> str:
    """What a value among the answers or gold of a line is called; an IRI without a label by its last part."""
    return row.get("labels", {}).get(value) or (local_name(value) if "://" in value else value)


def lost(row: Row) -> bool:
    """Whether a question with gold was not answered by all of it and nothing else, strictly."""
    return row["gold"] is not None and (row["error"] is not None or row["f1"] < 1)


def _read_config(path: Path) -> dict[str, Any]:
    config = json.loads(disk.read_text(path))
    if not isinstance(config, dict):
        raise ValueError(f"{CONFIG} holds no object")
    return config


def _json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def entries_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a configuration says, down to single settings: ``{"settings theta": 3, ...}``."""
    parts = {
        name: value if isinstance(value, dict) else {"": value} for name, value in config.items()
    }
    return {
        f"{name} {part}".strip(): entry
        for name, about in parts.items()
        for part, entry in about.items()
    }


def changed_entries(earlier: Mapping[str, Any], present: Mapping[str, Any]) -> Iterator[str]:
    """What differs between two configurations, down to single settings."""
    before, now = entries_of(earlier), entries_of(present)
    for name in dict.fromkeys((*before, *now)):
        if name.partition(" ")[0] not in FOR_PEOPLE and before.get(name) != now.get(name):
            yield f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
