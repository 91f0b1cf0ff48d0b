"""The queries of a survey, and the patterns that they have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from rdflib import URIRef

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError
from kgwb.kg.base import Graph, QueryLimits
from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import is_valid_iri, n3, values_clause

T = TypeVar("T")
KeyType = TypeVar("KeyType", bound=str)
Row = tuple[Any, ...]
SURVEY_TIMEOUT_S = 60.0
"""After this time no more queries are sent. The survey is what is known by then."""
MAX_SHARE_OF_TIME_LEFT = 0.5
"""A query may take this share of the time that is left, so that others can follow it."""
MAX_UNREACHABLE = 3
"""So many failures in a row, and the endpoint cannot be reached.

Fewer are refusals: some engines send the status of a broken server for a query that takes too long.
"""
TOOK_TOO_LONG = "took too long"
REFUSED = "refused by the graph"
NO_TIME_LEFT = "no time was left"
ROWS_MISSING = "not all rows were returned"
UNTYPED_CLASS = URIRef("urn:kgwb:without-a-class")
"""Stands in queries for the class of things that have none."""
MISSING_PREDICATE = "<urn:kgwb:none>"
"""Stands in queries for predicates that the graph lacks."""
DISTINCT_VERTICES = "DISTINCT ?v"


@runtime_checkable
class _LimitedGraph(Graph, Protocol):
    """A graph with limits, as those of kgwb have. A graph of a class of one's own may have none."""

    limits: QueryLimits


class SurveyQueries:
    """Sends the queries of one survey to a graph.

    They are sent one after another. A query that the graph refuses has no result, and neither has
    one after ``timeout_s``: the survey leaves out what the query asks for, and ``lacks`` says so. A
    query may take what the graph's limits allow, and MAX_SHARE_OF_TIME_LEFT of the time that is
    left. An endpoint that cannot be reached is an error.
    """

    def __init__(self, kg: Graph, timeout_s: float | None = None) -> None:
        """``timeout_s`` is SURVEY_TIMEOUT_S by default."""
        self.kg = kg
        """The graph. If it has limits, it is a copy, whose time limit is set anew for each query."""
        self.timeout_s = SURVEY_TIMEOUT_S if timeout_s is None else timeout_s
        self.started = time.perf_counter()
        self.sent = 0
        """How many queries were sent, refused ones included."""
        self.part = ""
        """What the next queries ask for, as ``lacks`` names it."""
        self.has_answered = False
        """Whether the graph has answered a query."""
        self.unreachable = 0
        """How many queries the endpoint failed to answer since the last answer."""
        self.failed = 0
        """How many queries had no result, those included that were not sent."""
        self.lacks: dict[str, str] = {}
        """The parts that a query had no result for, with the reason of the first such query."""
        self.lacked_time = False
        """Whether a query took too long, or no time was left for one. ``lacks`` need not tell."""
        self.first_error: GraphError | None = None
        """Why the graph refused a query, if it did."""
        self._limited: _LimitedGraph | None = None
        if isinstance(kg, _LimitedGraph):
            self._limits = kg.limits
            self._limited = copy(kg)
            self.kg = self._limited

    @property
    def seconds(self) -> float:
        """The time since the survey began."""
        return time.perf_counter() - self.started

    def attempt(self, send: Callable[[], T], queries: int = 1) -> T | None:
        """Return what ``send`` returns; None if the graph refuses the query.

        ``queries`` is how many queries it may send, which share the time that is left. None is also
        returned, without calling ``send``, once the queries have taken ``timeout_s``. The query is
        counted in ``sent``, the first refusal is kept in ``first_error``, and ``lacks`` gets the
        part that has no result. Raises GraphUnreachableError if the endpoint has answered nothing
        before, or the MAX_UNREACHABLE last queries failed so.
        """
        seconds_left = self.timeout_s - self.seconds
        if seconds_left <= 0:
            self.failed += 1
            self.lacked_time = True
            self.note_lack(NO_TIME_LEFT)
            return None
        self.sent += 1
        if self._limited is not None:
            longest = min(MAX_SHARE_OF_TIME_LEFT, 1 / queries) * seconds_left
            timeout_s = min(self._limits.query_timeout_s, longest)
            self._limited.limits = replace(self._limits, query_timeout_s=timeout_s)
        try:
            result = send()
        except GraphError as error:
            if isinstance(error, GraphUnreachableError):
                self.unreachable += 1
                if not self.has_answered or self.unreachable == MAX_UNREACHABLE:
                    raise
            if self.first_error is None:
                self.first_error = error
            reason = REFUSED
            if isinstance(error, GraphTimeoutError):
                reason = TOOK_TOO_LONG
                self.lacked_time = True
            self.failed += 1
            self.note_lack(reason)
            return None
        self.has_answered = True
        self.unreachable = 0
        return result

    def note_lack(self, reason: str) -> None:
        """Note that a query for ``part`` has no result, and why, unless that is noted already."""
        self.lacks.setdefault(self.part, reason)

    def select(self, query: str, keys: int = 0) -> list[Row]:
        """Return the rows of a SELECT whose first ``keys`` terms are valid IRIs; [] if refused.

        Some engines return a row without keys where there are no groups, or IRIs that no query can
        contain; such rows are left out.
        """
        result = self.attempt(lambda: self.kg.select(query))
        if result is None:
            return []
        if result.cut:
            self.note_lack(ROWS_MISSING)
        usable = []
        for row in result.rows:
            if all(map(_is_usable_iri, row[:keys])):
                usable.append(row)
        return usable

    def select_grouped(self, keys: str, numbers: str, pattern: str) -> list[Row]:
        """Return rows of numbers, for each binding of the variables ``keys`` ("?c ?p") to IRIs."""
        query = f"SELECT {keys} {numbers} WHERE {{ {pattern} }} GROUP BY {keys}"
        key_count = keys.count("?")
        return self.select(query, key_count)

    def count(self, counted: str, pattern: str) -> int | None:
        """Return how many solutions a pattern has, or distinct terms; None if there is no result.

        ``counted`` is what is in COUNT(): "*" or "DISTINCT ?v". Raises QueryError if the graph
        returns what is no number.
        """
        rows = self.select(f"SELECT (COUNT({counted}) AS ?n) WHERE {{ {pattern} }}")
        if not rows:
            return None
        return parse_count(rows[0][0])

    def count_by(self, key: str, counted: str, pattern: str) -> dict[URIRef, int]:
        """Count a pattern's solutions for each IRI of the variable ``key``, largest count first.

        ``counted`` is "*", or "DISTINCT ?v" to count the values of a variable. Empty if the graph
        refuses the query.
        """
        rows = self.select_grouped(key, f"(COUNT({counted}) AS ?n)", pattern)
        counts = {}
        for iri, number in rows:
            counts[iri] = parse_count(number)
        return dict(largest_first(counts))

    def find_existing(self, predicates: Sequence[URIRef]) -> list[URIRef]:
        """Return those of the predicates that the graph has, in their order. One query is sent.

        All are returned if the graph refuses: a query for one that it lacks has no rows.
        """
        listed = values_clause("?p", predicates)
        query = f"SELECT ?p WHERE {{ {listed} FILTER EXISTS {{ ?s ?p ?o }} }}"
        result = self.attempt(lambda: self.kg.select(query))
        if result is None:
            return list(predicates)
        return [predicate for predicate in predicates if (predicate,) in result.rows]


