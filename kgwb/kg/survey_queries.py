"""What a survey asks a graph: the predicates of instances, their values, and what predicates share."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, permutations, product
from typing import Any, Protocol, TypeVar, runtime_checkable

from rdflib import RDF, XSD, BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError
from kgwb.kg.base import Graph, QueryLimits
from kgwb.kg.queries import literals_of, parse_count
from kgwb.kg.sparql import is_valid_iri, n3, union_clause, values_clause
from kgwb.kg.survey_records import (
    MAX_LISTED_VALUES,
    SORTS_WITHOUT_DATATYPE,
    ClassGroup,
    PredicateTwin,
    PropertySurvey,
    ValueSurvey,
)
from kgwb.terms import Term, local_part

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

    types: str
    """A property path over the predicates from a vertex to its class that the graph has."""
    labels: str
    """A property path over the label predicates that the graph has."""
    descriptions: list[URIRef]
    """The predicates for descriptions that the graph has."""

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
        """Execute a SELECT, and return its rows; [] if the graph refuses it or no time is left.

        A row is left out if one of its first ``keys`` terms is not an IRI that a query can contain:
        some engines return a row without keys where there are no groups, or other IRIs. If the
        graph did not return all rows, that is noted as a lack.
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

    def select_batches(
        self, items: Sequence[T], size: int, write: Callable[[Sequence[T]], str], keys: int
    ) -> Iterator[Row]:
        """Yield the rows of a SELECT for each ``size`` of some items, as ``select`` returns them.

        ``write`` returns the query for some of the items.
        """
        for start in range(0, len(items), size):
            yield from self.select(write(items[start : start + size]), keys)

    def find_vocabulary(self) -> None:
        """Find out which predicates of the vocabulary the graph has; one query is sent.

        The others would cost an engine time. Sets ``types``, ``labels`` and ``descriptions``. They
        have all predicates if the graph refuses: a query for one that it lacks has no rows.
        """
        self.part = "which predicates give types, labels and descriptions"
        vocabulary = self.kg.vocabulary
        asked = (*vocabulary.types, *vocabulary.labels, *vocabulary.descriptions)
        listed = values_clause("?p", asked)
        query = f"SELECT ?p WHERE {{ {listed} FILTER EXISTS {{ ?s ?p ?o }} }}"
        result = self.attempt(lambda: self.kg.select(query))
        existing: set[Term | None] = set(asked)
        if result is not None:
            existing.intersection_update(chain.from_iterable(result.rows))
        self.types = path_over(iri for iri in vocabulary.types if iri in existing)
        self.labels = path_over(iri for iri in vocabulary.labels if iri in existing)
        self.descriptions = [iri for iri in vocabulary.descriptions if iri in existing]

    @property
    def not_a_type(self) -> str:
        """The predicates of ``types`` as a list for NOT IN."""
        return self.types.replace("|", ", ")


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


MAX_INNER_PREDICATES = 4
"""Predicates of a class whose instances only hold structure."""
MAX_PAIRS_PER_QUERY = 300
"""Pairs of class and predicate in one query for all values."""
PREDICATES_PART = "the predicates of classes"
VALUES_PART = "the values of predicates"
"""These parts of a survey are what a scan of the instances gives."""
ClassProperties = Mapping[URIRef, Sequence[PropertySurvey]]
"""The predicates of each class."""
PropertyKey = tuple[URIRef, ...]
"""A class and a predicate; for structure also an inner predicate."""
ValuesByKey = Mapping[PropertyKey, Sequence[ValueSurvey]]


