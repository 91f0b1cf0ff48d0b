"""What gold says of an answer: the state of a row, and what is known to be right of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kgwb.bench.metrics import OWN_KNOWLEDGE, score_answers
from kgwb.bench.questions import answer_to_strings
from kgwb.bench.results import BenchRow, get_label, is_lost, list_labels
from kgwb.bench.values import is_iri
from kgwb.flow import Answer
from kgwb.run.gold import RightAnswer
from kgwb.show.run_state import (
    ERROR,
    choose_answer_state,
    describe_unfitting_values,
    literal_type,
)


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
        doubt=_describe_doubt(row),
        is_ungrounded=row.get("source") == OWN_KNOWLEDGE,
    )


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
