"""What a survey of a graph found: its classes, their predicates, and the values of these.

Classes that are described alike form one group each, so that a survey is short enough to read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rdflib import XSD, URIRef

from kgwb.kg.base import SCHEMA_NAMESPACES, Vocabulary
from kgwb.records import MAX_SUMMARY_PARTS, NO_NAMES, Record
from kgwb.terms import DisplayNames, Iri, Term, format_term, name_from_iri
from kgwb.text import and_more, first_items, single_line

LANGUAGE_NAMES = {
    "": "no language",
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
"""English names of languages by their tag."""
MAX_SUMMARY_CLASSES = 12
"""Classes in the text of a survey: the largest."""
MAX_SUMMARY_PREDICATES = 5
"""Predicates, or subclasses, on the line of a class."""
MAX_LISTED_VALUES = 12
"""If a predicate of a class has at most so many distinct values, all are in the survey."""
MAX_NAME_CHARS = 50
MAX_CLASS_NAME_CHARS = 22


NUMERIC_DATATYPES = frozenset(
    XSD[name] for name in ("decimal", "double", "float", "integer", "int", "long")
)
SORTS_WITHOUT_DATATYPE = ("class", "IRI", "node")
"""The sorts of values that are not literals."""


@dataclass(frozen=True, slots=True)
class ValueSurvey(Record):
    """The values of a predicate that are of one sort: a class, a datatype or a language."""

    sort: str
    """ "class", "IRI" (without a class), "node" (a blank node), or the local part of the datatype.

    A text with a language is "text@en".
    """
    of: Iri | None
    """The class, or the datatype. None of IRIs and blank nodes without a class."""
    triples: int
    """Triples with such a value."""
    distinct: int
    """Distinct values."""
    examples: tuple[Term, ...]
    """At first the least and the greatest value, where not all are listed."""
    whole: bool = False
    """Whether the examples are all values."""
    at_least: bool = False
    """Whether there may be more distinct values, since those of several classes were put together."""

    def __str__(self) -> str:
        return f"{self.sort} {self.triples}"

    @property
    def is_literal(self) -> bool:
        """Whether the values are literals, and neither IRIs nor blank nodes."""
        return self.sort not in SORTS_WITHOUT_DATATYPE

    @property
    def is_text_or_iri(self) -> bool:
        """Whether a name in a question can be such a value: a text, or an IRI without a class."""
        return self.sort in ("string", "IRI") or "@" in self.sort


@dataclass(frozen=True, slots=True)
class PropertySurvey(Record):
    """A predicate as the instances of one class use it."""

    predicate: Iri
    things: int
    """Instances that have it."""
    triples: int
    values: tuple[ValueSurvey, ...] = ()
    """By their sort, the most frequent first."""
    inner: tuple[PropertySurvey, ...] = ()
    """The predicates of the nodes that it leads to, if these only hold structure.

    An example are nodes with an amount and its unit.
    """
    unnamed: int = 0
    """Distinct IRIs among its values that have no label, where some of them have no class."""

    def __str__(self) -> str:
        return f"{name_from_iri(self.predicate)} {self.things}"


@dataclass(frozen=True, slots=True)
class ClassSurvey(Record):
    """A class with the predicates that its instances use."""

    iri: Iri | None
    """None stands for the things without a class."""
    name: str
    size: int
    """Its own instances."""
    total: int
    """Its instances with those of its subclasses."""
    parents: tuple[Iri, ...] = ()
    """Its direct superclasses."""
    properties: tuple[PropertySurvey, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.total}"

    @property
    def predicates(self) -> tuple[Iri, ...]:
        """The predicates that its instances use."""
        predicates = []
        for prop in self.properties:
            predicates.append(prop.predicate)
        return tuple(predicates)


def by_frequency(prop: PropertySurvey) -> tuple[int, URIRef]:
    """Return a sort key by which the predicates that the most instances have come first."""
    return -prop.things, prop.predicate


@dataclass(frozen=True, slots=True)
class PredicateTwin(Record):
    """Two predicates by which instances of one class say the same."""

    of: Iri
    """The class."""
    predicate: Iri
    twin: Iri
    things: int
    """Instances for which both say the same."""
    as_text: bool = False
    """Whether ``predicate`` has as a text the name of the thing that ``twin`` leads to.

    Otherwise both have the same value.
    """

    def __str__(self) -> str:
        first = name_from_iri(self.predicate)
        second = name_from_iri(self.twin)
        return f"{first} and {second}: {self.things}"


@dataclass(frozen=True, slots=True, repr=False)
class Survey(Record):
    """A summary of a graph. A number is None if it was not counted."""

    triples: int | None
    things: int | None
    """Subjects of triples, without classes and predicates."""
    predicates: int | None
    classes: tuple[ClassSurvey, ...]
    """The largest first. Superclasses are among them, also without instances of their own."""
    unlabelled: int | None
    """Things without a label."""
    languages: tuple[tuple[str, int], ...]
    """How many things have a label in each language; "" is no language."""
    unused: tuple[Iri, ...] = ()
    """Predicates and classes that are declared and never used."""
    both_ways: tuple[tuple[Iri, int, int], ...] = ()
    """Predicates within one class: their triples, and how many are also asserted in reverse."""
    notes: tuple[tuple[Iri, str], ...] = ()
    """The graph's own descriptions of predicates and classes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Display names of the IRIs in the survey."""
    inverses: tuple[tuple[Iri, Iri, int], ...] = ()
    """Pairs of predicates of which one says the other way round what the other says.

    The number is that of the triples of the first that the second has the other way round.
    """
    twins: tuple[PredicateTwin, ...] = ()
    """Predicates by which instances of a class say the same."""
    factors: tuple[tuple[Iri, Iri, Term], ...] = ()
    """The numbers of things that nodes have as their unit: the thing, the predicate, the number.

    Only of classes with few instances, each of which has one number.
    """
    unions: tuple[tuple[Iri, Iri, int, int], ...] = ()
    """The predicates of a superclass with its subclasses, where some instances have several of them.

    An entry has the superclass, the predicate, the instances that have it, and their triples. Each
    instance counts once, which adding up the subclasses would not do.
    """
    incoming: tuple[tuple[Iri, Iri, Iri, int], ...] = ()
    """Triples between the instances of a superclass in ``unions`` and those of other classes, each once.

    An entry has the class that the triples come from, their predicate, the class that they lead to,
    and their number. The classes are the highest of their groups.
    """
    sampled: bool = False
    """Whether classes and predicates were estimated from a sample of their instances."""
    sample_limit: int = 0
    """How many instances of a class are in the sample at most. 0 if it is no sample."""
    lacks: tuple[tuple[str, str], ...] = ()
    """What was asked of the graph without a result, and why: it refused, or no time was left."""
    queries: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        number = self.counts()["classes"]
        if self.sampled or self.triples is None:
            return f"{number} classes in a sample"
        return f"{number} classes in {self.triples:,} triples"

    def __repr__(self) -> str:
        return self.summary()

    def fallback_names(self) -> dict[str, str]:
        return {str(iri): name for iri, name in self.names}

    def with_classes_of(self, more: Survey) -> Survey:
        """Return a copy of this survey whose classes are taken from ``more`` where it has them.

        The order of the classes stays. Classes that only ``more`` has are not added. The display
        names are those of both.
        """
        replacements = {}
        for surveyed in more.classes:
            replacements[surveyed.iri] = surveyed
        classes = []
        for surveyed in self.classes:
            replacement = replacements.get(surveyed.iri, surveyed)
            classes.append(replacement)
        names = {*self.names, *more.names}
        sorted_names = tuple(sorted(names))
        lacks = {**dict(self.lacks), **dict(more.lacks)}
        return replace(
            self,
            classes=tuple(classes),
            names=sorted_names,
            sample_limit=max(self.sample_limit, more.sample_limit),
            lacks=tuple(lacks.items()),
        )

    def predicates_with_name_values(self, excluded: Sequence[URIRef]) -> tuple[URIRef, ...]:
        """Return the predicates whose values a name in a question may mean, sorted.

        A predicate counts if it, or one of its inner predicates, has texts or IRIs without a label
        as values. Those in ``excluded`` are left out. Empty for the survey of a sample, which does
        not show all values.
        """
        if self.sampled:
            return ()
        predicates = set()
        for surveyed in self.classes:
            for prop in surveyed.properties:
                for used in (prop, *prop.inner):
                    has_names = any(values.is_text_or_iri for values in used.values)
                    if has_names or used.unnamed:
                        predicates.add(used.predicate)
        predicates.difference_update(excluded)
        return tuple(sorted(predicates))

    def counts(self) -> dict[str, int | None]:
        """Return the numbers of triples, things, classes and predicates, by these nouns.

        A number that is not known is None. The class of things without a class is not counted.
        """
        return {
            "triples": self.triples,
            "things": self.things,
            "classes": sum(surveyed.iri is not None for surveyed in self.classes),
            "predicates": self.predicates,
        }

    def label_texts(self) -> Iterator[str]:
        """Yield "98% of the things have a label", then "English 1,204" for each language.

        The first text is left out if the labels were not counted.
        """
        if self.unlabelled is not None and self.things:
            labelled = self.things - self.unlabelled
            percentage = format_percent(labelled, self.things)
            yield f"{percentage} of the things have a label"
        for language, number in self.languages:
            name = language_name(language)
            yield f"{name} {number:,}"

    def lack_texts(self) -> Iterator[str]:
        """Yield what the survey lacks, with the reason: "the number of things (took too long)"."""
        for part, reason in self.lacks:
            yield f"{part} ({reason})"

    def subclass_texts(self, surveyed: ClassSurvey) -> list[str]:
        """Return the direct subclasses of a class as texts with a number: "Film 1,204".

        The number includes the instances of their own subclasses. The order is that of the survey.
        """
        texts = []
        for subclass in self.classes:
            if surveyed.iri in subclass.parents:
                name = shorten_name(subclass.name)
                texts.append(f"{name} {subclass.total:,}")
        return texts

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return a text of several lines: the numbers, the largest classes, and the labels.

        A class has its number of instances and its predicates. At most MAX_SUMMARY_CLASSES classes
        with instances are shown, whatever ``limit`` is, and a line says how many more there are.
        The last line names what the survey lacks, if it lacks anything.
        ``names`` are display names by IRI, besides the survey's own.
        """
        known_names = {str(iri): name for iri, name in self.names}
        known_names |= names
        counts = []
        for noun, number in self.counts().items():
            if number is not None:
                counts.append(f"{number:,} {noun}")
        first_line = ", ".join(counts)
        if self.sampled:
            first_line += " (classes and predicates of a sample)"

        lines = [first_line]
        classes = [surveyed for surveyed in self.classes if surveyed.total]
        for surveyed in classes[:MAX_SUMMARY_CLASSES]:
            lines.append(self._class_line(surveyed, known_names))
        hidden = len(classes) - MAX_SUMMARY_CLASSES
        if hidden > 0:
            lines.append(and_more(hidden))
        labels = ", ".join(self.label_texts())
        lines.append(single_line(labels))
        if self.lacks:
            lines.append(f"not surveyed: {', '.join(self.lack_texts())}")
        return "\n".join(lines)

    def _class_line(self, surveyed: ClassSurvey, names: DisplayNames) -> str:
        """Return a line with the name and the number of instances of a class, and its predicates.

        Each predicate has the share of the instances that have it. At most MAX_SUMMARY_PREDICATES
        are shown, then how many more; labels, descriptions and noise are left out. If none is left,
        subclasses are shown instead.
        """
        excluded = Vocabulary().excluded_predicates
        shown = [prop for prop in surveyed.properties if prop.predicate not in excluded]
        shares = []
        for prop in shown:
            full_name = format_term(prop.predicate, names)
            name = shorten_name(full_name)
            share = format_percent(prop.things, surveyed.size)
            shares.append(f"{name} {share}")
        uses = first_items(shares, MAX_SUMMARY_PREDICATES)
        if not uses:
            uses = first_items(self.subclass_texts(surveyed), MAX_SUMMARY_PREDICATES)
        short_name = shorten_name(surveyed.name, MAX_CLASS_NAME_CHARS)
        class_name = single_line(short_name)
        listed = single_line(", ".join(uses))
        return f"{class_name:<24}{surveyed.total:>9,}  {listed}"


def format_percent(number: int, total: int) -> str:
    """Return a share as a percentage: "100%" only for all, "0%" only for zero, else "<1%" to "99%"."""
    if number and number * 100 < total:
        return "<1%"
    if number >= total:
        return "100%"
    percentage = round(number / total * 100)
    return f"{min(99, percentage)}%"


def language_name(language: str) -> str:
    """Return the English name of a language tag; the tag itself if it has none here."""
    return LANGUAGE_NAMES.get(language, shorten_name(language))


def shorten_name(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return a text of at most ``limit`` characters; "…" stands for what was cut off."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1]}…"


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