class PropertyCollector:
    """Asks for the predicates and values of instances."""

    def __init__(self, queries: SurveyQueries, instances: Instances) -> None:
        """Prepare to ask for the properties of ``instances``."""
        self.queries = queries
        self.instances = instances
        self.not_surveyed: set[URIRef] = set()
        """Classes with a sample whose predicates the graph did not return."""
        self.refused_whole = False
        """Whether the graph refused to look at all instances. They must then be sampled."""

    def collect(self) -> ClassProperties:
        """Ask the graph which predicates the instances of each class use; return them by class.

        A predicate has the number of instances that have it, of its triples, its values by sort,
        its inner predicates, and the number of values without a label. Type predicates are left
        out. Numbers of a sample are scaled to the whole class. The predicates are in the order in
        which the graph returns them. The largest classes of a sample are asked for first. If the
        graph refuses a query about all instances, nothing is returned, and ``refused_whole`` is set.
        """
        instances = self.instances
        queries = self.queries
        values_by_key: dict[PropertyKey, Sequence[ValueSurvey]] = {}
        rows: list[Row] = []
        for part in instances.parts:
            fact = f"?v ?p ?o FILTER(?p NOT IN ({queries.not_a_type}))"
            facts = f"{part.pattern} {fact}"
            queries.part = VALUES_PART
            failed_before = queries.failed
            values_by_key.update(self._collect_values("?c ?p", facts))
            if not instances.is_sample and queries.failed > failed_before:
                self.refused_whole = True
                return {}
            queries.part = PREDICATES_PART
            failed_before = queries.failed
            if instances.is_sample:
                # Without OPTIONAL, Virtuoso may read the whole graph instead of these instances.
                # A row without a predicate, of an instance that has none, is left out.
                facts = f"{part.pattern} OPTIONAL {{ {fact} }}"
            counts = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
            rows += queries.select_grouped("?c ?p", counts, facts)
            if queries.failed > failed_before:
                self.not_surveyed.update(part.classes)
                if not instances.is_sample:
                    self.refused_whole = True
                    return {}
        queries.part = "the predicates of nodes that only hold structure"
        inner = self._collect_inner(values_by_key)
        value_sets: Mapping[PropertyKey, list[Term]] = {}
        if not instances.is_sample:
            queries.part = "all values of predicates that have few"
            value_sets = self._list_small_value_sets(values_by_key)
        queries.part = "which values have no label"
        unnamed = self._count_unnamed(values_by_key)

        properties: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
        for class_iri, predicate, things, triples in rows:
            key = (class_iri, predicate)
            sorts = values_by_key.get(key, ())
            surveyed = PropertySurvey(
                predicate=predicate,
                things=instances.scale(class_iri, things),
                triples=instances.scale(class_iri, triples),
                values=self._complete_values(sorts, value_sets.get(key)),
                inner=tuple(inner.get(key, ())),
                unnamed=unnamed.get(key, 0),
            )
            properties[class_iri].append(surveyed)
        return properties

    def _collect_values(self, keys: str, facts: str) -> ValuesByKey:
        """Return the sorts of the values ?o in a pattern, for each binding of ``keys``.

        ``keys`` is "?c ?p" or "?c ?p ?q". A sort is a class, a datatype, a language, IRIs without a
        class, or blank nodes, with its number of triples and of distinct values and with examples.
        The most frequent sort comes first. One query is sent; an engine other than Oxigraph gets
        another form of it.
        """
        triples = "COUNT(*)"
        distinct = "COUNT(DISTINCT ?o)"
        pattern = facts
        if not self.queries.kg.remote:
            # This takes Oxigraph half the time, but Virtuoso 7 may return no row at all for it.
            triples = "SUM(?m)"
            distinct = "COUNT(*)"
            pattern = (
                f"{{ SELECT {keys} ?o (COUNT(*) AS ?m) WHERE {{ {facts} }} GROUP BY {keys} ?o }}"
            )
        query = (
            f"SELECT {keys} ({triples} AS ?n) ({distinct} AS ?d) ?k ?type ?tag"
            " (MIN(?o) AS ?least) (MAX(?o) AS ?most) (SAMPLE(?o) AS ?some)"
            f" WHERE {{ {pattern} OPTIONAL {{ ?o ({self.queries.types}) ?k }}"
            " BIND(isBlank(?o) AS ?blank) BIND(DATATYPE(?o) AS ?type) BIND(LANG(?o) AS ?tag) }"
            f" GROUP BY {keys} ?k ?blank ?type ?tag"
        )
        key_count = keys.count("?")
        values_by_key: dict[PropertyKey, list[ValueSurvey]] = defaultdict(list)
        for row in self.queries.select(query, key_count):
            surveyed = self._read_values(row[0], row[key_count:])
            if surveyed:
                values_by_key[row[:key_count]].append(surveyed)

        def rank(values: ValueSurvey) -> tuple[int, str, str]:
            """Return the sort key of values: the most triples first, then by sort and class."""
            return -values.triples, values.sort, str(values.of)

        for sorts in values_by_key.values():
            sorts.sort(key=rank)
        return values_by_key

    def _read_values(self, class_iri: URIRef, row: Row) -> ValueSurvey | None:
        """Return the values of one sort from a row of ``_collect_values``, without its keys.

        A literal has the sort of its datatype and language, an IRI that of its class or "IRI", a
        blank node "node". The examples are the least, the greatest and any value, each once,
        without blank nodes and empty texts. Triples of a sample are scaled. None if the class of
        the values is a blank node.
        """
        triples, distinct, value_class, datatype, language, *terms = row
        shown = [term for term in terms if term is not None and str(term)]
        example = terms[0]
        if shown:
            example = shown[0]
        value_type = value_class
        if isinstance(example, Literal):
            language = str(language or "")
            sort = literal_sort(datatype, language)
            value_type = URIRef(datatype or XSD.string)
            if language:
                value_type = RDF.langString
        elif isinstance(value_class, BNode):
            return None
        elif value_class:
            sort = "class"
        elif isinstance(example, BNode):
            sort = "node"
        else:
            sort = "IRI"
        if isinstance(example, BNode):
            shown = []
        distinct_examples = dict.fromkeys(shown)
        return ValueSurvey(
            sort=sort,
            of=value_type,
            triples=self.instances.scale(class_iri, triples),
            distinct=parse_count(distinct),
            examples=tuple(distinct_examples),
        )

    def _collect_inner(
        self, values_by_key: ValuesByKey
    ) -> Mapping[PropertyKey, list[PropertySurvey]]:
        """Return the predicates of nodes that only hold structure, such as amount and unit.

        The key is the class and the predicate that lead to the nodes. A node only holds structure
        if it is blank and without a class, or an instance of a class from
        ``_find_structure_classes``. Inner predicates are sorted by IRI. Their number of triples
        also stands for the number of nodes.
        """
        types = self.queries.types
        patterns = []
        with_nodes = _classes_with(values_by_key, lambda values: values.sort == "node")
        for part in self.instances.parts_with(with_nodes) if with_nodes else ():
            patterns.append(
                f"{part.pattern} ?v ?p ?b FILTER(isBlank(?b))"
                f" FILTER NOT EXISTS {{ ?b ({types}) ?t }} ?b ?q ?o"
            )
        structure_classes = self._find_structure_classes(values_by_key)
        if structure_classes:
            leading = _classes_with(values_by_key, lambda values: values.of in structure_classes)
            of_class = f"{values_clause('?t', structure_classes)} ?b ({types}) ?t ."
            if self.instances.is_sample:
                # With VALUES, Oxigraph reads all instances of these classes.
                listed = ", ".join(map(n3, structure_classes))
                of_class = f"?b ({types}) ?t FILTER(?t IN ({listed}))"
            is_no_type = f"FILTER(?q NOT IN ({self.queries.not_a_type}))"
            for part in self.instances.parts_with(leading):
                patterns.append(f"{part.pattern} ?v ?p ?b . {of_class} ?b ?q ?o {is_no_type}")

        inner: dict[PropertyKey, list[PropertySurvey]] = defaultdict(list)
        for facts in patterns:
            inner_values = self._collect_values("?c ?p ?q", facts)
            for key, sorts in sorted(inner_values.items()):
                class_iri, predicate, inner_predicate = key
                triples = sum(values.triples for values in sorts)
                complete = self._complete_values(sorts, None)
                surveyed = PropertySurvey(inner_predicate, triples, triples, complete)
                inner[class_iri, predicate].append(surveyed)
        return inner

    def _find_structure_classes(self, values_by_key: ValuesByKey) -> list[URIRef]:
        """Return the classes whose instances only hold structure.

        Instances of such a class are values of predicates, and have what ``holds_structure`` asks
        of their own predicates.
        """
        values_of: dict[URIRef, dict[URIRef, Sequence[ValueSurvey]]] = defaultdict(dict)
        value_classes: set[URIRef | None] = set()
        for (class_iri, predicate), sorts in values_by_key.items():
            values_of[class_iri][predicate] = sorts
            for values in sorts:
                value_classes.add(values.of)

        labels = self.queries.kg.vocabulary.labels
        found = []
        for class_iri, values_by_predicate in values_of.items():
            if class_iri in value_classes and holds_structure(values_by_predicate, labels):
                found.append(class_iri)
        return found

    def _list_small_value_sets(
        self, values_by_key: ValuesByKey
    ) -> Mapping[PropertyKey, list[Term]]:
        """Return all values of each class and predicate that has few, by class and predicate.

        It is not for a sample, whose values need not be all of a class.

        Few are at most MAX_LISTED_VALUES, of which at least one occurs several times, or exactly
        three of one sort. Predicates with blank nodes as values are left out, and so are things
        without a class. The values are asked of the graph, MAX_PAIRS_PER_QUERY pairs of class and
        predicate at a time.
        """
        pairs = []
        for (class_iri, predicate), sorts in values_by_key.items():
            if class_iri != UNTYPED_CLASS and _is_small_value_set(sorts):
                pairs.append((class_iri, predicate))

        instances = f"?v ({self.queries.types}) ?c ."
        value_sets: dict[PropertyKey, list[Term]] = defaultdict(list)

        def write(some: Sequence[tuple[URIRef, URIRef]]) -> str:
            """Return the query for the values of some pairs."""
            listed = values_of_pairs("?c ?p", some)
            return f"SELECT DISTINCT ?c ?p ?o WHERE {{ {listed} {instances} ?v ?p ?o }}"

        rows = self.queries.select_batches(pairs, MAX_PAIRS_PER_QUERY, write, 2)
        for class_iri, predicate, value in rows:
            value_sets[class_iri, predicate].append(value)
        return value_sets

    def _count_unnamed(self, values_by_key: ValuesByKey) -> dict[PropertyKey, int]:
        """Return the number of distinct IRIs without a label among the values of a predicate.

        The key is class and predicate. Only predicates are counted that have IRIs without a class
        as values in any class; others have no entry. One query is sent, or none; of a sample one for
        each of its parts.
        """
        predicates = set()
        for (_, predicate), sorts in values_by_key.items():
            if any(values.sort == "IRI" for values in sorts):
                predicates.add(predicate)
        if not predicates:
            return {}
        classes = {class_iri for class_iri, predicate in values_by_key if predicate in predicates}
        listed = values_clause("?p", sorted(predicates))
        unnamed: dict[PropertyKey, int] = {}
        for part in self.instances.parts_with(classes):
            pattern = (
                f"{listed} {part.pattern}"
                f" ?v ?p ?o FILTER(isIRI(?o)) FILTER NOT EXISTS {{ ?o ({self.queries.labels}) ?label }}"
            )
            rows = self.queries.select_grouped("?c ?p", "(COUNT(DISTINCT ?o) AS ?n)", pattern)
            for class_iri, predicate, number in rows:
                unnamed[class_iri, predicate] = parse_count(number)
        return unnamed

    def _complete_values(
        self, sorts: Sequence[ValueSurvey], value_set: Sequence[Term] | None
    ) -> tuple[ValueSurvey, ...]:
        """Return the values of each sort with all of them as examples, if they are known.

        ``value_set`` has all values of the predicate, of every sort; None if they were not listed.
        One or two values are known in any case: they are the least and the greatest. In a sample
        it is never known whether there are others.
        """
        completed = []
        for values in sorts:
            examples: Sequence[Term] = values.examples
            if value_set is None:
                is_complete = values.distinct == len(examples) < 3
            else:
                listed = [term for term in value_set if _may_be_one_of(term, values)]
                is_complete = values.distinct == len(listed)
                if is_complete:
                    examples = sorted(listed, key=str)
            is_whole = is_complete and not self.instances.is_sample
            with_examples = replace(values, examples=tuple(examples), whole=is_whole)
            completed.append(with_examples)
        return tuple(completed)


