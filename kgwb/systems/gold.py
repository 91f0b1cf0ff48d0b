"""What a gold query says, and what a system makes of it: its stages, and the rungs of its oracle ladder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyparsing import ParseBaseException
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import SPARQLError

from kgwb.errors import GraphError
from kgwb.flow import Kind
from kgwb.kg.base import Vocabulary
from kgwb.kg.sparql import checked, n3, parsing

if TYPE_CHECKING:
    from kgwb.run import Run

Pattern = tuple[str, str, str]
_IRI = re.compile(r"<([^<>\s]*)>")
_NUMBERED = re.compile(r"urn:(\d+):")
_COUNTS = re.compile(r"^[^{]*\bCOUNT\s*\(", re.IGNORECASE)


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
        return frozenset(end[1:-1] for s, _, o in self.patterns for end in (s, o) if end.startswith("<"))

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
    """To blame if these values are what mends the answer."""
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
    iris = _IRI.findall(sparql)
    numbers = iter(range(len(iris)))
    try:
        kind, asked, shape = _parsed(_IRI.sub(lambda _: f"<urn:{next(numbers)}:>", sparql))
    except GraphError:
        return None
    whole = [_pattern(triple, iris) for triple in shape]
    hidden = vocabulary.hidden
    patterns = tuple(one for one in whole if one[1][0] == "<" and URIRef(one[1][1:-1]) not in hidden)
    unknowns = [end for s, _, o in patterns for end in (s, o) if end.startswith("?")]
    target = next((name for name in (*asked, *unknowns) if name in unknowns), "")
    if not patterns or (kind != "boolean" and not target):
        return None
    return Gold(sparql, kind, "" if kind == "boolean" else target, patterns)


@lru_cache(maxsize=1024)
def _parsed(sparql: str) -> tuple[Kind, tuple[str, ...], tuple[Any, ...]]:
    """Kind, what is asked for, and triples of a query; the same for all that differ in IRIs only."""
    known = checked(sparql)
    if known.undeclared:
        raise GraphError(f"the gold query does not declare {', '.join(known.undeclared)}")
    try:
        with parsing():
            algebra = translateQuery(parseQuery(sparql)).algebra
            groups = list(_named(algebra, "BGP"))
            counted = next(_named(algebra, "Aggregate_Count"), None) if _COUNTS.search(sparql) else None
    except (ParseBaseException, SPARQLError, NotImplementedError, RecursionError) as exc:
        raise GraphError(f"the gold query cannot be taken apart: {exc}") from exc
    triples = tuple(dict.fromkeys(triple for group in groups for triple in group.triples))
    if known.form == "ask":
        return "boolean", (), triples
    return (
        "count" if counted else "list",
        tuple(f"?{name}" for name in ([counted.vars] if counted else algebra.PV)),
        triples,
    )


def _named(node: Any, name: str) -> Iterator[CompValue]:
    """The parts of a query's algebra that have this name; what must not be in the graph is left out."""
    if isinstance(node, CompValue):
        if node.name == name:
            yield node
        if node.name != "Builtin_NOTEXISTS":
            for part in node.values():
                yield from _named(part, name)
    elif isinstance(node, list):
        for part in node:
            yield from _named(part, name)


def _pattern(triple: tuple[Any, ...], iris: list[str]) -> Pattern:
    def text(term: Any) -> str:
        if isinstance(term, URIRef):
            return f"<{_NUMBERED.sub(lambda found: iris[int(found[1])], term)}>"
        if isinstance(term, Literal):
            return n3(term)
        return f"?{term}" if isinstance(term, Variable | BNode) else "path"

    subject, predicate, object_ = map(text, triple)
    return subject, predicate, object_
