"""What a survey asks a graph: the predicates of instances, their values, and what predicates share."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain, permutations
from typing import Any, TypeVar

from rdflib import RDF, XSD, BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError
from kgwb.kg.base import Graph, QueryLimits
from kgwb.kg.queries import parse_count, values_table
from kgwb.kg.sparql import is_valid_iri, n3, union_clause, values_clause
from kgwb.kg.survey_records import (
    MAX_LISTED_VALUES,
    SORTS_WITHOUT_DATATYPE,
    ClassGroup,
    PropertySurvey,
    TextOfLink,
    ValueSurvey,
)
from kgwb.records import frozen
from kgwb.terms import Term, local_part, split_into_batches

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
PropertyKey = tuple[URIRef, ...]
"""A class and a predicate; for structure also an inner predicate."""


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

    def __init__(self, kg: Graph, timeout_s: float = SURVEY_TIMEOUT_S) -> None:
        self.kg = kg
        """The graph. If it has limits, it is a copy, whose time limit is set anew for each query."""
        self.timeout_s = timeout_s
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
        self._limits: QueryLimits | None = getattr(kg, "limits", None)
        """None for a graph of a class of one's own that has none."""
        self._limited: Any = kg
        if self._limits:
            self.kg = self._limited = copy(kg)

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
            self._note_failure(NO_TIME_LEFT)
            return None
        self.sent += 1
        if self._limits:
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
            self._note_failure(reason)
            return None
        self.has_answered = True
        self.unreachable = 0
        return result

    def _note_failure(self, reason: str) -> None:
        """Note that a query has no result, and why."""
        self.failed += 1
        if reason != REFUSED:
            self.lacked_time = True
        self.note_lack(reason)

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
        return [row for row in result.rows if all(map(_is_usable_iri, row[:keys]))]

    def select_grouped(self, keys: str, numbers: str, pattern: str) -> list[Row]:
        """Return rows of numbers, for each binding of the variables ``keys`` ("?c ?p") to IRIs."""
        query = f"SELECT {keys} {numbers} WHERE {{ {pattern} }} GROUP BY {keys}"
        return self.select(query, keys.count("?"))

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
        numbers = f"{key} (COUNT({counted}) AS ?n)"
        groups = f"GROUP BY {key} HAVING(isIRI({key}))"
        rows = self.select(f"SELECT {numbers} WHERE {{ {pattern} }} {groups}", 1)
        counts = {iri: parse_count(number) for iri, number in rows}
        return dict(largest_first(counts))

    def select_batches(
        self, items: Sequence[T], size: int, write: Callable[[Sequence[T]], str]
    ) -> Iterator[Row]:
        """Yield the rows with two keys of a SELECT for each ``size`` of some items (see ``select``).

        ``write`` returns the query for some of the items.
        """
        for batch in split_into_batches(items, size):
            yield from self.select(write(batch), 2)

    def read_first(self, variables: str, pattern: str) -> str:
        """Return a pattern that a local graph reads whole, before it joins what it has read.

        Oxigraph would look up each solution of the patterns around it, which takes far longer if all
        are needed. The pattern is as it was for an endpoint.
        """
        if self.kg.remote:
            return pattern
        return f"{{ SELECT {variables} WHERE {{ {pattern} }} }}"

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
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _is_usable_iri(term: object) -> bool:
    """Return whether a term is an IRI that a query can contain."""
    return isinstance(term, URIRef) and is_valid_iri(term)


@frozen
class InstancePart:
    """Instances that one query looks at."""

    pattern: str
    """Binds each instance to ?v, and its class to ?c. By its conditions Oxigraph comes upon examples."""
    quick: str
    """The same, without a condition that is known to be true: it takes longer than the rest."""
    classes: tuple[URIRef, ...] = ()
    """The classes, if they are a sample of their instances. Empty for all instances of all classes."""


