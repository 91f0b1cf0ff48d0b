"""The support of the rows of any query, and of the values of a variable of some patterns."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib import RDF, RDFS, XSD, BNode, Literal
from small import EX, FILMS, films, iri
from tables import read_table

from kgwb.errors import KgwbError
from kgwb.kg import queries
from kgwb.kg.base import ResultSet
from kgwb.kg.findings import SchemaFacts, inspect_result
from kgwb.kg.queries import (
    CandidateQuery,
    find_ask_support,
    find_support_by_row,
    find_support_by_value,
    where_clause,
)
from kgwb.terms import Triple

START = f"PREFIX : <{EX}> PREFIX rdfs: <{RDFS}> "


def supported(query: str, turtle: str = FILMS) -> dict[tuple[str, ...], list[str]]:
    """Return the rows of a query with their triples, in short names."""
    kg, sparql = films(turtle), query if query.startswith("PREFIX") else START + query
    if query.startswith("ASK"):
        assert kg.ask(sparql)
        found = find_support_by_row(kg, sparql, (), ())
    else:
        rows = kg.select(sparql)
        found = find_support_by_row(kg, sparql, rows.variables, list(dict.fromkeys(rows.rows)))
    return {
        tuple(map(short, row)): sorted(" ".join(map(short, t)) for t in triples)
        for row, triples in found.items()
    }


def short(term: object) -> str:
    return str(term).replace(EX, "").replace(str(RDFS), "").replace(str(RDF), "")


def directed(*names: str, by: str = "denis") -> list[str]:
    return [f"{name} director {by}" for name in names]


OWN = {(name,): directed(name) for name in ("arrival", "dune", "sicario")}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?f WHERE { ?f :director :denis }",
        "SELECT * { ?f :director :denis }",
        "SELECT (?f AS ?film) WHERE { ?f :director :denis }",
        "SELECT ?film WHERE { ?f :director :denis BIND(?f AS ?film) }",
        "SELECT ?film WHERE { ?f :director :denis } GROUP BY (IRI(STR(?f)) AS ?film)",
        "SELECT ?f WHERE { ?f :director ?d } VALUES ?d { :denis }",
        "SELECT ?f WHERE { BIND(:denis AS ?d) ?f :director ?d }",
        "SELECT ?f WHERE { VALUES ?d { :denis } ?f :director ?d }",
        "SELECT ?f # of {\nWHERE { ?f :director :denis # }\n }",
        "SELECT ?f WHERE { ?f :director :denis FILTER(STR(?f) != '''}'{''' && STR(?f) != \"\"\"}\"{\"\"\") }",
        "PREFIX ask: <http://example.org/> SELECT ?f WHERE { ?f ask:director ask:denis }",
        "PREFIX : <http://example.org/> PREFIX x: <x:select/ask> SELECT ?f { ?f :director :denis }",
        "SELECT DISTINCT ?f WHERE { ?f :director :denis ; ?any ?value MINUS { ?f :director :lynch } "
        "FILTER NOT EXISTS { ?f :nothing ?x } FILTER(!EXISTS { ?f :nothing ?x }) FILTER(?any = :director) }",
        "SELECT ?f WHERE { ?f :director ?d FILTER(?d = :denis) OPTIONAL { ?f :no ?x } } ORDER BY ?f LIMIT 3",
    ],
)  # fmt: skip
def test_each_row_has_the_triples_of_its_solutions(query: str) -> None:
    assert supported(query) == OWN


def test_the_patterns_of_union_and_optional_count_where_they_match() -> None:
    union = "SELECT ?x WHERE { { ?x :director :lynch } UNION { ?x :runtime ?m } UNION { ?x :author ?a } }"
    assert supported(union) == {
        ("lynchs_dune",): directed("lynchs_dune", by="lynch"),
        ("arrival",): ["arrival runtime 116"],
        ("story",): ["story author ted"],
    }
    optional = "SELECT ?f ?m WHERE { ?f :director :denis OPTIONAL { ?f :runtime ?m } }"
    assert supported(optional) == {
        ("arrival", "116"): [*directed("arrival"), "arrival runtime 116"],
        ("dune", "None"): directed("dune"),
        ("sicario", "None"): directed("sicario"),
    }


def test_the_triples_of_a_row_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_TRIPLES_PER_VALUE", 2)
    found = supported("SELECT (COUNT(*) AS ?n) { ?f :director :denis ; a ?type }")
    assert [len(triples) for triples in found.values()] == [2]


@pytest.mark.parametrize(("made", "by"), [("", "?d"), ("BIND(STR(?d) AS ?name)", "?name")])
def test_a_group_has_the_triples_that_were_counted(made: str, by: str) -> None:
    query = f"SELECT {by} (COUNT(?f) AS ?n) WHERE {{ ?f :director ?d {made} }} GROUP BY {by}"
    counted = {
        "3": directed("arrival", "dune", "sicario"),
        "1": directed("lynchs_dune", by="lynch"),
    }
    assert {row[1]: triples for row, triples in supported(query).items()} == counted
    whole = "SELECT (COUNT(?f) AS ?n) ((COUNT(?f) * 2) AS ?m) WHERE { ?f :director :denis }"
    assert supported(whole) == {("3", "6"): directed("arrival", "dune", "sicario")}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?f (CONCAT('count (', STR(?f)) AS ?n) WHERE { ?f :director :denis }",
        "SELECT (CONCAT('min(?x)', STR(?f)) AS ?n) WHERE { ?f :director :denis }",
        "SELECT (COUNT(*) AS ?x) (CONCAT('is ?x ', STR(?f)) AS ?n) WHERE { ?f :director :denis } "
        "GROUP BY ?f",
        "SELECT ?f WHERE { ?f :director :denis } GROUP BY ?f HAVING(' VALUES ?f' != STR(?f))",
        "SELECT ?f WHERE { ?f :director :denis } ORDER BY (STR(?f) = '\t values')",
        "SELECT ?f WHERE { ?f :director :denis } GROUP BY ?f ORDER BY (?f = <http://e/?a=VALUES>)",
        "SELECT ?f WHERE { ?f :director ?d FILTER(STR(?f) != ' BIND ') }VALUES ?d{ :denis }",
    ],
)
def test_words_inside_of_strings_and_iris_are_no_keywords(query: str) -> None:
    assert sorted(supported(query).values()) == sorted(OWN.values())


def test_an_ask_has_the_triples_of_one_solution() -> None:
    assert supported("ASK { ?f :director :lynch ; rdfs:label ?name }") == {
        (): [*directed("lynchs_dune", by="lynch"), "lynchs_dune label Dune"]
    }
    assert supported("ASK { FILTER NOT EXISTS { :dune :director :lynch } }") == {(): []}
    assert len(supported("ASK { ?f :director :denis }")[()]) == 1


def test_the_from_clause_is_kept() -> None:
    sparql = START + "SELECT ?f FROM :nowhere WHERE { ?f :director :denis }"
    dune = (iri("dune"),)
    assert find_support_by_row(films(), sparql, ("f",), [dune]) == {dune: ()}


def test_blank_nodes_of_the_graph_and_of_the_query_are_supported() -> None:
    priced = "@prefix : <http://example.org/> . :a :price [ :amount 3 ] . :b :price [ :amount 4 ] ."
    kg = films(priced)
    sparql = START + "SELECT ?x ?n WHERE { ?x :price ?p . ?p :amount ?n }"
    rows = kg.select(sparql)
    for row, triples in find_support_by_row(kg, sparql, rows.variables, rows.rows).items():
        [price] = [triple for triple in triples if triple[1] == iri("price")]
        [amount] = [triple for triple in triples if triple[1] == iri("amount")]
        assert (
            (price[0], amount[2]) == row and isinstance(price[2], BNode) and price[2] == amount[0]
        )
    same = supported("SELECT ?x WHERE { _:x :price ?y . ?x :price ?z }", priced)
    assert sorted(same) == [("a",), ("b",)]


# --- anything at all


@pytest.mark.parametrize("query", read_table(Path(__file__).with_name("any_queries.jsonl")))
def test_any_text_gives_a_result_or_an_error_of_kgwb(query: str) -> None:
    kg = films(row_limit=50)
    sparql = query if query.startswith("BASE") else START + query
    try:
        result = kg.ask(sparql) if query.startswith("ASK") else kg.select(sparql)
    except KgwbError as error:
        assert error.message
        result = ResultSet(("f",), ())
    rows = () if isinstance(result, bool) else tuple(dict.fromkeys(result.rows))
    for finding in inspect_result(kg, sparql, result, SchemaFacts((iri("director"),))):
        assert finding.text
    with suppress(KgwbError):
        found = find_support_by_row(
            kg, sparql, () if isinstance(result, bool) else result.variables, rows
        )
        assert set(found) == (set(rows) or {()})


# The support of the values of a variable

GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")
BORN = "?film director ?who, ?who birthPlace ?place"


def query(text: str, filters: str = "") -> CandidateQuery:
    """Return a query of patterns, written as "?film director denis, ?film starring ?actor"."""
    patterns = tuple(
        tuple(word if word[0] == "?" else iri(word).n3() for word in pattern.split())
        for pattern in text.split(", ")
    )
    return CandidateQuery("", patterns, (), 1.0, filters)  # type: ignore[arg-type]


def test_no_query_is_sent_about_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = films()
    monkeypatch.setattr(kg, "select", None)
    name = (RDFS.label,)
    found = [
        queries.describe_vertices(kg, ()),
        queries.count_degrees(kg, (), 5),
        queries.find_schema_terms(kg, ()),
        queries.find_exact_values(kg, [""]),
        queries.find_values_containing(kg, (), "Dune"),
        queries.find_values_containing(kg, name, "D"),
    ]
    assert not any(found)
    assert queries.find_values_containing(films(), name, "of")


def in_graph(triples: tuple[Triple, ...]) -> bool:
    return all(triple in GRAPH for triple in triples)


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
    select, asked = kg.select, list[str]()
    monkeypatch.setattr(kg, "select", lambda query: asked.append(query) or select(query))
    values = [iri(f"c{n}") for n in range(1500)]
    strangers = [iri(f"nowhere{n}") for n in range(120)]
    found = find_support_by_value(kg, query(BORN), "?place", [*strangers, *values])
    assert [value for value, triples in found.items() if len(triples) == 2] == values
    assert len(asked) < 40


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