def holds_structure(
    values_by_predicate: Mapping[URIRef, Sequence[ValueSurvey]], labels: Collection[URIRef]
) -> bool:
    """Return whether things with these predicates only hold structure, such as a number and a unit.

    They have two to MAX_INNER_PREDICATES predicates, none of the ``labels`` among them, and all but
    at most one have only literals as values.
    """
    not_literal = 0
    for sorts in values_by_predicate.values():
        if not all(values.is_literal for values in sorts):
            not_literal += 1
    is_small = 1 < len(values_by_predicate) <= MAX_INNER_PREDICATES
    is_labelled = not values_by_predicate.keys().isdisjoint(labels)
    return is_small and not_literal <= 1 and not is_labelled


def _classes_with(
    values_by_key: ValuesByKey, is_meant: Callable[[ValueSurvey], bool]
) -> set[URIRef]:
    """Return the classes with a predicate that has values of a sort that is meant."""
    classes = set()
    for (class_iri, *_), sorts in values_by_key.items():
        if any(map(is_meant, sorts)):
            classes.add(class_iri)
    return classes


def literal_sort(datatype: str | None, language: str | None) -> str:
    """Return the sort of a literal: "text@en" with a language, else the datatype's local part.

    It is the IRI of a datatype whose local part means something else as a sort.
    """
    if language:
        return f"text@{language}"
    datatype = str(datatype or XSD.string)
    local = local_part(datatype)
    is_taken = local in SORTS_WITHOUT_DATATYPE or "@" in local
    is_other_string = local == "string" and datatype != str(XSD.string)
    if is_taken or is_other_string:
        return datatype
    return local


