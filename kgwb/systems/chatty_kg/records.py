"""The records of Chatty-KG, in flow order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kgwb.deprecated import renamed_names
from kgwb.flow import CANNOT_EXPRESS, AnswerKind, CandidateQuery, Direction, Link
from kgwb.records import (
    MAX_SUMMARY_PARTS,
    NO_NAMES,
    Explanation,
    Hidden,
    QueryPart,
    Record,
    Score,
    one_line,
)
from kgwb.terms import DisplayNames, Iri
from kgwb.text import pluralize


@dataclass(frozen=True, slots=True)
class Classification(Record):
    """Whether a question can be understood alone (Chatty-KG, section 4.2.1)."""

    label: Literal["self-contained", "dependent"]
    reason: Explanation = ""


@dataclass(frozen=True, slots=True)
class RephrasedQuestion(Record):
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
    def states_type(self) -> bool:
        """Whether it says of what kind its subject is, so that its object may be a class of the graph."""
        return self.relation.casefold() in TYPE_RELATIONS and not is_unknown(self.object)

    @property
    def as_tuple(self) -> tuple[str, str, str]:
        return self.subject, self.relation, self.object

    def __str__(self) -> str:
        return f"⟨{self.subject}, {self.relation}, {self.object}⟩"


MIN_EXPECTED_SIMILARITY = 0.6
"""Where there is no answer, a best predicate less similar than this is worth a word."""
OCCUPATION_RELATIONS = frozenset(("occupation", "profession"))
TYPE_RELATIONS = OCCUPATION_RELATIONS | {"type", "instance of", "is a", "kind", "class"}
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
    kind: AnswerKind = "list"
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

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
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
    def type_mentions(self) -> tuple[str, ...]:
        """The entities that say of what kind something is: "tanker" in ⟨?ship, type, tanker⟩."""
        return tuple(dict.fromkeys(fact.object for fact in self.facts if fact.states_type))


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
        if self.predicates[0].similarity >= MIN_EXPECTED_SIMILARITY:
            return ""
        nearest = [
            f"{predicate.name} ({predicate.similarity:.2f})" for predicate in self.predicates[:3]
        ]
        return f"no predicate is like “{relation}”: nearest are {', '.join(nearest)}"


@dataclass(frozen=True, slots=True)
class LinkingResult(Record):
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
class GeneratedQueries(Record):
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
class QuerySelection(Record):
    """The queries kept for execution, and the predicate names judged relevant (Chatty-KG, Algorithm 3)."""

    queries: tuple[CandidateQuery, ...]
    predicates: Hidden[tuple[str, ...]]

    def __str__(self) -> str:
        relevant = f", relevant: {', '.join(self.predicates)}" if self.predicates else ""
        return f"{pluralize(len(self.queries), 'query')} kept{relevant}"

    def with_derived_fields(self) -> QuerySelection:
        """With what follows from the queries, after these were chosen by hand."""
        names = dict.fromkeys(name for query in self.queries for name in query.predicates)
        return replace(self, predicates=tuple(names))


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
