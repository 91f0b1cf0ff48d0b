"""A question set of one's own: answers that a person found right, or corrected, kept as gold.

The set is a file of JSON lines that ``load_questions`` reads. Each line also has who kept it
(``who``) and when (``when``), and the gold that it had before it was corrected (``earlier_gold``).
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from kgwb import disk
from kgwb.bench.formats import load_questions
from kgwb.bench.questions import answer_to_strings, row_to_strings, to_standard_sparql
from kgwb.errors import InputError
from kgwb.kg.sparql import validate_query
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
        """Return the answer of a finished run as gold, with its query if it came from exactly one.

        An answer with columns is kept as rows. Raises InputError if the run has no answer yet, or
        was not finished.
        """
        answer = run.answer
        if answer is None or run.status != "done":
            raise InputError(
                "this run has no answer yet that could be kept as gold",
                hint="continue the run to its end",
            )
        sparql = str(answer.queries[0]) if len(answer.queries) == 1 else ""
        if answer.columns:
            rows = [row_to_strings(value.row) for value in answer.values]
            return cls(rows, sparql, answer.columns)
        return cls(answer_to_strings(answer), sparql)

    def to_text(self) -> str:
        """Return the answers for a text area: one a line, the cells of a row apart by tabs."""
        lines = []
        for answer in self.answers or ():
            cells = [answer] if isinstance(answer, str) else [cell or "" for cell in answer]
            lines.append("\t".join(cells))
        return "\n".join(lines)

    @classmethod
    def from_text(cls, text: str, sparql: str = "", columns: Sequence[str] = ()) -> Gold:
        """Return the gold in a text that ``to_text`` wrote and a person edited: an answer in each line.

        With several ``columns``, a line is a row with its cells apart by tabs. Empty lines are left
        out. If no answer is left and there is a query, ``answers`` is None: the query has to find
        them. Raises QueryError or QueryRefusedError for a query that the gate refuses.
        """
        lines = [line for line in text.splitlines() if line.strip()]
        sparql = sparql.strip()
        if sparql:
            validate_query(to_standard_sparql(sparql))
        if not lines and sparql:
            return cls(None, sparql)
        if len(columns) > 1:
            rows = [[cell.strip() or None for cell in line.split("\t")] for line in lines]
            return cls(rows, sparql, columns)
        return cls([line.strip() for line in lines], sparql)


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
    kept = next((entry for entry in entries if entry["question"] == question), None)
    if kept is None:
        kept = {"id": _next_id(entries), "question": question}
        entries.append(kept)
    elif "answers" in kept or "sparql" in kept:
        earlier = {name: kept.pop(name) for name in GOLD_FIELDS if name in kept}
        kept.setdefault("earlier_gold", []).append(earlier)
    for name in ("rows", "answer_labels", "gold_error"):
        kept.pop(name, None)  # they belong to the gold that is replaced
    kept.update(_gold_to_data(gold, user_name() if who is None else who))
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries]
    with disk.os_errors_as_input_error(f"cannot write to {path}", "give another file"):
        disk.write_atomically(path, lines, disk.JSON_ENCODING_ERRORS)
    return kept


def _gold_to_data(gold: Gold, who: str) -> dict[str, Any]:
    """Return the fields of an entry that hold the gold, who says so, and the present time.

    Parts of the gold that are empty have no field.
    """
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    data: dict[str, Any] = {"who": who, "when": now}
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


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a question set as JSON data with all their fields; an empty list without a file.

    Raises InputError if it is not a file of kgwb's own form, or cannot be read.
    """
    if not path.exists():
        return []
    load_questions(path)
    entries = []
    with disk.os_errors_as_input_error(f"cannot read {path}", "give another file"):
        try:
            for _, entry in disk.read_json_lines(path):
                entries.append(entry)
        except ValueError as exc:
            raise _other_form(path) from exc
    if not all(isinstance(entry, dict) and "question" in entry for entry in entries):
        raise _other_form(path)
    return entries


def _other_form(path: Path) -> InputError:
    """Return, without raising it, the error for a file that is no question set in JSON lines."""
    return InputError(
        f"{path} is not a question set in JSON lines, and kgwb adds questions to no other form",
        hint="name a new file, such as my_questions.jsonl",
    )


def _next_id(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a number, as text, that is no id yet: the first free one above the number of entries."""
    ids = {str(entry.get("id")) for entry in entries}
    number = len(entries) + 1
    while str(number) in ids:
        number += 1
    return str(number)
