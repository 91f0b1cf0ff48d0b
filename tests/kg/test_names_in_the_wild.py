"""Things are found by every name that published data give them, and shown by the preferred one."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import URIRef
from tables import read_table

from kgwb.cli import doctor
from kgwb.kg import open_kg

PREFIXES = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix oio: <http://www.geneontology.org/formats/oboInOwl#> . @prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix schema: <http://schema.org/> . @prefix schemas: <https://schema.org/> .
@prefix dct: <http://purl.org/dc/terms/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix crm: <http://www.cidoc-crm.org/cidoc-crm/> .
@prefix gn: <http://www.geonames.org/ontology#> .
:place rdfs:label "place" . :chest rdfs:label "chest" .
:T1 :place :chest .
"""
NAMES = {row["id"]: row for row in read_table(Path(__file__).with_name("names_in_the_wild.toml"))}


@pytest.mark.parametrize("name", NAMES)
def test_a_thing_is_found_by_each_name_and_shown_by_the_preferred_one(
    name: str, tmp_path: Path
) -> None:
    row = NAMES[name]
    triples, shown = row["triples"], row["shown"]
    file = tmp_path / "g.ttl"
    file.write_text(PREFIXES + triples)
    kg = open_kg(file)
    thing = URIRef("http://e/T1")
    assert kg.names([thing]) == {thing: shown}
    for each in [shown, *row["others"]]:
        assert [hit.iri for hit in kg.search(each, 3).hits][:1] == [thing]
        assert kg.exact([each]) == {each: (thing,)}
    checks = {check.name: check for check in doctor._check_graph(str(file))}
    assert checks["names"].ok
    for prefix, shown_as in (("xl:pref", "skos-xl#pref"), ("oio:", "hasExact"), ("crm:P1_", "P1_")):
        assert (prefix in triples) == (shown_as in checks["names"].detail)


def test_doctor_says_that_nothing_has_a_label(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> <http://e/b> .")
    checks = {check.name: check for check in doctor._check_graph(str(tmp_path / "g.ttl"))}
    assert not checks["names"].ok
    assert checks["names"].remedy
