"""What the survey of a graph denies of a query: classes, predicates, directions, and forms of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import rdflib
from small import EX, films
from tables import read_table

from kgwb.kg.base import Vocabulary
from kgwb.kg.contradictions import find_contradictions
from kgwb.kg.survey import SurveyBuilder
from kgwb.kg.survey_text import SurveyWriter

HERE = Path(__file__).parent

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
    read_table(HERE / "denied_queries.jsonl"),
)
def test_what_the_survey_denies_is_found(where: str, words: Sequence[str]) -> None:
    told = denied(where)
    assert len(told) == (len(words) > 0)
    for word in words:
        assert (f"org{word}" if word.startswith(":") else word) in told[0]


def test_a_sample_and_a_survey_that_lacks_something_deny_nothing() -> None:
    for change in ({"sampled": True}, {"lacks": (("the predicates of classes", "refused"),)}):
        writer = SurveyWriter(replace(WRITER.survey, **change))
        assert denied("?x :onwer ?y", writer) == []