def _is_small_value_set(sorts: Sequence[ValueSurvey]) -> bool:
    """Return whether all values of a predicate are to be listed.

    They are if they are at most MAX_LISTED_VALUES, no blank nodes, and a value occurs in several
    triples. Exactly three values of one sort are listed without the last condition.
    """
    number = sum(values.distinct for values in sorts)
    has_nodes = any(values.sort == "node" for values in sorts)
    if has_nodes or number > MAX_LISTED_VALUES:
        return False
    if len(sorts) == 1 and number == 3:
        return True
    return any(values.distinct < values.triples for values in sorts)


def _may_be_one_of(term: Term, values: ValueSurvey) -> bool:
    """Return whether a term could be one of the values that ``values`` describes, by its sort.

    An IRI could be of any class. A literal must have the language, or the datatype.
    """
    if isinstance(term, URIRef):
        return values.sort in ("class", "IRI")
    if isinstance(term, BNode):
        return values.sort == "node"
    if literal_sort(term.datatype, term.language) != values.sort:
        return False
    if term.language:
        return True
    datatype = term.datatype or XSD.string
    return values.of == datatype


MAX_COMPARED = 60
"""Pairs of predicates that are compared at most."""
MAX_COMPARED_TRIPLES = 20_000
"""Triples of the rarer predicates of all pairs of one kind that are compared."""
NO_CLASS = URIRef("urn:kgwb:any-class")
"""Stands for the class of pairs that are compared whatever the class is."""
MIN_TWIN_SHARE = 0.5
"""Instances for which two predicates must say the same, as a share of those that have the rarer."""
MIN_SAME_VALUE_SHARE = 0.9
"""The same for predicates with the same value: an owner is often the user, too."""
TwinKey = tuple[URIRef, URIRef, URIRef]
"""A class and two of its predicates."""
Inverse = tuple[URIRef, URIRef, int]
"""Two predicates, and how many triples of the first the second has in reverse."""


