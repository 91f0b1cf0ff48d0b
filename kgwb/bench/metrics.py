"""How right answers are, question by question and on average, how sure that is, and whether two sets differ.

Answers are compared by value (``value_of``), as sets; rank is the order they were given in, and two
spellings of one value are one answer, at the better rank. Averages are macro averages: every question counts
the same, also one that ended in an error, which counts 0 throughout. Two conventions stand side by side:

- *strict*: an answer withheld where the graph has one scores precision 0, like a wrong one; F1 is the average
  of the questions' F1 (QALD's macro F1).
- *paper* (Chatty-KG, section 7.1, with its reference code): such an abstention counts precision 1, and F1 is
  the harmonic mean of macro precision and macro recall, which rewards silence.

Every interval is the 95 % percentile bootstrap over questions (Efron and Tibshirani 1993, chapter 13); the
same lines give the same.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from itertools import chain, combinations
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote_to_bytes, urlsplit

import numpy

from kgwb.errors import InputError

BenchRows = Sequence[Mapping[str, Any]]
"""Lines of a results file (kgwb.bench.results)."""
Matrix = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
BOOTSTRAP_SAMPLES = 2000
TableCells = Sequence[Sequence[str | None]]
"""The rows of a table."""
MAX_COMBINED_COLUMNS = 10
"""Columns of an answer that are chosen from; of more, all are taken."""


@dataclass(frozen=True, slots=True)
class Scores:
    """How right one answer is, or the average over several, or an array of averages; each from 0 to 1."""

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
    lenient: float = 0.0
    """F1 of the best choice among the columns of an answer that is a table: more columns do no harm."""

    @property
    def paper_f1(self) -> float:
        """Harmonic mean of ``paper_precision`` and ``recall``: of averages, F1 as Chatty-KG reports it."""
        both = self.paper_precision + self.recall
        return 2 * self.paper_precision * self.recall / numpy.maximum(both, 1e-300)  # type: ignore[no-any-return]


ZERO_SCORES = Scores(*[0.0] * 9)
PERFECT_SCORES = Scores(*[1.0] * 9)
ABSTENTION_SCORES = replace(ZERO_SCORES, paper_precision=1.0)
MEASURES = (*(field.name for field in fields(Scores)), "paper_f1")
"""Names of everything that is measured."""


def score_answers(answers: Sequence[str], gold: Iterable[str], table: TableCells = ()) -> Scores:
    """The scores of the answers to one question; ``table`` has their cells where they are one.

    With empty gold the right answer is none: 1 throughout if there are no answers, else 0.
    """
    gold = [*gold]
    whole, columns = _score_values(answers, gold), _transpose(table)
    if not 1 < len(columns) <= MAX_COMBINED_COLUMNS:
        return replace(whole, lenient=whole.f1)
    choices = chain(*(combinations(columns, size) for size in range(1, len(columns))))
    return replace(
        whole, lenient=max([whole.f1, *(_score_values([*chain(*c)], gold).f1 for c in choices)])
    )


def score_columns(names: Sequence[str], gold: TableCells, table: TableCells) -> dict[str, float]:
    """F1 of each gold column against the column of an answer that fits it best."""
    answered = _transpose(table)
    return {
        name: max((_score_values(column, right).f1 for column in answered), default=0.0)
        for name, right in zip(names, _transpose(gold), strict=False)
    }


def _transpose(table: TableCells) -> list[list[str]]:
    return [[cell for cell in column if cell is not None] for column in zip(*table, strict=False)]


def _score_values(answers: Sequence[str], gold: Sequence[str]) -> Scores:
    values, right = (
        tuple(dict.fromkeys(map(normalize_value, answers))),
        set(map(normalize_value, gold)),
    )
    if not values:
        return ABSTENTION_SCORES if right else PERFECT_SCORES
    ranks = [rank for rank, value in enumerate(values, 1) if value in right]
    if not ranks:
        return ZERO_SCORES
    precision, recall, first = len(ranks) / len(values), len(ranks) / len(right), ranks[0]
    f1 = 2 * precision * recall / (precision + recall)
    exact = float(precision == recall == 1)
    return Scores(
        precision, recall, f1, float(first == 1), 1 / first, float(first <= 5), exact, precision
    )


def score_row(row: Mapping[str, Any]) -> Scores | None:
    """The scores of a line of a results file, from its answers and gold; None if it has no gold."""
    if row["gold"] is None:
        return None
    return (
        score_answers(row["answers"], row["gold"], row.get("table", ()))
        if row["error"] is None
        else ZERO_SCORES
    )


# --- averages


class Estimate(NamedTuple):
    """A value from 0 to 1 with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f}\u00a0[{self.low:.3f},\u00a0{self.high:.3f}]"


