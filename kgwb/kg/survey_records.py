"""What a survey of a graph found: its classes, their predicates, and the values of these.

Classes that are described alike form one group each, so that a survey is short enough to read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rdflib import XSD, URIRef

from kgwb import disk
from kgwb.kg.base import SCHEMA_NAMESPACES, Vocabulary
from kgwb.records import MAX_SUMMARY_PARTS, NO_NAMES, Record, frozen
from kgwb.terms import DisplayNames, Iri, Term, format_term, name_from_iri
from kgwb.text import first_items, list_first, single_line

LANGUAGE_NAMES: Mapping[str, str] = disk.read_table("kg/names.toml")["languages"]
"""English names of languages by their tag."""
MAX_SUMMARY_CLASSES = 12
"""Classes in the text of a survey: the largest."""
MAX_SUMMARY_PREDICATES = 5
"""Predicates on the line of a class."""
MAX_LISTED_VALUES = 12
"""If a predicate of a class has at most so many distinct values, all are in the survey."""
MAX_NAME_CHARS = 50
MAX_CLASS_NAME_CHARS = 22


NUMERIC_DATATYPES = frozenset(
    XSD[name] for name in ("decimal", "double", "float", "integer", "int", "long")
)
SORTS_WITHOUT_DATATYPE = ("class", "subclass", "IRI", "node")
"""The sorts of values that are not literals. "subclass" stands for several classes in a text."""


@frozen
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


@frozen
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
    bare: int = 0
    """Triples whose value is an IRI that the graph says nothing about: no triple begins with it."""

    def __str__(self) -> str:
        return f"{name_from_iri(self.predicate)} {self.things}"


@frozen
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
        return tuple(prop.predicate for prop in self.properties)


def iris_in_properties(properties: Iterable[PropertySurvey]) -> Iterator[URIRef]:
    """Yield every IRI in the surveys of predicates; one may come several times.

    For each predicate, and each of its inner ones, these are the predicate itself, the classes and
    datatypes of its values, and the examples that are IRIs.
    """
    for surveyed in properties:
        for part in (surveyed, *surveyed.inner):
            yield part.predicate
            for values in part.values:
                for term in (values.of, *values.examples):
                    if isinstance(term, URIRef):
                        yield term


def by_frequency(prop: PropertySurvey) -> tuple[int, URIRef]:
    """Return a sort key by which the predicates that the most instances have come first."""
    return -prop.things, prop.predicate


@frozen
class TextOfLink(Record):
    """A predicate whose texts stand for the things that another predicate leads to.

    The two say the same about instances of a class: one has a text, which is the name of the thing
    or a part of it, the other has the thing.
    """

    of: Iri
    """The class."""
    text: Iri
    """The predicate with the texts."""
    link: Iri
    """The predicate that leads to the things."""
    both: int
    """Instances that have both."""
    same: int
    """Those of them of which the name of a thing contains a text. Of the others, both differ."""

    def __str__(self) -> str:
        return f"{name_from_iri(self.text)} and {name_from_iri(self.link)}: {self.same}"

    @property
    def balance(self) -> int:
        """How many instances agree, less those that do not."""
        return 2 * self.same - self.both


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
    """How many things have a label in each language; "" is no language. Labels in a sample."""
    unused: tuple[Iri, ...] = ()
    """Predicates, then classes, that are declared and never used."""
    undescribed: tuple[Iri, ...] = ()
    """Predicates with triples that no class has here: of classes, or of nodes within nodes."""
    both_ways: tuple[tuple[Iri, int, int], ...] = ()
    """Predicates within one class: their triples, and how many are also asserted in reverse."""
    notes: tuple[tuple[Iri, str], ...] = ()
    """The graph's own descriptions of predicates and classes."""
    names: tuple[tuple[Iri, str], ...] = ()
    """Display names of the IRIs in the survey."""
    texts_of_links: tuple[TextOfLink, ...] = ()
    """Predicates with the names of what another one leads to. A text has one entry for each class."""
    factors: tuple[tuple[Iri, Iri, Term], ...] = ()
    """The numbers of things that nodes have as their unit: the thing, the predicate, the number.

    Only of classes with few instances, each of which has one number.
    """
    overlapping: tuple[tuple[Iri, tuple[PropertySurvey, ...]], ...] = ()
    """Superclasses with the predicates of all their instances, those of their subclasses included.

    Only those of which an instance has several classes: to add up the subclasses would count it
    more than once.
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
        replacements = {surveyed.iri: surveyed for surveyed in more.classes}
        classes = [replacements.get(surveyed.iri, surveyed) for surveyed in self.classes]
        names = {*self.names, *more.names}
        lacks = dict([*self.lacks, *more.lacks])
        return replace(
            self,
            classes=tuple(classes),
            names=tuple(sorted(names)),
            lacks=tuple(lacks.items()),
        )

    def predicates_with_name_values(self, excluded: Sequence[URIRef]) -> tuple[URIRef, ...]:
        """Return the predicates whose values a name in a question may mean, sorted.

        A predicate counts if it, or one of its inner predicates, has texts or IRIs without a class
        as values. Those in ``excluded`` are left out. Empty for the survey of a sample, which does
        not show all values.
        """
        if self.sampled:
            return ()
        predicates = set()
        for surveyed in self.classes:
            for prop in surveyed.properties:
                for used in (prop, *prop.inner):
                    if any(values.is_text_or_iri for values in used.values):
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
            percentage = format_percent(self.things - self.unlabelled, self.things)
            yield f"{percentage} of the things have a label"
        for language, number in self.languages:
            yield f"{language_name(language)} {number:,}"

    def lack_texts(self) -> Iterator[str]:
        """Yield what the survey lacks, with the reason: "the number of things (took too long)"."""
        for part, reason in self.lacks:
            yield f"{part} ({reason})"

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return a text of several lines: the numbers, the largest classes, and the labels.

        A class has its number of instances and its predicates. At most MAX_SUMMARY_CLASSES classes
        with instances are shown, whatever ``limit`` is, and a line says how many more there are.
        The last line names what the survey lacks, if it lacks anything. ``names`` are display names
        by IRI, besides the survey's own.
        """
        known_names = {**self.fallback_names(), **names}
        counted = []
        for noun, number in self.counts().items():
            if number is not None:
                counted.append(f"{number:,} {noun}")
        counts = ", ".join(counted)
        if self.sampled:
            counts += " (classes and predicates of a sample)"
        classes = [self._class_line(each, known_names) for each in self.classes if each.total]
        lines = [counts, *first_items(classes, MAX_SUMMARY_CLASSES)]
        label_texts = ", ".join(self.label_texts())
        lines.append(single_line(label_texts))
        if self.lacks:
            lines.append(f"not surveyed: {', '.join(self.lack_texts())}")
        return "\n".join(lines)

    def _class_line(self, surveyed: ClassSurvey, names: DisplayNames) -> str:
        """Return a line with the name and the number of instances of a class, and its predicates.

        Each predicate has the share of the instances that have it. At most MAX_SUMMARY_PREDICATES
        are shown, then how many more; labels, descriptions and noise are left out.
        """
        excluded = Vocabulary().excluded_predicates
        shares = []
        for prop in surveyed.properties:
            if prop.predicate not in excluded:
                name = shorten_name(format_term(prop.predicate, names))
                shares.append(f"{name} {format_percent(prop.things, surveyed.size)}")
        class_name = single_line(shorten_name(surveyed.name, MAX_CLASS_NAME_CHARS))
        uses = single_line(list_first(shares, MAX_SUMMARY_PREDICATES))
        return f"{class_name:<24}{surveyed.total:>9,}  {uses}"


