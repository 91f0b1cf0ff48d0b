"""The triples that the values of an answer stand on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import rdflib
from rdflib import XSD, BNode, Literal, URIRef
from small import FILMS, films, iri

from kgwb.flow import CandidateQuery, Triple
from kgwb.kg import queries as provenance
from kgwb.kg.algebra import term_of, unknowns_of
from kgwb.kg.queries import support, where, witness

GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")
DIRECTOR, PLACE, STARRING = (iri(name).n3() for name in ("director", "birthPlace", "starring"))


def query(*patterns: tuple[str, str, str]) -> CandidateQuery:
    return CandidateQuery("", patterns, (), 1.0)


def in_graph(triples: tuple[Triple, ...]) -> bool:
    return all(triple in GRAPH for triple in triples)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("<http://example.org/a>", iri("a")),
        ("<urn:x:é>", URIRef("urn:x:é")),
        ('"Dune"', Literal("Dune")),
        ('"Dune"@de', Literal("Dune", lang="de")),
        ('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', Literal(7)),
        ('"a \\"b\\""', Literal('a "b"')),
    ],
)
def test_terms_are_read_back(text: str, term: object) -> None:
    assert term_of(text) == term


def test_unknowns_come_in_order_of_appearance() -> None:
    patterns = (("?b", DIRECTOR, "?a"), ("?a", PLACE, "?b"))
    assert unknowns_of(patterns) == ("?b", "?a")
    assert where(query(*patterns)) == f"?b {DIRECTOR} ?a . ?a {PLACE} ?b ."


def test_one_unknown_costs_no_query() -> None:
    nobody: Any = object()
    found = support(nobody, query((iri("arrival").n3(), DIRECTOR, "?who")), "?who", [iri("denis")])
    assert found == {iri("denis"): ((iri("arrival"), iri("director"), iri("denis")),)}


def test_every_value_of_a_join_has_triples_that_are_in_the_graph() -> None:
    chain = query((iri("denis").n3(), PLACE, "?place"), ("?film", DIRECTOR, iri("denis").n3()))
    values = [iri("arrival"), iri("dune"), iri("sicario")]
    found = support(films(), chain, "?film", values)
    assert list(found) == values
    assert all(len(triples) == 2 and in_graph(triples) for triples in found.values())
    assert all((value, iri("director"), iri("denis")) in triples for value, triples in found.items())


def test_all_bindings_of_a_value_count() -> None:
    both = query(("?film", STARRING, "?actor"), ("?film", DIRECTOR, iri("denis").n3()))
    found = support(films(), both, "?film", [iri("arrival")])
    assert {triple[2] for triple in found[iri("arrival")]} == {iri("amy"), iri("jeremy"), iri("denis")}


@pytest.mark.parametrize("at_once", [1, 50])
def test_values_beyond_the_first_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(provenance, "SUPPORT_ROWS", 1)
    monkeypatch.setattr(provenance, "SUPPORT_VALUES", at_once)
    chain = query(("?film", DIRECTOR, "?who"), ("?who", PLACE, "?place"))
    values = [iri("gentilly"), iri("missoula")]
    found = support(films(), chain, "?place", values)
    assert all(len(triples) >= 2 and in_graph(triples) for triples in found.values())


def test_many_values_cost_few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films(FILMS + "".join(f":f{n} :director :d{n} . :d{n} :birthPlace :c{n} ." for n in range(1500)))
    select, queries = kg.select, list[str]()
    monkeypatch.setattr(kg, "select", lambda query: queries.append(query) or select(query))
    chain = query(("?film", DIRECTOR, "?who"), ("?who", PLACE, "?place"))
    values = [iri(f"c{n}") for n in range(1500)]
    strangers = [iri(f"nowhere{n}") for n in range(120)]
    found = support(kg, chain, "?place", [*strangers, *values])
    assert [value for value, triples in found.items() if len(triples) == 2] == values
    assert len(queries) < 40


def test_triples_of_a_value_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "TRIPLES_PER_VALUE", 2)
    chain = query(("?film", DIRECTOR, "?who"), ("?who", PLACE, "?place"))
    assert 2 <= len(support(films(), chain, "?place", [iri("gentilly")])[iri("gentilly")]) <= 3


def test_literals_and_blank_nodes_as_values(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films(FILMS + ':arrival :part [ :length "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> ] .')
    chain = query((iri("arrival").n3(), iri("part").n3(), "?part"), ("?part", iri("length").n3(), "?length"))
    [(node, value)] = kg.select(f"SELECT ?part ?length WHERE {{ {where(chain)} }}").rows
    assert isinstance(node, BNode)
    assert isinstance(value, Literal)
    assert value.datatype == XSD.decimal
    assert len(support(kg, chain, "?length", [value])[value]) == 2
    assert len(support(kg, chain, "?part", [node])[node]) == 2
    monkeypatch.setattr(provenance, "SUPPORT_ROWS", 0)
    assert support(kg, chain, "?part", [node]) == {node: ()}  # a blank node cannot be asked for by name


def test_filters_hold_for_the_support_too() -> None:
    chain = query((iri("arrival").n3(), DIRECTOR, "?who"), ("?film", DIRECTOR, "?who"))
    only = f"FILTER(?film != {iri('dune').n3()}) "
    found = support(films(), replace(chain, filters=only), "?who", [iri("denis")])
    assert (iri("dune"), iri("director"), iri("denis")) not in found[iri("denis")]


@pytest.mark.parametrize(
    ("patterns", "witnesses"),
    [
        ([(iri("arrival").n3(), DIRECTOR, iri("denis").n3())], 1),
        ([("?film", DIRECTOR, iri("denis").n3()), ("?film", STARRING, iri("amy").n3())], 2),
        ([("?film", DIRECTOR, iri("amy").n3())], 0),
    ],
)
def test_the_witness_of_a_yes(patterns: list[tuple[str, str, str]], witnesses: int) -> None:
    triples = witness(films(), query(*patterns))
    assert len(triples) == witnesses
    assert in_graph(triples)
