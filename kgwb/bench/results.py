"""The folder of a benchmark: its configuration, and a row for each question that has been asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, PlainValidator, ValidationError

from kgwb import disk
from kgwb.bench.metrics import find_columns_not_asked_for
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.values import is_iri
from kgwb.errors import InputError
from kgwb.flow import Dialogue, Turn
from kgwb.records import describe_validation_error, from_data
from kgwb.terms import name_from_iri

T = TypeVar("T")
CONFIG_FILE = "config.json"
RESULTS_FILE = "results.jsonl"
RUNS_FOLDER = "runs"
"""Folder of the saved runs, inside the results folder."""
INFORMATIONAL_ENTRIES = frozenset({"source", "questions", "versions"})
"""Entries of the configuration that may differ when a benchmark is resumed; the latest are kept.

Questions may differ because each row is compared with its own question.
"""
BenchRow = dict[str, Any]
"""One line of a results file, as JSON data."""
NonNegativeInt = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1e12)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_OTHER_FOLDER_HINT = "name another folder with --out"
_DISK_FULL_HINT = "free some space and give the same command again: it continues from there"


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


class _AnswerOfReading(BaseModel):
    """What was answered with the question read in another way."""

    other: str
    answers: list[str]
    table: list[list[str | None]] = []
    error: str | None = None


class RowSchema(BaseModel):
    """The fields of every row, of results and of the ladder.

    A field with a default may be absent, but not null. Fields that are not named are kept.
    """

    id: str
    error: str | None
    f1: Share = 0
    hops: int | str = ""

    @classmethod
    def check_row(cls, row: object) -> BenchRow:
        """Validate a row by this schema, and return it unchanged, with fields that are not in the schema.

        Raises ValueError, with what is wrong, if it is not valid.
        """
        try:
            cls.model_validate(row)
        except ValidationError as exc:
            raise ValueError(describe_validation_error(exc)) from exc
        return row  # type: ignore[return-value]


class ResultRowSchema(RowSchema):
    """The fields of a row of the results file that kgwb reads."""

    question: str
    type: str = ""
    language: str = ""
    source: str = ""
    answers: list[str]
    gold: list[str] | None
    seconds: Seconds
    model_calls: NonNegativeInt
    queries: NonNegativeInt
    """Requests to the graph."""
    executed_queries: NonNegativeInt = 0
    """The queries that the answer came from."""
    words: NonNegativeInt = 0
    predicates: NonNegativeInt = 0
    """The predicates of the gold query."""
    prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0
    models: dict[str, _TokenCounts] = {}
    served: dict[str, list[str]] = {}
    """The versions that answered, by the model's name, as the servers named them."""
    stages: dict[str, Seconds] = {}
    """The seconds of each stage, with the wait for models."""
    model_seconds: Seconds = 0
    """The wait for models."""
    stage_model_seconds: dict[str, Seconds] = {}
    linking: dict[str, _LinkingCounts] = {}
    """How many of the gold query's vertices and predicates were linked, or were candidates."""
    cut_rows: NonNegativeInt = 0
    """At how many rows a limit cut the result of one of the answer's queries; missing if none was cut."""
    run: str = ""
    """Path of the saved run inside the folder; empty if the run was not saved."""
    table: list[list[str | None]] = []
    """The rows of an answer that is a table."""
    readings: list[_AnswerOfReading] = []
    """The answers of the other readings that were offered; missing if these were not asked."""
    gold_table: list[list[str | None]] = []
    by_column: dict[str, Share] = {}
    """F1 of each gold column with the best matching column of the answer."""
    labels: dict[str, str] = {}
    """Labels of the vertices among the answers and the gold."""
    paid: _Usage | None = None
    """What its own calls cost, without those that were asked before."""
    asks: list[dict[str, Share] | None] = []
    """The scores of each ask, if it was asked several times; None for an error."""
    asks_before: list[dict[str, Share] | None] = []
    """The scores of each ask before a change."""
    varies: str = ""
    """In results of earlier versions: the agent whose decision varied without a change."""
    unreachable: bool = False
    """Whether the model or the graph could not be reached. The question is then asked again."""
    remembered: Annotated[Any, PlainValidator(lambda data: from_data(data, Turn | None))] = None

    def model_post_init(self, context: object, /) -> None:
        """Raise ValueError for a row that has gold but no F1."""
        if self.gold is not None and "f1" not in self.model_fields_set:
            raise ValueError("gold without f1")


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """The questions of a retry from which figures for all measured questions can be estimated."""

    ids: frozenset[str] = frozenset()
    """Empty if questions were chosen so that they say nothing about the others."""
    right_weight: float = 1.0
    """How many questions each question that was right before stands for; a lost one stands for itself."""

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> QuestionSample | None:
        """Return the sample that a retry's configuration has under "questions"; None if it has none."""
        questions = config.get("questions") or {}
        data = questions.get("sample")
        if data is None:
            return None
        return cls(frozenset(data["ids"]), data["right_weight"])

    def add_to_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration that names the sample."""
        data = {
            "ids": sorted(self.ids),
            "right_weight": self.right_weight,
        }
        questions = {**config["questions"], "sample": data}
        return {**config, "questions": questions}


@contextmanager
def lock_folder(
    folder: Path, waiting_hint: str = f"wait until it has ended, or {_OTHER_FOLDER_HINT}"
) -> Iterator[None]:
    """Create the folder if needed, and lock it against other benchmarks inside the ``with`` block.

    The lock is a file ".lock" in it, and ends with the block or the process. ``waiting_hint`` says
    what to do if another benchmark has it. Raises InputError at once if the folder cannot be used,
    or if another benchmark has locked it.
    """
    with disk.os_errors_as_input_error(f"{folder} cannot be used", _OTHER_FOLDER_HINT):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(disk.check_regular_file(folder / ".lock"), blocking=False)
        try:
            held_lock = lock.acquire()
        except Timeout as exc:
            raise InputError(
                f"cannot write results to {folder}: another benchmark is writing to it",
                hint=waiting_hint,
            ) from exc
    with held_lock:
        yield


def parse_json_lines(path: Path, parse: Callable[[Any], T], problem: str, hint: str) -> Iterator[T]:
    """Yield what ``parse`` returns for the data of each line of a JSON Lines file.

    A last line that is not finished is left out. Raises OSError, and InputError for a line that is
    not JSON or for which ``parse`` raises ValueError: "PATH, line 3, PROBLEM: why", with the hint.
    """
    number = 0
    try:
        for number, data in disk.read_json_lines(path):  # noqa: B007  # for the error
            yield parse(data)
    except ValueError as exc:
        reason: object = exc
        if isinstance(exc, ValidationError):
            reason = describe_validation_error(exc)
        if isinstance(exc, disk.NotJsonError):
            number = exc.line_number
        place = f"{path}, line {number}"
        raise InputError(f"{place}, {problem}: {reason}", hint=hint) from exc


class RowFile:
    """A file of JSON lines, each with the id of a question. Of several lines with one id, the last counts."""

    def __init__(
        self, path: Path, form: type[RowSchema] = ResultRowSchema, *, writable: bool = True
    ) -> None:
        """Read the file, if there is one.

        A last line that a killed process left unfinished is not read; if the file is ``writable``,
        it is cut off. Raises InputError for a line that is not JSON, or not valid by ``form``.
        """
        self.path = path
        self.form = form
        self.rows: dict[str, BenchRow] = {}
        """All rows by question id, in the order in which they were written."""
        with disk.os_errors_as_input_error(f"{path} cannot be used", _OTHER_FOLDER_HINT):
            if writable:
                disk.truncate_unfinished_line(path)
            if path.exists():
                self._read()

    def _read(self) -> None:
        """Read the rows. Raises InputError, which names the line, for one that is not valid.

        Of several rows with one id the last counts. A last line that is not finished is left out.
        """
        hint = "remove this line of the file: its question is then asked again"
        for row in parse_json_lines(self.path, self.form.check_row, "is not a result", hint):
            self.rows[row["id"]] = row

    def append(self, row: BenchRow) -> None:
        """Validate a row, write it to the end of the file, and add it to ``rows``.

        Raises InputError if the row is not valid, so that the file can always be read again, and if
        it cannot be written, as on a full disk.
        """
        try:
            self.form.check_row(row)
        except ValueError as exc:
            raise InputError(
                f"the result of {row['id']!r} cannot be written: {exc}",
                hint="correct what returned this value: the question, the model or the graph",
            ) from exc
        with disk.os_errors_as_input_error(f"cannot write to {self.path}", _DISK_FULL_HINT):
            disk.append_json_line(self.path, row)
        self.rows[row["id"]] = row


class Results(RowFile):
    """The results folder of a benchmark: ``config.json`` and ``results.jsonl``."""

    def __init__(self, folder: str | Path, config: Mapping[str, Any]) -> None:
        """Open a folder for the results of a configuration, and read the rows that it has.

        The configuration is written if there is none, or if only INFORMATIONAL_ENTRIES differ.
        Raises InputError if the folder holds results of another configuration, or damaged ones.
        """
        self.folder = Path(folder)
        self.dropped_ids: set[str] = set()
        """Ids of questions whose errors were removed, so that they are asked again."""
        results_path = self.folder / RESULTS_FILE
        problem = f"{folder} cannot be used"
        with disk.os_errors_as_input_error(problem, _OTHER_FOLDER_HINT):
            stored_config: Mapping[str, Any] = {}
            if results_path.exists() and results_path.stat().st_size:
                stored_config = self._read_same_config(config)
            if stored_config != config:
                self._write_config(config)
        super().__init__(results_path)

    def _write_config(self, config: Mapping[str, Any]) -> None:
        """Write the configuration into the folder. Raises OSError."""
        path = self.folder / CONFIG_FILE
        text = json.dumps(config, indent=2, ensure_ascii=False)
        disk.write_atomically(path, [text, "\n"], disk.JSON_ENCODING_ERRORS)

    def _read_same_config(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the stored configuration of the folder; empty if there is none.

        ``config`` is the present one. Raises InputError if the stored one is not a JSON object, or
        if it differs from the present one in more than INFORMATIONAL_ENTRIES; the error names each
        difference.
        """
        path = self.folder / CONFIG_FILE
        if not path.exists():
            return {}
        try:
            stored_config = _read_config(path)
        except (ValueError, RecursionError) as exc:
            hint = f"{_OTHER_FOLDER_HINT}, or delete {CONFIG_FILE} if the results there are of this setup"
            raise InputError(
                f"the setup of the results cannot be read: {path} is not JSON: {exc}", hint=hint
            ) from exc
        changes = "; ".join(describe_config_changes(stored_config, config))
        if changes:
            raise InputError(
                f"{self.folder} has results that were measured with another setup: {changes}",
                hint=f"{_OTHER_FOLDER_HINT}, or undo these changes of the setup to continue there",
            )
        return stored_config

    def drop_errors(self) -> None:
        """Remove the rows of questions that ended in an error, so that these are asked again.

        The file is written anew, and their ids are kept in ``dropped_ids``. Raises InputError if it
        cannot be written.
        """
        kept = {}
        for id_, row in self.rows.items():
            if row["error"] is None:
                kept[id_] = row
            else:
                self.dropped_ids.add(id_)
        self._write(kept)

    def replace_rows(self, rows: Iterable[BenchRow]) -> None:
        """Replace the rows with the ids of these rows by them, and write the file anew.

        A row with a new id is added at the end. Raises InputError if the file cannot be written.
        """
        changed_rows = dict(self.rows)
        for row in rows:
            changed_rows[row["id"]] = row
        self._write(changed_rows)

    def _write(self, rows: dict[str, BenchRow]) -> None:
        """Replace the rows by these, in memory and in the file, which is written anew.

        Raises InputError if it cannot be written.
        """
        with disk.os_errors_as_input_error(f"cannot write to {self.path}", _DISK_FULL_HINT):
            disk.write_json_lines(self.path, rows.values())
        self.rows = rows

    def rows_for(self, questions: Sequence[BenchQuestion]) -> list[BenchRow]:
        """Return the rows of these questions, in their order; questions without a row are left out.

        Raises InputError if a row has another wording than its question.
        """
        rows = []
        for question in questions:
            row = self.rows.get(question.id)
            if row is None:
                continue
            if row["question"] != question.question:
                raise InputError(
                    f"no result was added to {self.path}: it holds another question with the id {question.id!r}",
                    hint=f"{_OTHER_FOLDER_HINT} for other questions",
                )
            rows.append(row)
        return rows