class RelationFinder:
    """Finds the predicates of groups of classes that say the same, or the reverse."""

    def __init__(self, queries: SurveyQueries, groups: Sequence[ClassGroup]) -> None:
        """Prepare to ask for the relations of ``groups``."""
        self.queries = queries
        self.groups = [group for group in groups if group.top_class.iri]
        self.triples: Counter[URIRef] = Counter()
        """The triples of each predicate. An engine reads all of those of the rarer of two."""
        for group in self.groups:
            for prop in group.properties:
                self.triples[prop.predicate] += prop.triples

    def find(self) -> tuple[tuple[Inverse, ...], tuple[PredicateTwin, ...]]:
        """Return pairs of predicates with triples in reverse, and the twins, both sorted.

        Of twins, one kind has as a text the name of the thing that the other leads to. The other
        kind has the same value. MIN_TWIN_SHARE and MIN_SAME_VALUE_SHARE of the instances that have
        the rarer of both must agree. Two queries are sent; _choose bounds what is compared.
        """
        text_twins, value_twins = self._find_possible_twins()
        rarer = {**text_twins, **value_twins}
        counts = []
        for key in self._choose(self._find_possible_inverses()):
            counts.append((*key, self._pattern_of_inverses(key)))
        for key in self._choose(text_twins):
            counts.append((*key, self._pattern_of_texts(key)))
        for key in self._choose(value_twins):
            counts.append((*key, self._pattern_of_values(key)))

        inverses = []
        twins = []
        for class_iri, first, second, number in self._count(counts):
            if class_iri == NO_CLASS:
                if number:
                    inverses.append((first, second, number))
                continue
            key = (class_iri, first, second)
            as_text = key in text_twins
            share = MIN_SAME_VALUE_SHARE
            if as_text:
                share = MIN_TWIN_SHARE
            least = rarer[key] * share
            if number > 1 and number >= least:
                twin = PredicateTwin(class_iri, first, second, number, as_text)
                twins.append(twin)
        twins.sort(key=lambda twin: (twin.of, twin.predicate, twin.twin))
        return tuple(sorted(inverses)), tuple(twins)

    def _find_possible_inverses(self) -> dict[TwinKey, int]:
        """Return pairs of predicates that lead from one group to another, or to itself, and back.

        With each comes how many triples the rarer has there. The class is NO_CLASS.
        """
        group_of = {}
        for group in self.groups:
            for member in group.members:
                group_of[member.iri] = group.top_class.iri
        routes: dict[tuple[URIRef | None, URIRef | None], dict[URIRef, int]] = defaultdict(dict)
        for group in self.groups:
            source = group.top_class.iri
            for prop in group.properties:
                for values in prop.values:
                    if values.sort != "class" or values.of not in group_of:
                        continue
                    target = group_of[values.of]
                    routes[source, target][prop.predicate] = prop.triples
        possible = {}
        for source, target in list(routes):
            there = routes[source, target]
            back = routes.get((target, source), {})
            for first, second in product(there, back):
                if first < second:
                    rarer = min(there[first], back[second])
                    possible[NO_CLASS, first, second] = rarer
        return possible

    def _find_possible_twins(self) -> tuple[dict[TwinKey, int], dict[TwinKey, int]]:
        """Return pairs of predicates that may be twins: by the name of a thing, and by the value.

        With each comes how many instances the rarer has. A text must have an example that is the
        name of a thing.
        """
        label_predicates = self.queries.labels.split("|")
        not_compared = {predicate.strip("<>") for predicate in label_predicates}
        names = self._find_names_among_examples()
        by_text: dict[TwinKey, int] = {}
        by_value: dict[TwinKey, int] = {}
        for group in self.groups:
            class_iri = URIRef(str(group.top_class.iri))
            compared = []
            for prop in group.properties:
                if str(prop.predicate) not in not_compared:
                    compared.append(prop)
            for first, second in permutations(compared, 2):
                key = (class_iri, first.predicate, second.predicate)
                rarer = min(first.things, second.things)
                holds_a_name = not names.isdisjoint(_text_examples(first))
                if holds_a_name and _leads_to_things(second):
                    by_text[key] = rarer
                    continue
                is_first_of_both = first.predicate < second.predicate
                if is_first_of_both and _share_a_sort(first, second):
                    by_value[key] = rarer
        return by_text, by_value

    def _find_names_among_examples(self) -> set[str]:
        """Return those of the texts among the examples that are the name of a thing, in one query."""
        texts: set[str] = set()
        for group in self.groups:
            for prop in group.properties:
                texts.update(_text_examples(prop))
        if not texts:
            return set()
        literals = literals_of(sorted(texts), self.queries.kg.vocabulary)
        listed = values_clause("?name", literals)
        named = f"?thing ({self.queries.labels}) ?name"
        rows = self.queries.select(f"SELECT DISTINCT ?name WHERE {{ {listed} {named} }}")
        return {str(name) for (name,) in rows}

    def _choose(self, possible: Mapping[TwinKey, int]) -> list[TwinKey]:
        """Return the pairs that can be compared at little cost, those of rare predicates first.

        They are at most MAX_COMPARED. Both have two triples or more; the triples of the rarer
        predicates are MAX_COMPARED_TRIPLES in all at most.
        """
        ranked = []
        for key in possible:
            _, first, second = key
            cost = min(self.triples[first], self.triples[second])
            ranked.append((cost, key))
        ranked.sort()
        chosen: list[TwinKey] = []
        total = 0
        for cost, key in ranked:
            total += cost
            if len(chosen) == MAX_COMPARED or total > MAX_COMPARED_TRIPLES:
                break
            if possible[key] > 1:
                chosen.append(key)
        return chosen

    def _of_class(self, class_iri: URIRef) -> str:
        """Return a filter for the instances of a group, by its top class."""
        classes: list[URIRef] = []
        for group in self.groups:
            if group.top_class.iri != class_iri:
                continue
            for member in group.members:
                if member.iri:
                    classes.append(URIRef(member.iri))
        listed = values_clause("?m", classes)
        return f"FILTER EXISTS {{ {listed} ?v ({self.queries.types}) ?m }}"

    def _pattern_of_inverses(self, key: TwinKey) -> str:
        """Return a pattern for triples of the first predicate that the second has in reverse."""
        _, first, second = key
        there = f"?a {n3(first)} ?b"
        back = f"?b {n3(second)} ?a"
        return f"{there} . {back}"

    def _pattern_of_texts(self, key: TwinKey) -> str:
        """Return a pattern for instances whose text is the name of the thing."""
        class_iri, text, twin = key
        triples = (
            f"?v {n3(text)} ?text . ?v {n3(twin)} ?thing . ?thing ({self.queries.labels}) ?name"
        )
        is_same = "FILTER(isLiteral(?text) && STR(?name) = STR(?text))"
        of_class = self._of_class(class_iri)
        return f"{triples} {is_same} {of_class}"

    def _pattern_of_values(self, key: TwinKey) -> str:
        """Return a pattern for instances with the same value, the rarer predicate first."""
        class_iri, *predicates = key
        rare, other = sorted(predicates, key=lambda predicate: self.triples[predicate])
        with_rare = f"?v {n3(rare)} ?o"
        with_other = f"?v {n3(other)} ?o"
        of_class = self._of_class(class_iri)
        return f"{with_rare} . {with_other} {of_class}"

    def _count(
        self, counts: Sequence[tuple[URIRef, URIRef, URIRef, str]]
    ) -> Iterator[tuple[URIRef, URIRef, URIRef, int]]:
        """Yield a class, two predicates, and how many solutions their pattern has, in one query.

        Of a class, distinct instances are counted. Each pattern is a query of its own within, since
        constants are what engines are fast with.
        """
        parts = []
        for class_iri, first, second, where in counts:
            counted = DISTINCT_VERTICES
            if class_iri == NO_CLASS:
                counted = "*"
            keys = f"({n3(class_iri)} AS ?c) ({n3(first)} AS ?p) ({n3(second)} AS ?q)"
            part = f"SELECT {keys} (COUNT({counted}) AS ?n) WHERE {{ {where} }}"
            parts.append(part)
        if not parts:
            return
        union = union_clause(parts)
        query = f"SELECT ?c ?p ?q ?n WHERE {{ {union} }}"
        rows = self.queries.select(query, 3)
        for class_iri, first, second, number in rows:
            yield class_iri, first, second, parse_count(number)


