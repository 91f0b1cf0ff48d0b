"""How right answers are, how certain the averages are, and whether two sets of results differ.

Answers are compared as sets of values (``normalize_value``), never by spelling. Their rank is the order in which they
were given. Two spellings of one value are one answer, at the better rank.

Averages are macro averages: every question has the same weight. A question that ended in an error
scores 0 in every measure. There are two conventions:

- *strict*: an abstention (no answer, though the graph has one) has precision 0, like a wrong
  answer. F1 is the mean of the questions' F1 (QALD's macro F1).
- *paper* (Chatty-KG, section 7.1, with its reference code): an abstention has precision 1. F1 is
  the harmonic mean of macro precision and macro recall, which rewards abstaining.

Intervals of averages are 95 % percentile bootstrap intervals over questions (Efron and Tibshirani
1993, chapter 13). Those of differences come from the permutation test that gives their p-value. See
kgwb.bench.statistics.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, combinations
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote_to_bytes, urlsplit

import numpy

from kgwb.bench.statistics import (
    Matrix,
    PairedScores,
    SampleSize,
    bootstrap_means,
    format_p_value,
    percentile_interval,
    permutation_interval,
    permutation_p_value,
)
from kgwb.errors import InputError
from kgwb.records import frozen
from kgwb.terms import value_of_text
from kgwb.text import pluralize

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def is_iri(text: str) -> bool:
    """Return whether an answer's text is an IRI with a scheme and a place: "http://e/a".

    Results have no kinds of terms, so a literal that is an address as a whole counts, too.
    """
    return _IRI.fullmatch(text) is not None


def normalize_value(text: str) -> Hashable:
    """Return the value that is compared in place of an answer's text.

    Gold answers have no datatypes, so the kind of a value is recognized by its lexical form. An IRI
    is brought into the normal form of RFC 3987, section 5.3: scheme and host in lower case, no
    needless escapes, no default port. http and https stay different, and so do upper and lower case
    in a path. Of anything else it is the value that it stands for (``value_of_text``).
    """
    if is_iri(text):
        text = _normalize_iri(text)
    return value_of_text(text)


def _normalize_iri(iri: str) -> str:
    """Return an IRI in its normal form, or unchanged if it cannot be parsed ("http://[").

    Scheme and host are in lower case, the default port is left out, an empty path is "/", and
    needless escapes are decoded.
    """
    try:
        parts = urlsplit(iri)
    except ValueError:
        return iri
    host = parts.netloc.lower()
    default_port = _DEFAULT_PORTS.get(parts.scheme, ":")
    host = host.removesuffix(default_port)
    normalized = parts._replace(netloc=host, path=parts.path or "/")
    return _ESCAPES.sub(lambda match: _decode_escapes(match[0]), normalized.geturl())


def _decode_escapes(escapes: str) -> str:
    """Decode a sequence of percent escapes, as far as an IRI may contain the characters, and return the text.

    Reserved and control characters stay escaped. If the bytes are not UTF-8, all stay escaped, in
    upper case.
    """
    try:
        text = unquote_to_bytes(escapes).decode()
    except UnicodeDecodeError:
        return escapes.upper()
    decoded = ""
    for char in text:
        may_stand_alone = char > "\x9f" or _UNRESERVED.fullmatch(char)
        decoded += char if may_stand_alone else quote(char, safe="")
    return decoded


OWN_KNOWLEDGE = "own knowledge"
"""The ``source`` of a row whose answers are the model's own, without a triple of the graph."""
FROM_GRAPH = "the graph"
"""The ``source`` of any other row."""
GROUNDED_GROUP = "all, by the graph alone"
"""The group of all questions in which answers from own knowledge count as none."""
BenchRows = Sequence[Mapping[str, Any]]
"""Rows of a results file (kgwb.bench.results)."""
TableCells = Sequence[Sequence[str | None]]
"""The rows of a table."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})
RANGES: Mapping[str, Sequence[tuple[str, int, float]]] = {
    "words": (("1 to 5", 1, 5), ("6 to 10", 6, 10), ("11 or more", 11, inf)),
    "predicates": (("1", 1, 1), ("2", 2, 2), ("3 or more", 3, inf)),
}
"""For each number of a question, the titles of its ranges with their first and last number."""
MAX_COMBINED_COLUMNS = 10
"""If a table has more columns, ``lenient`` is the F1 of all of them: their combinations are too many."""


@frozen
class Scores:
    """The scores of one answer, or their means, or an array of means. Each is from 0 to 1."""

    precision: float
    """Share of the given answers that are right; 0 for an abstention."""
    recall: float
    """Share of the gold answers that were given."""
    f1: float
    """Harmonic mean of precision and recall of one question."""
    hits1: float
    """1 if the first answer is right: P@1 (Chatty-KG, section 7.1), Hits@1 (DoG, Experiments)."""
    mrr: float = 0.0
    """1 / rank of the first right answer, 0 without one (Chatty-KG, section 7.1)."""
    hit5: float = 0.0
    """1 if one of the first five answers is right (Chatty-KG, section 7.1)."""
    exact: float = 0.0
    """1 if the answers are exactly the gold answers."""
    paper_precision: float = 0.0
    """Precision, but 1 for an abstention (Chatty-KG's reference code)."""
    lenient: float = 0.0
    """F1 of the best choice of columns, if the answer is a table: further columns cost nothing."""
    hit_any: float = 0.0
    """1 if any of the answers is right: "Hits@1" of DoG on MetaQA, by its published code."""
    hit_substring: float = 0.0
    """1 if any gold name stands in the reply, also as a part of a word: "Hits@1" of DoG on
    Freebase, by its published code. See ``_has_gold_name``.
    """

    @property
    def paper_f1(self) -> float:
        """Harmonic mean of ``paper_precision`` and ``recall``. Of means, it is Chatty-KG's F1."""
        total = self.paper_precision + self.recall
        product = self.paper_precision * self.recall
        return 2 * product / numpy.maximum(total, 1e-300)  # type: ignore[no-any-return]


ZERO_SCORES = Scores(*[0.0] * len(fields(Scores)))
PERFECT_SCORES = Scores(*[1.0] * len(fields(Scores)))
ABSTENTION_SCORES = replace(ZERO_SCORES, paper_precision=1.0)
MEASURES = (*(field.name for field in fields(Scores)), "paper_f1")
"""Names of all measures."""


def score_answers(
    answers: Sequence[str],
    gold: Iterable[str],
    table: TableCells = (),
    labels: Mapping[str, str] = NO_LABELS,
) -> Scores:
    """Return the scores of the answers to one question, in the order in which they were given.

    ``answers`` and ``gold`` are IRIs or lexical forms, compared by value. ``table`` has the rows of
    an answer that is a table. ``labels`` has the names of IRIs among answers and gold. If the gold
    is empty, having no answer is right: all scores are 1 without answers and 0 with some.
    """
    gold = list(gold)
    scores = _score_values(answers, gold)
    best_f1 = max(scores.f1, _best_f1_of_columns(table, gold))
    has_name = scores.hit_substring
    if answers:
        has_name = float(_has_gold_name(answers, gold, labels))
    return replace(scores, lenient=best_f1, hit_substring=has_name)


def _has_gold_name(answers: Sequence[str], gold: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether the name of any gold answer occurs in the names of the answers, also as a part of one.

    Letter case and white space are ignored, as in the published code of DoG. A value without a
    label is its own name. The answers are searched one after another.
    """
    reply = "\n".join(_squeezed_names(answers, labels))
    gold_names = list(_squeezed_names(gold, labels))
    return any(name and name in reply for name in gold_names)


def _squeezed_names(values: Iterable[str], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the name of each value, in lower case and in NFC, without white space."""
    for value in values:
        name = labels.get(value, value)
        without_blanks = "".join(name.split())
        yield normalize("NFC", without_blanks.casefold())


def _best_f1_of_columns(table: TableCells, gold: Sequence[str]) -> float:
    """Return the best F1 of any choice among a table's columns, taken together as one set of values.

    All columns together do not count as a choice: their F1 is that of the answer. Returns 0 with
    one column, and with more than MAX_COMBINED_COLUMNS.
    """
    columns = _transpose(table)
    if not 1 < len(columns) <= MAX_COMBINED_COLUMNS:
        return 0.0
    choices = []
    for size in range(1, len(columns)):
        for chosen in combinations(columns, size):
            choices.append(list(chain.from_iterable(chosen)))
    return _best_f1(gold, choices)


def score_columns(names: Sequence[str], gold: TableCells, table: TableCells) -> dict[str, float]:
    """Return, by name, the F1 of each gold column with the best matching column of the answer.

    It is 0 without answers. Cells are compared as a set of values, without empty ones. One column
    of the answer may match several gold columns.
    """
    answer_columns = _transpose(table)
    scores = {}
    for name, gold_column in zip(names, _transpose(gold), strict=False):
        scores[name] = _best_f1(gold_column, answer_columns)
    return scores


def _best_f1(column: Sequence[str], others: Iterable[Sequence[str]]) -> float:
    """Return the F1 of a column with the best matching one of others; 0 without others."""
    best = 0.0
    for other in others:
        scores = _score_values(other, column)
        best = max(best, scores.f1)
    return best


def find_columns_not_asked_for(gold: TableCells, table: TableCells) -> list[int]:
    """Return the positions, in order, of the columns that an answer has beyond those of the gold table.

    As many columns as the gold table has are taken to be asked for: those with the best F1 with any
    gold column, of equal ones the first. Empty for an answer with as many columns or fewer.
    """
    gold_columns = _transpose(gold)
    best_scores = [_best_f1(column, gold_columns) for column in _transpose(table)]
    positions = range(len(best_scores))
    best_first = sorted(positions, key=best_scores.__getitem__, reverse=True)
    not_asked_for = best_first[len(gold_columns) :]
    return sorted(not_asked_for)


def _transpose(table: TableCells) -> list[list[str]]:
    """Return the columns of a table, without missing cells (None).

    Columns beyond the length of the shortest row are left out.
    """
    columns = []
    for cells in zip(*table, strict=False):
        known = [cell for cell in cells if cell is not None]
        columns.append(known)
    return columns


def _score_values(answers: Sequence[str], gold: Sequence[str]) -> Scores:
    """Return the scores of answers as a set of values, without ``lenient`` and ``hit_substring``, which are 0.

    Values that are equal after ``normalize_value`` count once, at the better rank. Nothing answered
    gives PERFECT_SCORES if the gold is empty and ABSTENTION_SCORES if not; no right value gives
    ZERO_SCORES.
    """
    values = dict.fromkeys(map(normalize_value, answers))
    right_values = set(map(normalize_value, gold))
    if not values:
        return ABSTENTION_SCORES if right_values else PERFECT_SCORES
    ranks = [rank for rank, value in enumerate(values, 1) if value in right_values]
    if not ranks:
        return ZERO_SCORES
    first_rank = ranks[0]
    precision = len(ranks) / len(values)
    recall = len(ranks) / len(right_values)
    return Scores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall),
        hits1=float(first_rank == 1),
        mrr=1 / first_rank,
        hit5=float(first_rank <= 5),
        exact=float(precision == recall == 1),
        paper_precision=precision,
        hit_any=1.0,
    )


