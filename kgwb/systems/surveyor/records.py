"""The records of Surveyor, in flow order. The first one, the Survey, is in ``kgwb.kg.survey_records``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rdflib import URIRef

from kgwb.build import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    NOT_IN_GRAPH,
    Candidate,
    DisplayNames,
    Explanation,
    Finding,
    Hidden,
    Iri,
    Prefixes,
    Reading,
    Record,
    Row,
    Sparql,
    Term,
    ValueMatch,
    list_first,
    one_line,
    pluralize,
    summarize_fields,
)

Asked = Literal["one", "list", "count", "yes or no", "table"]
"""The kind of answer that a question asks for."""


@dataclass(frozen=True, slots=True)
class Part(Record):
    """An excerpt of a survey: the classes that matter to a question, as a model reads them."""

    text: str
    classes: tuple[str, ...]
    """Titles of the classes in the excerpt, the most important first.

    A title is the name, with the CURIE where other classes of the graph have that name.
    """
    left: tuple[str, ...] = ()
    """Titles of the classes that were left out for lack of room."""
    prefixes: Hidden[Prefixes] = ()
    """The prefixes of the CURIEs in the text, with their namespaces."""
    unseen: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """The classes, with their names, that a model may ask to see before it writes a query."""

    @property
    def left_out(self) -> str:
        """The classes that a model is not shown for lack of room; empty if there are none."""
        if not self.left:
            return ""
        return f"{pluralize(len(self.left), 'class')} of the survey ({list_first(self.left)})"

    def __str__(self) -> str:
        text = f"{pluralize(len(self.classes), 'class')}: {list_first(self.classes)}"
        if self.left:
            text += f", {len(self.left)} left out"
        return text


@dataclass(frozen=True, slots=True)
class UsedTerms(Record):
    """The classes of a thing, and the predicates of its triples, with their names."""

    iri: Iri
    classes: tuple[tuple[Iri, str], ...] = ()
    predicates: tuple[tuple[Iri, str], ...] = ()
    """Of the triples that have the thing as subject. Not known of one candidate among many."""
    incoming: tuple[tuple[Iri, str], ...] = ()
    """Of the triples that have it as object."""

    def __str__(self) -> str:
        return list_first(name for _, name in self.classes) or "no class"


@dataclass(frozen=True, slots=True)
class Mention(Record):
    """A name in the question, with what it may refer to in the graph."""

    name: str
    candidates: tuple[Candidate, ...] = ()
    """The vertices whose label is like the name."""
    values: tuple[ValueMatch, ...] = ()
    """The values of predicates that are the name, or contain it."""
    used: Hidden[tuple[UsedTerms, ...]] = ()
    """The classes and predicates of the candidates."""
    comments: tuple[tuple[Iri, str], ...] = ()
    """Classes and predicates whose description in the graph has the name, with the description."""

    def __str__(self) -> str:
        labels = [candidate.label for candidate in self.candidates]
        for match in self.values:
            labels.append(str(match.value))
        return f"{self.name}: {list_first(labels, 3) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Mentions(Record):
    """What a question is about: the names that it mentions, and classes of the graph."""

    question: str
    """The question in full, to be understood without the dialogue."""
    found: tuple[Mention, ...] = ()
    classes: tuple[str, ...] = ()
    """Titles of classes, see ``Part``."""
    reason: Explanation = ""
    readings: tuple[str, ...] = ()
    """How a person wants the question to be read where it leaves this open."""
    before: Hidden[Sparql] = ""
    """The query of the reading that the person left, if the question is asked again."""

    def __str__(self) -> str:
        names = list_first(self.names)
        return f"{names or 'no name'}; about {list_first(self.classes) or 'anything'}"

    @property
    def names(self) -> list[str]:
        """The names that the question mentions."""
        return [mention.name for mention in self.found]

    @property
    def question_as_read(self) -> str:
        """The question, with the query before, and a line for each reading that a person chose."""
        lines = [self.question]
        if self.before:
            lines.append(
                f"The query before, to be changed only where it is meant otherwise: {self.before}"
            )
        for reading in self.readings:
            lines.append(f"It is meant so: {one_line(reading)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Draft(Record):
    """A query for a question, or the reason why there is no query."""

    sparql: Sparql
    """The query with its PREFIX lines; empty if there is none."""
    asked: Asked = "list"
    columns: tuple[str, ...] = ()
    """What each column of the query holds, in the order of the columns."""
    assumptions: tuple[str, ...] = ()
    """How the question was read where it can be read in several ways."""
    missing: str = ""
    """What the question asks for and the graph does not have."""
    reason: Explanation = ""
    more: tuple[str, ...] = ()
    """Classes that the model has to see before it can write a query."""
    readings: tuple[Reading, ...] = ()
    """How else the question may be read."""
    chosen: bool = False
    """Whether a person chose this query among the readings. It is not reviewed then."""

    def __str__(self) -> str:
        if self.sparql:
            columns = list_first(self.columns, 3)
            if columns:
                return f"{self.asked}: {columns}"
            return self.asked
        if self.more:
            return f"asks to see {list_first(self.more)}"
        return f"{NOT_IN_GRAPH}: {self.missing}"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the query in one line, or why there is none, and then the reason.

        The reason has a line of its own. It is left out if it is empty.
        """
        first_line, *other_lines = summarize_fields(self, names, limit=limit).splitlines()
        return "\n".join([one_line(self.sparql) or first_line, *other_lines])

    @property
    def sparql_without_prefixes(self) -> str:
        """The query without its PREFIX lines."""
        return re.sub(r"^PREFIX \S+ <\S*>\n?", "", self.sparql, flags=re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Executed(Record):
    """The result of a query, with findings about it."""

    sparql: Sparql
    columns: tuple[str, ...] = ()
    """The variables of a SELECT, or those of the ``rows`` of an ASK."""
    rows: Hidden[tuple[tuple[Term | None, ...], ...]] = ()
    """The rows of a SELECT, with None in an empty cell. Of an ASK that is true, one row that fits it."""
    findings: tuple[Finding, ...] = ()
    """What is remarkable about the result, such as a pattern that nothing matches."""
    truth: bool | None = None
    """The result of an ASK; None for a SELECT."""
    error: str = ""
    """Why the query could not be executed; empty if it was executed."""
    names: Hidden[tuple[tuple[Iri, str], ...]] = ()
    """Display names of the IRIs in the rows."""
    measure: str = ""
    """What decided a superlative and is no column: a variable, or an expression. Empty if none."""
    measured: Hidden[tuple[Term | None, ...]] = ()
    """The value of the measure in each row."""
    contradictions: tuple[str, ...] = ()
    """What the survey denies of the query. It was found before the query was executed."""

    def __str__(self) -> str:
        if self.error:
            return f"could not be run: {self.error}"
        if self.truth is not None:
            return str(self.truth).lower()
        return pluralize(len(self.rows), "row")


def has_nothing(row: Row) -> bool:
    """Return whether a row has no value, or zeros alone, as a count of nothing has."""
    return all(str(cell or 0) == "0" for cell in row)


def format_row(row: Row, names: Mapping[URIRef, str]) -> str:
    """Return the cells of a row with " · " between them: names of IRIs, and texts of literals.

    An IRI without a name stands as it is, and an empty cell is empty.
    """
    cells = []
    for cell in row:
        text = ""
        if cell is not None:
            text = str(cell)
        if isinstance(cell, URIRef):
            text = names.get(cell, text)
        cells.append(text)
    return " · ".join(cells)


@dataclass(frozen=True, slots=True)
class Review(Record):
    """The reviewer's verdict on a query and its result."""

    verdict: Literal["fine", "revise", "not in this graph"]
    reason: Explanation
    draft: Draft | None = None
    """The revised query; None unless the verdict is "revise"."""
