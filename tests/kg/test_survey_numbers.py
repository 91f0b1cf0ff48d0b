"""Every number in the text of a survey is what a query for that number alone returns."""

from __future__ import annotations

from collections.abc import Iterator

import engines
import pytest
import rdflib
from rdflib import URIRef
from small import EX, films, iri

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.kg.queries import parse_count
from kgwb.kg.sparql import n3, values_clause
from kgwb.kg.survey import survey_graph
from kgwb.kg.survey_records import ClassGroup, PredicateTwin, PropertySurvey
from kgwb.kg.survey_text import SurveyWriter

SHARED = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Nurse rdfs:subClassOf :Person . :Patient rdfs:subClassOf :Person .
:a a :Nurse, :Patient ; :name "A" ; :staffNo 1 ; :ward :w1 ; :wardName "West" .
:b a :Nurse ; :name "B" ; :staffNo 2 ; :ward :w1 ; :wardName "West" .
:c a :Patient ; :name "C" ; :staffNo 3 ; :treatedBy :a, :b .
:w1 a :Ward ; rdfs:label "West" ; :has :a, :b .
:v1 a :Visit ; :of :a . :v2 a :Visit ; :of :a, :b . :v3 a :Visit, :Call ; :of :c .
"""


def count(kg: Graph, counted: str, pattern: str) -> int:
    [[number]] = kg.select(f"SELECT (COUNT({counted}) AS ?n) WHERE {{ {pattern} }}").rows
    return parse_count(number)


def types_of(kg: Graph) -> str:
    """Return a property path over the predicates that give a class."""
    return "|".join(map(n3, kg.vocabulary.types))


def instances_of(kg: Graph, group: ClassGroup, variable: str = "?v") -> str:
    """Return a pattern that binds each instance of a group once."""
    classes = [member.iri for member in group.members if member.iri]
    listed = values_clause("?c", classes)
    inner = f"{listed} {variable} ({types_of(kg)}) ?c"
    return f"{{ SELECT DISTINCT {variable} WHERE {{ {inner} }} }}"


def wrong_numbers(kg: Graph) -> Iterator[str]:
    """Yield each number of a survey that a query for it does not return."""
    writer = SurveyWriter(survey_graph(kg))
    groups = [group for group in writer.groups if group.top_class.iri]
    for group in groups:
        instances = instances_of(kg, group)
        name = group.top_class.name
        if group.size != count(kg, "*", instances):
            yield f"{name} {group.size}"
        for prop in group.properties:
            pattern = f"{instances} ?v {n3(prop.predicate)} ?o"
            if prop.things != count(kg, "DISTINCT ?v", pattern):
                yield f"{name} {prop} things"
            if prop.triples != count(kg, "*", pattern):
                yield f"{name} {prop} triples"
            yield from wrong_values(kg, name, prop, pattern)
        yield from wrong_incoming(kg, writer, groups, group)
    for predicate, triples, both in writer.survey.both_ways:
        term = n3(predicate)
        if triples != count(kg, "*", f"?a {term} ?b"):
            yield f"{predicate} triples"
        if both != count(kg, "*", f"?a {term} ?b . ?b {term} ?a"):
            yield f"{predicate} both ways"
    for first, second, number in writer.survey.inverses:
        if number != count(kg, "*", f"?a {n3(first)} ?b . ?b {n3(second)} ?a"):
            yield f"{first} {second}"


def wrong_incoming(
    kg: Graph, writer: SurveyWriter, groups: list[ClassGroup], group: ClassGroup
) -> Iterator[str]:
    """Yield the number of triples that lead to a group from others if it is wrong."""
    incoming = dict(text.rsplit(" ", 1) for text in writer._incoming(group))
    targets = instances_of(kg, group, "?o")
    for other in groups:
        for prop in other.properties if other is not group else ():
            pattern = f"{instances_of(kg, other)} ?v {n3(prop.predicate)} ?o . {targets}"
            key = f"{writer.to_curie(str(other.top_class.iri))} {writer.to_curie(prop.predicate)}"
            if int(incoming.get(key, 0)) != count(kg, "*", pattern):
                yield f"{key} to {group.top_class.name} {incoming.get(key)}"


def wrong_values(kg: Graph, name: str, prop: PropertySurvey, pattern: str) -> Iterator[str]:
    """Yield the number of distinct literals of each sort that the text would show and is wrong."""
    for values in prop.values:
        if not values.is_literal or values.at_least:
            continue
        sort = f"FILTER(isLiteral(?o) && DATATYPE(?o) = {n3(URIRef(str(values.of)))})"
        if "@" in values.sort:
            sort = f'FILTER(LANG(?o) = "{values.sort.partition("@")[2]}")'
        if values.distinct != count(kg, "DISTINCT ?o", f"{pattern} {sort}"):
            yield f"{name} {prop} {values.sort} {values.distinct}"


@pytest.mark.parametrize(
    "graph",
    ["shared", "films", "scholars", "cars", pytest.param("harbour", marks=pytest.mark.long)],
)
def test_every_number_is_what_a_query_for_it_returns(graph: str) -> None:
    if graph == "shared":
        kg: Graph = films(SHARED)
    elif graph == "harbour":
        kg = open_kg(engines.harbour())
    else:
        kg = open_kg(graph)
    assert list(wrong_numbers(kg)) == []


def test_what_settles_a_query_is_counted() -> None:
    survey = survey_graph(films(SHARED))
    assert survey.inverses == ((iri("has"), iri("ward"), 2),)
    assert survey.twins == (PredicateTwin(iri("Person"), iri("wardName"), iri("ward"), 2, True),)
    [person] = [kind for kind in survey.classes if kind.name == "Person"]
    assert person.total == 3