def path_over(predicates: Iterable[URIRef]) -> str:
    """Return a property path "<a>|<b>" over predicates; MISSING_PREDICATE without any."""
    return "|".join(map(n3, predicates)) or MISSING_PREDICATE


def largest_first(counts: Mapping[KeyType, int]) -> list[tuple[KeyType, int]]:
    """Return the keys with their counts, the largest count first; of equal counts, by key."""

    def rank(item: tuple[KeyType, int]) -> tuple[int, KeyType]:
        """Return the sort key of a key and its count: the largest count first, then by key."""
        key, count = item
        return -count, key

    return sorted(counts.items(), key=rank)


def _is_usable_iri(term: object) -> bool:
    """Return whether a term is an IRI that a query can contain."""
    return isinstance(term, URIRef) and is_valid_iri(term)


@dataclass(frozen=True, slots=True)
class InstancePart:
    """Instances that one query looks at."""

    pattern: str
    """Binds each instance to ?v, and its class to ?c."""
    classes: tuple[URIRef, ...] = ()
    """The classes, if they are a sample of their instances. Empty for all instances of all classes."""


@dataclass(frozen=True, slots=True)
class Instances:
    """The instances that a survey looks at: all, or a sample of each class."""

    types: str
    """A property path over the predicates from a vertex to its class."""
    parts: tuple[InstancePart, ...]
    """Those of the largest classes first. The sampled instances of a class are in one part."""
    fractions: Mapping[URIRef, float]
    """The share of a class's instances that are in the sample. Empty if it is no sample."""
    limit: int = 0
    """How many instances of a class are in the sample at most. 0 if it is no sample."""

    @property
    def is_sample(self) -> bool:
        """Whether these are not all instances."""
        return bool(self.fractions)

    @property
    def not_a_type(self) -> str:
        """The predicates of ``types`` as a list for NOT IN."""
        return self.types.replace("|", ", ")

    def parts_with(self, classes: Collection[URIRef]) -> list[InstancePart]:
        """Return the parts that have instances of any of the classes; all parts, if not a sample."""
        parts = []
        for part in self.parts:
            if not part.classes or not set(part.classes).isdisjoint(classes):
                parts.append(part)
        return parts

    def scale(self, class_iri: URIRef, number: Any) -> int:
        """Return a number that was counted in the sample as it is estimated for the whole class."""
        fraction = self.fractions.get(class_iri, 1.0)
        return round(parse_count(number) / fraction)


def values_of_pairs(variables: str, pairs: Iterable[tuple[URIRef, URIRef]]) -> str:
    """Return a VALUES clause that binds two variables ("?c ?p") to each of the pairs.

    Raises QueryError for an invalid IRI.
    """
    rows = []
    for first, second in pairs:
        written = f"{n3(first)} {n3(second)}"
        rows.append(f"({written})")
    listed = " ".join(rows)
    return f"VALUES ({variables}) {{ {listed} }}"


def untyped_pattern(types: str) -> str:
    """Return a pattern that binds ?v to things without a class, but not to classes or predicates.

    ``types`` is a property path over the predicates from a vertex to its class. A thing is an IRI
    that is the subject of a triple; it is bound once for each of its triples.
    """
    return (
        f"?v ?any ?value FILTER(isIRI(?v)) FILTER NOT EXISTS {{ ?v ({types}) ?type }}"
        f" FILTER NOT EXISTS {{ ?instance ({types}) ?v }} FILTER NOT EXISTS {{ ?a ?v ?b }}"
    )
