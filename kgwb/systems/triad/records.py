"""The records of Triad, in flow order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kgwb.flow import Candidate, CandidateQuery, Direction, Explanation, Hidden, Iri, Score, Sparql, counted

Phase = Literal["parsing", "linking", "construction"]


@dataclass(frozen=True, slots=True)
class Triplet:
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
class Triplets:
    """The question as triplets."""

    found: tuple[Triplet, ...]
    reason: Explanation = ""

    @property
    def mentions(self) -> tuple[str, ...]:
        ends = (end for triplet in self.found for end in triplet.ends if not end.startswith("?"))
        return tuple(dict.fromkeys(ends))

    def __str__(self) -> str:
        return " ".join(map(str, self.found))


@dataclass(frozen=True, slots=True)
class EntityChoice:
    """The vertices that a mention may mean, best first."""

    entity: str
    chosen: tuple[Candidate, ...]
    reason: Explanation = ""

    def __str__(self) -> str:
        return f"{self.entity} → {', '.join(each.label for each in self.chosen) or 'no vertex'}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the graph; "in" leads from the triplet's object to its subject."""

    iri: Iri
    name: str
    direction: Direction = "out"
    similarity: Score = 1.0

    def __str__(self) -> str:
        return f"{'→' if self.direction == 'out' else '←'} {self.name}"


@dataclass(frozen=True, slots=True)
class RelationChoice:
    """The relations that a triplet may be in the graph, best first."""

    triplet: Triplet
    chosen: tuple[Relation, ...]
    reason: Explanation = ""

    def __str__(self) -> str:
        return f"{self.triplet} {', '.join(map(str, self.chosen)) or '→ no relation'}"


@dataclass(frozen=True, slots=True)
class Linked:
    """What each mention and each triplet may be in the graph."""

    entities: tuple[EntityChoice, ...]
    relations: tuple[RelationChoice, ...] = ()

    @property
    def missing(self) -> str:
        """What the graph has nothing for; empty if every part has a choice."""
        lost = [f"no vertex for {each.entity}" for each in self.entities if not each.chosen]
        return "; ".join(lost or [f"no relation for {r.triplet}" for r in self.relations if not r.chosen])

    def __str__(self) -> str:
        return "; ".join(map(str, (*self.entities, *self.relations)))


@dataclass(frozen=True, slots=True)
class Filled:
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
        return ", ".join(self.query.predicates)

    def __str__(self) -> str:
        return self.query.sparql


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of a template that have results, those of first choices before others."""

    template: Sparql
    heads: tuple[str, ...]
    """The mentions, then the triplets."""
    kept: tuple[Filled, ...]
    empty: Hidden[tuple[Filled, ...]] = ()
    reason: Explanation = ""

    def __str__(self) -> str:
        return f"{counted(len(self.kept), 'query')} with results, {len(self.empty):,} without"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: what it came to, and where the next one goes back to."""

    place: str
    triplets: Triplets
    linked: Linked
    template: Sparql = ""
    query: CandidateQuery | None = None
    fault: Explanation = ""
    """Why nothing came."""
    back: Phase | None = None
    """None if there is a query, or if this try was as the one before."""
    changed: tuple[str, ...] = ()
    """What is not as in the try before."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What a retry may change."""
        parts = (*self.triplets.found, *self.linked.entities, *self.linked.relations, self.template)
        return tuple(str(part) for part in parts if part)

    @property
    def outcome(self) -> str:
        return "a query" if self.query else f"back to {self.back}" if self.back else "nothing"

    def __str__(self) -> str:
        new = f", changed: {'; '.join(self.changed)}" if self.changed else ""
        return f"{self.place}: {self.outcome}{new}"
