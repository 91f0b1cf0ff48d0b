"""What a survey of a graph found: its classes, their predicates, and the values of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rdflib import XSD, URIRef

from kgwb.kg.base import Vocabulary
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
