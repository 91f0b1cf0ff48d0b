"""The records of Chatty-KG, in flow order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from kgwb.flow import CANNOT_EXPRESS, CandidateQuery, Direction, Kind, Link
from kgwb.records import (
    NO_NAMES,
    SUMMARY_PARTS,
    Explanation,
    Hidden,
    QueryPart,
    Record,
    Score,
    one_line,
)
from kgwb.terms import Iri, Names
from kgwb.text import pluralize


@dataclass(frozen=True, slots=True)
class Classified(Record):
    """Whether a question can be understood alone (Chatty-KG, section 4.2.1)."""

    label: Literal["self-contained", "dependent"]
    reason: Explanation = ""


@dataclass(frozen=True, slots=True)
class Rephrased(Record):
    """The standalone form of a question (Chatty-KG, section 4.2.2)."""

    question: str
    original: str


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """One relational fact of a QIR; a name that begins with "?" is an unknown, any other an entity."""

    subject: str
    relation: str
    object: str

    @property
    def ends(self) -> tuple[str, str]:
        return self.subject, self.object

    @property
    def is_kind(self) -> bool:
        """Whether it says of what kind its subject is, so that its object may be a class of the graph."""
        return self.relation.casefold() in KIND and not is_unknown(self.object)

    @property
    def words(self) -> tuple[str, str, str]:
        return self.subject, self.relation, self.object

    def __str__(self) -> str:
        return f"⟨{self.subject}, {self.relation}, {self.object}⟩"


UNLIKE = 0.6
"""Where there is no answer, a best predicate less similar than this is worth a word."""
TRADE = frozenset(("occupation", "profession"))
KIND = TRADE | {"type", "instance of", "is a", "kind", "class"}
"""Relations that a class may be the object of; what people do is a class in some graphs only."""


def is_unknown(name: str) -> bool:
    """Whether a name of a QIR is an unknown ("?x") and not an entity."""
    return name.startswith("?")


@dataclass(frozen=True, slots=True)
class QIR(Record):
    """Question intermediate representation (E, U, R, RF) (Chatty-KG, Definition 3.2)."""

    facts: tuple[Fact, ...]
    target: str = ""
    """The unknown that is asked for; empty for a boolean question."""
    kind: Kind = "list"
    beyond: tuple[str, ...] = ()
    """What of the question the facts cannot say (an order, a comparison): it is then not answered."""

    @property
    def entities(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(end for fact in self.facts for end in fact.ends if not is_unknown(end))
        )

    @property
    def unknowns(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(end for fact in self.facts for end in fact.ends if is_unknown(end))
        )

    def __str__(self) -> str:
        if self.beyond:
            return f"{CANNOT_EXPRESS}: {'; '.join(self.beyond)}"
        return f"{pluralize(len(self.facts), 'triple')}, asks for {self.target or 'yes or no'}"

    def summary(self, names: Names = NO_NAMES, *, limit: int | None = SUMMARY_PARTS) -> str:
        """Return the facts, what is asked for, and what they cannot say, in one line."""
        facts = " ".join(str(fact) for fact in self.facts)
        wanted = {
            "list": self.target,
            "count": f"how many {self.target}",
            "boolean": "whether it is so",
        }
        line = f"{facts} asks for {wanted[self.kind]}"
        return one_line(f"{line}, {self}" if self.beyond else line)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The entities that say of what kind something is: "tanker" in ⟨?ship, type, tanker⟩."""
        return tuple(dict.fromkeys(fact.object for fact in self.facts if fact.is_kind))


@dataclass(frozen=True, slots=True)
class RankedPredicate(Record):
    """A predicate that a relation may mean, seen from the fact's subject: "out" is subject to object."""

    iri: Iri
    name: str
    direction: Direction
    similarity: Score = 1.0
    classes: tuple[Iri, ...] = ()
    """Of a type predicate: the class meant, or those of it and its subclasses that have instances."""

    def __str__(self) -> str:
        return f"{'→' if self.direction == 'out' else '←'} {self.name} <{self.iri}>"


@dataclass(frozen=True, slots=True)
class LinkedRelation(Record):
    """The ranked predicates of one fact, best first (Chatty-KG, section 5.1.3)."""

    fact: Fact
    predicates: tuple[RankedPredicate, ...]

    def __str__(self) -> str:
        if not self.predicates:
            return f"no predicate for {self.fact}"
        return (
            f"→ {self.predicates[0].name}, best of {pluralize(len(self.predicates), 'predicate')}"
        )

    def query_parts(self) -> Iterable[QueryPart]:
        return [QueryPart("predicate", f"<{predicate.iri}>") for predicate in self.predicates]

    def missing_from_graph(self) -> str:
        relation = self.fact.relation
        if not self.predicates:
            return f"no predicate for “{relation}”: nothing that was linked touches one"
        if self.predicates[0].similarity >= UNLIKE:
            return ""
        nearest = [
            f"{predicate.name} ({predicate.similarity:.2f})" for predicate in self.predicates[:3]
        ]
        return f"no predicate is like “{relation}”: nearest are {', '.join(nearest)}"


@dataclass(frozen=True, slots=True)
class Linked(Record):
    """What the matching agent hands on: EntToVertex and RelToPred (Chatty-KG, Algorithm 2)."""

    links: tuple[Link, ...]
    relations: tuple[LinkedRelation, ...]

    def __str__(self) -> str:
        vertices = sum(link.vertex is not None for link in self.links)
        relations = sum(bool(relation.predicates) for relation in self.relations)
        entities, facts = (
            pluralize(len(self.links), "entity"),
            pluralize(len(self.relations), "relation"),
        )
        return f"{vertices} of {entities} and {relations} of {facts} linked"

    def relation_phrases(self) -> tuple[str, ...]:
        return tuple(linked.fact.relation for linked in self.relations if linked.predicates)


@dataclass(frozen=True, slots=True)
class Generated(Record):
    """The candidate queries after truncation, and how many there were before."""

    queries: tuple[CandidateQuery, ...]
    before_truncation: Hidden[int]

    def __str__(self) -> str:
        cut = (
            f" of {self.before_truncation:,}" if self.before_truncation > len(self.queries) else ""
        )
        return f"{pluralize(len(self.queries), 'candidate query')}{cut}"

    def query_parts(self) -> Iterable[QueryPart]:
        return [QueryPart("filters", query.filters.strip()) for query in self.queries]


@dataclass(frozen=True, slots=True)
class Selection(Record):
    """The queries kept for execution, and the predicate names judged relevant (Chatty-KG, Algorithm 3)."""

    queries: tuple[CandidateQuery, ...]
    predicates: Hidden[tuple[str, ...]]

    def __str__(self) -> str:
        relevant = f", relevant: {', '.join(self.predicates)}" if self.predicates else ""
        return f"{pluralize(len(self.queries), 'query')} kept{relevant}"

    def follow(self) -> Selection:
        """With what follows from the queries, after these were chosen by hand."""
        names = dict.fromkeys(name for query in self.queries for name in query.predicates)
        return replace(self, predicates=tuple(names))
