"""How right answers are, question by question and on average.

Answers are compared by value (kgwb.bench.values), as sets; rank is the order they were given in, and two
spellings of one value are one answer, at the better rank. Averages are macro averages: every question counts
the same, also one that ended in an error, which counts 0 throughout. Two conventions stand side by side:

- *strict*: an answer withheld where the graph has one scores precision 0, like a wrong one; F1 is the average
  of the questions' F1 (QALD's macro F1).
- *paper* (Chatty-KG, section 7.1, with its reference code): such an abstention counts precision 1, and F1 is
  the harmonic mean of macro precision and macro recall, which rewards silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from kgwb.bench.values import value_of
from kgwb.show.html import clean


@dataclass(frozen=True, slots=True)
class Scores:
    """How right one answer is, or the average over several; each from 0 to 1."""

    precision: float
    """Share of the answers given that are right; 0 of an abstention."""
    recall: float
    """Share of the gold that was given."""
    f1: float
    """Harmonic mean of the two, question by question."""
    hits1: float
    """Whether the first answer is right: P@1 (Chatty-KG, section 7.1), Hits@1 (MetaQA; DoG, section 4)."""
    mrr: float = 0.0
    """1 / rank of the first right answer, 0 without one (Chatty-KG, section 7.1)."""
    hit5: float = 0.0
    """Whether one of the first five answers is right (Chatty-KG, section 7.1)."""
    exact: float = 0.0
    """Whether the answers are the gold, no more and no less."""
    paper_precision: float = 0.0
    """Precision, but 1 of an abstention (Chatty-KG's reference code)."""

    @property
    def paper_f1(self) -> float:
        """Harmonic mean of ``paper_precision`` and ``recall``: of averages, F1 as Chatty-KG reports it."""
        both = self.paper_precision + self.recall
        return 2 * self.paper_precision * self.recall / both if both else 0.0


NOTHING = Scores(*[0.0] * 8)
EVERYTHING = Scores(*[1.0] * 8)
ABSTAINED = replace(NOTHING, paper_precision=1.0)
MEASURES = (*(field.name for field in fields(Scores)), "paper_f1")
"""Names of everything that is measured, in the order of the table."""


def score(answers: Sequence[str], gold: Iterable[str]) -> Scores:
    """The scores of the answers to one question.

    With empty gold the right answer is none: 1 throughout if there are no answers, else 0.
    """
    given, right = tuple(dict.fromkeys(map(value_of, answers))), set(map(value_of, gold))
    if not given:
        return ABSTAINED if right else EVERYTHING
    ranks = [rank for rank, value in enumerate(given, 1) if value in right]
    if not ranks:
        return NOTHING
    precision, recall, first = len(ranks) / len(given), len(ranks) / len(right), ranks[0]
    f1 = 2 * precision * recall / (precision + recall)
    exact = float(precision == recall == 1)
    return Scores(precision, recall, f1, float(first == 1), 1 / first, float(first <= 5), exact, precision)


def score_row(row: Mapping[str, Any]) -> Scores | None:
    """The scores of a line of a results file, from its answers and gold; None if it has no gold."""
    if row["gold"] is None:
        return None
    return score(row["answers"], row["gold"]) if row["error"] is None else NOTHING


def mean(scores: Sequence[Scores]) -> Scores:
    """The macro average; 0 throughout of nothing."""
    columns = ([getattr(one, field.name) for one in scores] for field in fields(Scores))
    return Scores(*(sum(column) / len(column) if column else 0.0 for column in columns))


@dataclass(frozen=True, slots=True)
class Group:
    """The averages over some of the questions."""

    name: str
    questions: int
    scores: Scores
    """Over the questions that have gold."""
    errors: int
    """Questions that ended in an error; they count 0."""
    without_gold: int = 0
    """Questions that cannot be scored and are in no average."""


def groups(rows: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Averages over a results file: all, then by ``hops``, ``type``, ``language`` and ``source`` where given.

    ``source`` tells answers of the graph from those of the model's own knowledge, where that may answer.
    """
    told = [_group("all", rows)]
    for field in ("hops", "type", "language", "source"):
        values = sorted({str(row[field]) for row in rows if field in row})
        told += [
            _group(f"{field} {one}", [row for row in rows if str(row.get(field)) == one]) for one in values
        ]
    return told


def _group(name: str, rows: Sequence[Mapping[str, Any]]) -> Group:
    scores = [one for row in rows if (one := score_row(row)) is not None]
    errors = sum(row["error"] is not None for row in rows)
    return Group(name, len(rows), mean(scores), errors, len(rows) - len(scores))


_HEADS = "precision recall F1 Hits@1 MRR Hit@5 exact paper-P paper-F1".split()


def table(told: Sequence[Group]) -> str:
    """Groups as a table of text, a line each."""
    width = max(len(clean(group.name)) for group in told)
    head = "  ".join(
        [f"{'':<{width}}", "questions", *(f"{name:>5}" for name in _HEADS), "errors", "without gold"]
    )
    return "\n".join([head, *(_line(group, width) for group in told)])


def _line(group: Group, width: int) -> str:
    columns = zip(_HEADS, MEASURES, strict=True)
    shares = [f"{getattr(group.scores, of):>{max(len(name), 5)}.3f}" for name, of in columns]
    counts = [f"{group.errors:>6}", f"{group.without_gold:>12}"]
    return "  ".join([f"{clean(group.name):<{width}}", f"{group.questions:>9}", *shares, *counts])
