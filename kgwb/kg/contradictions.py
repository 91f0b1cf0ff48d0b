"""What in a query contradicts the survey of its graph. It is found before the query is executed.

The sentences are part of recorded prompts: changing one makes recordings unusable.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache

from rdflib import RDF, RDFS, Literal, URIRef

from kgwb.errors import GraphError
from kgwb.kg.algebra import TriplePattern, analyze_query, term_from_text
from kgwb.kg.base import SCHEMA_NAMESPACES
from kgwb.kg.survey_records import (
    NUMERIC_DATATYPES,
    ClassSurvey,
    PropertySurvey,
    Survey,
    ValueSurvey,
)
from kgwb.kg.survey_text import SurveyWriter
from kgwb.kg.term_text import format_typed_literal, format_value
from kgwb.terms import local_part
from kgwb.text import list_first

MAX_KEPT_FACTS = 8
"""Surveys whose facts are kept: those that questions are asked over at one time."""
COMPARED = re.compile(
    r'\?(?P<variable>\w+)\s*(?:!=|[<>]=?|=)\s*(?:"(?:[^"\\\n]|\\.)*"'
    r"(?:@(?P<language>[\w-]+)|\^\^<?[^\s()]*?(?P<datatype>\w+)(?=[>\s)&|]))?|(?P<number>[-+]?\d))"
)
"""A variable that a filter compares with a literal."""
PART_OF_DATE = re.compile(r"\b(?:YEAR|MONTH|DAY)\s*\(\s*\?(?P<variable>\w+)\s*\)", re.IGNORECASE)
DATES = frozenset(("date", "dateTime"))
NUMBERS = frozenset(local_part(iri) for iri in NUMERIC_DATATYPES)


class SurveyFacts:
    """The classes and predicates of a survey, as a query is held against them."""

    def __init__(self, survey: Survey) -> None:
        """Sort the predicates of a survey by the classes whose instances have them."""
        self.classes: dict[URIRef, ClassSurvey] = {}
        self.used: dict[URIRef, dict[URIRef | None, PropertySurvey]] = defaultdict(dict)
        """The classes whose instances have a predicate, with what it leads to there."""
        self.inner: dict[URIRef, list[PropertySurvey]] = defaultdict(list)
        """What the predicates of nodes without a class lead to."""
        self.unused = frozenset(survey.unused)
        self._subclasses: dict[URIRef, set[URIRef]] = defaultdict(set)
        for surveyed in survey.classes:
            if surveyed.iri:
                self.classes[surveyed.iri] = surveyed
                for parent in surveyed.parents:
                    self._subclasses[parent].add(surveyed.iri)
            for prop in surveyed.properties:
                self.used[prop.predicate][surveyed.iri] = prop
                for inner in prop.inner:
                    self.inner[inner.predicate].append(inner)

    @classmethod
    @lru_cache(maxsize=MAX_KEPT_FACTS)
    def of_writer(cls, writer: SurveyWriter) -> SurveyFacts:
        """Return the facts of a writer's survey. They are kept, since each query needs them."""
        return cls(writer.survey)

    def with_subclasses(self, class_iri: URIRef) -> set[URIRef]:
        """Return a class with its subclasses at any depth."""
        found = {class_iri}
        waiting = [class_iri]
        while waiting:
            for subclass in self._subclasses[waiting.pop()] - found:
                found.add(subclass)
                waiting.append(subclass)
        return found

    def has_predicate(self, predicate: URIRef) -> bool:
        """Return whether a triple has a predicate."""
        return predicate in self.used or predicate in self.inner

    def values_of(
        self, predicate: URIRef, classes: Collection[URIRef | None] = ()
    ) -> list[ValueSurvey]:
        """Return what a predicate leads to from the instances of some classes, or from all things."""
        props = []
        for class_iri, prop in self.used.get(predicate, {}).items():
            if not classes or class_iri in classes:
                props.append(prop)
        if not classes or not props:
            props += self.inner.get(predicate, [])
        values: list[ValueSurvey] = []
        for prop in props:
            values += prop.values
        return values