def _text_examples(prop: PropertySurvey) -> Iterator[str]:
    """Yield the examples of a predicate's values that are texts."""
    for values in prop.values:
        if values.sort == "string" or "@" in values.sort:
            yield from map(str, values.examples)


def _leads_to_things(prop: PropertySurvey) -> bool:
    """Return whether values of a predicate are IRIs, and do not only hold structure."""
    if prop.inner:
        return False
    sorts = {values.sort for values in prop.values}
    return "class" in sorts or "IRI" in sorts


def _share_a_sort(first: PropertySurvey, second: PropertySurvey) -> bool:
    """Return whether two predicates lead to things of one class, or to things without a class."""
    sorts = set()
    for values in first.values:
        if not values.is_literal:
            sorts.add((values.sort, values.of))
    return any((values.sort, values.of) in sorts for values in second.values)


# Classes that have instances in common


def count_unions(
    queries: SurveyQueries, groups: Iterable[ClassGroup]
) -> tuple[tuple[URIRef, URIRef, int, int], ...]:
    """Return how often groups of classes use each predicate, each instance counted once.

    An entry has the top class of the group, the predicate, the instances that have it, and their
    triples. Only groups that need it are counted, see ``ClassGroup.is_disjoint``, in one query.
    """
    overlapping = [group for group in groups if not group.is_disjoint]
    pairs = list(_pairs_of(overlapping))
    if not pairs:
        return ()
    members = values_of_pairs("?m ?c", pairs)
    instances = f"SELECT DISTINCT ?v ?c WHERE {{ {members} ?v ({queries.types}) ?m }}"
    pattern = f"{{ {instances} }} ?v ?p ?o"
    numbers = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
    rows = queries.select_grouped("?c ?p", numbers, pattern)
    counted = []
    for class_iri, predicate, things, triples in rows:
        number = parse_count(things)
        all_triples = parse_count(triples)
        counted.append((class_iri, predicate, number, all_triples))
    return tuple(sorted(counted))


