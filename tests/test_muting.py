"""A graph without some of its triples, and a run on such a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdflib
from rdflib import RDFS, BNode, Literal, URIRef
from small import FILMS, films, iri

import kgwb
from kgwb.errors import QueryError, SettingError
from kgwb.kg import Graph
from kgwb.kg.muting import rewrite_without
from kgwb.show.notebook import to_html
from kgwb.terms import Triple

X = "PREFIX : <http://x/> "
DATA = """
@prefix : <http://x/> .
:a :p "plain", "text"@en, 5, 5.0, true, "2016"^^<http://www.w3.org/2001/XMLSchema#gYear>, :b ; :q :b ; :r :c .
:b :p :c ; :r :c . :c :p :d .
"""
QUERIES = [
    "SELECT * { ?s ?p ?o }",
    "SELECT ?o { :a :p ?o }",
    'SELECT ?s { ?s :p 5, "text"@en ; :r :c . }',
    "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(?o) > 1)",
    "SELECT ?s ?o { ?s :q ?o FILTER NOT EXISTS { ?o :p ?z } }",
    "SELECT ?s ?x { ?s :q ?b OPTIONAL { ?b :p ?x } MINUS { ?s :p :b } }",
    "SELECT (EXISTS { :b :p :c } AS ?yes) { { SELECT ?b { :a :q ?b } } ?b ?p ?o BIND(1 < 2 AS ?z) }",
    "SELECT ?x ?v { VALUES ?v { :a :b } { ?v :r ?x } UNION { ?v :q ?x } } VALUES ?x { :b :c }",
    "SELECT ?x { :a :q/:p/:p ?x }",
    "SELECT ?x { ?x ^(:q|:r)/:s* :b }",
    "SELECT * { :a :q [ :p ?x ; :r [] ] . ?y :p _:z }",
    "SELECT (COUNT(*) AS ?n) { [] :p/:p ?x }",
    "SELECT ?g ?x { { GRAPH ?g { :a :q ?x } } UNION { :a :q ?x } }",
    "ASK { :b :r :c }",
    "ASK { :a :q ?x . ?x :p ?y FILTER(?x != ?y) }",
    "CONSTRUCT WHERE { :a ?p ?o }",
    "CONSTRUCT { ?o :was ?s } WHERE { ?s :q ?o }",
]


def answers(kg: Graph, query: str) -> object:
    if query.startswith("ASK"):
        return kg.ask(X + query)
    rows = kg.construct(X + query) if query.startswith("CONSTRUCT") else kg.select(X + query).rows
    return sorted(repr(row) for row in rows)


def x(name: str) -> URIRef:
    return URIRef(f"http://x/{name}")


APB = x("a"), x("p"), x("b")


def graph_of(text: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=text, format="turtle")


@pytest.mark.parametrize(
    "triple", sorted(graph_of(DATA), key=repr), ids=lambda triple: str(triple[2])[-5:]
)
def test_every_query_answers_as_on_the_graph_without_the_triple(triple: Triple) -> None:
    lacking = graph_of(DATA).remove(triple)
    here, there = kgwb.open_kg(graph_of(DATA)).without(triple), kgwb.open_kg(lacking)
    assert {query: answers(here, query) for query in QUERIES} == {
        q: answers(there, q) for q in QUERIES
    }


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT ?x { :a :p+ ?x }", "the path <http://x/p>+ leads over its predicate"),
        ("SELECT ?x { :a !(^:q|:r) ?x }", "leads over its predicate"),
        ("SELECT * { [] :p [] }", "SELECT * selects no variable"),
        (
            "SELECT ?x { _:n :p ?x FILTER(?x = 3) _:n :q ?y }",
            "the blank node _:n stands in several groups",
        ),
        (
            "SELECT ?x { ?x :p ?y FILTER((?x<?y))FILTER(?x>?y) ?y :p ?x }",
            "its groups are not clear",
        ),
        ("DESCRIBE :a", "what DESCRIBE gives is the engine's choice"),
    ],
)
def test_a_query_that_cannot_be_rewritten_is_an_error(query: str, why: str) -> None:
    kg = kgwb.open_kg(graph_of(DATA)).without(APB)
    with pytest.raises(QueryError, match="cannot be kept out") as refused:
        (kg.construct if query.startswith("DESC") else kg.select)(X + query)
    assert why in refused.value.message and refused.value.hint


def test_a_path_that_may_be_empty_is_refused_only_if_the_graph_loses_a_node() -> None:
    query = X + "SELECT ?x ?y { ?x :q* ?y }"
    keeps_all_nodes = kgwb.open_kg(graph_of(DATA)).without(APB)
    assert len(keeps_all_nodes.select(query).rows) == len(open_without().select(query).rows) > 5
    loses_d = kgwb.open_kg(graph_of(DATA)).without((x("c"), x("p"), x("d")))
    with pytest.raises(QueryError, match="may match one of its nodes with itself"):
        loses_d.select(query)


def open_without() -> Graph:
    """The graph that really lacks the triple APB."""
    return kgwb.open_kg(graph_of(DATA).remove(APB))


ODD_NUMBERS = """
@prefix : <http://x/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :int 1, 7, 123456789012345678901234567890, "abc"^^xsd:integer, ""^^xsd:integer .
:a :dec 1.5, 123456789012345678901234567890.5, "x"^^xsd:decimal .
:a :double 1.5e0, "NaN"^^xsd:double, "INF"^^xsd:double, "-INF"^^xsd:double .
:a :float "NaN"^^xsd:float, "1.5"^^xsd:float .
"""


@pytest.mark.parametrize(
    "triple", sorted(graph_of(ODD_NUMBERS), key=repr), ids=lambda triple: str(triple[2])[-7:]
)
def test_no_other_number_is_muted_with_one_that_cannot_be_compared(triple: Triple) -> None:
    query = "SELECT ?s ?p ?o { ?s ?p ?o }"
    whole = kgwb.open_kg(graph_of(ODD_NUMBERS))
    alone = kgwb.open_kg(rdflib.Graph().add(triple))
    everything = set(whole.select(query).rows)
    left = set(whole.without(triple).select(query).rows)
    assert everything - left == set(alone.select(query).rows)


@pytest.mark.parametrize(
    "query", ["SELECT ?o { no:a no:p ?o }", "SELECT ?o { ?s no:p/no:q ?o }", "ASK { no:a ?p 5 }"]
)
def test_an_undeclared_prefix_is_the_same_error_with_and_without_a_muted_triple(query: str) -> None:
    kg = kgwb.open_kg(graph_of(DATA))
    ask = kg.ask if query.startswith("ASK") else kg.select
    with pytest.raises(QueryError, match="does not declare no:") as without_muting:
        ask(query)
    with pytest.raises(QueryError) as with_muting:
        rewrite_without(query, (APB,))  # a run does this before it asks the graph
    assert str(with_muting.value) == str(without_muting.value)


def test_paths_over_other_predicates_are_kept_and_invalid_triples_are_errors() -> None:
    kg = kgwb.open_kg(graph_of(DATA)).without(APB)
    assert kg.select(X + "SELECT ?x { :a :q+ ?x }").rows == ((x("b"),),)
    with pytest.raises(QueryError, match="not a triple"):
        kg.without(("Inception", "director", "Christopher Nolan"))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="blank node and cannot be muted"):
        kg.without((BNode("b"), x("p"), x("b")))


def test_a_muted_label_is_not_found_and_not_used_as_a_name() -> None:
    label = iri("arrival"), RDFS.label, Literal("Arrival")
    muted, there = films().without(label), kgwb.open_kg(graph_of(FILMS).remove(label))
    assert label in graph_of(FILMS) and films().exact(["Arrival"]) == {"Arrival": (iri("arrival"),)}
    for text in ("Arrival", "arrivals", "Dune", "Denis"):
        assert muted.search(text, 5) == there.search(text, 5)
        assert muted.exact([text]) == there.exact([text])


def test_a_thing_without_a_label_is_not_found_once_its_last_fact_is_muted() -> None:
    schema = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :a rdfs:isDefinedBy :apple ."
    graph = graph_of(
        f"@prefix : <http://x/> . {schema} :apple :p :b ; rdfs:seeAlso :c . :b :p :c ."
    )
    fact = x("apple"), x("p"), x("b")
    assert kgwb.open_kg(graph).search("apple", 5).hits
    muted = kgwb.open_kg(graph).without(fact)
    assert not kgwb.open_kg(graph.remove(fact)).search("apple", 5).hits
    assert not muted.search("apple", 5).hits


def test_a_run_without_a_triple_has_another_answer_and_replays_the_same(tmp_path: Path) -> None:
    run = kgwb.Workbench(kgwb.open_kg("films")).ask("Who directed Arrival?")
    assert run.answer is not None
    [triple] = run.answer.support
    muted = run.mute(triple).go()
    assert muted.answer is not None and "Denis Villeneuve" not in muted.answer.labels
    assert "without 1 triple" in repr(muted) and "without Arrival — director" in str(to_html(muted))
    parting = run.diff(muted).first_difference
    assert parting is not None and parting.status == "changed"
    assert run.answer.labels == ("Denis Villeneuve",) and not run.kg.muted
    again = kgwb.load_run(muted.save(tmp_path / "muted.jsonl"))
    assert (again.answer, again.kg.muted, again.status) == (muted.answer, (triple,), "done")
    assert [step.calls for step in again.steps] == [step.calls for step in muted.steps]
    for source in (kgwb.open_kg("films"), "films", kgwb.kg.sample_path("films")):
        live = kgwb.load_run(tmp_path / "muted.jsonl", kg=source)
        assert (live.answer, live.kg.muted) == (muted.answer, (triple,))
    with pytest.raises(SettingError, match="replay"):
        again.mute(triple)
    queries = [
        call.request["query"] for call in muted.calls.values() if call.kind in ("select", "ask")
    ]
    assert any("FILTER(!(" in query for query in queries)
