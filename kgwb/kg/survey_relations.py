"""What a survey says about several predicates or classes together, none of it counted twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product

from rdflib import Literal, URIRef

from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import n3, union_clause, values_clause
from kgwb.kg.survey_groups import ClassGroup
from kgwb.kg.survey_queries import DISTINCT_VERTICES, SurveyQueries, values_of_pairs
from kgwb.kg.survey_records import PredicateTwin, PropertySurvey

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

    def __init__(
        self, queries: SurveyQueries, types: str, labels: str, groups: Sequence[ClassGroup]
    ) -> None:
        """``types`` and ``labels`` are property paths; label predicates are no twins of others."""
        self.queries = queries
        self.types = types
        self.labels = labels
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
            _, first, second = key
            counts.append((NO_CLASS, first, second, f"?a {n3(first)} ?b . ?b {n3(second)} ?a"))
        for key in self._choose(text_twins):
            counts.append((*key, self._pattern_of_texts(key)))
        for key in self._choose(value_twins):
            rare, other = sorted(key[1:], key=lambda predicate: self.triples[predicate])
            pattern = f"?v {n3(rare)} ?o . ?v {n3(other)} ?o {self._of_class(key[0])}"
            counts.append((*key, pattern))

        inverses = []
        twins = []
        for class_iri, first, second, number in self._count(counts):
            if class_iri == NO_CLASS:
                if number:
                    inverses.append((first, second, number))
                continue
            key = (class_iri, first, second)
            as_text = key in text_twins
            share = MIN_TWIN_SHARE if as_text else MIN_SAME_VALUE_SHARE
            if number > 1 and number >= rarer[key] * share:
                twins.append(PredicateTwin(class_iri, first, second, number, as_text))
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
        routes: dict[tuple[str | None, str | None], dict[URIRef, int]] = defaultdict(dict)
        for group in self.groups:
            for prop in group.properties:
                for values in prop.values:
                    if values.sort == "class" and values.of in group_of:
                        route = (group.top_class.iri, group_of[values.of])
                        routes[route][prop.predicate] = prop.triples
        possible = {}
        for (source, target), there in list(routes.items()):
            back = routes.get((target, source), {})
            for first, second in product(there, back):
                if first < second:
                    possible[NO_CLASS, first, second] = min(there[first], back[second])
        return possible

    def _find_possible_twins(self) -> tuple[dict[TwinKey, int], dict[TwinKey, int]]:
        """Return pairs of predicates that may be twins: by the name of a thing, and by the value.

        With each comes how many instances the rarer has. A text must have an example that is the
        name of a thing.
        """
        not_compared = {predicate.strip("<>") for predicate in self.labels.split("|")}
        names = _find_names_among_examples(self.queries, self.labels, self.groups)
        by_text: dict[TwinKey, int] = {}
        by_value: dict[TwinKey, int] = {}
        for group in self.groups:
            compared = [p for p in group.properties if str(p.predicate) not in not_compared]
            for first, second in permutations(compared, 2):
                key = (URIRef(str(group.top_class.iri)), first.predicate, second.predicate)
                rarer = min(first.things, second.things)
                if _leads_to_things(second) and not names.isdisjoint(_text_examples(first)):
                    by_text[key] = rarer
                elif first.predicate < second.predicate and _share_a_sort(first, second):
                    by_value[key] = rarer
        return by_text, by_value

    def _choose(self, possible: Mapping[TwinKey, int]) -> list[TwinKey]:
        """Return the pairs that can be compared at little cost, those of rare predicates first.

        They are at most MAX_COMPARED. Both have two triples or more; the triples of the rarer
        predicates are MAX_COMPARED_TRIPLES in all at most.
        """
        costs = {key: min(self.triples[key[1]], self.triples[key[2]]) for key in possible}
        chosen: list[TwinKey] = []
        total = 0
        for key in sorted(possible, key=lambda key: (costs[key], key)):
            total += costs[key]
            if len(chosen) == MAX_COMPARED or total > MAX_COMPARED_TRIPLES:
                break
            if possible[key] > 1:
                chosen.append(key)
        return chosen

    def _of_class(self, class_iri: URIRef) -> str:
        """Return a filter for the instances of a group, by its top class."""
        classes: list[URIRef] = []
        for group in self.groups:
            if group.top_class.iri == class_iri:
                classes += [URIRef(member.iri) for member in group.members if member.iri]
        return f"FILTER EXISTS {{ {values_clause('?m', classes)} ?v ({self.types}) ?m }}"

    def _pattern_of_texts(self, key: TwinKey) -> str:
        """Return a pattern for instances whose text is the name of the thing."""
        class_iri, text, twin = key
        return (
            f"?v {n3(text)} ?text . ?v {n3(twin)} ?thing . ?thing ({self.labels}) ?name"
            f" FILTER(isLiteral(?text) && STR(?name) = STR(?text)) {self._of_class(class_iri)}"
        )

    def _count(
        self, counts: Sequence[tuple[URIRef, URIRef, URIRef, str]]
    ) -> Iterator[tuple[URIRef, URIRef, URIRef, int]]:
        """Yield a class, two predicates, and how many solutions their pattern has, in one query.

        Of a class, distinct instances are counted. Each pattern is a query of its own within, since
        constants are what engines are fast with.
        """
        parts = []
        for class_iri, first, second, where in counts:
            counted = "*" if class_iri == NO_CLASS else DISTINCT_VERTICES
            keys = f"({n3(class_iri)} AS ?c) ({n3(first)} AS ?p) ({n3(second)} AS ?q)"
            parts.append(f"SELECT {keys} (COUNT({counted}) AS ?n) WHERE {{ {where} }}")
        if not parts:
            return
        query = f"SELECT ?c ?p ?q ?n WHERE {{ {union_clause(parts)} }}"
        for class_iri, first, second, number in self.queries.select(query, 3):
            yield class_iri, first, second, parse_count(number)


def _find_names_among_examples(
    queries: SurveyQueries, labels: str, groups: Iterable[ClassGroup]
) -> set[str]:
    """Return those of the texts among the examples that are the name of a thing, in one query."""
    texts: set[str] = set()
    for group in groups:
        for prop in group.properties:
            texts.update(_text_examples(prop))
    if not texts:
        return set()
    literals = []
    for text in sorted(texts):
        literals.append(Literal(text))
        literals += [Literal(text, lang=tag) for tag in queries.kg.vocabulary.languages if tag]
    listed = values_clause("?name", literals)
    rows = queries.select(f"SELECT DISTINCT ?name WHERE {{ {listed} ?thing ({labels}) ?name }}")
    return {str(name) for (name,) in rows}


def _text_examples(prop: PropertySurvey) -> Iterator[str]:
    """Yield the examples of a predicate's values that are texts."""
    for values in prop.values:
        if values.sort == "string" or "@" in values.sort:
            yield from map(str, values.examples)