def format_percent(number: int, total: int) -> str:
    """Return a share as a percentage: "100%" only for all, "0%" only for zero, else "<1%" to "99%"."""
    if number and number * 100 < total:
        return "<1%"
    if number >= total:
        return "100%"
    percentage = round(number / total * 100)
    return f"{min(99, percentage)}%"


def language_name(language: str) -> str:
    """Return the English name of a language tag; the tag as Turtle writes it, "@no", if it has none here."""
    return LANGUAGE_NAMES.get(language, f"@{shorten_name(language)}")


def shorten_name(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return a text of at most ``limit`` characters; "…" stands for what was cut off."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1]}…"


MIN_SHARED_PREDICATES = 0.6
"""The share of predicates that subclasses must have in common to be one group."""
MAX_EXAMPLES = 3
"""Examples of values that are not all known."""


@frozen
class ClassGroup:
    """A class, or a superclass with subclasses that are described alike."""

    top_class: ClassSurvey
    members: tuple[ClassSurvey, ...]
    """The classes whose instances are described. Empty if all are described in other groups."""
    properties: tuple[PropertySurvey, ...]
    """Their predicates, merged; those that the most instances have come first."""
    below: tuple[ClassSurvey, ...] = ()
    """All subclasses of the top class that have instances, at any distance."""

    @property
    def is_single(self) -> bool:
        """Whether the subclasses of the top class, if any, are described in other groups."""
        return all(member is self.top_class for member in self.members)

    @property
    def size(self) -> int:
        """How many instances the group stands for: those that its predicates are counted over.

        Of a class alone these are its own instances, without those of its subclasses; of a class
        without any of its own, those of its subclasses.
        """
        if self.members and self.is_single:
            return self.top_class.size
        return self.top_class.total

    @property
    def classes(self) -> tuple[ClassSurvey, ...]:
        """The classes that the group describes: the top class, then its subclasses."""
        if self.is_single:
            return (self.top_class,)
        return (self.top_class, *self.below)

    @property
    def iris(self) -> list[URIRef]:
        """The members, without one that stands for the things without a class."""
        return [URIRef(member.iri) for member in self.members if member.iri]


def group_classes(survey: Survey, *, keeps_uncounted: bool = False) -> tuple[ClassGroup, ...]:
    """Return the classes of a survey in groups, the group with the most instances first.

    A superclass forms one group with all its subclasses if these have similar predicates and their
    numbers can be put together; else a group of its own. If they cannot, since an instance has
    several of the classes, ``keeps_uncounted`` makes it a group without predicates. Classes without
    superclasses are looked at first, the largest first; a class is a member of the first group that
    takes it. Classes of a schema and classes without instances are left out.
    """
    subclasses: dict[URIRef, list[ClassSurvey]] = defaultdict(list)
    for surveyed in survey.classes:
        for parent in surveyed.parents:
            subclasses[parent].append(surveyed)
    overlapping: dict[URIRef | None, tuple[PropertySurvey, ...]] = dict(survey.overlapping)
    grouped: set[URIRef | None] = set()
    groups = []
    for surveyed in sorted(survey.classes, key=lambda each: (bool(each.parents), -each.total)):
        is_schema = str(surveyed.iri).startswith(SCHEMA_NAMESPACES)
        if is_schema or not surveyed.total or surveyed.iri in grouped:
            continue
        below = _find_subclasses(surveyed, subclasses)
        members = [each for each in (surveyed, *below) if each.size and each.iri not in grouped]
        sizes = sum(member.size for member in members)
        is_countable = surveyed.total in (surveyed.size, sizes) or surveyed.iri in overlapping
        properties = surveyed.properties
        if not _are_similar(members) or not (is_countable or keeps_uncounted):
            members = [member for member in members if member is surveyed]
        elif not is_countable:
            properties = ()
        elif surveyed.size < surveyed.total:
            properties = _merge_properties(members, overlapping.get(surveyed.iri, ()))
        grouped.update(member.iri for member in members)
        groups.append(ClassGroup(surveyed, tuple(members), properties, tuple(below)))
    groups.sort(key=lambda group: -group.size)
    return tuple(groups)


def _find_subclasses(
    top_class: ClassSurvey, subclasses: Mapping[URIRef, Sequence[ClassSurvey]]
) -> list[ClassSurvey]:
    """Return the subclasses of a class with instances, at any depth, each once, without itself.

    A class comes before its subclasses.
    """
    found: dict[URIRef | None, ClassSurvey] = {}
    waiting = [top_class]
    while waiting:
        surveyed = waiting.pop()
        if surveyed.iri not in found:
            found[surveyed.iri] = surveyed
            if surveyed.iri:
                waiting += reversed(subclasses.get(surveyed.iri, ()))
    return [surveyed for surveyed in found.values() if surveyed.total and surveyed is not top_class]


def _are_similar(classes: Sequence[ClassSurvey]) -> bool:
    """Return whether classes have mostly the same predicates.

    A predicate is usual if more than half of the classes have it. A class's share is the number of
    its usual predicates, divided by the number of all its predicates or of all usual ones,
    whichever is smaller. The mean of the shares must be at least MIN_SHARED_PREDICATES.
    """
    counts: Counter[URIRef] = Counter()
    for surveyed in classes:
        counts.update(surveyed.predicates)
    usual = {predicate for predicate, number in counts.items() if number > len(classes) / 2}
    sum_of_shares = 0.0
    for surveyed in classes:
        shared = usual.intersection(surveyed.predicates)
        possible = min(len(surveyed.properties), len(usual))
        sum_of_shares += len(shared) / max(1, possible)
    return sum_of_shares >= MIN_SHARED_PREDICATES * len(classes)


def _merge_properties(
    classes: Sequence[ClassSurvey], counted: Sequence[PropertySurvey]
) -> tuple[PropertySurvey, ...]:
    """Return the predicates of classes, those that the most instances have first.

    Those that were ``counted`` for all classes have these numbers and values; the numbers of others
    are added up. The inner predicates are those of the class with the most instances that have any.
    """
    by_predicate: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
    for surveyed in classes:
        for prop in surveyed.properties:
            by_predicate[prop.predicate].append(prop)
    merged = {predicate: _merge_property(same) for predicate, same in by_predicate.items()}
    for prop in counted:
        inner = merged[prop.predicate].inner
        merged[prop.predicate] = replace(prop, inner=inner)
    return tuple(sorted(merged.values(), key=by_frequency))


def _merge_property(same: Sequence[PropertySurvey]) -> PropertySurvey:
    """Return one predicate of several classes, with the numbers and the values of all.

    The inner predicates are those of the class with the most instances that have any.
    """
    values: list[ValueSurvey] = []
    for prop in same:
        values += prop.values
    with_inner = [prop for prop in same if prop.inner]
    largest = max(with_inner, key=lambda prop: prop.things, default=same[0])
    return replace(
        largest,
        things=sum(prop.things for prop in same),
        triples=sum(prop.triples for prop in same),
        values=merge_values(values),
        bare=sum(prop.bare for prop in same),
    )


def merge_values(values: Sequence[ValueSurvey]) -> tuple[ValueSurvey, ...]:
    """Merge values of one sort and one class or datatype into one entry, the most frequent first.

    Frequency is the number of triples, which are added; equals keep their order.
    """
    by_sort: dict[tuple[str, URIRef | None], list[ValueSurvey]] = defaultdict(list)
    for of_sort in values:
        by_sort[of_sort.sort, of_sort.of].append(of_sort)
    merged = list(map(_merge_sort, by_sort.values()))
    merged.sort(key=lambda of_sort: -of_sort.triples)
    return tuple(merged)


def _merge_sort(same: Sequence[ValueSurvey]) -> ValueSurvey:
    """Merge values of one sort and one class or datatype, surveyed at several classes, into one.

    The result is whole, with all values as examples, if all entries are whole and have at most
    MAX_LISTED_VALUES values together. Otherwise it has MAX_EXAMPLES examples, the least and the
    greatest first, and how many distinct values there are is not known: at least the largest number
    of an entry, or that of the different examples if it is larger. A single entry stays as it is.
    """
    if len(same) == 1:
        return same[0]
    distinct_examples: dict[Term, None] = {}
    for values in same:
        distinct_examples |= dict.fromkeys(values.examples)
    examples = tuple(distinct_examples)
    distinct = max(len(examples), *(values.distinct for values in same))
    is_whole = len(examples) <= MAX_LISTED_VALUES and all(values.whole for values in same)
    if examples and not is_whole:
        chosen = dict.fromkeys([min(examples), max(examples), *examples])
        examples = tuple(chosen)[:MAX_EXAMPLES]
    return replace(
        same[0],
        triples=sum(values.triples for values in same),
        distinct=distinct,
        examples=examples,
        whole=is_whole,
        at_least=not is_whole,
    )
