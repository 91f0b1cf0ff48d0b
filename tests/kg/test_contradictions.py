"""What the survey of a graph denies of a query: classes, predicates, directions, and forms of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import rdflib
from small import EX, films

from kgwb.kg.base import Vocabulary
from kgwb.kg.contradictions import find_contradictions
from kgwb.kg.survey import SurveyBuilder
from kgwb.kg.survey_text import SurveyWriter

WIKIDATA = "http://www.wikidata.org/prop/direct/"
YARD = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> . @prefix owl: <{rdflib.OWL}> .
:Tug rdfs:subClassOf :Ship . :Ferry rdfs:subClassOf :Ship . :hull a owl:DatatypeProperty .
:t1 a :Tug ; rdfs:label "Aurora"@en ; :owner :o1 ; :built "1997" ; :length 31.5 ; :sign "DABC" ;
  :flag <http://other.example/Norway> ; :since "2020-05-01"^^<{rdflib.XSD.date}> ; :berth [ :depth 9 ] .
:t2 a :Ferry ; rdfs:label "Bella"@en ; :owner :o1 ; :built "2003" ; :length 90 ; :state "laid up" .
:o1 a :Firm ; rdfs:label "Castell"@en ; :town "Oslo" ; :year "1988"^^<{rdflib.XSD.gYear}> .
:loose :owner :o1 . :Tug :defined "pulls others" . :t2 :berth [ :depth 8 ; :quay [ :number 4 ] ] .
:o1 :partner :w . :w a [ a owl:Restriction ] ; :rank 1 .
"""
WRITER = SurveyWriter(SurveyBuilder(films(YARD)).build())


def denied(where: str, writer: SurveyWriter = WRITER) -> list[str]:
    query = f"PREFIX : <{EX}> PREFIX rdfs: <{rdflib.RDFS}> PREFIX xsd: <{rdflib.XSD}> "
    query += f"PREFIX rdf: <{rdflib.RDF}> PREFIX owl: <{rdflib.OWL}> SELECT * WHERE {{ {where} }}"
    known = {rdflib.URIRef(EX + "t1"): [rdflib.URIRef(EX + "Tug")]}
    return list(find_contradictions(query, writer, known, Vocabulary()))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("?x a :Tgu", [":Tgu", ":Tug"]),
        ("?x a :Ship", [":Ship", "2", "rdfs:subClassOf*"]),
        ("?x :onwer ?y", [":onwer", ":owner"]),
        ("?x :hull ?y", [":hull", "declared"]),
        ("?x a :Firm ; :sign ?y", [":sign", ":Tug"]),
        ("?x a :Firm ; :owner ?y", [":owner", "other way round"]),
        ("?x rdf:type/rdfs:subClassOf* :Ship ; :town ?y", [":town", ":Firm"]),
        (":t1 :state ?y", [":state", ":Ferry"]),
        ("?x :sign ?y . ?y :town ?z", [":sign", "no thing", "string"]),
        ("?x :sign :t1", [":sign", "no thing"]),
        ('?x :owner "Castell"', [":owner", ":Firm"]),
        ("?x :owner ?y . ?y a :Tug", [":owner", ":Firm", ":Tug"]),
        ("?x :built 1997", [":built", "string"]),
        ('?x :town "Oslo"@en', [":town", "string"]),
        ('?x a :Tug ; rdfs:label "Aurora"', ["rdfs:label", "text@en"]),
        ('?x :state "laid-up"', [":state", "laid up"]),
        ("?x :built ?y FILTER(?y > 1990)", [":built", "string"]),
        ('?x :year ?y FILTER(?y >= "1980-01-01"^^xsd:date)', [":year", "gYear"]),
        ("?x :year ?y FILTER(YEAR(?y) = 1988)", [":year", "gYear"]),
    ],
)
def test_what_the_survey_denies_is_found(where: str, words: Sequence[str]) -> None:
    [told] = denied(where)
    for word in words:
        assert (f"org{word}" if word.startswith(":") else word) in told


@pytest.mark.parametrize(
    "where",
    [
        "?x a :Tug ; :owner ?y . ?y a :Firm ; :town ?town",
        "?x rdf:type/rdfs:subClassOf* :Ship ; :state ?y",
        "?x a ?c . ?c rdfs:subClassOf* :Ship . ?x :owner ?y",
        "?x a ?c ; :town ?y",
        "VALUES ?k { :Ship :Tug } ?x a/rdfs:subClassOf* ?k . ?x :owner ?y",
        "{ ?x a :Firm ; :town ?y } UNION { ?x a :Tug ; :sign ?y }",
        "?x a :Firm ; :town|:sign ?y",
        "?x :berth ?b . ?b :depth ?d FILTER(?d > 8.5)",
        "?x :length ?y FILTER(?y > 40) FILTER(31 < ?y)",
        "?x :built ?y FILTER(xsd:integer(?y) > 1990)",
        'VALUES ?y { "1997" } ?x :built ?y FILTER(?y != "2003")',
        '?x :since ?y FILTER(?y < "2021-01-01"^^xsd:date && YEAR(?y) > 2000)',
        "?x :flag ?y . ?y ?p ?z",
        "?x :berth ?b . ?b :quay ?q . ?q :number ?n",
        "?k :defined ?y",
        "?x :partner ?y . ?y :rank ?z",
        "?x :partner :w",
        "?x ^:owner :loose",
        "?x ?p ?y",
        f"?x <{WIKIDATA}P31> :Tug",
        "?x :length 31.50",
        '?x :since "2020-05-02"^^xsd:date',
        '?x rdfs:label "Depot"@nl',
        "?x a owl:DatatypeProperty ; rdfs:label ?y",
        "?x a ?c . ?c a owl:Class ; rdfs:comment ?y",
        '?x rdfs:label ?y FILTER(LANG(?y) = "en")',
        "this is no query",
    ],
)
def test_a_query_that_the_survey_does_not_deny_is_left_alone(where: str) -> None:
    assert denied(where) == []


def test_a_sample_and_a_survey_that_lacks_something_deny_nothing() -> None:
    for change in ({"sampled": True}, {"lacks": (("the predicates of classes", "refused"),)}):
        writer = SurveyWriter(replace(WRITER.survey, **change))
        assert denied("?x :onwer ?y", writer) == []