def score_row(row: Mapping[str, Any]) -> Scores | None:
    """Compute and return the scores of a row of a results file from its answers and gold; None without gold.

    A row with an error scores 0 in all.
    """
    if row["gold"] is None:
        return None
    if row["error"] is not None:
        return ZERO_SCORES
    table = row.get("table", ())
    labels = row.get("labels", NO_LABELS)
    return score_answers(row["answers"], row["gold"], table, labels)


def read_names(row: Mapping[str, Any]) -> list[str]:
    """Return the answers of a row, with gold things in place of a text that is their name.

    Such a text is not equal to the thing, and counts as wrong: the answer should have the thing.
    """
    labels = row.get("labels", NO_LABELS)
    things: dict[str, list[str]] = {}
    for value in row["gold"] or ():
        name = labels.get(value, value)
        things.setdefault(name, []).append(value)
    right = set(row["gold"] or ())
    read: list[str] = []
    for answer in row["answers"]:
        if answer in right:
            read.append(answer)
        else:
            read += things.get(answer, [answer])
    return read


def score_best_reading(row: Mapping[str, Any], measure: str) -> float | None:
    """Return a measure of the answer of a row, or of the reading offered with it that has the best.

    None without gold, or if the readings were not asked.
    """
    if row["gold"] is None or "readings" not in row:
        return None
    best: float = getattr(score_row(row), measure)
    for reading in row["readings"]:
        if reading.get("error") is None:
            table = reading.get("table", ())
            scores = score_answers(reading["answers"], row["gold"], table)
            best = max(best, getattr(scores, measure))
    return best


