"""What a gold query says, and what a system makes of it: its stages, and the rungs of its oracle ladder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.flow import Kind
from kgwb.kg.algebra import Pattern, parts_of
from kgwb.kg.base import Vocabulary
from kgwb.run import Run


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold query taken apart."""

    sparql: str
    kind: Kind
    target: str
    """The unknown that is asked for ("?x"); empty if yes or no is."""
    patterns: tuple[Pattern, ...]
    """Its triple patterns (N-Triples terms, unknowns as "?x"), without those that say types and names."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What its IRIs are called."""
    standalone: str = ""
    """What the question means outside its dialogue; empty if it is in none."""

    @property
    def vertices(self) -> frozenset[str]:
        return frozenset(
            end[1:-1] for s, _, o in self.patterns for end in (s, o) if end.startswith("<")
        )

    @property
    def predicates(self) -> frozenset[str]:
        return frozenset(predicate[1:-1] for _, predicate, _ in self.patterns)


class Linked(NamedTuple):
    """What a run linked, as IRIs."""

    vertices: frozenset[str]
    predicates: frozenset[str]
    vertex_candidates: frozenset[str]
    predicate_candidates: frozenset[str]


class Rung(NamedTuple):
    """Gold values for the steps of a run."""

    agent: str
    """To blame if these values are what makes the answer right."""
    values: Mapping[str, Any]
    """By step key."""


class Oracle(Protocol):
    """What a module ``kgwb.systems.<name>.gold`` offers."""

    STAGES: Mapping[str, str]
    """The stage of each agent; a supervisor of several stages has none."""
    LADDER: Mapping[str, Callable[[Run, Gold], Rung | None]]
    """Kinds of gold in flow order: what to put into a run that has all earlier ones; None if it has this."""

    def linked(self, run: Run) -> Linked:
        """What a run linked, as far as it went."""
        ...


def read(sparql: str, vocabulary: Vocabulary) -> Gold | None:
    """A gold query taken apart; None if it cannot be, or says nothing of how things are related."""
    try:
        parts = parts_of(sparql)
    except GraphError:
        return None
    hidden = vocabulary.hidden
    patterns = tuple(
        p for p in parts.patterns if p[1][0] == "<" and URIRef(p[1][1:-1]) not in hidden
    )
    unknowns = [end for s, _, o in patterns for end in (s, o) if end.startswith("?")]
    target = next((name for name in (*parts.asked, *unknowns) if name in unknowns), "")
    if not patterns or (parts.kind != "boolean" and not target):
        return None
    return Gold(sparql, parts.kind, "" if parts.kind == "boolean" else target, patterns)