@frozen
class Instances:
    """The instances that a survey looks at: all, or a sample of each class."""

    parts: tuple[InstancePart, ...]
    """Those of the largest classes first. The sampled instances of a class are in one part."""
    fractions: Mapping[URIRef, float]
    """The share of a class's instances that are in the sample. Empty if it is no sample."""
    limit: int = 0
    """How many instances of a class are in the sample at most. 0 if it is no sample."""
    are_iris: bool = False
    """Whether it is known that nothing with a class is a blank node."""

    @property
    def is_sample(self) -> bool:
        """Whether these are not all instances."""
        return bool(self.fractions)

    def parts_with(self, keys: Collection[PropertyKey]) -> list[InstancePart]:
        """Return the parts with instances of the classes of some keys; none without keys.

        If these are no sample, it is the one part with all instances.
        """
        if not keys:
            return []
        if not self.is_sample:
            return list(self.parts)
        classes = {class_iri for class_iri, *_ in keys}
        return [part for part in self.parts if not classes.isdisjoint(part.classes)]

    def scale(self, class_iri: URIRef, number: Any) -> int:
        """Return a number that was counted in the sample as it is estimated for the whole class."""
        return round(parse_count(number) / self.fractions.get(class_iri, 1.0))


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
        its inner predicates, and the number of values that the graph says nothing about. Type
        predicates are left out. Numbers of a sample are scaled to the whole class. The predicates
        are in the order in which the graph returns them. The largest classes of a sample are asked
        for first. If the graph refuses a query about all instances, nothing is returned, and
        ``refused_whole`` is set.
        """
        instances = self.instances
        queries = self.queries
        values_by_key: dict[PropertyKey, Sequence[ValueSurvey]] = {}
        rows: list[Row] = []
        for part in instances.parts:
            fact = f"?v ?p ?o FILTER(?p NOT IN ({queries.not_a_type}))"
            queries.part = VALUES_PART
            failed_before = queries.failed
            values_by_key.update(self._collect_values("?c ?p", f"{part.pattern} {fact}"))
            if not instances.is_sample and queries.failed > failed_before:
                self.refused_whole = True
                return {}
            queries.part = PREDICATES_PART
            failed_before = queries.failed
            if instances.is_sample:
                # Without OPTIONAL, Virtuoso may read the whole graph instead of these instances.
                # A row without a predicate, of an instance that has none, is left out.
                fact = f"OPTIONAL {{ {fact} }}"
            else:
                fact = queries.read_first("?v ?p", fact)
            counts = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
            rows += queries.select_grouped("?c ?p", counts, f"{part.quick} {fact}")
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
        queries.part = "which values the graph says nothing about"
        bare = self._count_bare(values_by_key)

        properties: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
        for class_iri, predicate, things, triples in rows:
            key = (class_iri, predicate)
            sorts = values_by_key.get(key, ())
            surveyed = PropertySurvey(
                predicate=predicate,
                things=instances.scale(class_iri, things),
                triples=instances.scale(class_iri, triples),
                values=self._complete_values(sorts, value_sets.get(key, ())),
                inner=tuple(inner.get(key, ())),
                bare=bare.get(key, 0),
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
        value_class = f"?o ({self.queries.types}) ?k"
        kinds = "BIND(isBlank(?o) AS ?blank) BIND(DATATYPE(?o) AS ?type) BIND(LANG(?o) AS ?tag)"
        if not self.queries.kg.remote:
            # This takes Oxigraph half the time, but Virtuoso 7 may return no row at all for it.
            triples = "SUM(?m)"
            distinct = "COUNT(*)"
            pattern = (
                f"{{ SELECT {keys} ?o (COUNT(*) AS ?m) WHERE {{ {facts} }} GROUP BY {keys} ?o }}"
            )
            if not self.instances.is_sample:
                value_class = self.queries.read_first("?o ?k", value_class)
            # Oxigraph looks up the text of a value for each of these functions.
            is_known = "BOUND(?tag)"
            if self.instances.are_iris:
                is_known = "BOUND(?k) || BOUND(?tag)"
            kinds = (
                "BIND(IF(BOUND(?k), ?none, LANG(?o)) AS ?tag)"
                ' BIND(IF(?tag = "", DATATYPE(?o), ?none) AS ?type)'
                f" BIND(IF({is_known}, ?none, isBlank(?o)) AS ?blank)"
            )
        query = (
            f"SELECT {keys} ({triples} AS ?n) ({distinct} AS ?d) ?k ?type ?tag"
            " (MIN(?o) AS ?least) (MAX(?o) AS ?most) (SAMPLE(?o) AS ?some)"
            f" WHERE {{ {pattern} OPTIONAL {{ {value_class} }} {kinds} }}"
            f" GROUP BY {keys} ?k ?blank ?type ?tag"
        )
        key_count = keys.count("?")
        values_by_key: dict[PropertyKey, list[ValueSurvey]] = defaultdict(list)
        for row in self.queries.select(query, key_count):
            surveyed = self._read_values(row[0], row[key_count:])
            if surveyed:
                values_by_key[row[:key_count]].append(surveyed)
        for sorts in values_by_key.values():
            sorts.sort(key=lambda values: (-values.triples, values.sort, str(values.of)))
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
        return ValueSurvey(
            sort=sort,
            of=value_type,
            triples=self.instances.scale(class_iri, triples),
            distinct=parse_count(distinct),
            examples=tuple(dict.fromkeys(shown)),
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
        with_nodes = _keys_with(values_by_key, lambda values: values.sort == "node")
        is_node = f"FILTER(isBlank(?b)) FILTER NOT EXISTS {{ ?b ({types}) ?t }}"
        for part in self.instances.parts_with(with_nodes):
            patterns.append(f"{part.pattern} ?v ?p ?b {is_node} ?b ?q ?o")
        structure_classes = self._find_structure_classes(values_by_key)
        if structure_classes:
            leading = _keys_with(values_by_key, lambda values: values.of in structure_classes)
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
                complete = self._complete_values(sorts, ())
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
            value_classes.update(values.of for values in sorts)

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

        It is not for a sample, whose values need not be all of a class. Few are at most
        MAX_LISTED_VALUES of one sort, of which at least one occurs several times, or exactly three.
        Blank nodes are left out, and so are things without a class. The values are asked of the
        graph, MAX_PAIRS_PER_QUERY pairs of class and predicate at a time.
        """
        pairs = []
        for (class_iri, predicate), (values, *others) in values_by_key.items():
            is_small = values.distinct == 3 or values.distinct < values.triples
            is_listed = is_small and values.distinct <= MAX_LISTED_VALUES and values.sort != "node"
            if is_listed and not others and class_iri != UNTYPED_CLASS:
                pairs.append((class_iri, predicate))

        value_sets: dict[PropertyKey, list[Term]] = defaultdict(list)

        def write(some: Sequence[tuple[URIRef, URIRef]]) -> str:
            """Return the query for the values of some pairs."""
            listed = values_table("?c ?p", some)
            instances = self.instances.parts[0].quick
            fact = "?v ?p ?o"
            if not self.queries.kg.remote:
                predicates = dict.fromkeys(predicate for _, predicate in some)
                fact = self.queries.read_first(fact, f"{values_clause('?p', predicates)} {fact}")
            return f"SELECT DISTINCT ?c ?p ?o WHERE {{ {listed} {instances} {fact} }}"

        rows = self.queries.select_batches(pairs, MAX_PAIRS_PER_QUERY, write)
        for class_iri, predicate, value in rows:
            value_sets[class_iri, predicate].append(value)
        return value_sets

    def _count_bare(self, values_by_key: ValuesByKey) -> dict[PropertyKey, int]:
        """Return the number of triples that lead to an IRI with which no triple begins.

        The key is class and predicate. Only those are looked at that have IRIs without a class as
        values. One query is sent, or none; of a sample one for each of its parts.
        """
        with_iris = _keys_with(values_by_key, lambda values: values.sort == "IRI")
        predicates = {predicate for _, predicate in with_iris}
        listed = values_clause("?p", sorted(predicates))
        bare: dict[PropertyKey, int] = {}
        for part in self.instances.parts_with(with_iris):
            is_bare = "FILTER(isIRI(?o)) FILTER NOT EXISTS { ?o ?any ?value }"
            pattern = f"{listed} {part.pattern} ?v ?p ?o {is_bare}"
            rows = self.queries.select_grouped("?c ?p", "(COUNT(*) AS ?n)", pattern)
            for class_iri, predicate, number in rows:
                bare[class_iri, predicate] = self.instances.scale(class_iri, number)
        return bare

    def _complete_values(
        self, sorts: Sequence[ValueSurvey], value_set: Sequence[Term]
    ) -> tuple[ValueSurvey, ...]:
        """Return the values of each sort with all of them as examples, if they are known.

        ``value_set`` has all values of a predicate whose values are of one sort; it is empty if they
        were not listed. One or two values are known in any case: they are the least and the
        greatest. In a sample it is never known whether there are others.
        """
        completed = []
        for values in sorts:
            examples = values.examples
            if value_set:
                examples = tuple(sorted(value_set))
            is_complete = values.distinct == len(examples) and (value_set or len(examples) < 3)
            is_whole = bool(is_complete) and not self.instances.is_sample
            completed.append(replace(values, examples=examples, whole=is_whole))
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


