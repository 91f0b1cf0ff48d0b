"""What a survey of a graph found: its classes, their predicates, and the values of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rdflib import URIRef

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


@dataclass(frozen=True, slots=True)
class ValueSurvey(Record):
    """The values of a predicate that are of one sort."""

    sort: str
    """ "class", "IRI" (without a class), "node" (a blank node), or the local name of the datatype.

    A datatype with a language tag is written as "langString@en".
    """
    of: Iri | None
    """The class, or the datatype."""
    triples: int
    distinct: int
    examples: tuple[Term, ...]
    """The first examples of numbers and dates are the least and the greatest value."""
    whole: bool = False
    """Whether the examples are all values."""

    def __str__(self) -> str:
        return f"{self.sort} {self.triples}"

    @property
    def is_text_or_iri(self) -> bool:
        """Whether a name in a question may be such a value: a text, or an IRI without a class."""
        return self.sort in ("string", "IRI") or "@" in self.sort


@dataclass(frozen=True, slots=True)
class PropertySurvey(Record):
    """A predicate as the instances of one class use it."""

    predicate: Iri
    things: int
    """Instances that have it."""
    triples: int
    values: tuple[ValueSurvey, ...] = ()
    inner: tuple[PropertySurvey, ...] = ()
    """The predicates of the nodes that it leads to, where these only hold structure."""
    unnamed: int = 0
    """Distinct IRIs among its values that have no label, where some of them have no class."""

    def __str__(self) -> str:
        return f"{name_from_iri(self.predicate)} {self.things}"


@dataclass(frozen=True, slots=True)
class ClassSurvey(Record):
    """A class with the predicates of its instances; without an IRI, the things without a class."""

    iri: Iri | None
    name: str
    size: int
    """Its own instances."""
    total: int
    """Its instances with those of its subclasses."""
    parents: tuple[Iri, ...] = ()
    properties: tuple[PropertySurvey, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.total}"


@dataclass(frozen=True, slots=True, repr=False)
class Survey(Record):
    """What a graph holds. A number is None if it was not counted."""

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
    sampled: bool = False
    """Whether classes and predicates were estimated from a sample of their instances."""
    queries: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        number = sum(surveyed.iri is not None for surveyed in self.classes)
        if self.sampled or self.triples is None:
            return f"{number} classes in a sample"
        return f"{number} classes in {self.triples:,} triples"

    def __repr__(self) -> str:
        return self.summary()

    def with_classes_of(self, more: Survey) -> Survey:
        """Return this survey with the classes that another survey of the graph looked at."""
        fresh = {surveyed.iri: surveyed for surveyed in more.classes}
        classes = tuple(fresh.get(surveyed.iri, surveyed) for surveyed in self.classes)
        return replace(self, classes=classes, names=tuple(sorted({*self.names, *more.names})))

    def predicates_with_name_values(self, excluded: Sequence[URIRef]) -> tuple[URIRef, ...]:
        """Return the predicates whose values a name in a question may be, without hidden ones.

        These have texts, or IRIs without a label, as values. A sample says nothing about that.
        """
        if self.sampled:
            return ()
        predicates = set()
        for surveyed in self.classes:
            for prop in surveyed.properties:
                for used in (prop, *prop.inner):
                    if used.unnamed or any(values.is_text_or_iri for values in used.values):
                        predicates.add(used.predicate)
        return tuple(sorted(predicates - set(excluded)))

    def counts(self) -> dict[str, int | None]:
        """Return the numbers of triples, things, classes and predicates by these nouns."""
        return {
            "triples": self.triples,
            "things": self.things,
            "classes": sum(surveyed.iri is not None for surveyed in self.classes),
            "predicates": self.predicates,
        }

    def label_texts(self) -> Iterator[str]:
        """Yield what is known of labels: "98% of the things have a label", "English 1,204"."""
        if self.unlabelled is not None and self.things:
            labelled = format_percent(self.things - self.unlabelled, self.things)
            yield f"{labelled} of the things have a label"
        for language, number in self.languages:
            yield f"{language_name(language)} {number:,}"

    def subclass_texts(self, surveyed: ClassSurvey) -> list[str]:
        """Return the direct subclasses of a class with their numbers of instances."""
        return [
            f"{shorten_name(subclass.name)} {subclass.total:,}"
            for subclass in self.classes
            if surveyed.iri and surveyed.iri in subclass.parents
        ]

    def summary(
        self, names: DisplayNames = NO_NAMES, *, limit: int | None = MAX_SUMMARY_PARTS
    ) -> str:
        """Return the numbers, the largest classes with their predicates, and the labels.

        There are at most SUMMARY_CLASSES classes, whatever ``limit`` is.
        """
        known_names = {str(iri): name for iri, name in self.names} | dict(names)
        counts = [f"{count:,} {noun}" for noun, count in self.counts().items() if count is not None]
        sample = " (classes and predicates of a sample)" if self.sampled else ""
        largest = [surveyed for surveyed in self.classes if surveyed.total]
        lines = [", ".join(counts) + sample]
        lines += [
            self._class_line(surveyed, known_names) for surveyed in largest[:MAX_SUMMARY_CLASSES]
        ]
        if len(largest) > MAX_SUMMARY_CLASSES:
            lines.append(and_more(len(largest) - MAX_SUMMARY_CLASSES))
        lines.append(single_line(", ".join(self.label_texts())))
        return "\n".join(lines)

    def _class_line(self, surveyed: ClassSurvey, names: DisplayNames) -> str:
        """Return name and size of a class with its commonest predicates, else its subclasses."""
        hidden = Vocabulary().excluded_predicates
        uses = [
            f"{shorten_name(format_term(prop.predicate, names))} {format_percent(prop.things, surveyed.size)}"
            for prop in surveyed.properties
            if prop.predicate not in hidden
        ][:MAX_SUMMARY_PREDICATES]
        if not uses:
            uses = first_items(self.subclass_texts(surveyed), MAX_SUMMARY_PREDICATES)
        name = single_line(shorten_name(surveyed.name, MAX_CLASS_NAME_CHARS))
        return f"{name:<24}{surveyed.total:>9,}  {single_line(', '.join(uses))}"


def format_percent(number: int, total: int) -> str:
    """Return a share in per cent. "100%" is written only for all, and "0%" only for none."""
    if number and number * 100 < total:
        return "<1%"
    if number >= total:
        return "100%"
    return f"{min(99, round(number / total * 100))}%"


def language_name(language: str) -> str:
    """Return the English name of a language tag; the tag itself if it has none here."""
    return LANGUAGE_NAMES.get(language, shorten_name(language))


def shorten_name(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return a text of at most ``limit`` characters; "…" stands for what was cut off."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
