"""The folder of a benchmark: its configuration, and a row for each question that has been asked.

A row has the answer, scores, cost and linked elements of its question, and what gold says of the
answer. It can be scored again by another gold, since it has the answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, PlainValidator, ValidationError
from rdflib import URIRef

from kgwb import disk
from kgwb.bench.cost import (
    NonNegativeAmount,
    list_served_models,
    sum_seconds_by_stage,
    sum_usage,
)
from kgwb.bench.metrics import (
    FROM_GRAPH,
    OWN_KNOWLEDGE,
    ZERO_SCORES,
    Scores,
    find_columns_not_asked_for,
    is_iri,
    score_answers,
    score_columns,
)
from kgwb.bench.questions import (
    TEST_SPLIT,
    Assertions,
    BenchQuestion,
    answer_to_strings,
    find_things,
    read_gold_query_of,
    row_to_strings,
    to_standard_sparql,
)
from kgwb.errors import GraphError, InputError
from kgwb.kg.algebra import analyze_query
from kgwb.kg.base import Graph
from kgwb.records import JsonObject, describe_validation_error, from_data, frozen
from kgwb.run import Run
from kgwb.run.answers import Answer, Dialogue, Reading, Turn
from kgwb.run.doubts import find_cut_result
from kgwb.run.gold import RightAnswer
from kgwb.run.steps import used_calls
from kgwb.show.run_state import (
    ERROR,
    choose_answer_state,
    describe_unfitting_values,
    literal_type,
)
from kgwb.terms import name_from_iri

T = TypeVar("T")
CONFIG_FILE = "config.json"
RESULTS_FILE = "results.jsonl"
RUNS_FOLDER = "runs"
"""Folder of the saved runs, inside the results folder."""
ALIKE = "alike"
"""Said of the seed if all asks of a question got the same replies."""
SEED_IGNORED = "ignored"
"""Said of the seed if a request that was sent again with it got another reply."""
INFORMATIONAL_ENTRIES = frozenset({"source", "questions", "versions"})
"""Entries of the configuration that may differ when a benchmark is resumed; the latest are kept.

Questions may differ because each row is compared with its own question.
"""
BenchRow = dict[str, Any]
"""One line of a results file, as JSON data."""
NonNegativeInt = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=1e12)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_ABSENT: Any = ()
"""The default of a list or object of a row: pydantic would copy one of its own kind for each row."""
_OTHER_FOLDER_HINT = "name another folder with --out"
_DISK_FULL_HINT = "free some space and give the same command again: it continues from there"


class _TokenCounts(BaseModel):
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt
    uncounted_calls: NonNegativeInt = 0


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
    tags: list[str] = _ABSENT
    split: str = ""
    language: str = ""
    source: str = ""
    answers: list[str]
    gold: list[str] | None
    seconds: Seconds
    model_calls: NonNegativeInt
    queries: NonNegativeInt
    """Requests to the graph."""
    executed_queries: NonNegativeInt = 0
    """How many queries the answer came from."""
    answer_queries: list[str] = _ABSENT
    """These queries. Rows of earlier versions do not have them."""
    support_predicates: list[str] = _ABSENT
    """The predicates of the triples that support the answer."""
    assertions: Assertions = Assertions()
    """What is asserted of the answer, with IRIs in full."""
    money: NonNegativeAmount = 0
    """What the question cost by the prices of then; missing if a model had none."""
    words: NonNegativeInt = 0
    predicates: NonNegativeInt = 0
    """The predicates of the gold query."""
    prompt_tokens: NonNegativeInt = 0
    completion_tokens: NonNegativeInt = 0
    models: dict[str, _TokenCounts] = _ABSENT
    served: dict[str, list[str]] = _ABSENT
    """The versions that answered, by the model's name, as the servers named them."""
    stages: dict[str, Seconds] = _ABSENT
    """The seconds of each stage, with the wait for models."""
    model_seconds: Seconds = 0
    """The wait for models."""
    stage_model_seconds: dict[str, Seconds] = _ABSENT
    linking: dict[str, _LinkingCounts] = _ABSENT
    """How many of the gold query's vertices and predicates were linked, or were candidates."""
    cut_rows: NonNegativeInt = 0
    """At how many rows a limit cut the result of one of the answer's queries; missing if none was cut."""
    run: str = ""
    """Path of the saved run inside the folder; empty if the run was not saved."""
    table: list[list[str | None]] = _ABSENT
    """The rows of an answer that is a table."""
    readings: list[_AnswerOfReading] = _ABSENT
    """The answers of the other readings that were offered; missing if these were not asked."""
    gold_table: list[list[str | None]] = _ABSENT
    by_column: dict[str, Share] = _ABSENT
    """F1 of each gold column with the best matching column of the answer."""
    labels: dict[str, str] = _ABSENT
    """Labels of the vertices among the answers and the gold."""
    paid: _Usage | None = None
    """What its own calls cost, without those that were asked before."""
    asks: list[dict[str, Share] | None] = _ABSENT
    """The scores of each ask, if it was asked several times; None for an error."""
    asks_before: list[dict[str, Share] | None] = _ABSENT
    """The scores of each ask before a change."""
    seeds: str = ""
    """ALIKE or SEED_IGNORED, if its asks showed this of the model's seed."""
    varies: str = ""
    """In results of earlier versions: the agent whose decision varied without a change."""
    unreachable: bool = False
    """Whether the model or the graph could not be reached. The question is then asked again."""
    key_refused: bool = False
    """Whether that was because the model's server refuses the key."""
    remembered: Annotated[Any, PlainValidator(lambda data: from_data(data, Turn | None))] = None

    def model_post_init(self, context: object, /) -> None:
        """Raise ValueError for a row that has gold but no F1."""
        if self.gold is not None and "f1" not in self.model_fields_set:
            raise ValueError("gold without f1")