@dataclass(frozen=True)
class QuestionGroup:
    """Some of the questions of a results file."""

    name: str
    rows: BenchRows = field(repr=False)

    @property
    def errors(self) -> int:
        """Questions that ended in an error; they count 0."""
        return sum(row["error"] is not None for row in self.rows)

    @property
    def without_gold(self) -> int:
        """Questions that cannot be scored and are in no average."""
        return len(self.rows) - len(self._scores)

    @cached_property
    def mean_scores(self) -> Scores:
        """The macro averages over the questions that have gold; 0 throughout of none."""
        return (
            Scores(*_to_matrix(self._scores).mean(axis=0).tolist()) if self._scores else ZERO_SCORES
        )

    def estimate(self, measure: str) -> Estimate | None:
        """A measure with its interval; None where no question has gold."""
        if not self._scores:
            return None
        return Estimate(
            getattr(self.mean_scores, measure),
            *_percentile_interval(getattr(self._bootstrap_means, measure)),
        )

    @cached_property
    def _scores(self) -> list[Scores]:
        return [scores for row in self.rows if (scores := score_row(row)) is not None]

    @cached_property
    def _bootstrap_means(self) -> Scores:
        return Scores(*_bootstrap_means(_to_matrix(self._scores)).T)


def group_questions(rows: BenchRows) -> list[QuestionGroup]:
    """All questions, those the graph can answer and cannot, and those of each ``hops``, ``type``,
    ``language`` and ``source``, where given.

    An unanswerable question, whose gold is empty, is right when nothing is answered.
    ``source`` separates answers of the graph from those of the model's own knowledge, where that may answer.
    """
    parts = [QuestionGroup("all", rows)]
    empty = [row for row in rows if row["gold"] == []]
    if empty and len(empty) < len(rows):
        parts += [
            QuestionGroup("answerable", [row for row in rows if row["gold"]]),
            QuestionGroup("unanswerable", empty),
        ]
    for name in ("hops", "type", "language", "source"):
        values = sorted({str(row[name]) for row in rows if name in row})
        parts += [
            QuestionGroup(f"{name} {v}", [row for row in rows if str(row.get(name)) == v])
            for v in values
        ]
    return parts


# --- two result sets


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """Two result sets on the questions that both have, with the same gold."""

    measure: str
    questions: int
    first: float
    second: float
    confidence_interval: tuple[float, float]
    """Of the difference; the questions of both are resampled together."""
    improved_ids: tuple[str, ...]
    """Ids of the questions that the other does better; what is in neither list is a tie."""
    worsened_ids: tuple[str, ...]
    unpaired_ids: tuple[str, ...]
    """Ids that only one of the two has, or that have no gold."""
    p_value: float
    """How often so large a difference comes where before and after are exchanged at random by question."""

    @property
    def difference(self) -> float:
        """What the other has more."""
        return self.second - self.first


def compare_results(
    first: BenchRows, second: BenchRows, measure: str = "f1", *, resamples: int = BOOTSTRAP_SAMPLES
) -> ScoreComparison:
    """Another result set against one, question by question.

    Raises InputError for an unknown measure, if they share no question with gold, or if a gold differs.
    """
    if measure not in MEASURES:
        raise InputError(
            f"there is no measure {measure!r}", hint=f"choose one of {', '.join(MEASURES)}"
        )
    sides = [
        {row["id"]: scores for row in rows if (scores := score_row(row))}
        for rows in (first, second)
    ]
    before, after = sides
    shared = [key for key in before if key in after]
    changes = {key: getattr(after[key], measure) - getattr(before[key], measure) for key in shared}
    golds, others = ({row["id"]: row["gold"] for row in rows} for rows in (first, second))
    if differing := [key for key in shared if set(golds[key]) != set(others[key])]:
        hint = "compare results of one question set on one graph"
        raise InputError(
            f"the gold of {len(differing)} questions differs, as of {differing[0]}", hint=hint
        )
    if not shared:
        hint = "see with_gold, or compare one question set"
        raise InputError("no question with gold to measure", hint=hint)
    columns = [_to_matrix(side[key] for key in shared) for side in sides]
    first_mean, second_mean = (
        float(getattr(Scores(*side.mean(axis=0)), measure)) for side in columns
    )
    means = numpy.hsplit(_bootstrap_means(numpy.hstack(columns), resamples), 2)
    samples = [getattr(Scores(*side.T), measure) for side in means]
    # The two-sided p of a paired permutation test, its signs drawn at random (Good 2005, chapter 3)
    apart = numpy.array([change for change in changes.values() if change != 0])
    signs = numpy.random.default_rng(0).choice(
        [-1.0, 1.0], size=(5 * BOOTSTRAP_SAMPLES, len(apart))
    )
    extreme = abs(signs @ apart) >= abs(apart.sum()) - 1e-9
    return ScoreComparison(
        measure,
        len(shared),
        first_mean,
        second_mean,
        _percentile_interval(samples[1] - samples[0]),
        tuple(key for key, change in changes.items() if change > 0),
        tuple(key for key, change in changes.items() if change < 0),
        tuple(key for key in dict.fromkeys((*golds, *others)) if key not in changes),
        float(extreme.mean()),
    )


