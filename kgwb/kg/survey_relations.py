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
        label_predicates = self.labels.split("|")
        not_compared = {predicate.strip("<>") for predicate in label_predicates}
        names = _find_names_among_examples(self.queries, self.labels, self.groups)
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
        return f"FILTER EXISTS {{ {listed} ?v ({self.types}) ?m }}"

    def _pattern_of_inverses(self, key: TwinKey) -> str:
        """Return a pattern for triples of the first predicate that the second has in reverse."""
        _, first, second = key
        there = f"?a {n3(first)} ?b"
        back = f"?b {n3(second)} ?a"
        return f"{there} . {back}"

    def _pattern_of_texts(self, key: TwinKey) -> str:
        """Return a pattern for instances whose text is the name of the thing."""
        class_iri, text, twin = key
        triples = f"?v {n3(text)} ?text . ?v {n3(twin)} ?thing . ?thing ({self.labels}) ?name"
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
    languages = queries.kg.vocabulary.languages
    literals = []
    for text in sorted(texts):
        literals.append(Literal(text))
        for tag in languages:
            if tag:
                literals.append(Literal(text, lang=tag))
    listed = values_clause("?name", literals)
    query = f"SELECT DISTINCT ?name WHERE {{ {listed} ?thing ({labels}) ?name }}"
    rows = queries.select(query)
    return {str(name) for (name,) in rows}


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
    queries: SurveyQueries, types: str, groups: Iterable[ClassGroup]
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
    instances = f"SELECT DISTINCT ?v ?c WHERE {{ {members} ?v ({types}) ?m }}"
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
    queries: SurveyQueries, types: str, groups: Sequence[ClassGroup]
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