@frozen
class QuestionSample:
    """The questions of a retry from which figures for all measured questions can be estimated."""

    ids: frozenset[str] = frozenset()
    """Empty if questions were chosen so that they say nothing about the others."""
    right_weight: float = 1.0
    """How many questions each question that was right before stands for; a lost one stands for itself."""
    name: str = ""
    """The selectors that chose them, and --slice before each slice, with blanks between; "" for the default ones."""
    represented: int = 0
    """How many questions they stand for in all."""

    @classmethod
    def list_of(cls, config: Mapping[str, Any]) -> list[QuestionSample]:
        """Return the samples that a retry's configuration has under "questions", one for each command."""
        questions = config.get("questions") or {}
        data = questions.get("samples") or [questions.get("sample")]
        samples = []
        for sample in filter(None, data):
            ids = frozenset(sample["ids"])
            known = {"represented": len(ids), **sample, "ids": ids}
            samples.append(cls(**known))
        return samples

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> QuestionSample | None:
        """Return the widest sample of a retry's configuration; None if it has none.

        A narrower choice that was asked later does not replace it.
        """

        def width(sample: QuestionSample) -> tuple[int, int]:
            return sample.represented, len(sample.ids)

        return max(cls.list_of(config), key=width, default=None)

    def add_to_config(self, config: Mapping[str, Any], earlier: Mapping[str, Any]) -> JsonObject:
        """Return a configuration that names the sample, and those that an earlier one of it names."""
        samples = []
        all_samples = [*self.list_of(earlier), self]
        for sample in dict.fromkeys(all_samples):
            ids = sorted(sample.ids)
            samples.append({**asdict(sample), "ids": ids})
        questions = {**config["questions"], "samples": samples}
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
        self._file = disk.AppendedFile(path, disk.JSON_ENCODING_ERRORS)
        with disk.os_errors_as_input_error(f"{path} cannot be used", _OTHER_FOLDER_HINT):
            if writable:
                disk.truncate_unfinished_line(path)
            if path.exists():
                hint = "remove this line of the file: its question is then asked again"
                for row in parse_json_lines(path, form.check_row, "is not a result", hint):
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
            self._file.append(disk.to_json_line(row))
        self.rows[row["id"]] = row

    def close(self) -> None:
        """Close the file, which stays open from one row to the next. A row that is appended later opens it again."""
        self._file.close()


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
                text = json.dumps(config, indent=2, ensure_ascii=False)
                path = self.folder / CONFIG_FILE
                disk.write_atomically(path, [text, "\n"], disk.JSON_ENCODING_ERRORS)
        super().__init__(results_path)

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
        kept = {id_: row for id_, row in self.rows.items() if row["error"] is None}
        self.dropped_ids |= self.rows.keys() - kept
        self._write(kept)

    def replace_rows(self, rows: Iterable[BenchRow]) -> None:
        """Replace the rows with the ids of these rows by them, and write the file anew.

        A row with a new id is added at the end. Raises InputError if the file cannot be written.
        """
        self._write(self.rows | {row["id"]: row for row in rows})

    def _write(self, rows: dict[str, BenchRow]) -> None:
        """Replace the rows by these, in memory and in the file, which is written anew.

        Raises InputError if it cannot be written.
        """
        self.close()  # Windows replaces no open file
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


