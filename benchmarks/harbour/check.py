"""Run every query of this folder over the graph harbour, and compare the results with the stored rows.

    python benchmarks/harbour/check.py [FOLDER]

FOLDER holds harbour.ttl, vocab.ttl and questions.jsonl. By default it is ``harbour`` in the folder
that KGWB_DATA names, or in ../shared/data. The script prints what is wrong and then ends with 1.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph

HERE = Path(__file__).parent
DATA = os.environ.get("KGWB_DATA") or HERE.parents[1] / "../shared/data"
HARBOUR = Path(DATA).resolve() / "harbour"

Row = Sequence[str | None]


def read_entries(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a file of JSON lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def load_graph(folder: Path = HARBOUR) -> pyoxigraph.Store:
    """Load the data and the vocabulary of harbour into one default graph."""
    store = pyoxigraph.Store()
    for name in ("harbour.ttl", "vocab.ttl"):
        store.load(path=folder / name, format=pyoxigraph.RdfFormat.TURTLE)
    return store


def run_query(store: pyoxigraph.Store, sparql: str) -> tuple[list[str], list[Row]]:
    """Return the columns and the rows of a query, in the form of harbour's questions.

    An ASK query has one column, ``answer``, with "true" or "false".
    """
    results = store.query(sparql)
    if isinstance(results, pyoxigraph.QueryBoolean):
        return ["answer"], [[str(bool(results)).lower()]]
    assert isinstance(results, pyoxigraph.QuerySolutions)
    columns = [variable.value for variable in results.variables]
    rows: list[Row] = []
    for solution in results:
        cells = [solution[name] for name in columns]
        rows.append([None if cell is None else cell.value for cell in cells])
    return columns, rows


def are_same_rows(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Tell whether both are the same rows, in any order, each as often.

    Numbers are the same if their six leading digits are.
    """
    return _sorted_rows(rows) == _sorted_rows(others)


def have_same_values(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Tell whether the cells of both are one set of values. Scores compare no more than that."""
    return _values_of(rows) == _values_of(others)


def find_problems(folder: Path = HARBOUR) -> Iterator[str]:
    """Yield a line for each query that does not return what its entry says."""
    store = load_graph(folder)
    dialogues = read_entries(HERE / "dialogues.jsonl")
    for entry in dialogues:
        yield from _problems_of_gold(store, entry["id"], entry)

    for entry in read_entries(HERE / "ambiguous.jsonl"):
        first, second = entry["readings"]
        yield from _problems_of_gold(store, f"{entry['id']}, first reading", first)
        yield from _problems_of_gold(store, f"{entry['id']}, second reading", second)
        if have_same_values(first["answers"], second["answers"]):
            yield f"{entry['id']}: both readings have the same answers"

    questions = read_entries(folder / "questions.jsonl")
    asked = {entry["id"]: entry for entry in [*questions, *dialogues]}
    for draft in read_entries(HERE / "drafts.jsonl"):
        yield from _problems_of_draft(store, draft, asked[draft["of"]])


def _problems_of_gold(store: pyoxigraph.Store, name: str, gold: dict[str, Any]) -> Iterator[str]:
    columns, rows = run_query(store, gold["sparql"])
    if columns != gold["columns"]:
        yield f"{name}: the columns are {columns}"
    if not are_same_rows(rows, gold["answers"]):
        yield f"{name}: the rows are {rows}"
    if "ORDER BY" in gold["sparql"].rpartition("}")[2] and rows != gold["answers"]:
        yield f"{name}: the rows come in another order: {rows}"


def _problems_of_draft(
    store: pyoxigraph.Store, draft: dict[str, Any], question: dict[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with a draft.

    A right draft must return the gold rows. A wrong draft must return other values, so that it is
    wrong for every score.
    """
    wording = question.get("standalone", question["question"])
    if draft["question"] != wording:
        yield f"{draft['id']}: {draft['of']} asks {wording!r}"
    if not are_same_rows(draft["answers"], question["answers"]):
        yield f"{draft['id']}: {draft['of']} has other gold rows"
    _, rows = run_query(store, draft["sparql"])
    if draft["right"] and not are_same_rows(rows, draft["answers"]):
        yield f"{draft['id']}: is said to be right, and returns {rows}"
    if not draft["right"] and have_same_values(rows, draft["answers"]):
        yield f"{draft['id']}: is said to be wrong, and returns the gold values"


def _sorted_rows(rows: Sequence[Row]) -> list[list[str]]:
    return sorted([_comparable(cell) for cell in row] for row in rows)


def _values_of(rows: Sequence[Row]) -> set[str]:
    return {_comparable(cell) for row in rows for cell in row if cell is not None}


def _comparable(cell: str | None) -> str:
    """Return the text by which a cell is compared: a number rounded, no value as an empty text."""
    if cell is None:
        return ""
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return cell


if __name__ == "__main__":
    harbour = Path(sys.argv[1]) if len(sys.argv) > 1 else HARBOUR
    if not harbour.is_dir():
        sys.exit(f"there is no {harbour}: name the folder of harbour, or set KGWB_DATA")
    problems = list(find_problems(harbour))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(bool(problems))
