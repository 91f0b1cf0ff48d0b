"""Write the graph, the vocabulary and the questions of Rowanvale Hospitals, and check the answers.

    python benchmarks/clinic/make_clinic.py [FOLDER]

Each gold query runs with two engines, and each answer is computed a second time from the Python objects.
The script ends with 1 where one of the three differs.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pyoxigraph
import rdflib
from organisation import Organisation, build
from questions import QUESTIONS, Question
from rdflib.query import ResultRow
from triples import PREFIXES, Writer, turtle
from vocabulary import vocabulary

HERE = Path(__file__).parent
Cells = list[list[str | None]]


def full_query(sparql: str) -> str:
    """Put the prefixes that a query uses before it."""
    used = [f"PREFIX {name}: <{iri}>" for name, iri in PREFIXES.items() if f"{name}:" in sparql]
    return "\n".join([*used, sparql])


def by_oxigraph(store: pyoxigraph.Store, sparql: str) -> tuple[list[str], Cells]:
    """Return columns and rows of a query, with the engine whose rows are the gold."""
    found = store.query(sparql)
    if isinstance(found, pyoxigraph.QueryBoolean):
        return ["answer"], [[str(bool(found)).lower()]]
    if isinstance(found, pyoxigraph.QueryTriples):
        raise ValueError(f"The query constructs triples; write a SELECT or an ASK: {sparql}")
    columns = [variable.value for variable in found.variables]
    rows = [[cell.value if cell else None for cell in row] for row in found]
    return columns, rows


def by_rdflib(graph: rdflib.Graph, sparql: str) -> Cells:
    """Return the rows of a query with rdflib."""
    found = graph.query(sparql)
    if found.type == "ASK":
        return [[str(found.askAnswer).lower()]]
    rows = [[*row] for row in found if isinstance(row, ResultRow)]
    return [[None if cell is None else str(cell) for cell in row] for row in rows]


def comparable(value: object) -> str:
    """Write a value so that equal ones are equal: numbers to six digits, truth in small letters."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return f"{Decimal(str(value)):.6g}"
    except InvalidOperation:
        return str(value)


def same(first: list[list[object]], second: list[list[object]], ranked: bool) -> bool:
    """Say whether two answers have the same rows; the order counts for a ranked one only."""
    left = [[comparable(cell) for cell in row] for row in first]
    right = [[comparable(cell) for cell in row] for row in second]
    if ranked:
        return left == right
    return sorted(left) == sorted(right)


class Checker:
    """Answers the questions in three ways and keeps what differs."""

    def __init__(self, made: Organisation, texts: list[str]) -> None:
        self.made = made
        self.store = pyoxigraph.Store()
        self.graph = rdflib.Graph()
        self.problems: list[str] = []
        for text in texts:
            self.store.load(text.encode(), pyoxigraph.RdfFormat.TURTLE)
            self.graph.parse(data=text, format="turtle")

    def row(self, number: int, question: Question) -> dict[str, object]:
        """Return the line of a question in ``questions.jsonl``."""
        key = f"C{number:03d}"
        columns: list[str] = []
        rows: Cells = []
        sparql = ""
        if question.sparql:
            sparql = full_query(question.sparql)
            columns, rows = by_oxigraph(self.store, sparql)
            self.compare(key, "rdflib", rows, by_rdflib(self.graph, sparql), question)
        self.compare(key, "the objects", rows, question.answer(self.made), question)
        if not rows and question.kind != "unanswerable":
            self.problems.append(f"{key} has no answer")
        if not question.ranked:
            rows.sort(key=lambda row: [cell or "" for cell in row])
        return {
            "id": key,
            "question": question.text,
            "language": "en",
            "kind": question.kind,
            "sparql": sparql,
            "columns": columns,
            "answers": rows,
            "unanswerable": question.kind == "unanswerable",
            "note": question.note,
        }

    def compare(
        self,
        key: str,
        source: str,
        rows: Cells,
        others: list[list[object]] | Cells,
        question: Question,
    ) -> None:
        """Keep a problem where another answer differs from the gold."""
        if not same([[*row] for row in rows], [[*row] for row in others], question.ranked):
            self.problems.append(f"{key} differs from {source}: {rows} and {others}")


def main(folder: Path) -> int:
    """Write the three files into a folder; return 1 where answers differ."""
    made = build()
    data = turtle(Writer(made).write())
    words = turtle(vocabulary())
    checker = Checker(made, [data, words])
    lines = []
    for number, question in enumerate(QUESTIONS, start=1):
        lines.append(json.dumps(checker.row(number, question), ensure_ascii=False))
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"clinic.ttl": data, "vocab.ttl": words, "questions.jsonl": "\n".join(lines) + "\n"}
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    for problem in checker.problems:
        print(problem)
    print(
        f"{len(checker.graph):,} triples, {len(lines)} questions, {len(checker.problems)} problems"
    )
    return int(bool(checker.problems))


if __name__ == "__main__":
    target = HERE
    if len(sys.argv) > 1:
        target = Path(sys.argv[1])
    sys.exit(main(target))