def compute_retention(dialogue: BenchRows, standalone: BenchRows) -> float | None:
    """Per cent of F1 kept in dialogues: F1 dialogue / F1 standalone (Chatty-KG, Table 5); None of F1 0.

    Both are F1 as the paper computes it, over the same questions (``standalone_forms``). Raises InputError
    like ``compare``, and if a question has no counterpart or no gold.
    """
    both = compare_results(dialogue, standalone, "paper_f1", resamples=1)
    if both.unpaired_ids:
        first = ", ".join(both.unpaired_ids[:5])
        hint = "ask both ways: the dialogues, and standalone_forms(questions)"
        raise InputError(
            f"{len(both.unpaired_ids)} questions have no counterpart or gold: {first}", hint=hint
        )
    return 100 * both.first / both.second if both.second else None


# --- the bootstrap: rows of a matrix are questions, or samples of them; columns are the fields of Scores


def _to_matrix(scores: Iterable[Scores]) -> Matrix:
    return numpy.array([astuple(each) for each in scores])


def _bootstrap_means(columns: Matrix, resamples: int = BOOTSTRAP_SAMPLES) -> Matrix:
    """The means of random samples of the questions, as many in each as there are."""
    generator, count = numpy.random.default_rng(0), len(columns)
    times_drawn = generator.multinomial(count, numpy.full(count, 1 / count), size=resamples)
    means: Matrix = times_drawn @ columns / count
    return means


def _percentile_interval(values: Matrix) -> tuple[float, float]:
    low, high = numpy.quantile(values, [0.025, 0.975])
    return float(low), float(high)


# --- when two answers are the same: by their values, never by their spelling

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE_OR_DATETIME = re.compile(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})(T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PORTS = {"http": ":80", "https": ":443"}


def normalize_value(text: str) -> Hashable:
    """What is compared in place of an answer's string: gold has no datatypes, so its lexical form shows them.

    - A number of any numeric datatype is its number: "3999", "3999.0", "+3.999E3". With leading zeros it is a
      code and stays text ("007").
    - A dateTime at midnight is that day, as Wikidata and DBpedia write days; any other dateTime is its moment
      in UTC (taken for UTC where it names no zone). A day's own time zone is dropped.
    - An IRI is in the normal form of RFC 3987, section 5.3: letter case of scheme and host, escapes that need
      not be, the default port. http and https, and upper and lower case of a path, stay apart.
    - Anything else is its text in Unicode's form NFC: language tags are not part of it, letter case is.
    """
    if _NUMBER.fullmatch(text):
        return Decimal(text)
    if moment := _DATE_OR_DATETIME.fullmatch(text):
        day, time, zone = moment.groups()
        if time is None or _MIDNIGHT.fullmatch(time):
            return str(day)
        try:
            return datetime.fromisoformat(text if zone else text + "Z").astimezone(UTC).isoformat()
        except (ValueError, OverflowError):  # a year that datetime does not know
            return text
    if _IRI.fullmatch(text):
        with suppress(ValueError):  # no address after all, as "http://[" is none
            parts = urlsplit(text)
            host = parts.netloc.lower().removesuffix(_PORTS.get(parts.scheme, ":"))
            same = parts._replace(netloc=host, path=parts.path or "/").geturl()
            text = _ESCAPES.sub(lambda escapes: _decode_escapes(escapes[0]), same)
    return normalize("NFC", text)


def _decode_escapes(escapes: str) -> str:
    """The escapes an IRI cannot do without, the others as the characters they stand for."""
    try:
        text = unquote_to_bytes(escapes).decode()
    except UnicodeDecodeError:
        return escapes.upper()
    return "".join(
        char if char > "\x9f" or _UNRESERVED.fullmatch(char) else quote(char, safe="")
        for char in text
    )