def _scores_by_id(rows: BenchRows) -> dict[str, Scores]:
    """Return the scores of all rows that have gold, by question id.

    A question that was repeated has the means of its repeats ("repeated") in place of its own
    scores.
    """
    scores_by_id = {}
    for row in rows:
        scores = score_row(row)
        if scores is not None and "repeated" in row:
            scores = Scores(**row["repeated"])
        if scores is not None:
            scores_by_id[row["id"]] = scores
    return scores_by_id


# --- averages


class Estimate(NamedTuple):
    """A value from 0 to 1 with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f}\u00a0[{self.low:.3f},\u00a0{self.high:.3f}]"


def estimate_mean(values: Sequence[float]) -> Estimate:
    """Return the mean of values of questions, with its bootstrap interval. Needs at least one."""
    scores = numpy.array(values)
    means = bootstrap_means(scores[:, None])
    low, high = percentile_interval(means)
    return Estimate(float(scores.mean()), low, high)


@dataclass(frozen=True)
class QuestionGroup:
    """All questions of a results file, or those of one kind."""

    name: str
    rows: BenchRows = field(repr=False)

    @property
    def errors(self) -> int:
        """The number of questions that ended in an error; they score 0."""
        return sum(row["error"] is not None for row in self.rows)

    @property
    def cut_results(self) -> int:
        """The number of answers that come from a result that a limit cut."""
        return sum(bool(row.get("cut_rows")) for row in self.rows)

    @property
    def named_answers(self) -> int:
        """The number of questions answered with names of gold things in place of the things."""
        answered = [row for row in self.rows if row["error"] is None]
        return sum(read_names(row) != row["answers"] for row in answered)

    @property
    def f1_with_names(self) -> float:
        """F1 over the questions that have gold, where the name of a gold thing counts as the thing."""
        rows = [{**row, "answers": read_names(row)} for row in self.rows]
        return QuestionGroup(self.name, rows).mean_scores.f1

    @property
    def without_gold(self) -> int:
        """The number of questions that cannot be scored; they count in no average."""
        return len(self.rows) - len(self._scores)

    @cached_property
    def mean_scores(self) -> Scores:
        """The macro averages over the questions that have gold; all 0 if there are none."""
        if not self._scores:
            return ZERO_SCORES
        means = _to_matrix(self._scores).mean(axis=0)
        return Scores(*means.tolist())

    def estimate(self, measure: str) -> Estimate | None:
        """Return the mean of a measure with its bootstrap interval; None if no question has gold.

        The interval is of 95 %.
        """
        if not self._scores:
            return None
        mean = getattr(self.mean_scores, measure)
        low, high = percentile_interval(getattr(self._bootstrap_means, measure))
        return Estimate(mean, low, high)

    @cached_property
    def _scores(self) -> list[Scores]:
        return list(filter(None, map(score_row, self.rows)))

    @cached_property
    def _bootstrap_means(self) -> Scores:
        means = bootstrap_means(_to_matrix(self._scores))
        return Scores(*means.T)


def _to_matrix(scores: Iterable[Scores]) -> Matrix:
    """Return a matrix with a row for each question."""
    return numpy.array([astuple(row) for row in scores])


def group_questions(rows: BenchRows) -> list[QuestionGroup]:
    """Return all questions as a group, and a group for each kind of question that occurs.

    The kinds are: answerable and unanswerable questions, if both occur, where unanswerable means
    that the gold is empty; each value of ``hops``, ``type``, ``language``, ``split``, ``tags`` and ``source``, where an
    answer came from; the lengths of questions and the numbers of predicates in their gold queries
    (RANGES), each if there are several (Chatty-KG, Table 8). If an answer came from the model's own
    knowledge, the group GROUNDED_GROUP has all questions, and such answers count there as none.
    """
    groups = [QuestionGroup("all", rows), *_group_by_answerability(rows)]
    if any(row.get("source") == OWN_KNOWLEDGE for row in rows):
        grounded_rows = list(map(_without_own_knowledge, rows))
        groups.append(QuestionGroup(GROUNDED_GROUP, grounded_rows))
    for name in ("hops", "type", "language", "source", "split"):
        groups += _group_by_value(rows, name)
    groups += _group_by_value(rows, "tags", "tag")
    for name in RANGES:
        groups += _group_by_number(rows, name)
    return groups


def _group_by_answerability(rows: BenchRows) -> list[QuestionGroup]:
    """Return the answerable and the unanswerable questions; none unless both occur."""
    unanswerable = [row for row in rows if row["gold"] == []]
    if not 0 < len(unanswerable) < len(rows):
        return []
    answerable = [row for row in rows if row["gold"]]
    return [
        QuestionGroup("answerable", answerable),
        QuestionGroup("unanswerable", unanswerable),
    ]


def _group_by_value(rows: BenchRows, name: str, title: str = "") -> list[QuestionGroup]:
    """Return a group for each value of a field that occurs, sorted by the value.

    A field may have several values. ``title`` stands for the field's name.
    """
    rows_by_value: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        values = row.get(name, ())
        if not isinstance(values, list | tuple):
            values = [values]
        for value in values:
            rows_by_value.setdefault(str(value), []).append(row)
    groups = []
    for value in sorted(rows_by_value):
        group = QuestionGroup(f"{title or name} {value}", rows_by_value[value])
        groups.append(group)
    return groups


def _group_by_number(rows: BenchRows, name: str) -> list[QuestionGroup]:
    """Return a group for each of the RANGES of a number that has questions; none if fewer than two have.

    Rows without the number, which earlier versions wrote, are in no group.
    """
    groups = []
    for title, first, last in RANGES[name]:
        within = [row for row in rows if first <= row.get(name, 0) <= last]
        if within:
            groups.append(QuestionGroup(f"{name} {title}", within))
    if len(groups) < 2:
        return []
    return groups


def _without_own_knowledge(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row without its answers if they are from the model's own knowledge."""
    if row.get("source") != OWN_KNOWLEDGE:
        return row
    return {**row, "answers": [], "table": []}


