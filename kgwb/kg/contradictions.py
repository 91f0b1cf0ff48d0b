"""What in a query contradicts the survey of its graph. It is found before the query is executed.

The sentences are part of recorded prompts: changing one makes recordings unusable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from functools import lru_cache

from rdflib import RDFS, XSD, Literal, URIRef

from kgwb.errors import GraphError
from kgwb.kg.algebra import TriplePattern, analyze_query, term_from_text
from kgwb.kg.base import SCHEMA_NAMESPACES, Vocabulary
from kgwb.kg.survey_records import (
    NUMERIC_DATATYPES,
    ClassSurvey,
    Survey,
    ValueSurvey,
)
from kgwb.kg.survey_text import SurveyWriter
from kgwb.kg.term_text import bracket_iri, format_typed_literal, format_value
from kgwb.terms import Term, find_reached, local_part
from kgwb.text import list_first

MAX_KEPT_FACTS = 8
"""Surveys whose facts are kept: those that questions are asked over at one time."""
COMPARED = re.compile(
    r'\?(?P<variable>\w+)\s*(?:!=|[<>]=?|=)\s*(?:"(?:[^"\\\n]|\\.)*"'
    r"(?:@(?P<language>[\w-]+)|\^\^<?[^\s()]*?(?P<datatype>\w+)(?=[>\s)&|]))?|(?P<number>[-+]?\d))"
    r"|\b(?:YEAR|MONTH|DAY)\s*\(\s*\?(?P<dated>\w+)\s*\)",
    re.IGNORECASE,
)
"""A variable that is compared with a literal, or of which a part of a date is taken."""
NUMBERS = frozenset(local_part(iri) for iri in NUMERIC_DATATYPES)


class SurveyFacts:
    """The classes and predicates of a survey, as a query is held against them."""

    def __init__(self, survey: Survey) -> None:
        """Sort the predicates of a survey, and what they lead to, by the classes of their subjects."""
        self.classes: dict[URIRef, ClassSurvey] = {}
        self.unused = frozenset(survey.unused)
        self.undescribed = frozenset(survey.undescribed)
        self.values: dict[URIRef, dict[URIRef | None, list[ValueSurvey]]] = {}
        """What a predicate leads to from the instances of a class; None stands for other things and nodes."""
        self._subclasses: dict[URIRef, set[URIRef]] = defaultdict(set)
        for surveyed in survey.classes:
            if surveyed.iri:
                self.classes[surveyed.iri] = surveyed
            for parent in surveyed.parents:
                if surveyed.iri:
                    self._subclasses[parent].add(surveyed.iri)
            for prop in surveyed.properties:
                self._values_from(surveyed.iri, prop.predicate).extend(prop.values)
                for inner in prop.inner:
                    self._values_from(None, inner.predicate).extend(inner.values)

    def _values_from(self, class_iri: URIRef | None, predicate: URIRef) -> list[ValueSurvey]:
        """Return the list of what a predicate leads to from a class, which is empty at first."""
        return self.values.setdefault(predicate, {}).setdefault(class_iri, [])

    @classmethod
    @lru_cache(maxsize=MAX_KEPT_FACTS)
    def of_writer(cls, writer: SurveyWriter) -> SurveyFacts:
        """Return the facts of a writer's survey. They are kept, since each query needs them."""
        return cls(writer.survey)

    def with_subclasses(self, class_iri: URIRef) -> set[URIRef]:
        """Return a class with its subclasses at any depth."""
        return find_reached([class_iri], self._subclasses)

    def values_of(
        self, predicate: URIRef, classes: Set[URIRef | None] = frozenset()
    ) -> list[ValueSurvey]:
        """Return what a predicate leads to from the classes that have it, or from all if none has."""
        by_class = self.values.get(predicate, {})
        found = []
        for class_iri in by_class.keys() & classes or by_class:
            found += by_class[class_iri]
        return found


def find_contradictions(
    sparql: str,
    writer: SurveyWriter,
    known_classes: Mapping[URIRef, Collection[URIRef]],
    vocabulary: Vocabulary,
) -> Iterator[str]:
    """Yield what a query takes for granted and the survey of its graph denies.

    - a predicate or class that no triple has, with one that is spelt alike;
    - a class without instances of its own, of which subclasses have some;
    - a predicate that no instance of the class has, and whether it leads the other way round. It is
      no contradiction beside an alternative (p|q) that they have;
    - a predicate that leads to texts or numbers, where the query looks for things, or the reverse;
    - a value in another form than those of the predicate: another datatype or language, or none of
      its texts where the survey has all of them.

    ``known_classes`` are the classes of things that the query may name, and ``vocabulary`` is that of
    the graph. Nothing is yielded for a query that cannot be analyzed, nor by a survey of a sample, or
    one that lacks something: what these do not have may be in the graph. The same goes for predicates
    that the survey does not describe.
    """
    if writer.survey.sampled or writer.survey.lacks:
        return
    try:
        steps = analyze_query(sparql).steps
    except GraphError:
        return
    check = _QueryCheck(steps, writer, known_classes, vocabulary)
    found = [*check.check_classes(), *check.check_steps(), *check.check_filters(sparql)]
    yield from dict.fromkeys(found)


