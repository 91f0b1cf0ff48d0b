"""Precision, recall, F1 and Hits@1 of one question, and their macro averages.

In the strict sense: where the graph has an answer, withholding it scores precision 0 like a wrong one, and no
question is left out of an average. Published figures may count a withheld answer as precision 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scores:
    """How right one answer is, or the average over several; each from 0 to 1."""

    precision: float
    recall: float
    f1: float
    hits1: float
    """Whether the first answer is a right one."""


NOTHING = Scores(0.0, 0.0, 0.0, 0.0)
EVERYTHING = Scores(1.0, 1.0, 1.0, 1.0)


def score(answers: Sequence[str], gold: Iterable[str]) -> Scores:
    """The scores of an answer, compared as a set; only Hits@1 looks at the order.

    With empty gold the right answer is none: 1 throughout if there are no answers, else 0.
    """
    given, right = set(answers), set(gold)
    if not given or not right:
        return EVERYTHING if given == right else NOTHING
    both = len(given & right)
    precision, recall = both / len(given), both / len(right)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return Scores(precision, recall, f1, float(answers[0] in right))


@dataclass(frozen=True, slots=True)
class Group:
    """The averages over some of the questions."""

    name: str
    questions: int
    scores: Scores
    errors: int
    """Questions that ended in an error; they count 0."""


def groups(rows: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Averages over the lines of a results file: all, then by ``hops``, ``type`` and ``source`` where given.

    ``source`` tells answers of the graph from those of the model's own knowledge, where that may answer.
    """
    told = [_group("all", rows)]
    for field in ("hops", "type", "source"):
        values = sorted({str(row[field]) for row in rows if field in row})
        told += [
            _group(f"{field} {one}", [row for row in rows if str(row.get(field)) == one]) for one in values
        ]
    return told


def _group(name: str, rows: Sequence[Mapping[str, Any]]) -> Group:
    columns = ([row[field] for row in rows] for field in ("precision", "recall", "f1", "hits1"))
    means = (sum(column) / len(column) if column else 0.0 for column in columns)
    return Group(name, len(rows), Scores(*means), sum(row["error"] is not None for row in rows))


def table(told: Sequence[Group]) -> str:
    """Groups as a table of text, a line each."""
    width = max(len(group.name) for group in told)
    head = f"{'':<{width}}  questions  precision  recall     F1  Hits@1  errors"
    return "\n".join([head, *(_line(group, width) for group in told)])


def _line(group: Group, width: int) -> str:
    precision, recall, f1, hits1 = astuple(group.scores)
    numbers = f"{precision:>9.3f}  {recall:>6.3f}  {f1:>5.3f}  {hits1:>6.3f}"
    return f"{group.name:<{width}}  {group.questions:>9}  {numbers}  {group.errors:>6}"
