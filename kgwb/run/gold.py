"""Gold queries taken apart, and what a system's agents should have decided according to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.flow import AnswerKind
from kgwb.kg.algebra import TriplePattern, analyze_query
from kgwb.kg.base import Vocabulary


@dataclass(frozen=True, slots=True)
class GoldQuery:
    """A gold query, taken apart."""

    sparql: str
    kind: AnswerKind
    target: str
    """The unknown that is asked for ("?x"); empty for a boolean question."""
    patterns: tuple[TriplePattern, ...]
    """Its triple patterns (terms in N-Triples form, unknowns as "?x").

    Patterns that only say a type or a name are left out.
    """
    names: Mapping[str, str] = field(default_factory=dict)
    """Display names of its IRIs."""
    standalone: str = ""
    """What the question means outside its dialogue; empty if it is in none."""

    @property
    def vertices(self) -> frozenset[str]:
        """The IRIs at the ends of its patterns."""
        ends = {end for subject, _, object_ in self.patterns for end in (subject, object_)}
        return frozenset(end[1:-1] for end in ends if end.startswith("<"))

    @property
    def predicates(self) -> frozenset[str]:
        """The IRIs of its predicates."""
        return frozenset(predicate[1:-1] for _, predicate, _ in self.patterns)


class LinkedIris(NamedTuple):
    """What a run linked, and what it could have linked, as IRIs."""

    vertices: frozenset[str]
    predicates: frozenset[str]
    vertex_candidates: frozenset[str]
    predicate_candidates: frozenset[str]


class Rung(NamedTuple):
    """Gold values for some steps of a run."""

    agent: str
    """The agent to blame if these values are what makes the answer right."""
    values: Mapping[str, Any]
    """By step key."""


@dataclass(frozen=True)
class GoldDecisions:
    """What a gold query means to the agents of a system."""

    stages: Mapping[str, str]
    """The stage of each agent. A supervisor of several stages has none."""
    ladder: Mapping[str, Callable[[Any, GoldQuery], Rung | None]]
    """The rungs of the oracle ladder by name, in flow order.

    Each function gets a Run that has the gold values of all earlier rungs. It returns None if the
    run decided as gold does.
    """
    linked: Callable[[Any], LinkedIris]
    """Returns what a Run linked, as far as it was executed."""


def parse_gold_query(sparql: str, vocabulary: Vocabulary) -> GoldQuery | None:
    """Take a gold query apart.

    Returns None for a query that cannot be taken apart, or that has no pattern about the question.
    """
    try:
        parts = analyze_query(sparql)
    except GraphError:
        return None
    patterns = tuple(
        pattern
        for pattern in parts.patterns
        if pattern[1].startswith("<")
        and URIRef(pattern[1][1:-1]) not in vocabulary.excluded_predicates
    )
    if not patterns:
        return None
    if parts.kind == "boolean":
        return GoldQuery(sparql, parts.kind, "", patterns)
    ends = [end for subject, _, object_ in patterns for end in (subject, object_)]
    unknowns = [end for end in ends if end.startswith("?")]
    for name in (*parts.projected_variables, *unknowns):
        if name in unknowns:
            return GoldQuery(sparql, parts.kind, name, patterns)
    return None