class _QueryCheck:
    """The steps of a query, with the classes that its variables and things may have."""

    def __init__(
        self,
        steps: Iterable[TriplePattern],
        writer: SurveyWriter,
        known_classes: Mapping[URIRef, Collection[URIRef]],
        vocabulary: Vocabulary,
    ) -> None:
        """Find out which classes each variable and thing of the steps may have.

        Parts of a UNION are not told apart, so that a variable may have the classes of each part. A
        variable whose class is a variable without a superclass in the query may have any class, and
        so may classes and predicates, which a survey does not describe.
        """
        self.facts = SurveyFacts.of_writer(writer)
        self.to_curie = writer.to_curie
        self.of_schemas = {*vocabulary.labels, *vocabulary.descriptions}
        """Predicates that classes and predicates may have as well."""
        self.steps: list[tuple[str, URIRef, str]] = []
        self.named: set[URIRef] = set()
        """The classes that the query names as types."""
        self.classes: dict[str, set[URIRef | None]] = defaultdict(set)
        """The classes that each term may have; without an entry it may have any."""
        for iri, classes in known_classes.items():
            if not any(map(_is_schema, classes)):
                self.classes[bracket_iri(iri)].update(classes)
        types: list[tuple[str, str]] = []
        for subject, predicate, object_ in steps:
            iri = URIRef(predicate[1:-1])
            if iri in vocabulary.types:
                types.append((subject, object_))
            elif iri == RDFS.subClassOf and _is_own_iri(object_):
                superclass = URIRef(object_[1:-1])
                self.classes[subject].update(self.facts.with_subclasses(superclass))
            elif predicate.startswith("<"):
                self.steps.append((subject, iri, object_))
        for subject, object_ in types:
            if _is_own_iri(object_):
                named = URIRef(object_[1:-1])
                self.named.add(named)
                self.classes[subject].add(named)
        for subject, object_ in types:
            if not _is_own_iri(object_):
                self.classes[subject].update(self.classes[object_])
                if not self.classes[object_]:
                    self.classes[subject].clear()

    def check_classes(self) -> Iterator[str]:
        """Yield the named classes that the graph does not have, or that no instance has itself."""
        for iri in sorted(self.named):
            surveyed = self.facts.classes.get(iri)
            curie = self.to_curie(iri)
            if surveyed is None or not surveyed.total:
                yield f"nothing is a {curie}{self._name_alike(iri, self.facts.classes)}"
            elif not surveyed.size:
                yield (
                    f"nothing has the type {curie} itself: its {surveyed.total} instances have "
                    f"a subclass, rdf:type/rdfs:subClassOf* {curie}"
                )

    def check_steps(self) -> Iterator[str]:
        """Yield what is wrong with the predicates, their directions and their values."""
        users_of_pair: dict[tuple[str, str], set[URIRef | None]] = defaultdict(set)
        for subject, predicate, object_ in self.steps:
            users_of_pair[subject, object_].update(self.facts.values.get(predicate, ()))
        for subject, predicate, object_ in self.steps:
            curie = self.to_curie(predicate)
            classes = self.classes[subject]
            users = self.facts.values.get(predicate, {})
            if not users:
                told = "is no predicate of the graph"
                if predicate in self.facts.unused:
                    told = "is declared, but has no triple"
                if not _is_schema(predicate) and predicate not in self.facts.undescribed:
                    yield f"{curie} {told}{self._name_alike(predicate, self.facts.values)}"
            elif not classes and predicate in self.of_schemas:
                continue
            elif not classes or not classes.isdisjoint(users):
                values = self.facts.values_of(predicate, classes)
                yield from self._check_object(curie, object_, values)
            elif classes.isdisjoint(users_of_pair[subject, object_]):
                text = f"no {self._list_classes(classes)} has {curie}"
                if classes.isdisjoint(values.of for values in self.facts.values_of(predicate)):
                    yield f"{text}; those who have it are {self._list_classes(users)}"
                else:
                    yield f"{text}, but ?x {curie} {subject} holds, the other way round"

    def _check_object(
        self, curie: str, object_: str, values: Collection[ValueSurvey]
    ) -> Iterator[str]:
        """Yield whether what a query looks for is none of the values that a predicate leads to.

        Without values it is not known what they are.
        """
        if not values:
            return
        classes = self.classes[object_]
        found = {each.of for each in values if each.sort == "class"}
        others = [each for each in values if each.sort != "class"]
        if object_[0] not in "?<":
            yield from self._check_literal(curie, term_from_text(object_), values)
        elif all(each.is_literal for each in values):
            leads_on = any(subject == object_ for subject, _, _ in self.steps)
            if leads_on or classes or object_.startswith("<"):
                yield f"{curie} leads to no thing, but to {self._list_sorts(values)}"
        elif classes and not others and found.isdisjoint(classes):
            wanted = self._list_classes(classes)
            yield f"{curie} does not lead to {wanted}, but to {self._list_classes(found)}"

    def _check_literal(
        self, curie: str, term: Term, values: Collection[ValueSurvey]
    ) -> Iterator[str]:
        """Yield whether a literal of a query has another form than all values, or is none of them."""
        if isinstance(term, Literal):
            sort = local_part(term.datatype or XSD.string)
            if term.language:
                sort = f"text@{term.language}"
            same = [each for each in values if _family(each.sort) == _family(sort)]
            # Of numbers and dates, one value may be written in several ways.
            is_text = sort == "string" or term.language
            if not same or (
                is_text and all(each.whole and term not in each.examples for each in same)
            ):
                written = format_typed_literal(term, {})
                yield f"{curie} never has the value {written}, but {self._list_sorts(values)}"

    def check_filters(self, sparql: str) -> Iterator[str]:
        """Yield the variables that a filter compares with, or reads as, what their values are not.

        Only the variables that are the object of one predicate are looked at.
        """
        predicates: dict[str, set[URIRef]] = defaultdict(set)
        for _, predicate, object_ in self.steps:
            predicates[object_].add(predicate)
        for match in COMPARED.finditer(sparql):
            used = predicates[f"?{match['variable'] or match['dated']}"]
            if len(used) != 1 or not used.isdisjoint(self.of_schemas):
                continue
            [predicate] = used
            values = self.facts.values_of(predicate)
            expected = {_family(match["datatype"] or "string")}
            if match["number"]:
                expected = {"number"}
            elif match["dated"]:
                expected = {"date", "dateTime"}
            elif match["language"]:
                expected = {_family(f"text@{match['language']}")}
            if values and expected.isdisjoint(_family(each.sort) for each in values):
                curie = self.to_curie(predicate)
                yield f"{match[0]}, but {curie} leads to {self._list_sorts(values)}"

    def _name_alike(self, iri: URIRef, known: Iterable[URIRef]) -> str:
        """Return what of the graph is spelt like an IRI, behind a semicolon; "" if nothing is."""
        by_name = {local_part(each).casefold(): each for each in known}
        alike = get_close_matches(local_part(iri).casefold(), by_name, 2)
        if not alike:
            return ""
        curies = [self.to_curie(by_name[name]) for name in alike]
        return f"; there is {', '.join(curies)}"

    def _list_classes(self, classes: Iterable[URIRef | None]) -> str:
        """Return the CURIEs of the first classes; "things without a class" for None."""
        names = [self.to_curie(iri) if iri else "things without a class" for iri in classes]
        return list_first(sorted(names), 3)

    def _list_sorts(self, values: Iterable[ValueSurvey]) -> str:
        """Return the sorts of values, or their classes, each with an example where there is one."""
        texts: dict[str, None] = {}
        for each in values:
            text = each.sort
            if each.sort == "class" and each.of:
                text = self.to_curie(each.of)
            elif each.examples and each.is_literal:
                text += f" such as {format_value(each.examples[0])}"
            texts[text] = None
        return list_first(texts, 3)


def _is_schema(iri: str) -> bool:
    """Return whether an IRI is of a vocabulary for schemas, such as owl:Class."""
    return str(iri).startswith(SCHEMA_NAMESPACES)


def _is_own_iri(text: str) -> bool:
    """Return whether a term of a pattern is an IRI, and of no vocabulary for schemas."""
    return text.startswith("<") and not _is_schema(text[1:])


def _family(sort: str) -> str:
    """Return "number" for each sort of numbers; the sort of a text with a language in lower case."""
    if sort in NUMBERS:
        return "number"
    if "@" in sort:
        return sort.lower()
    return sort
