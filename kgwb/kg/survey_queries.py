"""The queries of a survey, and the patterns that they have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rdflib import URIRef

from kgwb.errors import GraphError, GraphUnreachableError
from kgwb.kg.base import Graph
from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import is_valid_iri, n3, values_clause

T = TypeVar("T")
KeyType = TypeVar("KeyType", bound=str)
Row = tuple[Any, ...]
SURVEY_TIMEOUT_S = 120.0
"""After this time no more queries are sent. The survey is what is known by then."""
UNTYPED_CLASS = URIRef("urn:kgwb:without-a-class")
"""Stands in queries for the class of things that have none."""
MISSING_PREDICATE = "<urn:kgwb:none>"
"""Stands in queries for predicates that the graph lacks."""
DISTINCT_VERTICES = "DISTINCT ?v"


class SurveyQueries:
    """Sends the queries of one survey to a graph.

    A query that the graph refuses has no result, and neither has one after SURVEY_TIMEOUT_S: the
    survey leaves out what the query asks for. An endpoint that cannot be reached is an error.
    """

    def __init__(self, kg: Graph) -> None:
        self.kg = kg
        self.started = time.perf_counter()
        self.sent = 0
        """How many queries were sent, refused ones included."""
        self.first_error: GraphError | None = None
        """Why the graph refused a query, if it did."""

    @property
    def seconds(self) -> float:
        """The time since the survey began."""
        return time.perf_counter() - self.started

    def attempt(self, send: Callable[[], T]) -> T | None:
        """Return what ``send`` returns; None if the graph refuses the query.

        None is also returned, without calling ``send``, once the queries have taken
        SURVEY_TIMEOUT_S. The query is counted in ``sent``, and the first refusal is kept in
        ``first_error``. Raises GraphUnreachableError.
        """
        if self.seconds > SURVEY_TIMEOUT_S:
            return None
        self.sent += 1
        try:
            return send()
        except GraphUnreachableError:
            raise
        except GraphError as error:
            if self.first_error is None:
                self.first_error = error
            return None

    def select(self, query: str, keys: int = 0) -> list[Row]:
        """Return the rows of a SELECT whose first ``keys`` terms are valid IRIs; [] if refused.

        Some engines return a row without keys where there are no groups, or IRIs that no query can
        contain; such rows are left out.
        """
        result = self.attempt(lambda: self.kg.select(query))
        if result is None:
            return []
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

    def path_over_existing(self, predicates: Sequence[URIRef]) -> str:
        """Return a property path "<a>|<b>" over those of the predicates that the graph has.

        The others would cost an engine time. If it has none, MISSING_PREDICATE is returned. One
        query is sent.
        """
        listed = values_clause("?p", predicates)
        rows = self.select(f"SELECT ?p WHERE {{ {listed} FILTER EXISTS {{ ?s ?p ?o }} }}")
        existing = []
        for predicate in predicates:
            if (predicate,) in rows:
                existing.append(n3(predicate))
        if not existing:
            return MISSING_PREDICATE
        return "|".join(existing)


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
class Instances:
    """The instances that a survey looks at: all, or a sample of each class."""

    types: str
    """A property path over the predicates from a vertex to its class."""
    pattern: str
    """Binds each instance to ?v, and its class to ?c."""
    fractions: Mapping[URIRef, float]
    """The share of a class's instances that are in the sample. Empty if it is no sample."""

    @property
    def is_sample(self) -> bool:
        """Whether these are not all instances."""
        return bool(self.fractions)

    @property
    def not_a_type(self) -> str:
        """The predicates of ``types`` as a list for NOT IN."""
        return self.types.replace("|", ", ")

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
