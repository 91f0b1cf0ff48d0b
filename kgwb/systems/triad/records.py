"""The records of Triad, in flow order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kgwb.flow import Candidate, CandidateQuery, Direction
from kgwb.records import Explanation, Hidden, Record, Score, Sparql
from kgwb.terms import Iri
from kgwb.text import pluralize

Phase = Literal["parsing", "linking", "construction"]


@dataclass(frozen=True, slots=True)
class Triplet(Record):
    """A relation in the question's words between two ends; an end with "?" is unknown, any other named."""

    subject: str
    relation: str
    object: str

    @property
    def ends(self) -> tuple[str, str]:
        return self.subject, self.object

    def __str__(self) -> str:
        return f"⟨{self.subject}, {self.relation}, {self.object}⟩"


@dataclass(frozen=True, slots=True)
class Relation(Record):
    """A relation of the graph; "in" leads from the triplet's object to its subject."""

    iri: Iri
    name: str
    direction: Direction = "out"
    similarity: Score = 1.0

    def __str__(self) -> str:
        return f"{'→' if self.direction == 'out' else '←'} {self.name}"


@dataclass(frozen=True, slots=True)
class Filled(Record):
    """A template with a choice in each slot, and what it gives."""

    query: CandidateQuery
    slots: tuple[str, ...]
    """What stands for each mention, then for each triplet."""
    reads: Hidden[str]
    """The template with these names."""
    results: tuple[str, ...]
    """The first values, by name."""
    rows: int

    @property
    def name(self) -> str:
        return f"{self.reads}: {pluralize(self.rows, 'row')}"

    def __str__(self) -> str:
        return self.query.sparql


@dataclass(frozen=True, slots=True)
class Choice(Record):
    """What was chosen for a mention, for a triplet, or as the query; best first."""

    of: str
    chosen: tuple[Candidate | Relation | Filled, ...]
    reason: Explanation = ""

    def __str__(self) -> str:
        return (
            f"{self.of}: {', '.join(each.name for each in self.chosen) or 'nothing in the graph'}"
        )


@dataclass(frozen=True, slots=True)
class Queries(Record):
    """The queries of a template that have results, those of first choices before others."""

    template: Sparql
    heads: tuple[str, ...]
    """The mentions, then the triplets."""
    kept: tuple[Filled, ...]
    empty: Hidden[tuple[Filled, ...]] = ()

    def __str__(self) -> str:
        return f"{pluralize(len(self.kept), 'query')} with results, {len(self.empty):,} without"


@dataclass(frozen=True, slots=True)
class Attempt(Record):
    """One try: what it came to, and where the next one goes back to."""

    triplets: tuple[Triplet, ...]
    linked: tuple[Choice, ...]
    """For each mention, then for each triplet."""
    template: Sparql = ""
    query: CandidateQuery | None = None
    fault: Explanation = ""
    """Why nothing came."""
    back: Phase | None = None
    """None if there is a query, or if nothing is as it was not before."""
    changed: tuple[str, ...] = ()
    """What is not as in the try before."""

    @property
    def decisions(self) -> tuple[str, ...]:
        """What a retry may change."""
        return tuple(filter(None, map(str, (*self.triplets, *self.linked, self.template))))

    def __str__(self) -> str:
        result = "a query" if self.query else f"back to {self.back}" if self.back else "nothing"
        return f"{result}; changed: {'; '.join(self.changed)}" if self.changed else result