def read_results(folder: str | Path) -> tuple[JsonObject, list[BenchRow]]:
    """Return the configuration and the rows of a results folder; nothing in it is changed.

    Raises InputError if it holds no results, or damaged ones. The hint names folders with results
    inside of it.
    """
    folder = Path(folder)
    try:
        config = _read_config(folder / CONFIG_FILE)
    except (OSError, ValueError, RecursionError) as exc:
        hint = "name a folder that kgwb bench --out has written"
        inside = sorted(str(file.parent) for file in folder.glob(f"*/{CONFIG_FILE}"))
        if inside:
            hint = f"name a folder in it that has results: {', '.join(inside[:9])}"
        reason = describe_validation_error(exc)
        raise InputError(
            f"{folder} has no results of a benchmark: {CONFIG_FILE}: {reason}", hint=hint
        ) from exc
    file = RowFile(folder / RESULTS_FILE, writable=False)
    return config, list(file.rows.values())


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


def is_shown(row: BenchRow) -> bool:
    """Return whether a question may be shown with what came of it, which nobody is to learn of TEST_SPLIT."""
    return row.get("split") != TEST_SPLIT


def is_lost(row: BenchRow) -> bool:
    """Return whether a question with gold ended in an error, or its answers are not exactly the gold."""
    if row["gold"] is None:
        return False
    return row["error"] is not None or row["f1"] < 1


def _read_config(path: Path) -> JsonObject:
    """Return the configuration in a file, which must be a JSON object.

    Raises OSError if it cannot be read, and ValueError for anything else than an object.
    """
    config = json.loads(disk.read_text(path))
    if not isinstance(config, dict):
        raise ValueError(f"{CONFIG_FILE} holds no object")
    return config


def flatten_config(config: Mapping[str, Any]) -> JsonObject:
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
        if kind in INFORMATIONAL_ENTRIES or old_value == new_value:
            continue
        if name == "kg":
            yield _describe_graph_change(before.get("source"), now.get("source"))
        else:
            yield f"{name} was {old_value!r} and is now {new_value!r}"


def _describe_graph_change(old_source: str | None, new_source: str | None) -> str:
    """Return a sentence for two graphs that differ, each with the file or address it came from."""
    if old_source == new_source:
        return f"the graph {old_source or 'without a file'} has changed since"
    return f"the graph of {old_source} is not that of {new_source}"


def get_verdict(row: BenchRow) -> str:
    """Return the state of a row's answer, one of ``kgwb.show.run_state.ANSWER_STATE_ICONS``.

    It is "error" after an error. With gold, an answer is right if it is exactly the gold, and
    otherwise wrong or unanswered. Without gold it is given, in doubt, from own knowledge, or
    unanswered.
    """
    if row["error"] is not None:
        return ERROR
    is_right = None
    if row["gold"] is not None:
        is_right = not is_lost(row)
    return choose_answer_state(
        is_right=is_right,
        has_values=bool(row["answers"]),
        reason=row.get("reason", ""),
        doubt=_describe_doubt(row),
        is_ungrounded=row.get("source") == OWN_KNOWLEDGE,
    )


def count_verdicts(rows: Iterable[BenchRow]) -> Counter[str]:
    """Count the states of answers. Without gold only errors count."""
    scored = (row for row in rows if row["gold"] is not None or row["error"] is not None)
    return Counter(map(get_verdict, scored))


def _describe_doubt(row: BenchRow) -> str:
    """Return what of a row's answers is in doubt, as text; "" if nothing is.

    That are values of another type than the question asks for, and what the system itself doubts.
    The types of a table are not looked at.
    """
    unproved: str = row.get("doubt", "")
    if row.get("table"):
        return unproved
    typed_labels = []
    for value in row["answers"]:
        value_type = "a thing"
        if not is_iri(value):
            value_type = literal_type(value)
        typed_labels.append((get_label(row, value), value_type))
    mismatch = describe_unfitting_values(row["question"], typed_labels)
    return "; ".join(filter(None, [mismatch, unproved]))


def known_right_answer(gold: Sequence[str] | None, labels: Sequence[str]) -> RightAnswer | None:
    """Return what gold says of the answers of a run, for a widget; None if the gold is not known.

    It has a check whether an answer is exactly the gold, and the gold values with their labels.
    ``labels`` are the names of the gold answers in their order; if their number differs, each
    stands for itself.
    """
    if gold is None:
        return None
    values = gold
    if len(labels) != len(gold):
        values = labels  # labels without their values: each stands for itself
    return RightAnswer(partial(_is_gold, tuple(gold)), dict(zip(values, labels, strict=True)))


