"""A question set of one's own: answers that a person found right, or corrected, kept as gold.

The set is a file of JSON lines that ``load_questions`` reads. Each line also has who kept it
(``who``) and when (``when``), and the gold that it had before it was corrected (``earlier_gold``).
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rdflib import Literal

from kgwb import disk
from kgwb.bench.formats import load_questions
from kgwb.bench.questions import answer_to_strings, row_to_strings, to_standard_sparql
from kgwb.errors import InputError
from kgwb.flow import Answer
from kgwb.kg.sparql import split_clauses, validate_query
from kgwb.run import Run

DEFAULT_FILE = "my_questions.jsonl"
GOLD_FIELDS = ("answers", "sparql", "columns", "who", "when")


class Gold(NamedTuple):
    """What a person takes to be right."""

    answers: Sequence[str | Sequence[str | None]] | None
    """IRIs or lexical forms, or rows of them; None if the query has to find them."""
    sparql: str = ""
    """The gold query, if one is known."""
    columns: Sequence[str] = ()
    """What each column holds, if the answers are rows."""

    @classmethod
    def of_run(cls, run: Run) -> Gold:
        """Return the answer of a finished run as gold, with its query if that gives just this answer.

        An answer with columns is kept as rows. Raises InputError if the run has no answer yet, or
        was not finished.
        """
        answer = run.answer
        if answer is None or run.status != "done":
            raise InputError(
                "nothing can be kept as gold: this run has no answer yet",
                hint="continue the run to its end, for example with run.go()",
            )
        sparql = _find_gold_query(run, answer)
        if answer.columns:
            rows = [row_to_strings(value.row) for value in answer.values]
            return cls(rows, sparql, answer.columns)
        return cls(answer_to_strings(answer), sparql)

    def to_text(self) -> str:
        """Return the answers for a text area: one a line, the cells of a row apart by tabs."""
        lines = []
        for answer in self.answers or ():
            if isinstance(answer, str):
                lines.append(answer)
                continue
            cells = [cell or "" for cell in answer]
            lines.append("\t".join(cells))
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str, sparql: str = "", columns: Sequence[str] = ()) -> Gold:
        """Return the gold in a text that ``to_text`` wrote and a person edited: an answer in each line.

        With several ``columns``, a line is a row with its cells apart by tabs. Empty lines are left
        out. If no answer is left and there is a query, ``answers`` is None: the query has to find
        them. Raises QueryError or QueryRefusedError for a query that the gate refuses.
        """
        sparql = sparql.strip()
        if sparql:
            validate_query(to_standard_sparql(sparql))
        answers: list[str | Sequence[str | None]] = []
        is_table = len(columns) > 1
        for line in text.splitlines():
            if not line.strip():
                continue
            if is_table:
                cells = line.split("\t")
                answers.append([cell.strip() or None for cell in cells])
            else:
                answers.append(line.strip())
        if not answers and sparql:
            return cls(None, sparql)
        return cls(answers, sparql, columns if is_table else ())


def _find_gold_query(run: Run, answer: Answer) -> str:
    """Return the only query of an answer, if its recorded result is the answer; else "".

    Of values that the system has counted, it is the query that counts them in the graph. A query whose
    result the run does not have is returned as it is, and so is that of a yes or no.
    """
    if len(answer.queries) != 1:
        return ""
    sparql = str(answer.queries[0])
    result = None
    for call in list(run.calls.values()):
        if call.kind == "select" and call.request["query"] == sparql:
            result = call.result
    if result is None:
        return sparql
    if answer.columns:
        rows = {value.row for value in answer.values}
        found_rows = {row for row in result.rows if any(cell is not None for cell in row)}
        return sparql if rows == found_rows else ""
    values = {value.term for value in answer.values}
    found = {row[0] for row in result.rows if row[0] is not None}
    if values == found:
        return sparql
    is_counted = answer.kind == "count" and values == {Literal(len(found))} and not result.cut
    return _to_counting_query(sparql, result.variables[0]) if is_counted else ""


def _to_counting_query(sparql: str, variable: str) -> str:
    """Return a query that counts the distinct values of a variable of a query; "" if that has modifiers."""
    clauses = split_clauses(sparql)
    if clauses.modifiers.strip():
        return ""
    counted = f"SELECT (COUNT(DISTINCT ?{variable}) AS ?count)"
    return f"{clauses.prologue}{counted} {clauses.dataset}WHERE {{ {clauses.where.strip()} }}"


def keep_as_gold(
    run: Run,
    file: str | Path = DEFAULT_FILE,
    gold: Gold | Sequence[str] | None = None,
    who: str | None = None,
) -> dict[str, Any]:
    """Write the question of a run with its gold to a question set, and return the entry.

    The file is made if it is missing. ``gold`` is by default the answer of the run; a list has IRIs
    or lexical forms. In a dialogue the question is kept in its standalone wording. ``who`` is by
    default the user's name. A question that the file has already keeps its id and its other fields;
    the gold that it had is added to its ``earlier_gold``. Raises InputError if the run has no
    answer, or if the file is not one of kgwb's own form or cannot be written.
    """
    if gold is None:
        gold = Gold.of_run(run)
    elif not isinstance(gold, Gold):
        gold = Gold(list(gold))
    path = Path(file)
    entries = _read_entries(path)
    question = _standalone_question(run)
    same_question = [entry for entry in entries if entry["question"] == question]
    if same_question:
        kept = same_question[0]
        _move_earlier_gold(kept)
    else:
        kept = {"id": _next_id(entries), "question": question}
        entries.append(kept)
    if who is None:
        who = user_name()
    kept.update(_gold_to_data(gold, who))
    with disk.os_errors_as_input_error(
        f"cannot write the question set {path}", "name another file"
    ):
        disk.write_json_lines(path, entries)
    return kept


def _move_earlier_gold(entry: dict[str, Any]) -> None:
    """Move the gold of an entry to its earlier gold, and remove what belongs to it."""
    has_gold = "answers" in entry or "sparql" in entry
    earlier = {}
    for name in GOLD_FIELDS:
        if has_gold and name in entry:
            earlier[name] = entry.pop(name)
    if has_gold:
        entry.setdefault("earlier_gold", []).append(earlier)
    for name in ("rows", "answer_labels", "gold_error"):
        entry.pop(name, None)


def _gold_to_data(gold: Gold, who: str) -> dict[str, Any]:
    """Return the fields of an entry that hold the gold, who says so, and the present time.

    Parts of the gold that are empty have no field.
    """
    data: dict[str, Any] = {"who": who, "when": time_now()}
    if gold.answers is not None:
        data["answers"] = list(gold.answers)
    if gold.columns:
        data["columns"] = list(gold.columns)
    if gold.sparql:
        data["sparql"] = gold.sparql
    return data


def _standalone_question(run: Run) -> str:
    """Return a run's question in the wording that needs no earlier turn.

    That is the standalone one if the run has earlier turns and remembers one, else the question
    itself.
    """
    if run.dialogue.turns and run.turn is not None and run.turn.standalone:
        return run.turn.standalone
    return run.question


def user_name() -> str:
    """Return the name under which the user is logged in; "" if there is none."""
    with suppress(OSError, KeyError, ImportError):  # a container may have no name for its user
        return getpass.getuser()
    return ""


def time_now() -> str:
    """Return the time in ISO 8601, to the second, with the time zone."""
    now = datetime.now().astimezone()
    return now.isoformat(timespec="seconds")


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a question set as JSON data with all their fields; an empty list without a file.

    Raises InputError if it is not a file of kgwb's own form, or cannot be read.
    """
    if not path.exists():
        return []
    load_questions(path)
    entries = []
    with disk.os_errors_as_input_error(f"cannot read the question set {path}", "name another file"):
        try:
            for _, entry in disk.read_json_lines(path):
                entries.append(entry)
        except ValueError as exc:
            raise _other_form(path) from exc
    for entry in entries:
        if not isinstance(entry, dict) or "question" not in entry:
            raise _other_form(path)
    return entries


def _other_form(path: Path) -> InputError:
    """Return, without raising it, the error for a file that is no question set in JSON lines."""
    return InputError(
        f"no question was added to {path}: it is not a question set in JSON lines",
        hint="name a question set in JSON lines, or a new file, such as my_questions.jsonl",
    )


def _next_id(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a number, as text, that is no id yet: the first free one above the number of entries."""
    ids = {str(entry.get("id")) for entry in entries}
    number = len(entries) + 1
    while str(number) in ids:
        number += 1
    return str(number)
