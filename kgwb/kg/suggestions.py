"""Questions that a graph may answer, made from its survey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from rdflib import URIRef

from kgwb.errors import GraphError
from kgwb.kg.base import Graph
from kgwb.kg.sparql import n3
from kgwb.kg.survey_queries import untyped_pattern
from kgwb.kg.survey_records import ClassSurvey, Survey
from kgwb.terms import Term, name_from_iri

MAX_CLASSES = 5
"""Classes that questions are about: the largest."""
MAX_PREDICATES = 6
"""Predicates of each class that questions are about."""
PREPOSITIONS = ("at", "by", "for", "from", "in", "of", "on", "to", "with")
NON_NOUN_ENDINGS = tuple(f" {preposition}" for preposition in PREPOSITIONS)
"""A predicate whose name ends like this is no noun: "the directed by of" is not English."""


class SuggestedQuestion(NamedTuple):
    """A question that the graph may answer, and a right answer if one is known."""

    question: str
    answer: Term | None


def suggest_questions(kg: Graph, survey: Survey) -> Iterator[SuggestedQuestion]:
    """Yield questions "What is the PREDICATE of THING?", each with one of its right answers.

    They are about things of the largest classes. A thing has many triples, and a name that no other
    thing has. First comes one question about each class, then one with another predicate for each,
    up to MAX_PREDICATES rounds. Queries are sent as the questions are taken; a question whose query
    the graph refuses is left out. A system may still be unable to answer one, so run it before
    showing it.
    """
    names = dict(survey.names)
    type_predicates = map(n3, kg.vocabulary.types)
    types = "|".join(type_predicates)
    for round_number, surveyed, predicate in _choose_predicates(kg, survey):
        with suppress(GraphError):
            instances = untyped_pattern(types)
            if surveyed.iri:
                class_term = n3(surveyed.iri)
                instances = f"?v ({types}) {class_term} FILTER(isIRI(?v))"
            found = _find_named(kg, instances, predicate, round_number)
            if found:
                name, answer = found
                predicate_name = names.get(predicate) or name_from_iri(predicate)
                question = f"What is the {predicate_name} of {name}?"
                yield SuggestedQuestion(question, answer)


def _choose_predicates(kg: Graph, survey: Survey) -> Iterator[tuple[int, ClassSurvey, URIRef]]:
    """Yield the predicates to ask for: the number of the round from 0, the class, the predicate.

    There are MAX_PREDICATES rounds. Each has the next predicate of each of MAX_CLASSES classes,
    largest first, but classes whose instances have labels before others. A class without a further
    predicate is left out of a round. Labels, descriptions, noise and predicates with
    NON_NOUN_ENDINGS are not asked for.
    """
    names = dict(survey.names)
    labels = set(kg.vocabulary.labels)
    hidden = kg.vocabulary.excluded_predicates

    def lacks_labels(surveyed: ClassSurvey) -> bool:
        """Return whether no instance of a class has a label, as the survey shows."""
        return labels.isdisjoint(surveyed.predicates)

    labelled_first = sorted(survey.classes, key=lacks_labels)
    classes = labelled_first[:MAX_CLASSES]
    nouns_of_classes = []
    for surveyed in classes:
        nouns = []
        for iri in surveyed.predicates:
            name = names.get(iri) or name_from_iri(iri)
            if iri not in hidden and not name.endswith(NON_NOUN_ENDINGS):
                nouns.append(iri)
        nouns_of_classes.append(nouns)

    for round_number in range(MAX_PREDICATES):
        for surveyed, nouns in zip(classes, nouns_of_classes, strict=True):
            if round_number < len(nouns):
                yield round_number, surveyed, nouns[round_number]


def _find_named(
    kg: Graph, instances: str, predicate: URIRef, round_number: int
) -> tuple[str, Term] | None:
    """Return the name of an instance and a value that it has for the predicate, or None.

    ``instances`` is the SPARQL pattern of the instances ?v. Of the first 200 pairs of an instance
    and a value, the instances with the most triples are tried, beginning with number
    ``round_number``, so that the questions are not all about the same one. The first whose name no
    other vertex has is returned. Raises a GraphError.
    """
    limit = MAX_PREDICATES * 2
    result = kg.select(
        "SELECT ?v (COUNT(?any) AS ?n) (SAMPLE(?one) AS ?o) WHERE { { SELECT DISTINCT ?v ?one"
        f" WHERE {{ {instances} ?v {n3(predicate)} ?one }} LIMIT 200 }} ?v ?any ?value }}"
        f" GROUP BY ?v ORDER BY DESC(?n) ?v LIMIT {limit}"
    )
    values = []
    for vertex, _, value in result.rows:
        if isinstance(vertex, URIRef) and value is not None:
            values.append((vertex, value))
    if not values:
        return None
    vertices = [vertex for vertex, _ in values]
    names = kg.names(vertices)
    names_of_vertices = [names[vertex] for vertex in vertices]
    vertices_by_name = kg.exact(names_of_vertices)
    in_turn = values[round_number:] + values[:round_number]
    for vertex, value in in_turn:
        name = names[vertex]
        same_name = vertices_by_name.get(name, ())
        if len(same_name) == 1:
            return name, value
    return None
