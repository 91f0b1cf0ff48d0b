"""Classes that are described alike, as one group each: so a survey becomes short enough to read."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rdflib import URIRef

from kgwb.kg.base import SCHEMA_NAMESPACES
from kgwb.kg.survey_properties import MAX_LISTED_VALUES
from kgwb.kg.survey_records import (
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
    by_frequency,
)
from kgwb.terms import Term

MIN_SHARED_PREDICATES = 0.6
"""The share of predicates that subclasses must have in common to be one group."""
MAX_EXAMPLES = 3
"""Examples of values that are not all known."""
NUMBER_PATTERN = re.compile(r"[-+]?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class ClassGroup:
    """A class, or a superclass with subclasses that are described alike."""

    top_class: ClassSurvey
    members: tuple[ClassSurvey, ...]
    """The classes of the group that have instances of their own."""
    properties: tuple[PropertySurvey, ...]
    """Their predicates, merged; those that the most instances have come first."""

    @property
    def is_single(self) -> bool:
        """Whether the group is one class alone. Its subclasses, if any, are in other groups."""
        return self.members == (self.top_class,)

    @property
    def size(self) -> int:
        """The number of instances that the predicates are counted over.

        An instance of several members counts once, except in a sample, where it is not known. Of a
        class alone these are its own instances, without those of its subclasses.
        """
        if self.is_single:
            return self.top_class.size
        return self.top_class.total or self._added_sizes

    @property
    def is_disjoint(self) -> bool:
        """Whether no instance is counted twice when the numbers of the members are added up."""
        return self.is_single or self.size == self._added_sizes

    @property
    def _added_sizes(self) -> int:
        """The sum of the members' instances, in which an instance of several counts for each."""
        return sum(member.size for member in self.members)

    @property
    def names(self) -> list[str]:
        """The distinct names of the top class and of the members."""
        names = {self.top_class.name: None}
        for member in self.members:
            names[member.name] = None
        return list(names)


def group_classes(survey: Survey) -> tuple[ClassGroup, ...]:
    """Return the classes of a survey in groups, the group with the most instances first.

    A superclass forms one group with all its subclasses if these have similar predicates, and else
    a group of its own. Classes without superclasses are looked at first, the largest first; a class
    is a member of the first group that takes it. Classes of a schema and classes without instances
    are left out. The predicates of a group's members are merged.
    """
    subclasses: dict[URIRef, list[ClassSurvey]] = defaultdict(list)
    for surveyed in survey.classes:
        for parent in surveyed.parents:
            subclasses[parent].append(surveyed)
    counted_once = {}
    for class_iri, predicate, things, triples in survey.unions:
        counted_once[class_iri, predicate] = (things, triples)

    grouped: set[URIRef | None] = set()
    groups = []

    def rank(surveyed: ClassSurvey) -> tuple[bool, int]:
        """Return the sort key of a class: without superclasses first, then by largest total."""
        has_parents = bool(surveyed.parents)
        return has_parents, -surveyed.total

    for surveyed in sorted(survey.classes, key=rank):
        is_schema = str(surveyed.iri).startswith(SCHEMA_NAMESPACES)
        if is_schema or not surveyed.total or surveyed.iri in grouped:
            continue
        members = []
        for member in _with_subclasses(surveyed, subclasses):
            if member.size and member.iri not in grouped:
                members.append(member)
        if len(members) > 1 and not _are_similar(members):
            members = [member for member in members if member is surveyed]
        if members:
            grouped.update(member.iri for member in members)
            properties = _merge_properties(members)
            if surveyed.iri and len(members) > 1:
                properties = _recount(properties, surveyed.iri, counted_once)
            group = ClassGroup(surveyed, tuple(members), properties)
            groups.append(group)
    groups.sort(key=lambda group: -group.size)
    return tuple(groups)


def _with_subclasses(
    top_class: ClassSurvey, subclasses: Mapping[URIRef, Sequence[ClassSurvey]]
) -> list[ClassSurvey]:
    """Return a class and its subclasses at any depth, each once, a class before its subclasses."""
    found: dict[ClassSurvey, None] = {}
    waiting = [top_class]
    while waiting:
        surveyed = waiting.pop()
        if surveyed not in found:
            found[surveyed] = None
            if surveyed.iri:
                waiting += reversed(subclasses.get(surveyed.iri, ()))
    return list(found)


def _are_similar(classes: Sequence[ClassSurvey]) -> bool:
    """Return whether classes have mostly the same predicates.

    A predicate is usual if more than half of the classes have it. A class's share is the number of
    its usual predicates, divided by the number of all its predicates or of all usual ones,
    whichever is smaller. The mean of the shares must be at least MIN_SHARED_PREDICATES.
    """
    predicate_sets = []
    counts: Counter[URIRef] = Counter()
    for surveyed in classes:
        predicates = set(surveyed.predicates)
        predicate_sets.append(predicates)
        counts.update(predicates)

    half = len(classes) / 2
    usual = {predicate for predicate, number in counts.items() if number > half}
    sum_of_shares = 0.0
    for predicates in predicate_sets:
        shared = len(predicates & usual)
        possible = min(len(predicates), len(usual))
        sum_of_shares += shared / max(1, possible)
    mean = sum_of_shares / len(classes)
    return mean >= MIN_SHARED_PREDICATES


