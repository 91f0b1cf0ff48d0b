"""A wrapped graph of rdflib and a wrapped SPARQLWrapper: results inside of a run and outside."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
import small
import SPARQLWrapper as sw
from pipeline_servers import Endpoint
from pyparsing import ParseException
from rdflib.plugins.sparql import prepareQuery
from small import FILMS, answer_of, films, iri

from kgwb import open_kg
from kgwb.build import (
    Answer,
    System,
    agent,
    check_system,
    make_answer,
    system_from_function,
    wrap_rdflib,
    wrap_sparqlwrapper,
)
from kgwb.errors import GraphError, QueryError, SettingError
from kgwb.run import Run
from kgwb.run.answers import CANNOT_EXPRESS, NOT_IN_GRAPH

PREFIX = "PREFIX : <http://example.org/> "
SELECT = (
    PREFIX + "SELECT ?film ?story WHERE { ?film :director ?x OPTIONAL { ?film :basedOn ?story } }"
)
ASK = PREFIX + "ASK { :arrival :director :denis }"
CONSTRUCT = PREFIX + "CONSTRUCT { ?film :by ?person } WHERE { ?film :director ?person }"
DIRECTED = (iri("arrival"), iri("director"), iri("denis"))


def run_of(work: Any) -> Run:
    """A run whose one step does the work; not executed yet."""

    @agent
    def look() -> Any:
        return work()

    def answer(question: Any, dialogue: Any, run: Run) -> Answer:
        return Answer("list", text=str(look()))

    return small.run_of(System("looking", answer, [look]), "Who?", None)


def plain_films() -> rdflib.Graph:
    graph = rdflib.Graph().parse(data=FILMS, format="turtle")
    graph.bind("films", "http://example.org/")
    return graph


# --- rdflib


def test_rows_have_their_variables_as_in_rdflib() -> None:
    graph = plain_films()
    wrapped = wrap_rdflib(graph)

    def rows(asked: rdflib.Graph) -> list[Any]:
        found = asked.query(SELECT)
        return sorted([str(row.film), str(row.story), str(row[0])] for row in found)

    run = run_of(lambda: rows(wrapped)).go()
    assert run.output("look") == rows(graph) == rows(wrapped)
    assert run.totals.queries == 1
    run.go()
    assert len(run.calls) == 1


def test_ask_and_construct_are_as_in_rdflib() -> None:
    wrapped = wrap_rdflib(plain_films())

    def work() -> list[Any]:
        made = wrapped.query(CONSTRUCT).graph
        assert made is not None
        return [bool(wrapped.query(ASK)), sorted(str(triple) for triple in made)]

    expected = work()
    run = run_of(work).go()
    assert run.output("look") == expected
    assert [call.kind for call in run.calls.values()] == ["construct", "ask"]


BOUND_EARLY = {
    "a count": "SELECT (COUNT(?film) AS ?n) { ?film :director ?person }",
    "a group": "SELECT ?p (COUNT(?film) AS ?n) { ?film :director ?person ; ?p ?o } GROUP BY ?p",
    "having": "SELECT ?p { ?film :director ?person ; ?p ?o } GROUP BY ?p HAVING(COUNT(?film) > 2)",
    "a subselect": "SELECT ?film { { SELECT ?film { ?film :director ?person } } ?film a :Film }",
    "a count in a subselect": "SELECT ?n { { SELECT (COUNT(*) AS ?n) WHERE { ?f :director ?person } } }",
    "a yes or no": "ASK { ?film :director ?person FILTER NOT EXISTS { ?film :runtime ?r } }",
    "OPTIONAL": "SELECT ?film ?n { ?film a :Film OPTIONAL { ?film :director ?person ; :runtime ?n } }",
    "MINUS": "SELECT ?film { ?film a :Film MINUS { ?film :director ?person } }",
    "a limit": "SELECT ?film { ?film :director ?person } ORDER BY DESC(?film) LIMIT 1",
}


@pytest.mark.parametrize("query", BOUND_EARLY.values(), ids=BOUND_EARLY.keys())
def test_the_recorded_query_gives_what_the_bindings_gave(query: str) -> None:
    wrapped = wrap_rdflib(plain_films())
    query = f"PREFIX : <{iri('')}> {query}"
    bindings = {"person": iri("denis")}
    run = run_of(lambda: len(list(wrapped.query(query, initBindings=bindings)))).go()
    [call] = run.calls.values()
    recorded = call.request["query"]
    again = plain_films().query(recorded)
    asked = plain_films().query(query, initBindings=bindings)
    assert sorted(again, key=str) == sorted(asked, key=str)
    if query.count("ASK"):
        assert films().ask(recorded) == asked.askAnswer
    else:
        rows = [tuple(map(str, row)) for row in films().select(recorded).rows]
        assert sorted(rows) == sorted(tuple(map(str, row)) for row in asked)  # type: ignore[arg-type]


def test_prefixes_are_in_the_recorded_query() -> None:
    wrapped = wrap_rdflib(plain_films())
    query = "SELECT ?film { ?film k:director ?person }"
    given: Any = {"initBindings": {"person": iri("denis")}, "initNs": {"k": "http://example.org/"}}
    run = run_of(lambda: len(list(wrapped.query(query, **given)))).go()
    [call] = run.calls.values()
    assert len(films().select(call.request["query"]).rows) == run.output("look") == 3


def test_an_update_is_run_as_by_the_plain_graph() -> None:
    wrapped = wrap_rdflib(plain_films())
    added = "INSERT { ?person <urn:directed> ?film } WHERE { ?film :director ?person }"
    wrapped.update(f"PREFIX : <{iri('')}> {added}")
    assert len(list(wrapped.subject_objects(rdflib.URIRef("urn:directed")))) == 4


def test_a_prepared_query_keeps_its_prefixes() -> None:
    wrapped = wrap_rdflib(plain_films())
    prepared = prepareQuery("ASK { p:arrival p:director ?x }", initNs={"p": "http://example.org/"})
    assert run_of(lambda: bool(wrapped.query(prepared))).go().output("look") is True


@pytest.mark.parametrize("store", ["default", "Oxigraph"])
def test_muted_triples_are_seen_by_no_method(store: str) -> None:
    graph = rdflib.Graph(store=store).parse(data=FILMS, format="turtle")
    wrapped = wrap_rdflib(graph)

    def work() -> list[Any]:
        return [
            bool(wrapped.query(ASK)),
            len(list(wrapped.objects(iri("arrival"), iri("director")))),
        ]

    run = run_of(work).go()
    assert run.output("look") == [True, 1]
    assert run.mute(DIRECTED).go().output("look") == [False, 0]
    assert work() == [True, 1]


def system_reading(graph: rdflib.Graph) -> System:
    """A system that reads a graph by a method."""

    def find(question: str) -> list[str]:
        return sorted(map(str, graph.subjects(iri("director"))))

    return system_from_function("reading", find, agents=[])


def system_reading_two(first: rdflib.Graph, second: rdflib.Graph, by_query: bool) -> System:
    """A system with two steps, each of which reads its graph."""

    @agent
    def find_films() -> list[str]:
        return sorted(map(str, first.subjects(iri("director"))))

    @agent
    def find_people() -> list[str]:
        if by_query:
            return sorted(map(str, second.query(PREFIX + "SELECT ?by { ?film :director ?by }")))
        return sorted(map(str, second.objects(None, iri("director"))))

    def answer(question: str) -> list[str]:
        find_films()
        return find_people()

    return system_from_function("two", answer, agents=[find_films, find_people])


@pytest.mark.parametrize("by_query", [True, False])
def test_a_check_finds_the_one_graph_of_two_that_is_not_wrapped(by_query: bool) -> None:
    plain = plain_films()
    wrapped = wrap_rdflib(plain)
    system = system_reading_two(wrapped, plain, by_query)
    for kg in (films(), plain):
        [problem] = check_system(system, "Who?", kg=kg).problems
        assert "find_people" in problem
        assert "find_films" not in problem
    both = system_reading_two(wrapped, wrap_rdflib(plain_films()), by_query)
    assert check_system(both, "Who?", kg=films()).problems == ()


def test_a_check_allows_a_plain_graph_with_other_triples_and_those_of_the_run() -> None:
    ontology = rdflib.Graph()
    ontology.add((iri("director"), iri("inverseOf"), iri("directed")))
    wrapped = wrap_rdflib(plain_films())

    @agent
    def find() -> list[str]:
        inverse = ontology.value(iri("director"), iri("inverseOf"))
        found = wrapped.query(CONSTRUCT).graph
        copied = rdflib.Graph()
        for triple in wrapped:
            copied.add(triple)
        return [
            str(inverse),
            *sorted(str(person) for _, _, person in found or ()),
            str(len(copied)),
        ]

    def answer(question: str) -> list[str]:
        return find()

    triples_before = rdflib.Graph.triples
    system = system_from_function("ontology", answer, agents=[find])
    assert check_system(system, "Who?", kg=films()).problems == ()
    assert rdflib.Graph.triples is triples_before


def test_a_check_without_a_graph_asks_for_none() -> None:
    plain = rdflib.Graph().parse(data=FILMS, format="turtle")
    assert check_system(system_reading(plain), "Who?")


def test_an_answer_that_no_recorded_query_found_has_a_note() -> None:
    graph = wrap_rdflib(rdflib.Graph().parse(data=FILMS, format="turtle"))
    run = small.run_of(system_reading(graph), "Who?", None).go()
    assert answer_of(run).support == ()
    assert any("graph.objects" in note for note in run["to_answer"].notes)


def test_a_graph_that_has_grown_is_asked_again() -> None:
    wrapped = wrap_rdflib(plain_films())
    run = run_of(lambda: len(wrapped.query(SELECT))).go()
    wrapped.add((iri("sicario_2"), iri("director"), iri("amy")))
    assert run.go().output("look") == 5
    assert len(run.calls) == 2


def test_a_query_with_a_mistake_fails_as_in_rdflib() -> None:
    graph = plain_films()
    wrapped = wrap_rdflib(graph)

    def refused(asked: rdflib.Graph) -> bool:
        with pytest.raises((QueryError, ParseException)):
            asked.query("SELECT WHERE {")
        return True

    assert run_of(lambda: refused(wrapped)).go().output("look") and refused(graph)


def annotated() -> rdflib.Graph:
    graph = rdflib.Graph(store="Oxigraph")
    text = "PREFIX : <http://e/> :a :p :b {| :source :c {| :year 2016 |} |} ."
    return graph.parse(data=text, format="ox-turtle")


def test_a_graph_with_annotations_is_asked_as_any_other() -> None:
    plain = annotated()
    graph = wrap_rdflib(plain)
    query = "SELECT ?s ?o { ?s <http://e/source> ?o }"
    found: list[Any] = []
    run_of(lambda: found.append(list(graph.query(query)))).go()
    assert found == [list(plain.query(query))]
    assert len(found[0]) == 1
    with pytest.raises(QueryError, match="triple term"):
        run_of(lambda: graph.query("SELECT ?o { ?s ?p ?o }")).go()


def test_an_rdflib_graph_with_annotations_opens() -> None:
    kg = open_kg(annotated())
    [[number]] = kg.select("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").rows
    assert str(number) == "5"


# --- SPARQLWrapper


def wrapper_of(endpoint: Endpoint, query: str, return_format: str = sw.JSON) -> sw.SPARQLWrapper:
    wrapper = sw.SPARQLWrapper(endpoint.url)
    wrapper.setReturnFormat(return_format)
    wrapper.setQuery(query)
    return wrapper


@pytest.mark.parametrize(
    "query",
    [
        SELECT + " ORDER BY ?film",
        ASK,
        PREFIX + "# select\nASK { :arrival :director :denis }",
        "PREFIX drop: <http://example.org/> SELECT ?film { ?film drop:director ?x } ORDER BY ?film",
        "BASE <http://example.org/ask> " + ASK,
    ],
)
@pytest.mark.filterwarnings(
    "ignore:Sending Accept header:RuntimeWarning"
)  # of SPARQLWrapper itself
def test_results_in_json_are_as_the_endpoint_sends_them(endpoint: Endpoint, query: str) -> None:
    plain = wrapper_of(endpoint, query)
    wrapped = wrap_sparqlwrapper(plain)
    run = run_of(wrapped.queryAndConvert).go()
    expected = plain.query().convert()
    assert {"boolean", "results"} & set(expected)
    for part in ("boolean", "results"):
        assert run.output("look").get(part) == expected.get(part)
    asked = len(endpoint.queries)
    run.go()
    assert len(endpoint.queries) == asked
    assert wrapped.query().convert() == expected


@pytest.mark.parametrize(
    ("return_format", "kind"),
    [
        (sw.TURTLE, ox.RdfFormat.TURTLE),
        (sw.N3, ox.RdfFormat.TURTLE),
        (sw.JSONLD, ox.RdfFormat.JSON_LD),
        (sw.RDFXML, ox.RdfFormat.RDF_XML),
        (sw.XML, ox.RdfFormat.RDF_XML),
    ],
)
def test_numbers_of_a_graph_are_as_the_endpoint_sends_them(
    endpoint: Endpoint, return_format: str, kind: ox.RdfFormat
) -> None:
    double = "<http://www.w3.org/2001/XMLSchema#double>"
    sent = {"INF", "NaN", "1.23456789012"}
    values = " ".join(f'"{value}"^^{double}' for value in sorted(sent))
    query = f"CONSTRUCT {{ <http://e/x> <http://e/p> ?v }} WHERE {{ VALUES ?v {{ {values} }} }}"
    wrapped = wrap_sparqlwrapper(wrapper_of(endpoint, query, return_format))

    def body() -> Any:
        return wrapped.query().response.read()

    run = run_of(body).go()
    made = {quad.object.value for quad in ox.parse(run.output("look"), kind)}
    assert made == sent


def test_a_query_with_another_parameter_is_asked_anew(endpoint: Endpoint) -> None:
    def work() -> None:
        for graph in ("one", "two", "one"):
            wrapped = wrap_sparqlwrapper(wrapper_of(endpoint, ASK))
            wrapped.addParameter("default-graph-uri", f"http://example.org/{graph}")
            wrapped.queryAndConvert()

    run_of(work).go()
    assert len(endpoint.queries) == 2


def test_an_endpoint_is_not_asked_without_triples_that_it_cannot_leave_out(
    endpoint: Endpoint,
) -> None:
    wrapped = wrap_sparqlwrapper(wrapper_of(endpoint, ASK))
    run = run_of(lambda: wrapped.query().convert()["boolean"]).go()
    assert run.output("look") is True
    with pytest.raises(GraphError, match="endpoint") as refused:
        run.mute(DIRECTED).go()
    assert "CONSTRUCT" in refused.value.hint and len(endpoint.queries) == 1


def test_a_mistake_is_refused_as_by_the_wrapper(endpoint: Endpoint) -> None:
    wrapped = wrap_sparqlwrapper(wrapper_of(endpoint, "SELECT WHERE {"))

    def refused() -> bool:
        with pytest.raises((sw.SPARQLExceptions.QueryBadFormed, QueryError)):
            wrapped.query()
        return True

    assert run_of(refused).go().output("look")


def test_what_is_no_graph_and_no_wrapper_is_refused() -> None:
    with pytest.raises(SettingError, match="SPARQLWrapper"):
        wrap_sparqlwrapper(object())
    with pytest.raises(SettingError, match="Dataset"):
        wrap_rdflib(rdflib.Dataset())


@pytest.mark.parametrize(
    ("query", "reason", "query_count"),
    [
        (PREFIX + "SELECT ?x WHERE { :arrival :sequel ?x }", NOT_IN_GRAPH, 1),
        # rdflib keeps a row without terms for these, and shows none
        (PREFIX + "SELECT ?x (COUNT(*) AS ?n) { ?x :sequel ?y } GROUP BY ?x", NOT_IN_GRAPH, 1),
        (PREFIX + "SELECT ?x { OPTIONAL { ?x :sequel ?y } }", NOT_IN_GRAPH, 1),
        (PREFIX + "SELECT (COUNT(*) AS ?n) { ?x :sequel ?y }", CANNOT_EXPRESS, 0),
        (PREFIX + "SELECT ?x WHERE { :arrival :director ?x }", CANNOT_EXPRESS, 0),
        (ASK, CANNOT_EXPRESS, 0),
        (None, CANNOT_EXPRESS, 0),
    ],
)
def test_an_answer_without_values_says_whether_a_query_gave_none(
    query: str | None, reason: str, query_count: int
) -> None:
    graph = wrap_rdflib(plain_films())

    @agent
    def look_up(question: str) -> list[str]:
        if query is not None:
            list(graph.query(query))
        return []

    system = system_from_function("nothing", look_up, agents=[])
    found = answer_of(small.run_of(system, "Who?", None).go())
    assert found.reason.startswith(reason)
    assert len(found.queries) == query_count
    assert ("no query" in found.reason) == (query is None)


@pytest.mark.parametrize(("value", "query"), [(True, ASK), (False, ASK.replace("denis", "amy"))])
def test_a_truth_value_stands_on_the_query_that_gave_it(value: bool, query: str) -> None:
    @agent
    def look(run: Run) -> Answer:
        run.kg.ask(ASK)
        run.kg.ask(ASK.replace("denis", "amy"))
        return make_answer(value)

    system = System("asking", lambda question, dialogue, run: look(run), [look])
    answer = answer_of(small.run_of(system, "Is it?", None).go())
    assert (answer.kind, answer.queries) == ("boolean", (query,))
    assert answer.support == ((DIRECTED,) if value else ())


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        (None, "list", ()),
        (3, "count", ("3",)),
        ("http://example.org/a b", "list", ("http://example.org/a b",)),
        (["http://example.org/dune", 1], "list", ("dune", "1")),
    ],
)
def test_an_answer_is_made_outside_of_a_run_too(
    values: Any, kind: str, labels: tuple[str, ...]
) -> None:
    answer = make_answer(values)
    assert (answer.kind, answer.labels, answer.support) == (kind, labels, ())
    assert answer.reason.startswith(CANNOT_EXPRESS) == (values is None)