# --- two sets of results


@dataclass(frozen=True, slots=True, repr=False)
class ScoreComparison:
    """Two sets of results, compared on the questions with gold that both have."""

    measure: str
    questions: int
    """The number of questions compared."""
    first: float
    """Mean of the measure in the first set."""
    second: float
    confidence_interval: tuple[float, float]
    """95 % interval of the difference. It contains 0 if, and only if, ``p_value`` is above 0.05."""
    improved_ids: tuple[str, ...]
    """Ids of the questions that the second set answers better. An id in neither list is a tie."""
    worsened_ids: tuple[str, ...]
    unpaired_ids: tuple[str, ...]
    """Ids that only one set has, or that have no gold."""
    p_value: float
    """Two-sided p-value of a paired permutation test of the difference."""
    sample_size: SampleSize | None = None
    """How many questions would show the difference; None for paper F1, which is no mean of questions."""

    def __repr__(self) -> str:
        """Return the measure of both sets, the difference with its interval, and the p-value, as text.

        A small p-value is only said to be below MIN_SHOWN_P_VALUE. ``p_value`` has what was computed.
        """
        low, high = self.confidence_interval
        interval = f"[{low:+.3f}, {high:+.3f}]"
        means = f"{self.measure} {self.first:.3f} → {self.second:.3f}"
        p_value = format_p_value(self.p_value)
        questions = pluralize(self.questions, "question")
        return f"{means}: {self.difference:+.3f} {interval}, {p_value}, from {questions}"

    @property
    def difference(self) -> float:
        """The mean of the second set minus that of the first."""
        return self.second - self.first