def _leads_to_things(prop: PropertySurvey) -> bool:
    """Return whether values of a predicate are IRIs, and do not only hold structure."""
    return not prop.inner and any(values.sort in ("class", "IRI") for values in prop.values)


def _share_a_sort(first: PropertySurvey, second: PropertySurvey) -> bool:
    """Return whether two predicates lead to things of one class, or to things without a class."""
    sorts = {(values.sort, values.of) for values in first.values if not values.is_literal}
    return any((values.sort, values.of) in sorts for values in second.values)


# Classes that have instances in common


def count_unions(
    queries: SurveyQueries, types: str, groups: Iterable[ClassGroup]
) -> tuple[tuple[URIRef, URIRef, int, int], ...]:
    """Return how often groups of classes use each predicate, each instance counted once.

    An entry has the top class of the group, the predicate, the instances that have it, and their
    triples. Only groups that need it are counted, see ``ClassGroup.is_disjoint``, in one query.
    """
    pairs = list(_pairs_of(group for group in groups if not group.is_disjoint))
    if not pairs:
        return ()
    pattern = (
        f"{{ SELECT DISTINCT ?v ?c WHERE {{ {values_of_pairs('?m ?c', pairs)} ?v ({types}) ?m }} }}"
        " ?v ?p ?o"
    )
    numbers = "(COUNT(DISTINCT ?v) AS ?things) (COUNT(*) AS ?n)"
    rows = queries.select_grouped("?c ?p", numbers, pattern)
    counted = []
    for class_iri, predicate, things, triples in rows:
        counted.append((class_iri, predicate, parse_count(things), parse_count(triples)))
    return tuple(sorted(counted))


def count_incoming(
    queries: SurveyQueries, types: str, groups: Sequence[ClassGroup]
) -> tuple[tuple[URIRef, URIRef, URIRef, int], ...]:
    """Return the triples between groups, each once, if members of one have instances in common.

    They are by the top class of the group that they come from, the predicate, and the top class of
    the group that they lead to. One of both is not disjoint. One query is sent, or none.
    """
    counted_twice = {group.top_class.iri for group in groups if not group.is_disjoint}
    if not counted_twice:
        return ()
    sources = list(_pairs_of(groups))
    targets = sources
    pattern = (
        f"{{ SELECT DISTINCT ?c ?p ?d ?v ?o WHERE {{ {values_of_pairs('?n ?d', targets)} ?o ({types}) ?n ."
        f" ?v ?p ?o . ?v ({types}) ?m . {values_of_pairs('?m ?c', sources)} }} }}"
    )
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
