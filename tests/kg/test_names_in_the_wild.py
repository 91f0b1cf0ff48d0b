"""Things are found by every name that published data give them, and shown by the preferred one."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import URIRef

import kgwb
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
NAMES = {
    "OBO exact synonym": (
        ':T1 rdfs:label "heart" ; oio:hasExactSynonym "cardiac pump" .',
        "heart",
        ["cardiac pump"],
    ),
    "OBO alternative label": (
        ':T1 rdfs:label "heart" ; obo:IAO_0000118 "cor" .', "heart", ["cor"],
    ),
    "OBO synonym alone": (':T1 oio:hasExactSynonym "cardiac pump" .', "cardiac pump", []),
    "SKOS": (
        ':T1 skos:prefLabel "heart"@en ; skos:altLabel "cardiac pump"@en ; skos:hiddenLabel "hart" .',
        "heart",
        ["cardiac pump", "hart"],
    ),
    "SKOS hidden label": (
        ':T1 skos:hiddenLabel "AA hart" ; skos:altLabel "heart"@en .', "heart", ["AA hart"],
    ),
    "SKOS-XL": (
        """:T1 xl:prefLabel :l1 ; xl:altLabel :l2 ; xl:hiddenLabel :l3 .
        :l1 xl:literalForm "heart"@en . :l2 xl:literalForm "a cardiac pump"@en . :l3 xl:literalForm "a hart" .""",
        "heart",
        ["a cardiac pump", "a hart"],
    ),
    "SKOS-XL with blank nodes": (
        ':T1 xl:prefLabel [ xl:literalForm "heart"@en ] ; xl:altLabel [ xl:literalForm "a \\\\"pump\\\\""@en ] .',
        "heart",
        ['a "pump"'],
    ),
    "SKOS-XL beside a label": (
        ':T1 rdfs:label "heart" ; xl:prefLabel [ xl:literalForm "a heart" ] .', "heart", ["a heart"],
    ),
    "CIDOC-CRM": (
        ':T1 crm:P1_is_identified_by [ crm:P190_has_symbolic_content "heart" ] .', "heart", [],
    ),
    "schema.org": (
        ':T1 schema:name "heart" ; schema:alternateName "cor" .', "heart", ["cor"],
    ),
    "schema.org https": (
        ':T1 schemas:name "heart" ; schemas:alternateName "cor" .', "heart", ["cor"],
    ),
    "Dublin Core": (':T1 dct:title "heart" ; dct:alternative "cor" .', "heart", ["cor"]),
    "Dublin Core 1.1": (':T1 dc:title "heart" .', "heart", []),
    "FOAF": (':T1 foaf:name "heart" .', "heart", []),
    "GeoNames": (':T1 gn:name "heart" ; gn:alternateName "Herz"@de .', "heart", ["Herz"]),
    "another language": (':T1 rdfs:label "Herz"@de .', "Herz", []),
    "several other languages": (
        ':T1 rdfs:label "Herz"@de, "coeur"@fr ; skos:altLabel "Pumpe"@de .', "Herz", ["coeur", "Pumpe"],
    ),
    "a label in another language": (
        ':T1 rdfs:label "Herz"@de ; oio:hasExactSynonym "cardiac pump"@en .', "Herz", ["cardiac pump"],
    ),
}  # fmt: skip


@pytest.fixture(params=NAMES)
def named(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, list[str]]:
    triples, shown, others = NAMES[request.param]
    file = tmp_path / "g.ttl"
    file.write_text(PREFIXES + triples.replace('\\\\"', '\\"'))
    return file, shown, others


def test_a_thing_is_found_by_each_name_and_shown_by_the_preferred_one(
    named: tuple[Path, str, list[str]],
) -> None:
    file, shown, others = named
    kg = open_kg(file)
    thing = URIRef("http://e/T1")
    assert kg.names([thing]) == {thing: shown}
    for name in [shown, *others]:
        assert [hit.iri for hit in kg.search(name, 3).hits][:1] == [thing]
        assert kg.exact([name]) == {name: (thing,)}
        run = kgwb.Workbench(kg).ask(f"What is the place of the [{name}]?")
        assert run.answer is not None
        assert run.answer.labels == ("chest",)


def test_doctor_says_by_what_things_are_named(named: tuple[Path, str, list[str]]) -> None:
    file, _, _ = named
    checks = {check.name: check for check in doctor._check_graph(str(file))}
    assert checks["names"].ok
    assert "rdfs:label" in checks["names"].detail
    triples = file.read_text().partition(":place :chest")[2]
    for prefix, shown_as in (("xl:pref", "skos-xl#pref"), ("oio:", "hasExact"), ("crm:P1_", "P1_")):
        assert (prefix in triples) == (shown_as in checks["names"].detail)


def test_doctor_says_that_nothing_has_a_label(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> <http://e/b> .")
    checks = {check.name: check for check in doctor._check_graph(str(tmp_path / "g.ttl"))}
    assert not checks["names"].ok
    assert checks["names"].remedy


def test_a_node_that_is_a_name_is_found_by_no_search(tmp_path: Path) -> None:
    triples, _, _ = NAMES["SKOS-XL"]
    (tmp_path / "g.ttl").write_text(PREFIXES + triples)
    kg = open_kg(tmp_path / "g.ttl")
    assert not kg.search("l1", 5).hits


def test_a_thing_whose_further_name_is_no_text_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(PREFIXES + ":T1 dc:title :x .")
    assert open_kg(tmp_path / "g.ttl").search("T1", 5).hits