def compare_results(
    first: BenchRows,
    second: BenchRows,
    measure: str = "f1",
    *,
    right_weight: float = 1.0,
    drawn_by: BenchRows | None = None,
) -> ScoreComparison:
    """Compare two sets of results, question by question, by a paired permutation test (PairedScores).

    Only questions with gold in both count; all others are in ``unpaired_ids``. A difference above 0
    is an improvement of the second set. ``right_weight`` is for results in which all questions that
    the first set lost were asked again, and only some of those that it had right: each of these
    stands for so many. The means are then estimates for all questions, and the test allows for the
    way they were drawn; otherwise lost questions that come out right by chance would look like an
    effect. ``drawn_by`` are these first results if the questions were drawn by others than
    ``first``. Raises InputError for an unknown measure, if the sets share no question with gold, and
    if the gold of a question differs.
    """
    if measure not in MEASURES:
        raise InputError(
            f"there is no measure {measure!r} by which results could be compared",
            hint=f"choose one of {', '.join(MEASURES)}",
        )
    before = _scores_by_id(first)
    after = _scores_by_id(second)
    shared_ids = [id_ for id_ in before if id_ in after]
    _check_equal_gold(first, second, shared_ids)
    if not shared_ids:
        raise InputError(
            "the two results cannot be compared: they have no question with gold answers in common",
            hint="compare results of one question set; add_gold_answers finds gold answers",
        )
    improved = []
    worsened = []
    for id_ in shared_ids:
        change = getattr(after[id_], measure) - getattr(before[id_], measure)
        if change > 0:
            improved.append(id_)
        elif change < 0:
            worsened.append(id_)
    all_ids = dict.fromkeys(row["id"] for row in (*first, *second))
    unpaired_ids = [id_ for id_ in all_ids if id_ not in before or id_ not in after]
    pairs = PairedScores(
        _to_matrix(before[id_] for id_ in shared_ids),
        _to_matrix(after[id_] for id_ in shared_ids),
        _weights_of(drawn_by or first, shared_ids, right_weight),
        _weights_of(drawn_by or second, shared_ids, right_weight),
    )
    mean_before, mean_after = (float(_measure_of(mean, measure)) for mean in pairs.means())
    permuted_before, permuted_after = pairs.permuted_means()
    permuted = _measure_of(permuted_after, measure) - _measure_of(permuted_before, measure)
    difference = mean_after - mean_before
    sample_size = None
    if measure != "paper_f1":  # it is no mean of questions
        sample_size = pairs.estimate_sample_size(MEASURES.index(measure))
    return ScoreComparison(
        measure=measure,
        questions=len(shared_ids),
        first=mean_before,
        second=mean_after,
        confidence_interval=permutation_interval(permuted, difference),
        improved_ids=tuple(improved),
        worsened_ids=tuple(worsened),
        unpaired_ids=tuple(unpaired_ids),
        p_value=permutation_p_value(permuted, difference),
        sample_size=sample_size,
    )


