"""Every number in the text of a survey is what a query for that number alone returns."""

from __future__ import annotations

import re
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
from kgwb.kg.survey_records import ClassGroup, PropertySurvey, TextOfLink
from kgwb.kg.survey_text import SurveyWriter
from kgwb.kg.term_text import add_missing_prefixes

SHARED = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Nurse rdfs:subClassOf :Person . :Patient rdfs:subClassOf :Person .
:a a :Nurse, :Patient ; :likes :nothing ; :name "A" ; :staffNo 1 ; :ward :w1 ; :wardName "West" .
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
        if group.members and group.size != count(kg, "*", instances):
            yield f"{name} {group.size}"
        for prop in group.properties:
            pattern = f"{instances} ?v {n3(prop.predicate)} ?o"
            if prop.things != count(kg, "DISTINCT ?v", pattern):
                yield f"{name} {prop} things"
            if prop.triples != count(kg, "*", pattern):
                yield f"{name} {prop} triples"
            yield from wrong_values(kg, name, prop, pattern)
            yield from wrong_bare(kg, prop, pattern)
        yield from wrong_patterns(kg, writer, group)
    for predicate, triples, both in writer.survey.both_ways:
        term = n3(predicate)
        if triples != count(kg, "*", f"?a {term} ?b"):
            yield f"{predicate} triples"
        if both != count(kg, "*", f"?a {term} ?b . ?b {term} ?a"):
            yield f"{predicate} both ways"


def wrong_patterns(kg: Graph, writer: SurveyWriter, group: ClassGroup) -> Iterator[str]:
    """Yield each pattern in the title of a group that does not find what the title says."""
    title = writer.format_group(group).splitlines()[0]
    prefixes = tuple((prefix, space) for space, prefix in writer.prefixes.items())
    for pattern, number in re.findall(r"(\?x \S+ \S+) finds (\d+|none)", title):
        query = f"SELECT (COUNT(DISTINCT ?x) AS ?n) {{ {pattern} }}"
        [[found]] = kg.select(add_missing_prefixes(query, prefixes)).rows
        if parse_count(found) != int(number.replace("none", "0")):
            yield f"{pattern} finds {found}, not {number}"


def wrong_bare(kg: Graph, prop: PropertySurvey, pattern: str) -> Iterator[str]:
    """Yield the number of triples that lead to an IRI without triples if it is wrong."""
    bare = f"{pattern} FILTER(isIRI(?o)) FILTER NOT EXISTS {{ ?o ?any ?value }}"
    if prop.bare != count(kg, "*", bare):
        yield f"{prop} bare {prop.bare}"


def wrong_values(kg: Graph, name: str, prop: PropertySurvey, pattern: str) -> Iterator[str]:
    """Yield the number of distinct literals of each sort that the text would show and is wrong."""
    for values in prop.values:
        if not values.is_literal or values.at_least:
            continue
        sort = f"FILTER(isLiteral(?o) && DATATYPE(?o) = {n3(URIRef(str(values.of)))})"
        if "@" in values.sort:
            sort = f'FILTER(LANG(?o) = "{values.sort.partition("@")[2]}")'
        if values.triples != count(kg, "*", f"{pattern} {sort}"):
            yield f"{name} {prop} {values.sort} triples {values.triples}"
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
    assert survey.texts_of_links == (TextOfLink(iri("Person"), iri("wardName"), iri("ward"), 2, 2),)
    [person] = [kind for kind in survey.classes if kind.name == "Person"]
    assert person.total == 3
