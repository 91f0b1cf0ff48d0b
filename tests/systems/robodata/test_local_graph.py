"""The local graph: what is added, removed, shown and exported."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from machine import (
    DIRECTED,
    IDS,
    LOCAL,
    PROVEN,
    STARRING,
    answered,
    as_written,
    produce,
    script,
)
from nasty_graphs import a
from rdflib import Literal, URIRef
from small import answer_of, iri
from tables import read_table

from kgwb.llm import Scripted
from kgwb.run.exports import to_cypher, to_graphml, to_json
from kgwb.systems.robodata.records import LocalGraph


def test_support_that_a_person_put_into_the_local_graph_is_checked_against_the_graph() -> None:
    run, _ = answered()
    local: LocalGraph = run.output("local_graph[turn 5]")
    triple = (iri("dune"), iri("director"), iri("lynch"))
    run.override("local_graph[turn 5]", local.without([], [STARRING]).with_triples([], [triple]))
    ids = ["orgx:dune", "orgx:director", "orgx:lynch"]
    run = run.fork(models=Scripted(script(produce=produce(PROVEN[0], ids)))).go()
    assert answer_of(run).support == (DIRECTED,)
    assert f"[not in the graph: {' | '.join(ids)}]" in answer_of(run).text


def test_the_local_graph_is_exported() -> None:
    run, _ = answered()
    local = run.output("local_graph[turn 5]")
    data = json.loads(to_json(local))
    assert (len(data["nodes"]), {edge["label"] for edge in data["edges"]}) == (
        3,
        {"director", "starring"},
    )
    assert len(ElementTree.fromstring(to_graphml(local))[-1]) == 5
    assert to_cypher(local).count("-[:RELATION {") == 2
    assert to_cypher(LocalGraph()) == ""


@pytest.mark.parametrize("shown_id", IDS)
def test_each_id_that_is_shown_can_be_chosen(shown_id: str) -> None:
    for id_ in (shown_id, as_written(shown_id)):
        [(node,)] = LOCAL.find_elements([id_])
        assert LOCAL.id_mapping.format_id(node) == shown_id


@pytest.mark.parametrize(("id_", "term"), read_table(Path(__file__).parent / "ids_of_terms.jsonl"))
def test_a_text_means_the_term_that_it_describes(id_: str, term: str) -> None:
    [(found,)] = LOCAL.find_elements([id_])
    assert found.n3() == term


def test_ids_do_not_change_where_nothing_has_a_twin() -> None:
    plain = LocalGraph().with_triples([], [(a("dune"), a("name"), Literal("Same", lang="en"))])
    assert '"Same"@en' not in plain.format_for_prompt(1_000)
    assert plain.find_elements(["Same"]) == plain.find_elements(["Same@en"]) != ()


def test_a_prefix_is_not_taken_for_the_scheme_of_an_iri() -> None:
    odd = URIRef("http://example.org/http/thing")
    ids = LocalGraph().with_names([(odd, "thing")]).id_mapping
    assert ids.format_id(odd) == "http:thing"
    assert ids.parse_id("http://example.org/a/dune") == a("dune")
    assert ids.parse_id("http:thing") == odd