def _weights_of(rows: BenchRows, ids: Iterable[str], right_weight: float) -> Matrix:
    """Return a weight for each of the ids: ``right_weight`` if its answer is exactly the gold, else 1.

    The first ask counts, also of repeated questions, since questions are drawn by it.
    """
    weights: dict[str, float] = {}
    for row in rows:
        scores = score_row(row) or ZERO_SCORES
        weight = 1.0
        if scores.f1 == 1:
            weight = right_weight
        weights[row["id"]] = weight
    return numpy.array([weights[id_] for id_ in ids])


def _measure_of(means: Matrix, measure: str) -> Matrix:
    """Return one measure of mean scores: of one row of means, or of each row of a matrix."""
    values: Matrix = getattr(Scores(*means.T), measure)
    return values


def _check_equal_gold(first: BenchRows, second: BenchRows, ids: Iterable[str]) -> None:
    """Raise InputError if the gold answers of a question differ between the two sets, regardless of order."""
    gold_before = {row["id"]: row["gold"] for row in first}
    gold_after = {row["id"]: row["gold"] for row in second}
    differing = []
    for id_ in ids:
        if set(gold_before[id_]) != set(gold_after[id_]):
            differing.append(id_)
    if differing:
        count = pluralize(len(differing), "question")
        raise InputError(
            f"the gold answers of {count} differ between the two results, for example those of {differing[0]}",
            hint="compare results of one question set on one graph",
        )


def compute_retention(dialogue: BenchRows, standalone: BenchRows) -> float | None:
    """Return how much of F1 is kept in dialogues, in per cent: F1 in dialogues / F1 standalone.

    This is Chatty-KG's Table 5. Both are the paper's F1, over the same questions, asked in
    dialogues and in their standalone forms (``make_standalone_questions``). Returns None if the
    standalone F1 is 0. Raises what ``compare_results`` raises, and InputError if a question has no
    counterpart or gold.
    """
    comparison = compare_results(dialogue, standalone, "paper_f1")
    unpaired = comparison.unpaired_ids
    if unpaired:
        raise InputError(
            "the retention cannot be computed: these questions are in one of the two results only, or "
            f"have no gold answers in one: {', '.join(unpaired[:5])}",
            hint="measure the same questions, all with gold answers, twice: as they are, and as "
            "make_standalone_questions(questions)",
        )
    if not comparison.second:
        return None
    return 100 * comparison.first / comparison.second