def count_incoming(
    queries: SurveyQueries, groups: Sequence[ClassGroup]
) -> tuple[tuple[URIRef, URIRef, URIRef, int], ...]:
    """Return the triples between groups, each once, if members of one have instances in common.

    They are by the top class of the group that they come from, the predicate, and the top class of
    the group that they lead to. One of both is not disjoint. One query is sent, or none.
    """
    counted_twice = {group.top_class.iri for group in groups if not group.is_disjoint}
    if not counted_twice:
        return ()
    pairs = list(_pairs_of(groups))
    targets = values_of_pairs("?n ?d", pairs)
    sources = values_of_pairs("?m ?c", pairs)
    types = queries.types
    triples = f"{targets} ?o ({types}) ?n . ?v ?p ?o . ?v ({types}) ?m . {sources}"
    pattern = f"{{ SELECT DISTINCT ?c ?p ?d ?v ?o WHERE {{ {triples} }} }}"
    rows = queries.select_grouped("?c ?p ?d", "(COUNT(*) AS ?k)", pattern)
    counted = []
    for source, predicate, target, number in rows:
        is_needed = source in counted_twice or target in counted_twice
        if source != target and is_needed:
            counted.append((source, predicate, target, parse_count(number)))
    return tuple(sorted(counted))


def _pairs_of(groups: Iterable[ClassGroup]) -> Iterator[tuple[URIRef, URIRef]]:
    """Yield the members of groups, each with the top class of its group."""
    for group in groups:
        if group.top_class.iri is None:
            continue
        for member in group.members:
            if member.iri:
                yield member.iri, group.top_class.iri
