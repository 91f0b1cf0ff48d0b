"""The records of Surveyor, in flow order; the first, the Survey, is the graph's own (``kgwb.kg.survey``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kgwb.flow import NOT_IN_GRAPH, Candidate
from kgwb.kg.findings import Finding
from kgwb.kg.queries import ValueMatch
from kgwb.kg.term_text import Prefixes
from kgwb.records import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    Explanation,
    Hidden,
    Record,
    Sparql,
    one_line,
    summarize_fields,
)
from kgwb.terms import DisplayNames, Iri, Term
from kgwb.text import list_first, pluralize

Asked = Literal["one", "list", "count", "yes or no", "table"]


@dataclass(frozen=True, slots=True)
class Part(Record):
    """The part of a survey that matters to a question, as a model reads it."""

    text: str
    classes: tuple[str, ...]
    """Names of the classes in it, nearest first."""
    left: tuple[str, ...] = ()
    """Names of the classes that there was no room for."""
    prefixes: Hidden[Prefixes] = ()

    def __str__(self) -> str:
        more = f", {len(self.left)} left out" if self.left else ""
        return f"{pluralize(len(self.classes), 'class')}: {list_first(self.classes)}{more}"


@dataclass(frozen=True, slots=True)
class Mention(Record):
    """A name in the question, with what in the graph it may mean."""

    name: str
    candidates: tuple[Candidate, ...] = ()
    values: tuple[ValueMatch, ...] = ()

    def __str__(self) -> str:
        labels = [
            *(each.label for each in self.candidates),
            *(str(each.value) for each in self.values),
        ]
        return f"{self.name}: {list_first(labels, 3) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Mentions(Record):
    """What a question names: things and values to look up, and the classes it is about."""

    question: str
    """The question, made to stand alone."""
    found: tuple[Mention, ...] = ()
    classes: tuple[str, ...] = ()
    reason: Explanation = ""

    def __str__(self) -> str:
        names = list_first(mention.name for mention in self.found)
        return f"{names or 'no name'}; about {list_first(self.classes) or 'anything'}"


@dataclass(frozen=True, slots=True)
class Draft(Record):
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
        if self.sparql:
            return f"{self.asked}: {list_first(self.columns, 3)}"
        if self.more:
            return f"asks to see {list_first(self.more)}"
        return f"{NOT_IN_GRAPH}: {self.missing}"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the query, or why there is none, and the reason."""
        first, *rest = summarize_fields(self, names, limit=limit).splitlines()
        return "\n".join([one_line(self.sparql) or first, *rest])

    @property
    def sparql_without_prefixes(self) -> str:
        """The query without its PREFIX lines."""
        return re.sub(r"^PREFIX \S+ <\S*>\n?", "", self.sparql, flags=re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Executed(Record):
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
        if self.error:
            return f"could not be run: {self.error}"
        return (
            str(self.truth).lower() if self.truth is not None else pluralize(len(self.rows), "row")
        )


@dataclass(frozen=True, slots=True)
class Review(Record):
    """What a reader of the result decides."""

    verdict: Literal["fine", "revise", "not in this graph"]
    reason: Explanation
    draft: Draft | None = None
    """The revised query."""
