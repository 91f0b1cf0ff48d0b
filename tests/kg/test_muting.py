"""A graph without some of its triples, and a run on such a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdflib
from rdflib import RDFS, BNode, Literal, URIRef
from small import FILMS, films, iri

import kgwb
from kgwb.errors import GraphError, QueryError, SettingError
from kgwb.kg import Graph, cache_dir
from kgwb.kg.local import LocalGraph
from kgwb.terms import Triple

X = "PREFIX : <http://x/> "
DATA = """
@prefix : <http://x/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p "plain", "text"@en, 5, 5.0, true, "2016"^^xsd:gYear, "NaN"^^xsd:double, "abc"^^xsd:integer, :b .
:a :q :b ; :r :c . :b :p :c ; :r :c . :c :p :d .
"""
QUERIES = [
    "SELECT * { ?s ?p ?o }",
    "SELECT ?x ?y { ?x :q* ?y }",
    "SELECT ?x { :a !(^:q|:r) ?x }",
    "SELECT * { [] :p [] }",
    "SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(?o) > 1)",
    "SELECT ?s ?o { ?s :q ?o FILTER NOT EXISTS { ?o :p ?z } }",
    "ASK { :b :r :c }",
    "DESCRIBE :a",
]


def answers(kg: Graph, query: str) -> object:
    if query.startswith("ASK"):
        return kg.ask(X + query)
    rows = kg.construct(X + query) if query.startswith("DESCRIBE") else kg.select(X + query).rows
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
    whole = kgwb.open_kg(graph_of(DATA))
    here, there = whole.without(triple), kgwb.open_kg(graph_of(DATA).remove(triple))
    assert {query: answers(here, query) for query in QUERIES} == {
        query: answers(there, query) for query in QUERIES
    }
    assert here.whole_graph is whole and here.identity == whole.identity
    assert len(whole.select("SELECT * { ?s ?p ?o }").rows) == len(graph_of(DATA))


def test_further_triples_are_muted_too_and_a_triple_that_is_not_there_changes_nothing() -> None:
    whole = kgwb.open_kg(graph_of(DATA))
    two = whole.without(APB).without((x("a"), x("q"), x("b")), APB)
    assert two.muted == (APB, (x("a"), x("q"), x("b")))
    assert not two.ask("ASK { ?s ?p <http://x/b> }")
    absent = whole.without((x("a"), x("p"), Literal("5")))
    assert answers(absent, QUERIES[0]) == answers(whole, QUERIES[0])


def test_a_triple_is_muted_in_every_named_graph() -> None:
    dataset = rdflib.Dataset()
    for name in ("g", "h"):
        dataset.add((*APB, x(name)))
        dataset.add((x("a"), x("p"), x(name), x(name)))
    muted = kgwb.open_kg(dataset).without(APB)
    assert len(muted.select("SELECT * { ?s ?p ?o }").rows) == 2
    assert not muted.ask(f"{X} ASK {{ GRAPH ?g {{ :a :p :b }} }}")


@pytest.mark.parametrize(("has_copies", "most"), [(True, 99), (False, 0), (False, 99)])
def test_a_graph_in_the_cache_is_copied_beside_it_or_into_memory(
    tmp_path: Path, has_copies: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgwb.kg.files.MAX_COPIES", most)
    monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 0)
    file = tmp_path / "graph.ttl"
    file.write_text(DATA + ':a :p [ :q "blank" ] .')
    whole = LocalGraph.open(file)
    cache = cache_dir() / "graphs"
    if most and not has_copies:
        monkeypatch.setattr("kgwb.kg.files.cache_dir", lambda: tmp_path / "none")
    muted = whole.without(APB)
    assert len(list(cache.glob(".muted-*"))) == has_copies
    assert not muted.ask(f"{X} ASK {{ :a :p :b }}") and whole.ask(f"{X} ASK {{ :a :p :b }}")
    again = muted.without((x("b"), x("p"), x("c")))
    blank = "SELECT ?x { ?x <http://x/q> 'blank' }"
    assert again.select(blank) == whole.select(blank)


@pytest.mark.parametrize(
    ("triple", "error"),
    [
        (("Inception", "director", "Christopher Nolan"), "not a triple"),
        ((BNode("b"), x("p"), x("b")), "blank node"),
        ((x("a"), x("p"), URIRef("http://x/a b")), "not an IRI"),
    ],
)
def test_what_no_query_can_name_is_not_muted_and_no_copy_is_made_before(
    triple: Triple, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("kgwb.kg.local.copy_store")
    with pytest.raises(QueryError, match=error):
        kgwb.open_kg(graph_of(DATA)).without(triple)


def test_a_triple_of_an_endpoint_is_not_muted() -> None:
    with pytest.raises(GraphError, match="endpoint") as refused:
        kgwb.open_kg("http://127.0.0.1:1/sparql").without(APB)
    assert "CONSTRUCT" in refused.value.hint


def test_a_muted_label_is_not_found_and_not_used_as_a_name() -> None:
    label = iri("arrival"), RDFS.label, Literal("Arrival")
    muted, there = films().without(label), kgwb.open_kg(graph_of(FILMS).remove(label))
    assert label in graph_of(FILMS) and films().exact(["Arrival"]) == {"Arrival": (iri("arrival"),)}
    for text in ("Arrival", "arrivals", "Dune", "Denis"):
        assert muted.search(text, 5) == there.search(text, 5)
        assert muted.exact([text]) == there.exact([text])
    assert muted.names([iri("arrival")]) == there.names([iri("arrival")])


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
    again = kgwb.load_run(muted.save(tmp_path / "muted.jsonl"))
    assert (again.answer, again.kg.muted, again.status) == (muted.answer, (triple,), "done")
    assert [step.calls for step in again.steps] == [step.calls for step in muted.steps]
    assert muted.graph.whole_graph is run.unrecorded_graph
    assert again.graph.whole_graph is again.graph
    live = kgwb.load_run(tmp_path / "muted.jsonl", kg="films")
    assert (live.answer, live.kg.muted) == (muted.answer, (triple,))
    with pytest.raises(SettingError, match="replay"):
        again.mute(triple)
    calls = [muted.calls[key] for step in muted.steps for key in step.calls]
    asked = [call for call in calls if call.kind in ("select", "ask", "search", "exact", "names")]
    assert asked and all("muted" in call.request for call in asked)
