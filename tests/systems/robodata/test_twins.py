"""RoboData on a graph in which everything has a twin: each id stands for one term."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from machine import answered, goes, produce, script, search, use
from nasty_graphs import a, b, twins
from rdflib import BNode, Literal, URIRef
from small import answer_of

import kgwb
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.systems.robodata.records import LocalGraph

KG = twins()


def whole_graph() -> LocalGraph:
    """The graph of twins as a local graph, without blank nodes, which no tool fetches."""
    triples = []
    for triple in KG.select("SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o").rows:
        if not any(isinstance(term, BNode) for term in triple):
            triples.append(triple)
    iris = sorted({term for triple in triples for term in triple if isinstance(term, URIRef)})
    return LocalGraph().with_names(KG.names(iris).items()).with_triples([], triples)


LOCAL = whole_graph()
SHOWN = LOCAL.format_for_prompt(1_000_000).splitlines()
TRIPLES = SHOWN[SHOWN.index("Triples") + 1 :]
IDS = sorted({id_ for line in TRIPLES for id_ in line.split(" | ")[::2]})


def as_written(shown_id: str) -> str:
    """An id as the model is told to write it: a literal without its quotes."""
    return re.sub(r'^"(.*)"((?:@|\^\^)\S+)?$', r"\1\2", shown_id)


def produced_with(*answers: str, support: Any = ()) -> Run:
    """A run that has the whole graph as its local graph, and produces these answers."""
    run, _ = answered(KG, produce=produce())
    run.override("local_graph[turn 5]", LOCAL)
    replies = script(produce=produce(*support, answers=answers))
    return run.fork(models=Scripted(replies)).go()


def test_every_node_is_shown_under_an_id_of_its_own() -> None:
    assert len(IDS) == len(LOCAL.nodes)
    assert len({as_written(id_) for id_ in IDS}) == len(IDS)
    assert len(set(TRIPLES)) == len(TRIPLES) == len(LOCAL.support)


@pytest.mark.parametrize("shown_id", IDS)
def test_each_id_that_is_shown_can_be_chosen(shown_id: str) -> None:
    for id_ in (shown_id, as_written(shown_id)):
        [(node,)] = LOCAL.find_elements([id_])
        assert LOCAL.id_mapping.format_id(node) == shown_id


def test_answers_and_support_are_the_terms_whose_ids_are_given() -> None:
    ids = [as_written(id_) for id_ in IDS]
    support = [[as_written(id_) for id_ in line.split(" | ")] for line in TRIPLES]
    run = produced_with(*ids, support=support)
    produced = run.output("produce")
    assert set(produced.answers) == set(LOCAL.nodes)
    assert produced.sentences[0].support == LOCAL.support
    assert produced.sentences[0].failed == ()
    assert len(answer_of(run).values) == len(LOCAL.nodes)


@pytest.mark.parametrize(
    ("id_", "term"),
    [
        ("Same@en", Literal("Same", lang="en")),
        ('"Same"@de', Literal("Same", lang="de")),
        ("5^^xsd:integer", Literal(5)),
        ('"5"^^xsd:string', Literal("5")),
        ('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', Literal(5)),
        ("http://example.org/a/dune", a("dune")),
        ("<http://example.org/a/dune>", a("dune")),
        ('"http://example.org/a/dune"^^xsd:string', Literal("http://example.org/a/dune")),
        ('"a:dune"^^xsd:string', Literal("a:dune")),
        ("dune", Literal("dune")),
        ('"dune"', Literal("dune")),
        ("orange", Literal("orange")),
        ('"1"^^<http://example.org/a/day>', Literal("1", datatype=a("day"))),
        ('"1"^^<http://example.org/b/day>', Literal("1", datatype=b("day"))),
    ],
)
def test_a_text_means_the_term_that_it_describes(id_: str, term: Any) -> None:
    assert LOCAL.find_elements([id_]) == ((term,),)


def test_a_text_that_several_nodes_have_means_all_of_them_and_is_noted() -> None:
    run = produced_with("Same")
    assert set(run.output("produce").answers) == {Literal("Same", lang=tag) for tag in ("en", "de")}
    [note] = run["produce"].notes
    assert "Same" in note


def test_ids_do_not_change_where_nothing_has_a_twin() -> None:
    plain = LocalGraph().with_triples([], [(a("dune"), a("name"), Literal("Same", lang="en"))])
    assert '"Same"@en' not in plain.format_for_prompt(1_000)
    assert plain.find_elements(["Same"]) == plain.find_elements(["Same@en"]) != ()


def test_results_that_are_shown_together_tell_terms_apart() -> None:
    query = "SELECT ?x WHERE { <%s> <%s> ?x }"
    english = query % (a("dune"), a("name"))
    remote = [
        goes("REMOTE", search()),
        goes(
            "EVAL_REMOTE", use("sparql_query", sparql=english), use("sparql_query", sparql=english)
        ),
    ]
    _, model = answered(KG, remote=remote)
    [results] = [
        request.variables["results"]
        for request in model.requests
        if request.task == "robodata/eval_remote"
    ]
    rows = [line for line in str(results).splitlines() if "Same" in line]
    assert sorted(set(rows)) == ['  "Same"@de', '  "Same"@en']


def test_errors_of_queries_that_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    padding = "# " + "x" * 200 + "\n"
    bad = [padding + "SELECT ?x { ?x", padding + "DESCRIBE <http://e/x>"]
    uses = [use("sparql_query", sparql=query) for query in bad]
    run, _ = answered(KG, remote=[goes("REMOTE", search()), goes("EVAL_REMOTE", *uses)])
    errors = [step.output.error for step in run.steps if step.agent == "sparql_query"]
    assert len(set(errors)) == 2
    loaded = kgwb.load_run(run.save(tmp_path / "run.jsonl"))
    assert errors == [step.output.error for step in loaded.steps if step.agent == "sparql_query"]


def test_a_prefix_is_not_taken_for_the_scheme_of_an_iri() -> None:
    odd = URIRef("http://example.org/http/thing")
    ids = LocalGraph().with_names([(odd, "thing")]).id_mapping
    assert ids.format_id(odd) == "http:thing"
    assert ids.parse_id("http://example.org/a/dune") == a("dune")
    assert ids.parse_id("http:thing") == odd
