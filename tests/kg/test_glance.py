"""A graph at a glance: what is counted, what is said of a class, what is worth asking, what is sampled."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import rdflib
from small import FILMS, films, iri

from kgwb import open_kg
from kgwb.errors import GraphTimeoutError
from kgwb.kg import sample_path
from kgwb.kg.glance import LARGE, SAMPLE, Kind, glance, said_of, tries

ODD = (
    FILMS
    + """
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
:Film rdfs:label "film" . :director a rdf:Property . [] a :Film .
:quiet :runtime 9 . :amy rdfs:label "Amy"@de .
"""
)


def test_a_graph_is_counted_without_its_schema() -> None:
    seen = glance(films(ODD))
    assert {kind.name: kind.size for kind in seen.kinds} == {"without a class": 9, "film": 4, "Story": 1}
    assert (seen.triples, seen.things, seen.unlabelled) == (len(rdflib.Graph().parse(data=ODD)), 14, 1)
    assert seen.languages == (("", 13), ("de", 1))
    assert not seen.sampled


def test_what_is_said_of_a_class_is_told_with_its_share_and_an_example() -> None:
    kg = films()
    seen = {kind.name: kind for kind in glance(kg).kinds}
    said = {one.name: one for one in said_of(kg, seen["Film"])}
    assert said["director"].share == 1
    assert said["runtime"].share == 0.25
    assert (said["based on"].example, said["runtime"].example) == ("Story of Your Life", "116")
    assert "birth place" in {one.name for one in said_of(kg, seen["without a class"])}


def test_questions_are_about_things_of_one_name_and_facts_that_count() -> None:
    kg = films()
    made = {one.question: one.answer for one in tries(kg, glance(kg))}
    assert made["What is the director of Arrival?"] == iri("denis")
    assert made["What is the birth place of Denis Villeneuve?"] == iri("gentilly")
    assert not any("Dune?" in question or "label" in question for question in made)


@pytest.mark.parametrize("count", [LARGE + 1, None])
def test_of_a_large_graph_a_sample_is_looked_at(count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    kg: Any = open_kg("films")
    ask, asked = kg.select, []

    def select(query: str) -> Any:
        asked.append(query)
        if "COUNT(*)" not in query:
            return ask(query)
        if count is None:
            raise GraphTimeoutError("too slow", hint="")
        return ask(f'SELECT ("{count}" AS ?n) WHERE {{}}')

    monkeypatch.setattr(kg, "select", select)
    seen = glance(kg)
    assert (seen.sampled, seen.triples, seen.kinds[0]) == (
        True,
        count,
        Kind(seen.kinds[0].iri, "Person", 178),
    )
    assert all(f"LIMIT {SAMPLE}" in query for query in asked if "COUNT(*)" not in query)
    assert said_of(kg, seen.kinds[0], sampled=True)[0].share == 1


@pytest.mark.parametrize("engine", ["oxigraph", "virtuoso"])
def test_an_endpoint_is_seen_as_its_file_is(engine: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(engine).load(sample_path("films"))
    kg, file = open_kg(url), open_kg("films")
    there, here = glance(kg), glance(file)
    assert replace(there, kinds=()) == replace(here, kinds=())
    assert set(there.kinds) == set(here.kinds)
    person = here.kinds[0]
    assert {one.name: one.share for one in said_of(kg, person)} == {
        one.name: one.share for one in said_of(file, person)
    }
    assert len([*islice(tries(kg, there), 5)]) == 5