def _merge_properties(classes: Sequence[ClassSurvey]) -> tuple[PropertySurvey, ...]:
    """Return the predicates of classes, each once, those that the most instances have first.

    The numbers of a predicate at several classes are added, and its values are merged. Its inner
    predicates are those at the class with the most instances that have any.
    """
    if len(classes) == 1:
        return classes[0].properties
    by_predicate: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
    for surveyed in classes:
        for prop in surveyed.properties:
            by_predicate[prop.predicate].append(prop)
    merged = map(_merge_property, by_predicate.values())
    return tuple(sorted(merged, key=by_frequency))


def _recount(
    properties: Sequence[PropertySurvey],
    top_class: URIRef,
    counted_once: Mapping[tuple[URIRef, URIRef], tuple[int, int]],
) -> tuple[PropertySurvey, ...]:
    """Return predicates of a group with the numbers in which no instance counts twice, if known."""
    recounted = []
    for prop in properties:
        added_up = (prop.things, prop.triples)
        things, triples = counted_once.get((top_class, prop.predicate), added_up)
        counted = replace(prop, things=things, triples=triples)
        recounted.append(counted)
    recounted.sort(key=by_frequency)
    return tuple(recounted)


def _merge_property(same: Sequence[PropertySurvey]) -> PropertySurvey:
    """Return one predicate of several classes.

    Numbers are added, but the number of values without a label is the largest one. The inner
    predicates are those of the class with the most instances that have any.
    """
    things = 0
    triples = 0
    values: list[ValueSurvey] = []
    for prop in same:
        things += prop.things
        triples += prop.triples
        values += prop.values
    with_inner = [prop for prop in same if prop.inner]
    largest = max(with_inner, key=lambda prop: prop.things, default=same[0])
    return PropertySurvey(
        predicate=same[0].predicate,
        things=things,
        triples=triples,
        values=merge_values(values),
        inner=largest.inner,
        unnamed=max(prop.unnamed for prop in same),
    )


def merge_values(values: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
    """Merge values of one sort and one class or datatype into one entry, the most frequent first.

    Frequency is the number of triples, which are added; equals keep their order. How many distinct
    values a merged entry has is not known: it is the largest number of its parts, or that of their
    different examples if it is larger.
    """
    by_sort: dict[tuple[str, URIRef | None], list[ValueSurvey]] = defaultdict(list)
    for of_sort in values:
        key = (of_sort.sort, of_sort.of)
        by_sort[key].append(of_sort)
    merged = []
    for same in by_sort.values():
        merged.append(_merge_sort(same))
    merged.sort(key=lambda of_sort: -of_sort.triples)
    return tuple(merged)


def _merge_sort(same: Sequence[ValueSurvey]) -> ValueSurvey:
    """Merge values of one sort and one class or datatype, surveyed at several classes, into one.

    Triples are added. The number of distinct values is the largest of all entries, or that of the
    different examples if it is larger. The result is whole, with all values as examples, if all
    entries are whole and have at most MAX_LISTED_VALUES values together. Otherwise it has
    MAX_EXAMPLES examples.
    """
    triples = 0
    largest = 0
    distinct_examples: dict[Term, None] = {}
    for values in same:
        triples += values.triples
        largest = max(largest, values.distinct)
        distinct_examples |= dict.fromkeys(values.examples)
    examples = tuple(distinct_examples)
    distinct = max(largest, len(examples))
    are_few = len(examples) <= MAX_LISTED_VALUES
    are_all_whole = all(values.whole for values in same)
    is_whole = are_few and are_all_whole
    if not is_whole:
        examples = _choose_examples(examples)
    return replace(
        same[0],
        triples=triples,
        distinct=distinct,
        examples=examples,
        whole=is_whole,
        at_least=len(same) > 1 and not is_whole,
    )


def _choose_examples(values: Sequence[Term]) -> tuple[Term, ...]:
    """Return at most MAX_EXAMPLES values: the least, the greatest, and the first of the others.

    They are compared as numbers if all are numbers, else as texts.
    """
    are_numbers = all(NUMBER_PATTERN.fullmatch(str(value)) for value in values)

    def rank(value: Term) -> tuple[float, str]:
        """Return the key that values are sorted by: as numbers if all are, else as texts."""
        text = str(value)
        if are_numbers:
            return float(text), text
        return 0.0, text

    ranked = sorted(values, key=rank)
    least = ranked[:1]
    greatest = ranked[-1:]
    chosen = dict.fromkeys([*least, *greatest, *values])
    return tuple(chosen)[:MAX_EXAMPLES]
