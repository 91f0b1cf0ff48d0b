"""A graph of a dozen triples, the same for every test of graph access."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgwb.kg.local import LocalGraph

PEOPLE = """\
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .

ex:ada a ex:Person ; rdfs:label "Ada Lovelace"@en, "Augusta Ada King"@en ; ex:bornIn ex:london ;
    schema:description "English mathematician"@en, "englische Mathematikerin"@de .
ex:charles a ex:Person ; rdfs:label "Charles Babbage"@en ;
    ex:bornIn ex:london ; ex:knows ex:ada ; ex:born 1791 .
ex:london a ex:City ; rdfs:label "London"@en, "Londres"@fr .
ex:zoe a ex:Person ; rdfs:label "Zoë Łukasz-O'Brien" ; ex:knows ex:ada .
ex:analyticalEngine ex:designedBy ex:charles .
ex:bornIn rdfs:label "born in"@en .
ex:Person rdfs:label "person"@en .
"""


@pytest.fixture
def people_file(tmp_path: Path) -> Path:
    path = tmp_path / "people.ttl"
    path.write_text(PEOPLE, encoding="utf-8")
    return path


@pytest.fixture
def people(people_file: Path) -> LocalGraph:
    return LocalGraph.open(people_file)