def _is_gold(gold: Sequence[str], answer: Answer) -> bool:
    """Return whether the values of an answer are exactly the gold."""
    return compute_answer_f1(answer, gold) == 1


def compute_answer_f1(answer: Answer | None, gold: Sequence[str]) -> float:
    """Return the F1 of an answer by its gold values."""
    return score_answers(answer_to_strings(answer), gold).f1


def row_right_answer(row: BenchRow) -> RightAnswer | None:
    """Return what the gold of a row says of the answers of its run; None without gold."""
    return known_right_answer(row["gold"], list_labels(row, "gold"))


_FIELDS_OF_GOLD = frozenset(
    (
        "hops type tags split language dialogue turn standalone right sparql predicates columns gold_table by_column "
        "labels linking asks asks_before seeds assertions"
    ).split()
) | {score.name for score in fields(Scores)}
"""Fields of a row that are left out if the present question does not give them."""
QUESTION_FIELDS = (
    "id question hops type tags split language dialogue turn standalone right sparql columns assertions"
).split()
"""Fields of a row that a question has by the same name."""


def make_row(question: BenchQuestion, run: Run | None, error: str | None) -> BenchRow:
    """Return the row of a question for a results file: question, answers, gold, scores, and usage.

    ``run`` is None if the question could not be asked; then nothing was used. With an ``error``
    there is no answer and all scores are 0. Without gold there are no scores. Why there is no value
    is kept, what the system itself doubts, and "cut_rows" if a limit cut the result of one of its
    queries. A table has its rows, too, and if the gold is a table, the F1 of each of its columns.
    Labels of IRIs are added if any is known. A gold thing whose name was answered has it as its
    label (``read_names``).
    """
    answer = None
    if run and error is None:
        answer = run.answer
    recorded: BenchRow = {"answers": answer_to_strings(answer), "error": error}
    if run and run.settings.own_knowledge:
        recorded["source"] = FROM_GRAPH
        if answer is not None and answer.ungrounded:
            recorded["source"] = OWN_KNOWLEDGE
    recorded |= _describe_table(answer)
    labels = _labels_of_answer(answer)
    if run is not None:
        labels |= _find_answered_names(question, recorded["answers"], run.kg.inner)
    row = _score_answer(question, recorded, labels)
    row["answer_queries"] = []
    if answer is not None:
        if answer.doubt:
            row["doubt"] = answer.doubt
        if not answer:
            row["reason"] = answer.reason
        row["answer_queries"] += map(str, answer.queries)
        predicates = {str(predicate) for _, predicate, _ in answer.support}
        row["support_predicates"] = sorted(predicates)
    if run is not None and answer is not None:
        calls = used_calls(run.steps, run.calls)
        cut_result = find_cut_result(answer, calls)
        if cut_result is not None:
            row["cut_rows"] = len(cut_result.rows)
    row.update(_describe_usage(question, run))
    row["error"] = error
    return row


def _describe_table(answer: Answer | None) -> BenchRow:
    """Return the field "table" of a row, with the rows of an answer that has columns; empty for any other."""
    if answer is None or not answer.columns:
        return {}
    return {"table": [list(row_to_strings(value.row)) for value in answer.values]}


def describe_reading(reading: Reading, run: Run | None, error: str | None) -> BenchRow:
    """Return what was answered with a question read in another way, as a row keeps it."""
    answer = run.answer if run and error is None else None
    described: BenchRow = {"other": reading.other, "answers": answer_to_strings(answer)}
    described |= _describe_table(answer)
    if error is not None:
        described["error"] = error
    return described


def rescore_row(row: BenchRow, question: BenchQuestion, run: Run | None = None) -> BenchRow:
    """Return a copy of a row, scored by the present gold of its question. Nothing is asked.

    The answers are those of the row. What depends on neither the question nor its gold stays, such
    as usage. Linking is counted anew in ``run``, which must be finished; without it, it is left
    out.
    """
    rescored = _score_answer(question, row, row.get("labels", {}))
    for name, value in row.items():
        if name not in _FIELDS_OF_GOLD:
            rescored.setdefault(name, value)
    linking = _count_linked(question, run) if run else {}
    if linking:
        rescored["linking"] = linking
    return rescored


