"""The records of Surveyor, in flow order; the first, the Survey, is the graph's own (``kgwb.kg.survey``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kgwb.flow import Candidate, Explanation, Hidden, Iri, Score, Sparql, Term, counted, first_few

Asked = Literal["one", "list", "count", "yes or no", "table"]
Prefixes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a survey that matters to a question, as a model reads it."""

    text: str
    classes: tuple[str, ...]
    """Names of the classes in it, nearest first."""
    left: tuple[str, ...] = ()
    """Names of the classes that there was no room for."""
    prefixes: Hidden[Prefixes] = ()

    def __str__(self) -> str:
        more = f", {len(self.left)} left out" if self.left else ""
        return f"{counted(len(self.classes), 'class')}: {first_few(self.classes)}{more}"


@dataclass(frozen=True, slots=True)
class ValueFound:
    """A value of a predicate, neither labelled nor a label, that holds the words of a name."""

    predicate: Iri
    value: Term
    triples: int

    def __str__(self) -> str:
        return f"{self.value} ({counted(self.triples, 'triple')})"


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in the question, with what in the graph it may mean."""

    name: str
    candidates: tuple[Candidate, ...] = ()
    values: tuple[ValueFound, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {first_few([*(c.label for c in self.candidates), *map(str, self.values)], 3) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a question names: things and values to look up, and the classes it is about."""

    question: str
    """The question, made to stand alone."""
    found: tuple[Mention, ...] = ()
    classes: tuple[str, ...] = ()
    reason: Explanation = ""

    def __str__(self) -> str:
        return f"{first_few(mention.name for mention in self.found) or 'no name'}; about {first_few(self.classes) or 'anything'}"

    @property
    def outcome(self) -> str:
        return counted(len(self.found), "name")


@dataclass(frozen=True, slots=True)
class Draft:
    """A query for a question, or why there is none."""

    sparql: Sparql
    """With its PREFIX lines; empty if the graph has nothing for the question."""
    asked: Asked = "list"
    columns: tuple[str, ...] = ()
    """What each column is, in the order of the query."""
    assumptions: tuple[str, ...] = ()
    missing: str = ""
    """What the graph has nothing for."""
    reason: Explanation = ""
    more: tuple[str, ...] = ()
    """Classes that it has to see first."""

    def __str__(self) -> str:
        return f"not in this graph: {self.missing}" if self.missing and not self.sparql else self.sparql

    @property
    def outcome(self) -> str:
        return f"{self.asked}: {first_few(self.columns, 3)}" if self.sparql else "not in this graph"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a query's result that a reader should know."""

    text: str
    wrong: bool = False
    """Whether it is likely to be a mistake, rather than how things are."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Executed:
    """What a query gave, and what is odd about it."""

    sparql: Sparql
    columns: tuple[str, ...] = ()
    rows: Hidden[tuple[tuple[Term | None, ...], ...]] = ()
    findings: tuple[Finding, ...] = ()
    truth: bool | None = None
    """Of an ASK."""
    error: str = ""
    """Why it could not be run."""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()

    def __str__(self) -> str:
        return self.outcome

    @property
    def outcome(self) -> str:
        if self.error:
            return f"could not be run: {self.error}"
        return str(self.truth).lower() if self.truth is not None else counted(len(self.rows), "row")


@dataclass(frozen=True, slots=True)
class Review:
    """What a reader of the result decides."""

    verdict: Literal["fine", "revise", "not in this graph"]
    reason: Explanation
    draft: Draft | None = None
    """The revised query."""
    sure: Score = 1.0

    def __str__(self) -> str:
        return self.verdict