def read_results(folder: str | Path) -> tuple[dict[str, Any], list[BenchRow]]:
    """Return the configuration and the rows of a results folder; nothing in it is changed.

    Raises InputError if it holds no results, or damaged ones. The hint names folders with results
    inside of it.
    """
    folder = Path(folder)
    try:
        config = _read_config(folder / CONFIG_FILE)
    except (OSError, ValueError, RecursionError) as exc:
        hint = "name a folder that kgwb bench --out has written"
        inside = _list_results_folders(folder)
        if inside:
            names = ", ".join(inside[:9])
            hint = f"name a folder in it that has results: {names}"
        raise InputError(f"{folder} has no results of a benchmark: {exc}", hint=hint) from exc
    file = RowFile(folder / RESULTS_FILE, writable=False)
    return config, list(file.rows.values())


def _list_results_folders(folder: Path) -> list[str]:
    """Return the paths of the results folders inside a folder."""
    paths = []
    for config_file in folder.glob(f"*/{CONFIG_FILE}"):
        paths.append(str(config_file.parent))
    return sorted(paths)


def find_run_file(folder: Path, row: BenchRow) -> Path | None:
    """Return the resolved path of the saved run of a row; None if there is none.

    Results may come from elsewhere, so a path that leads out of the folder of runs counts as none.
    """
    try:
        path = folder / row.get("run", "")
        if not path.is_file():
            return None
        path = path.resolve()
        runs_folder = folder.resolve() / RUNS_FOLDER
        return path if path.is_relative_to(runs_folder) else None
    except (OSError, ValueError, RuntimeError):  # no valid file name, or links in a circle
        return None