def scores_of_row(row: BenchRow) -> dict[str, float]:
    """Return all scores of a row with gold, by measure."""
    return {score.name: row[score.name] for score in fields(Scores)}


def has_gold_of(row: BenchRow, question: BenchQuestion) -> bool:
    """Return whether a row was scored by the present gold of its question.

    The rows of a gold table are compared too, unless the row has none, as in early versions.
    """
    if row["gold"] != question.gold:
        return False
    table = row.get("gold_table", question.rows)
    before = [list(cells) for cells in table]
    present = [list(cells) for cells in question.rows]
    return before == present


def rescore_results(
    results: Results,
    questions: Sequence[BenchQuestion],
    load_run: Callable[[BenchRow], Run | None],
) -> int:
    """Score the rows of questions whose gold has changed again, write the results file, and return how many.

    Rows with other assertions are written again, too. ``load_run`` returns the finished run of a
    row, if it was saved. Rows of another wording are left as they are; without changes nothing is
    written. Raises InputError if the file cannot be written.
    """
    rescored = []
    for question in questions:
        row = results.rows.get(question.id)
        if row is None or row["question"] != question.question:
            continue
        is_same = row.get("assertions", {}) == _dump_assertions(question)
        if not is_same or not has_gold_of(row, question):
            rescored.append(rescore_row(row, question, load_run(row)))
    if rescored:
        results.replace_rows(rescored)
    return len(rescored)


def _dump_assertions(question: BenchQuestion) -> JsonObject:
    """Return the assertions of a question as a row has them; empty without any."""
    return question.assertions.model_dump(mode="json", exclude_defaults=True)


def question_of_row(row: BenchRow) -> BenchQuestion:
    """Return the question of a row, with the gold that it was scored by and the labels of the gold.

    A gold value without a label is its own label. Rows of earlier versions do not have the gold
    query.
    """
    data = {"answers": row["gold"], "rows": row.get("gold_table", ())}
    for name in QUESTION_FIELDS:
        if name in row:
            data[name] = row[name]
    labels = row.get("labels", {})
    if labels:
        gold = row["gold"] or ()
        data["answer_labels"] = [labels.get(value, value) for value in gold]
    return BenchQuestion(**data)


def _score_answer(
    question: BenchQuestion, recorded: BenchRow, answer_labels: Mapping[str, str]
) -> BenchRow:
    """Return the fields of a row that describe the question, its gold, the answer, and the scores.

    ``recorded`` has the answers, the error, and the table and the source if there are any. With an
    error all scores are 0; without gold there are no scores.
    """
    answers = recorded["answers"]
    table = recorded.get("table", [])
    row = _describe_question(question)
    for name in ("source", "answers", "table"):
        if name in recorded:
            row[name] = recorded[name]
    row["gold"] = question.gold
    if question.rows:
        row["columns"] = question.columns
        row["gold_table"] = question.rows
        row["by_column"] = score_columns(question.columns, question.rows, table)
    labels = _collect_labels(question, answers, answer_labels)
    if labels:
        row["labels"] = labels
    if question.answers is not None:
        scores = ZERO_SCORES
        if recorded["error"] is None:
            scores = score_answers(answers, question.answers, table, labels)
        row |= asdict(scores)
    return row


def _describe_question(question: BenchQuestion) -> BenchRow:
    """Return the fields of a row that identify and classify a question, as far as they are known.

    These are id, question, number of words, hops, type, language, dialogue, turn, standalone wording, what
    counts as right, the assertions, and the gold query with its number of predicates.
    """
    names = set(QUESTION_FIELDS) - {"columns"}  # these stand with the gold
    row = question.model_dump(mode="json", include=names, exclude_defaults=True)
    row["words"] = len(question.question.split())
    predicates = count_gold_predicates(question)
    if predicates:
        row["predicates"] = predicates
    return row


def count_gold_predicates(question: BenchQuestion) -> int:
    """Return how many triple patterns of the gold query have a predicate that is no variable.

    This is "Preds" in Chatty-KG, Table 8. It is 0 without a gold query, or if it cannot be read.
    """
    if not question.sparql:
        return 0
    try:
        patterns = analyze_query(to_standard_sparql(question.sparql)).patterns
    except GraphError:
        return 0
    return sum(not predicate.startswith("?") for _, predicate, _ in patterns)


