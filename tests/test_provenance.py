"""The support of the values of an answer."""

from typing import Any

import pytest
import rdflib
from rdflib import XSD, BNode, Literal, URIRef
from small import EX, FILMS, films, iri

from kgwb.kg import queries
from kgwb.kg.algebra import term_from_text, variables_of
from kgwb.kg.queries import CandidateQuery, find_ask_support, find_support_by_value, where_clause
from kgwb.terms import Triple

GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")
BORN = "?film director ?who, ?who birthPlace ?place"


def query(text: str, filters: str = "") -> CandidateQuery:
    """Return a query of patterns, written as "?film director denis, ?film starring ?actor"."""
    patterns = tuple(
        tuple(word if word[0] == "?" else iri(word).n3() for word in pattern.split())
        for pattern in text.split(", ")
    )
    return CandidateQuery("", patterns, (), 1.0, filters)  # type: ignore[arg-type]


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
def test_terms_are_read_from_their_n_triples_form(text: str, term: object) -> None:
    assert term_from_text(text) == term


def test_variables_come_in_order_of_appearance() -> None:
    two = query("?b director ?a, ?a birthPlace ?b")
    assert variables_of(two.patterns) == ("?b", "?a")
    director, place = iri("director").n3(), iri("birthPlace").n3()
    assert where_clause(two) == f"?b {director} ?a . ?a {place} ?b ."


def test_a_single_variable_needs_no_query() -> None:
    nobody: Any = object()
    found = find_support_by_value(nobody, query("arrival director ?who"), "?who", [iri("denis")])
    assert found == {iri("denis"): ((iri("arrival"), iri("director"), iri("denis")),)}


def supporting_triples(value: str, text: str, filters: str = "") -> str:
    """Return the support of a value of ?x, in short names."""
    triples = find_support_by_value(films(), query(text, filters), "?x", [iri(value)])[iri(value)]
    return ", ".join(
        sorted(" ".join(term.removeprefix(EX) for term in triple) for triple in triples)
    )


def test_a_value_has_the_triples_of_all_its_bindings_that_pass_the_filters() -> None:
    joined = supporting_triples("dune", "denis birthPlace ?place, ?x director denis")
    assert joined == "denis birthPlace gentilly, dune director denis"
    both = supporting_triples("arrival", "?x starring ?actor, ?x director denis")
    assert both == "arrival director denis, arrival starring amy, arrival starring jeremy"
    others = "arrival director ?x, ?film director ?x"
    filtered = supporting_triples("denis", others, f"FILTER(?film != {iri('dune').n3()}) ")
    assert filtered == "arrival director denis, sicario director denis"


@pytest.mark.parametrize("at_once", [1, 50])
def test_values_without_a_binding_in_the_first_rows_are_queried_by_name(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(queries, "MAX_SUPPORT_BINDINGS", 1)
    monkeypatch.setattr(queries, "VALUES_PER_QUERY", at_once)
    found = find_support_by_value(
        films(), query(BORN), "?place", [iri("gentilly"), iri("missoula")]
    )
    assert all(len(triples) >= 2 and in_graph(triples) for triples in found.values())


def test_many_values_need_few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films(
        FILMS + "".join(f":f{n} :director :d{n} . :d{n} :birthPlace :c{n} ." for n in range(1500))
    )
    select, queries = kg.select, list[str]()
    monkeypatch.setattr(kg, "select", lambda query: queries.append(query) or select(query))
    values = [iri(f"c{n}") for n in range(1500)]
    strangers = [iri(f"nowhere{n}") for n in range(120)]
    found = find_support_by_value(kg, query(BORN), "?place", [*strangers, *values])
    assert [value for value, triples in found.items() if len(triples) == 2] == values
    assert len(queries) < 40


def test_the_triples_of_a_value_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_TRIPLES_PER_VALUE", 2)
    gentilly = iri("gentilly")
    found = find_support_by_value(films(), query(BORN), "?place", [gentilly])
    assert len(found[gentilly]) == 2


def test_literals_and_blank_nodes_can_be_values(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films(
        FILMS + ':arrival :part [ :length "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> ] .'
    )
    chain = query("arrival part ?part, ?part length ?length")
    [(node, value)] = kg.select(f"SELECT ?part ?length WHERE {{ {where_clause(chain)} }}").rows
    assert isinstance(node, BNode)
    assert isinstance(value, Literal)
    assert value.datatype == XSD.decimal
    assert len(find_support_by_value(kg, chain, "?length", [value])[value]) == 2
    assert len(find_support_by_value(kg, chain, "?part", [node])[node]) == 2
    monkeypatch.setattr(queries, "MAX_SUPPORT_BINDINGS", 0)
    assert find_support_by_value(kg, chain, "?part", [node]) == {
        node: ()
    }  # a blank node cannot be asked for by name


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("arrival director denis", 1),
        ("?x director denis, ?x starring amy", 2),
        ("?x director amy", 0),
    ],
)
def test_a_true_ask_has_the_triples_of_one_binding(text: str, count: int) -> None:
    triples = find_ask_support(films(), query(text))
    assert len(triples) == count
    assert in_graph(triples)