def get_label(row: BenchRow, value: str) -> str:
    """Return the label of a value among a row's answers or gold.

    An IRI without a label is shown by a name made of its local part; a literal is its own label.
    """
    label = row.get("labels", {}).get(value)
    if label:
        return str(label)
    return name_from_iri(value) if is_iri(value) else value


def list_labels(row: BenchRow, name: str) -> list[str]:
    """Return the labels of the "answers" or the "gold" of a row, in their order; none without gold."""
    values = row[name] or ()
    return [get_label(row, value) for value in values]


def add_remembered_turn(dialogue: Dialogue, row: Mapping[str, Any] | None) -> Dialogue:
    """Return a dialogue with the turn that a row remembers; as it is without such a row."""
    remembered = row.get("remembered") if row else None
    turn = from_data(remembered, Turn | None)
    if turn is None:
        return dialogue
    return Dialogue((*dialogue.turns, turn))


def split_answers(row: BenchRow) -> tuple[list[str], list[str]]:
    """Return the answers of a row that were asked for, and those in columns that were not asked for.

    The second list is empty unless both the answer and the gold are tables. An answer that occurs
    in a column that was asked for is only in the first list.
    """
    table = row.get("table", [])
    gold_table = row.get("gold_table", [])
    if not table or not gold_table:
        return row["answers"], []
    not_asked_for = find_columns_not_asked_for(gold_table, table)
    asked_values = set()
    for cells in table:
        for position, cell in enumerate(cells):
            if position not in not_asked_for:
                asked_values.add(cell)
    asked = []
    others = []
    for value in row["answers"]:
        if value in asked_values:
            asked.append(value)
        else:
            others.append(value)
    return asked, others


