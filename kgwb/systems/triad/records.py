"""The records of Triad, in the order of a question's flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kgwb.build import (
    AnswerKind,
    Candidate,
    CandidateQuery,
    Direction,
    Explanation,
    Hidden,
    Iri,
    Record,
    Score,
    Sparql,
    WordedFact,
    analyze_query,
    frozen,
    pluralize,
)

Phase = Literal["parsing", "linking", "construction"]
"""The phases that an attempt can begin at (Triad, Figure 2)."""
AnswerType = Literal["count", "select", "yes or no"]
"""The types of answers. The first is lost in the print of appendix B, and taken to be this."""
KIND_BY_ANSWER_TYPE: Mapping[AnswerType, AnswerKind] = {
    "count": "count",
    "select": "list",
    "yes or no": "boolean",
}
ANSWER_TYPE_BY_KIND: Mapping[AnswerKind, AnswerType] = {
    kind: answer_type for answer_type, kind in KIND_BY_ANSWER_TYPE.items()
}


@frozen
class Triplet(WordedFact):
    """A relation between two ends in the words of the question.

    An end that begins with "?" is an unknown. Any other end is a mention.
    """


Triplets = tuple[Triplet, ...]
Faults = tuple[str, ...]
"""Why each earlier attempt found no query."""


@frozen
class Relation(Record):
    """A predicate of the graph that may stand for the relation of a triplet."""

    iri: Iri
    name: str
    direction: Direction = "out"
    """From the triplet's subject to its object ("out"), or from object to subject ("in")."""
    similarity: Score = 1.0
    """That of its name with the triplet's relation."""
    example: str = ""
    """Something that the relation leads to at the unknown end, in words; empty if not looked up."""
    path: Hidden[str] = ""
    """What stands in a query, if it leads over a list that a named end is in; else the predicate."""

    def __str__(self) -> str:
        arrow = "←"
        if self.direction == "out":
            arrow = "→"
        return f"{arrow} {self.name}"


@frozen
class Filled(Record):
    """A template whose slots are filled with one option each, and its result."""

    query: CandidateQuery
    slots: tuple[str, ...]
    """The option for each mention, then for each triplet, in words."""
    reads: Hidden[str]
    """The query with names in place of IRIs, as a model sees it."""
    results: tuple[str, ...]
    """The names of the first values."""
    rows: int
    """The number of all values."""

    @property
    def name(self) -> str:
        """The query as a person reads it, with the number of its values."""
        return f"{self.reads}: {pluralize(self.rows, 'row')}"

    @property
    def is_boolean(self) -> bool:
        """Whether the query is an ASK."""
        return analyze_query(self.query.sparql).kind == "boolean"

    def __str__(self) -> str:
        return self.query.sparql


@frozen
class Choice(Record):
    """What the decision-maker chose for a mention, for a triplet, or as the query; best first."""

    of: str
    """The mention, the triplet, or "query"."""
    chosen: tuple[Candidate | Relation | Filled, ...]
    """Empty if no option fits, if there was none, or if none was looked for."""
    reason: Explanation = ""
    was_looked_for: bool = True
    """False for a triplet that nothing leads to, as another one has no relation."""

    def __str__(self) -> str:
        names = ", ".join(option.name for option in self.chosen)
        if not self.was_looked_for:
            names = "not looked for"
        return f"{self.of}: {names or 'nothing in the graph'}"


@frozen
class Queries(Record):
    """The queries that were made of a template, those with the best options first."""

    template: Sparql
    heads: tuple[str, ...]
    """The mentions, then the triplets."""
    kept: tuple[Filled, ...]
    """Queries with a result. If no ASK is true, the first one, whose answer is no."""
    empty: Hidden[tuple[Filled, ...]] = ()
    """Queries without a result."""

    def __str__(self) -> str:
        kept = pluralize(len(self.kept), "query")
        return f"{kept} with results, {len(self.empty):,} without"


@frozen
class Attempt(Record):
    """One attempt to find a query: what each phase made, and the phase to go back to."""

    triplets: Triplets
    linked: tuple[Choice, ...]
    """For each mention, then for each triplet."""
    template: Sparql = ""
    query: CandidateQuery | None = None
    """None if no query with a result was found."""
    fault: Explanation = ""
    """Why there is no query."""
    has_invalid_reply: bool = False
    """Whether the fault is that the replies of an agent stayed invalid."""
    was_looked_up: bool = False
    """Whether the fault is that the graph has nothing that was looked for, and not that a name has
    no vertex, or that the queries with a result were refused."""
    back: Phase | None = None
    """The phase that the next attempt begins at.

    None if there is a query, or if this attempt did nothing other than the one before.
    """
    changed: tuple[str, ...] = ()
    """The decisions that differ from those of the attempt before."""

    @property
    def decisions(self) -> tuple[str, ...]:
        """What another attempt may decide otherwise: triplets, choices and template, as text."""
        decisions = (*self.triplets, *self.linked, self.template)
        return tuple(filter(None, map(str, decisions)))

    def __str__(self) -> str:
        """Return "a query", or the phase to go back to, or "nothing", followed by what changed."""
        result = "nothing"
        if self.query:
            result = "a query"
        elif self.back:
            result = f"back to {self.back}"
        if self.changed:
            return f"{result}; changed: {'; '.join(self.changed)}"
        return result