def _keys_with(
    values_by_key: ValuesByKey, is_meant: Callable[[ValueSurvey], bool]
) -> set[PropertyKey]:
    """Return the classes and predicates with values of a sort that is meant."""
    keys = set()
    for key, sorts in values_by_key.items():
        if any(map(is_meant, sorts)):
            keys.add(key)
    return keys


def literal_sort(datatype: str | None, language: str | None) -> str:
    """Return the sort of a literal: "text@en" with a language, else the datatype's local part.

    It is the IRI of a datatype whose local part means something else as a sort.
    """
    if language:
        return f"text@{language}"
    datatype = str(datatype or XSD.string)
    local = local_part(datatype)
    is_other_string = local == "string" and datatype != str(XSD.string)
    if local in SORTS_WITHOUT_DATATYPE or "@" in local or is_other_string:
        return datatype
    return local


MAX_COMPARED = 60
"""Texts that are compared with links at most."""
MAX_COMPARED_TRIPLES = 20_000
"""Triples of the rarer predicates of all that are compared. An engine reads all of these."""
MIN_SAME_SHARE = 0.5
"""Instances for which a text is in the name of the thing, as a share of those that have the rarer."""
MIN_NAME_CHARS = 4
Pair = tuple[URIRef, URIRef]


class LinkFinder:
    """Finds the predicates of groups of classes with a text that stands for the thing of another."""

    def __init__(self, queries: SurveyQueries, groups: Sequence[ClassGroup]) -> None:
        """Prepare to ask for the links of ``groups``."""
        self.queries = queries
        self.groups = [group for group in groups if group.top_class.iri]

    def find(self) -> tuple[TextOfLink, ...]:
        """Return the predicates whose texts are in the names of what another one leads to, sorted.

        MIN_SAME_SHARE of the instances with the rarer of both must agree. Of several predicates that
        lead to things, the one counts with which the most agree, less those that do not.
        """
        agreeing = self._find_agreeing_examples()
        rarer: dict[tuple[URIRef, URIRef, URIRef], int] = {}
        for group in self.groups:
            class_iri = URIRef(str(group.top_class.iri))
            for text, link in permutations(group.properties, 2):
                classes = {values.of for values in link.values}
                leads_on = not link.inner and classes.isdisjoint(group.iris)
                if leads_on and (text.predicate, link.predicate) in agreeing:
                    key = (class_iri, text.predicate, link.predicate)
                    rarer[key] = min(text.things, link.things)
        parts = []
        total = 0
        rarest_first = sorted((number, key) for key, number in rarer.items())
        for number, key in rarest_first[:MAX_COMPARED]:
            total += number
            if total <= MAX_COMPARED_TRIPLES:
                parts.append(self._count_agreeing(*key))
        if not parts:
            return ()
        # Each is a query of its own within, since constants are what engines are fast with.
        rows = self.queries.select(f"SELECT ?c ?p ?q ?n ?m WHERE {{ {union_clause(parts)} }}", 3)
        best: dict[PropertyKey, TextOfLink] = {}
        for class_iri, text, link, *numbers in rows:
            both, same = map(parse_count, numbers)
            found = TextOfLink(class_iri, text, link, both, same)
            kept = best.get((class_iri, text))
            is_better = kept is None or found.balance > kept.balance
            if is_better and 1 < same >= MIN_SAME_SHARE * rarer[class_iri, text, link]:
                best[class_iri, text] = found
        return tuple(sorted(best.values(), key=lambda found: (found.of, found.text)))

    @property
    def _agree(self) -> str:
        """A pattern for the name of a thing that has a text in it."""
        is_same = "FILTER(CONTAINS(LCASE(STR(?name)), LCASE(STR(?text))))"
        return f"?thing ({self.queries.labels}) ?name {is_same}"

    def _find_agreeing_examples(self) -> set[Pair]:
        """Return pairs of predicates such that an example of the first is in the name of a thing.

        An example has MIN_NAME_CHARS, since a code of few letters is in many names. The second
        predicate leads from the same instance to the thing. Predicates for labels have no examples
        here. One query is sent.
        """
        pairs = []
        for group in self.groups:
            for prop in group.properties:
                for values in prop.values:
                    is_text = values.is_literal and values.is_text_or_iri
                    if is_text and prop.predicate not in self.queries.kg.vocabulary.labels:
                        for example in values.examples:
                            if len(example) >= MIN_NAME_CHARS and example.isprintable():
                                pairs.append((prop.predicate, example))
        if not pairs:
            return set()
        listed = values_table("?p ?text", pairs)
        pattern = f"{listed} ?v ?p ?text . ?v ?q ?thing . {self._agree}"
        rows = self.queries.select(f"SELECT DISTINCT ?p ?q WHERE {{ {pattern} }}", 2)
        return set(rows)

    def _count_agreeing(self, class_iri: URIRef, text: URIRef, link: URIRef) -> str:
        """Return the query for how many instances of a group have both predicates, and agree."""
        [classes] = [group.iris for group in self.groups if group.top_class.iri == class_iri]
        of_class = f"{values_clause('?k', classes)} ?v ({self.queries.types}) ?k"
        both = f"?v {n3(text)} ?text . ?v {n3(link)} ?thing . {of_class}"
        agreeing = f"OPTIONAL {{ {self._agree} }} BIND(IF(BOUND(?name), ?v, ?none) AS ?same)"
        keys = f"({n3(class_iri)} AS ?c) ({n3(text)} AS ?p) ({n3(link)} AS ?q)"
        numbers = "(COUNT(DISTINCT ?v) AS ?n) (COUNT(DISTINCT ?same) AS ?m)"
        return f"SELECT {keys} {numbers} WHERE {{ {both} {agreeing} }}"