def is_lost(row: BenchRow) -> bool:
    """Return whether a question with gold ended in an error, or its answers are not exactly the gold."""
    if row["gold"] is None:
        return False
    return row["error"] is not None or row["f1"] < 1


def _read_config(path: Path) -> dict[str, Any]:
    """Return the configuration in a file, which must be a JSON object.

    Raises OSError if it cannot be read, and ValueError for anything else than an object.
    """
    config = json.loads(disk.read_text(path))
    if not isinstance(config, dict):
        raise ValueError(f"{CONFIG_FILE} holds no object")
    return config


def flatten_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with an entry for each part of its dictionaries: {"settings theta": 3, "kg": ...}.

    An entry that is no dictionary keeps its name.
    """
    entries = {}
    for name, value in config.items():
        if not isinstance(value, dict):
            entries[name] = value
            continue
        for part, entry in value.items():
            entries[f"{name} {part}".strip()] = entry
    return entries


def describe_config_changes(
    earlier: Mapping[str, Any], present: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each entry that differs between two configurations: "NAME was X and is now Y".

    An entry that one of them lacks is None there. INFORMATIONAL_ENTRIES are left out.
    """
    before = flatten_config(earlier)
    now = flatten_config(present)
    for name in before | now:
        kind = name.partition(" ")[0]
        old_value = before.get(name)
        new_value = now.get(name)
        if kind not in INFORMATIONAL_ENTRIES and old_value != new_value:
            yield f"{name} was {old_value!r} and is now {new_value!r}"