def find_contradictions(
    sparql: str, writer: SurveyWriter, known_classes: Mapping[URIRef, Collection[URIRef]]
) -> Iterator[str]:
    """Yield what a query takes for granted and the survey of its graph denies.

    - a predicate or class that no triple has, with one that is spelt alike;
    - a class without instances of its own, of which subclasses have some;
    - a predicate that no instance of the class has, and whether it leads the other way round. It is
      no contradiction beside an alternative (p|q) that they have;
    - a predicate that leads to texts or numbers, where the query looks for things, or the reverse;
    - a value in another form than those of the predicate: another datatype or language, or none of
      its values where the survey has all of them.

    ``known_classes`` are the classes of things that the query may name. Nothing is yielded for a
    query that cannot be analyzed, nor by a survey of a sample, or one that lacks something: what
    these do not have may be in the graph.
    """
    if writer.survey.sampled or writer.survey.lacks:
        return
    try:
        steps = analyze_query(sparql).steps
    except GraphError:
        return
    check = _QueryCheck(steps, writer, known_classes)
    found = [*check.check_classes(), *check.check_steps(), *check.check_filters(sparql)]
    yield from dict.fromkeys(found)


class _QueryCheck:
    """The steps of a query, with the classes that its variables and things may have."""

    def __init__(
        self,
        steps: Iterable[TriplePattern],
        writer: SurveyWriter,
        known_classes: Mapping[URIRef, Collection[URIRef]],
    ) -> None:
        """Find out which classes each variable and thing of the steps may have.

        Parts of a UNION are not told apart, so that a variable may have the classes of each part. A
        variable whose class is a variable without a superclass in the query may have any class.
        """
        self.facts = SurveyFacts.of_writer(writer)
        self.to_curie = writer.to_curie
        self.steps: list[tuple[str, URIRef, str]] = []
        self.named_classes: dict[str, set[URIRef]] = defaultdict(set)
        """The classes that the query names for each subject."""
        self.classes: dict[str, set[URIRef]] = defaultdict(set)
        """The classes that each term may have; without an entry it may have any."""
        for iri, classes in known_classes.items():
            self.classes[f"<{iri}>"].update(classes)
        class_variables: dict[str, list[str]] = defaultdict(list)
        superclasses: dict[str, set[URIRef]] = defaultdict(set)
        for subject, predicate, object_ in steps:
            if not predicate.startswith("<"):
                continue
            iri = URIRef(predicate[1:-1])
            if iri == RDF.type and object_.startswith("<"):
                self.named_classes[subject].add(URIRef(object_[1:-1]))
            elif iri == RDF.type:
                class_variables[object_].append(subject)
            elif iri == RDFS.subClassOf and object_.startswith("<"):
                superclasses[subject].update(self.facts.with_subclasses(URIRef(object_[1:-1])))
            elif self.facts.has_predicate(iri) or not str(iri).startswith(SCHEMA_NAMESPACES):
                self.steps.append((subject, iri, object_))
        for subject, named in self.named_classes.items():
            self.classes[subject].update(named)
        for variable, subjects in class_variables.items():
            for subject in subjects:
                if variable in superclasses:
                    self.classes[subject].update(superclasses[variable])
                else:
                    self.classes[subject].clear()
        self.named_superclasses = {iri for found in superclasses.values() for iri in found}

    def check_classes(self) -> Iterator[str]:
        """Yield the named classes that the graph does not have, or that no instance has itself."""
        for named in self.named_classes.values():
            for iri in sorted(named):
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
        for subject, predicate, object_ in self.steps:
            curie = self.to_curie(predicate)
            if not self.facts.has_predicate(predicate):
                told = "is declared, but has no triple" if predicate in self.facts.unused else ""
                alike = self._name_alike(predicate, self.facts.used)
                yield f"{curie} {told or 'is no predicate of the graph'}{alike}"
                continue
            allowed = self.classes.get(subject, set())
            users = self.facts.used.get(predicate, {})
            if allowed and users.keys().isdisjoint(allowed):
                if self._has_alternative(subject, object_, allowed):
                    continue
                yield self._describe_lack(subject, predicate, allowed)
                continue
            values = self.facts.values_of(predicate, users.keys() & allowed)
            yield from self._check_object(predicate, object_, values)

    def _has_alternative(self, subject: str, object_: str, allowed: Collection[URIRef]) -> bool:
        """Return whether the same two terms are joined by a predicate that the classes have: (p|q)."""
        users: set[URIRef | None] = set()
        for other_subject, predicate, other_object in self.steps:
            if (other_subject, other_object) == (subject, object_):
                users.update(self.facts.used.get(predicate, {}))
        return not users.isdisjoint(allowed)

    def _describe_lack(self, subject: str, predicate: URIRef, allowed: Collection[URIRef]) -> str:
        """Return that no instance of the classes has a predicate, and where there is one."""
        curie = self.to_curie(predicate)
        listed = self._list_classes(allowed)
        text = f"no {listed} has {curie}"
        targets = {values.of for values in self.facts.values_of(predicate)}
        users = self.facts.used.get(predicate, {})
        if not targets.isdisjoint(allowed):
            return f"{text}: it leads to {listed}, the other way round (?x {curie} {subject})"
        return f"{text}; those who have it are {self._list_classes(filter(None, users))}"

    def _check_object(
        self, predicate: URIRef, object_: str, values: list[ValueSurvey]
    ) -> Iterator[str]:
        """Yield whether what a query looks for is none of the values that a predicate leads to."""
        if not values:
            return
        curie = self.to_curie(predicate)
        literals = [each for each in values if each.is_literal]
        is_variable = object_.startswith("?")
        if not is_variable and not object_.startswith("<"):
            yield from self._check_literal(curie, term_from_text(object_), values)
            return
        leads_on = any(subject == object_ for subject, _, _ in self.steps)
        if len(literals) == len(values):
            if not is_variable or leads_on or object_ in self.named_classes:
                yield f"{curie} leads to no thing, but to {self._list_sorts(literals)}"
            return
        wanted = self.classes.get(object_, set())
        others = [each for each in values if each.sort != "class"]
        found = {each.of for each in values}
        if wanted and not others and found.isdisjoint(wanted):
            yield (
                f"{curie} does not lead to {self._list_classes(wanted)}, "
                f"but to {self._list_classes(filter(None, found))}"
            )

    def _check_literal(self, curie: str, term: object, values: list[ValueSurvey]) -> Iterator[str]:
        """Yield whether a literal of a query has another form than all values, or is none of them."""
        if not isinstance(term, Literal):
            return
        written = format_typed_literal(term, {})
        sort = _sort_of(term)
        same = [each for each in values if _family(each.sort) == _family(sort)]
        if not same:
            yield f"{curie} has no value of the form {written}: it leads to {self._list_sorts(values)}"
        elif all(each.whole and term not in each.examples for each in same):
            yield f"{curie} never has the value {written}: it leads to {self._list_sorts(values)}"

    def check_filters(self, sparql: str) -> Iterator[str]:
        """Yield the variables that a filter compares with, or reads as, what their values are not.

        Only the variables that are the object of one predicate are looked at.
        """
        predicates: dict[str, set[URIRef]] = defaultdict(set)
        for _, predicate, object_ in self.steps:
            predicates[object_].add(predicate)
        for pattern, form in ((COMPARED, _form_compared), (PART_OF_DATE, lambda _: "date")):
            for match in pattern.finditer(sparql):
                used = predicates[f"?{match['variable']}"]
                if len(used) != 1:
                    continue
                [predicate] = used
                values = self.facts.values_of(predicate)
                families = {_family(each.sort) for each in values}
                expected = form(match)
                if pattern is PART_OF_DATE and not families.isdisjoint(DATES):
                    continue
                if values and expected not in families:
                    curie = self.to_curie(predicate)
                    yield f"{match[0]}: {curie} leads to {self._list_sorts(values)}"

    def _name_alike(self, iri: URIRef, known: Iterable[URIRef]) -> str:
        """Return what of the graph is spelt like an IRI, behind a semicolon; "" if nothing is."""
        by_name = {local_part(each).casefold(): each for each in known}
        alike = get_close_matches(local_part(iri).casefold(), by_name, 2)
        listed = ", ".join(self.to_curie(by_name[name]) for name in alike)
        return f"; there is {listed}" if listed else ""

    def _list_classes(self, classes: Iterable[URIRef]) -> str:
        """Return the CURIEs of the first classes, those with the most instances first."""

        def rank(iri: URIRef) -> tuple[int, URIRef]:
            """Return the sort key of a class: the most instances first."""
            surveyed = self.facts.classes.get(iri)
            return -surveyed.total if surveyed else 0, iri

        return list_first(map(self.to_curie, sorted(classes, key=rank)), 3)

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


def _sort_of(term: Literal) -> str:
    """Return the sort of a literal, as ``ValueSurvey.sort`` has it."""
    if term.language:
        return f"text@{term.language}"
    return local_part(term.datatype) if term.datatype else "string"


def _family(sort: str) -> str:
    """Return "number" for each sort of numbers, and any other sort in lower case but for its datatype."""
    if sort in NUMBERS:
        return "number"
    return sort.lower() if "@" in sort else sort


def _form_compared(match: re.Match[str]) -> str:
    """Return the family of the literal that a filter compares a variable with."""
    if match["number"]:
        return "number"
    if match["language"]:
        return f"text@{match['language'].lower()}"
    return _family(match["datatype"] or "string")