def _collect_labels(
    question: BenchQuestion, answers: Sequence[str], answer_labels: Mapping[str, str]
) -> dict[str, str]:
    """Return the known labels of the IRIs among the gold and the answers, by IRI.

    The labels of the answer go before those of the gold. Labels of the gold count only if there is
    one for each value.
    """
    gold = question.answers or ()
    labels: dict[str, str] = {}
    if len(gold) == len(question.answer_labels):
        labels.update(zip(gold, question.answer_labels, strict=True))
    labels.update(answer_labels)
    shown = {*gold, *answers}
    shown_labels = {}
    for iri, label in labels.items():
        if iri in shown and "://" in iri:
            shown_labels[iri] = label
    return shown_labels


def _labels_of_answer(answer: Answer | None) -> dict[str, str]:
    """Return the labels of the IRIs in an answer: those of its values, else its display names.

    Empty without an answer.
    """
    if answer is None:
        return {}
    labels = {str(iri): name for iri, name in answer.names}
    for value in answer.values:
        if value.term_label and isinstance(value.term, URIRef):
            labels[str(value.term)] = value.term_label
    return labels


def _find_answered_names(
    question: BenchQuestion, answers: Sequence[str], kg: Graph | None
) -> dict[str, str]:
    """Return, by IRI, the answers that are the name of a gold thing.

    The graph is asked for the things of a name only if an answer is a text that is not in the gold,
    and the gold has IRIs. Empty if it cannot be asked.
    """
    gold = set(question.answers or ())
    texts = {answer for answer in answers if not is_iri(answer)} - gold
    labels: dict[str, str] = {}
    if kg is None or not texts or not any(map(is_iri, gold)):
        return labels
    with suppress(GraphError):
        for text, iris in find_things(texts, kg).items():
            gold_iris = gold.intersection(iris)
            labels.update(dict.fromkeys(gold_iris, text))
    return labels


def _describe_usage(question: BenchQuestion, run: Run | None) -> JsonObject:
    """Return what a run used: the fields of ``sum_usage``, with the seconds of each stage.

    "seconds" are those of the whole run, and "stages" add up to them. "model_seconds" and
    "stage_model_seconds" are the parts of them in which the run waited for models. "queries" are
    all that the graph was asked, and "executed_queries" those of the answer (Chatty-KG, Figure 5).
    "linking" is added if it is known (``_count_linked``), and "served" if servers say more of their
    models than the names (``list_served_models``). Without a run, seconds and numbers of calls are
    0.
    """
    if run is None:
        return {"seconds": 0.0, "model_calls": 0, "queries": 0}
    keys = chain.from_iterable(step.calls for step in run.steps)
    calls = [run.calls[key] for key in dict.fromkeys(keys) if key in run.calls]
    usage = sum_usage(calls)
    served = list_served_models(calls)
    if served:
        usage["served"] = served
    total_s = run.totals.seconds
    usage["seconds"] = round(total_s, 6)
    stages = {}
    stage_model_seconds = {}
    times = sum_seconds_by_stage(run.system, run.steps, total_s)
    for stage, time in times.items():
        stages[stage] = time.seconds
        stage_model_seconds[stage] = time.model_seconds
    usage["model_seconds"] = round(sum(stage_model_seconds.values()), 6)
    usage["stages"] = stages
    usage["stage_model_seconds"] = stage_model_seconds
    if run.answer:
        usage["executed_queries"] = len(run.answer.queries)
    linking = _count_linked(question, run)
    if linking:
        usage["linking"] = linking
    return usage


def _count_linked(question: BenchQuestion, run: Run) -> dict[str, dict[str, int]]:
    """Return how many vertices and predicates the gold query has, and how many of them the run linked.

    For "vertices" and "predicates" there are the numbers "gold", "linked", and "candidates": those
    that the run linked or could have chosen. Empty if the system has no gold decisions, or the
    question no gold query that can be taken apart.
    """
    decisions = run.system.gold
    if decisions is None:
        return {}
    gold = read_gold_query_of(question, run.kg)
    if gold is None:
        return {}
    links = decisions.linked(run)
    return {
        "vertices": _count_overlap(gold.vertices, links.vertices, links.vertex_candidates),
        "predicates": _count_overlap(gold.predicates, links.predicates, links.predicate_candidates),
    }


def _count_overlap(gold: Set[str], linked: Set[str], candidates: Set[str]) -> dict[str, int]:
    """Return the numbers of gold IRIs ("gold"), of linked ones ("linked"), and of linked or candidate ones.

    The last is under "candidates"; both count gold IRIs only.
    """
    return {
        "gold": len(gold),
        "linked": len(gold & linked),
        "candidates": len(gold & (linked | candidates)),
    }
