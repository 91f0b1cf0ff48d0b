"""Both nasty graphs through everything: nothing vanishes, nothing merges, nothing crashes.

What is offered can be chosen, and each choice by the text that is shown leads to its own IRI.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import machine
import networkx as nx
import pytest
import ragonite
import surveying
from nasty_graphs import MESSY, TWINS, messy, twins
from page import Page
from ragonite import induce
from rdflib import RDF, XSD, BNode, Literal, URIRef
from small import CHATTY, DOG, alone, keys, run_of, vertex
from triads import TRIAD

import kgwb
from kgwb.kg import Graph
from kgwb.kg.base import SCHEMA_NAMESPACES
from kgwb.kg.queries import CandidateQuery, find_predicates
from kgwb.kg.survey import SurveyBuilder
from kgwb.kg.survey_text import SurveyWriter
from kgwb.llm import Scripted
from kgwb.records import Record, from_data, to_data
from kgwb.run import Run
from kgwb.run.answers import Answer, Context, Value, with_display_names
from kgwb.run.exports import to_cypher, to_graphml, to_json, to_networkx
from kgwb.run.linking import number_candidates, retrieve_candidates, select_vertex
from kgwb.run.models import open_model
from kgwb.run.systems import list_systems, load_system
from kgwb.show.comparison import render_differences_page, render_record_page
from kgwb.show.run import render_run_page, render_step_page
from kgwb.show.survey import render_survey_page
from kgwb.systems.chatty_kg.predicate_selection import select_predicates
from kgwb.systems.chatty_kg.records import (
    Fact,
    GeneratedQueries,
    LinkedRelation,
    LinkingResult,
    RankedPredicate,
)
from kgwb.systems.dog.hop import get_relations
from kgwb.systems.dog.records import Head
from kgwb.systems.ragonite.database import Database
from kgwb.systems.robodata.records import LocalGraph
from kgwb.systems.surveyor.mentions import ClassNames
from kgwb.systems.triad.decision_maker import choose_relations
from kgwb.systems.triad.records import Relation, Triplet
from kgwb.terms import Triple, make_literal
from kgwb.text import single_line
from kgwb.ui.cell import AgentCell
from kgwb.ui.chat import Chat
from kgwb.ui.choosers import GraphChooser
from kgwb.ui.debugger import ComparisonPanel, Debugger
from kgwb.ui.live import Live
from kgwb.ui.session import session_of
from kgwb.ui.subgraph import SubgraphPanel
from kgwb.workbench import Workbench

GRAPHS: Mapping[str, Graph] = {"twins": twins(), "messy": messy()}
TURTLE = {"twins": TWINS, "messy": MESSY}
EXPORTS = (to_networkx, to_json, to_graphml, to_cypher)
QUESTIONS = {"twins": "What is the director of Dune?", "messy": "What is the near of Café?"}
EVERYTHING = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"


def _date_time(text: str) -> Literal:
    return make_literal(text, XSD.dateTime)


ONE_VALUE = {
    "twins": [
        {Literal("Same", lang="en"), Literal("Same", lang="de")},
        {Literal("5"), Literal(5)},
        {Literal("1984"), Literal(1984)},
        {Literal("Caf\u00e9"), Literal("Cafe\u0301")},
        {Literal("Zo\u00eb"), Literal("Zoe\u0308")},
    ],
    "messy": [
        {Literal("Gift", lang="en"), Literal("Gift", lang="de")},
        {Literal("Word"), Literal("Word", lang="de")},
        {Literal("Colour"), Literal("Colour", lang="en"), Literal("Colour", lang="en-gb")},
        {Literal("7"), Literal(7)},
        {Literal("1"), Literal(1), Literal("1", datatype=XSD.decimal)},
        {Literal("\u00c5"), Literal("\u212b")},
        {
            Literal("http://messy.example/gift1"),
            Literal("http://messy.example/gift1", datatype=XSD.anyURI),
        },
        {_date_time("2020-01-01T00:00:00Z"), _date_time("2020-01-01T00:00:00")},
        {make_literal("<p>one</p>", RDF.HTML), make_literal("<p>one</p>", RDF.XMLLiteral)},
    ],
}
"""Literals that are one value, as they differ in language, datatype or normal form only. No others are."""
each_graph = pytest.mark.parametrize("graph", GRAPHS)


def triples_of(graph: str) -> list[Triple]:
    rows: Any = GRAPHS[graph].select(EVERYTHING).rows
    return list(rows)


def nodes_of(graph: str) -> list[Any]:
    """All subjects and objects, each once."""
    ends = [term for subject, _, object_ in triples_of(graph) for term in (subject, object_)]
    return list(dict.fromkeys(ends))


@cache
def answer_of_everything(graph: str) -> Answer:
    """An answer with every node as a value, and every triple as support."""
    kg = GRAPHS[graph]
    triples = triples_of(graph)
    names = kg.names(sorted(node for node in nodes_of(graph) if isinstance(node, URIRef)))
    values = []
    for node in nodes_of(graph):
        support = tuple(triple for triple in triples if node in (triple[0], triple[2]))
        values.append(Value(node, names.get(node, str(node)), support))
    return with_display_names(kg, Answer("list", tuple(values)))


# Exports


def parts_of_export(export: Callable[[Answer], Any], answer: Answer) -> tuple[int, int]:
    """How many nodes and edges an export has."""
    exported = export(answer)
    if export is to_json:
        data = json.loads(exported)
        return len(data["nodes"]), len(data["edges"])
    if export is to_cypher:
        nodes = re.findall(r"^(?:CREATE |  )\(n\d+:\w+ ", exported, re.MULTILINE)
        return len(nodes), len(re.findall(r"^  \(n\d+\)-\[:RELATION ", exported, re.MULTILINE))
    if export is to_graphml:
        exported = nx.parse_graphml(exported, force_multigraph=True)
    return len(exported), exported.number_of_edges()


@each_graph
@pytest.mark.parametrize("export", EXPORTS)
def test_every_node_and_triple_is_in_each_export(graph: str, export: Any) -> None:
    answer = answer_of_everything(graph)
    expected = len(nodes_of(graph)), len(triples_of(graph))
    assert parts_of_export(export, answer) == expected


# The survey


def is_own_class(term: Any) -> bool:
    """Whether a type is a class of the graph, and not of RDF, RDFS or OWL themselves."""
    return isinstance(term, URIRef) and not str(term).startswith(SCHEMA_NAMESPACES)


@cache
def writer_of(graph: str) -> SurveyWriter:
    return SurveyWriter(SurveyBuilder(GRAPHS[graph]).build())


@each_graph
def test_every_class_is_surveyed_and_can_be_chosen_by_its_title(graph: str) -> None:
    types = {
        object_
        for subject, predicate, object_ in triples_of(graph)
        if predicate == RDF.type and isinstance(object_, URIRef)
    }
    own = set(filter(is_own_class, types))
    names = ClassNames.of_survey(writer_of(graph))
    assert own <= set(names.titles)
    for iri, title in names.titles.items():
        assert names.find(title) == names.find(title.upper()) == (iri,)


@each_graph
def test_a_survey_is_the_same_after_it_was_stored(graph: str) -> None:
    survey = writer_of(graph).survey
    assert from_data(json.loads(json.dumps(to_data(survey))), type(survey)) == survey


# What each system offers


def searchable_names(graph: str) -> list[str]:
    """The names of the things that a label search finds."""
    kg = GRAPHS[graph]
    things = sorted({subject for subject, _, _ in triples_of(graph) if isinstance(subject, URIRef)})
    names = kg.names(things)
    found = []
    for thing in things:
        hits = kg.search(names[thing], len(things)).hits
        if thing in [hit.iri for hit in hits]:
            found.append(names[thing])
    return list(dict.fromkeys(found))


def choose_vertex(entity: str, number: int, label: str) -> Any:
    """The link that a system's model makes by a number and a label."""

    def choose(run: Run) -> Any:
        retrieved = retrieve_candidates(entity, run)
        return select_vertex(retrieved, "Which one?", Context(), run)

    return choose, {"vertex_selection": [vertex(number, label)]}


@each_graph
def test_every_candidate_of_every_name_can_be_chosen_by_its_row(graph: str) -> None:
    kg = GRAPHS[graph]
    for name in searchable_names(graph):
        retrieved, _, _ = alone(lambda run, name=name: retrieve_candidates(name, run), kg=kg)
        rows = number_candidates(retrieved.candidates)
        shown = [str({key: value for key, value in row.items() if key != "number"}) for row in rows]
        assert len(set(shown)) == len(shown)
        for row, candidate in zip(rows, retrieved.candidates, strict=True):
            choose, replies = choose_vertex(name, row["number"], row["label"])
            link, _, _ = alone(choose, replies, kg=kg, of=CHATTY)
            if len(rows) > 1 or candidate.score == 1:
                assert link.vertex.iri == candidate.iri


# What each system offers, beside candidates


@cache
def local_graph_of(graph: str) -> LocalGraph:
    """The whole graph as the local graph of RoboData, which no tool fetches blank nodes into."""
    triples = [triple for triple in triples_of(graph) if BNode not in set(map(type, triple))]
    iris = sorted({term for triple in triples for term in triple if isinstance(term, URIRef)})
    return LocalGraph().with_names(GRAPHS[graph].names(iris).items()).with_triples([], triples)


@each_graph
def test_each_id_of_robodata_means_its_own_term(graph: str) -> None:
    local = local_graph_of(graph)
    ids = {node: local.id_mapping.format_id(node) for node in local.nodes}
    assert len(set(ids.values())) == len(ids)
    for node, shown in ids.items():
        assert local.find_elements([shown]) == ((node,),)
    for triple in local.support:
        shown_parts = list(map(local.id_mapping.format_id, triple))
        assert triple in local.find_elements(shown_parts)


@each_graph
def test_each_relation_of_dog_can_be_chosen_and_none_is_left_out(graph: str) -> None:
    kg = GRAPHS[graph]
    for thing in sorted({subject for subject, _, _ in triples_of(graph)}):
        if not isinstance(thing, URIRef):
            continue
        head = Head("it", (Value(thing, "it"),))
        relations, _, _ = alone(lambda run, head=head: get_relations(head, run), kg=kg, of=DOG)
        for relation in relations.found:
            assert relations.find_relation(str(relation)) == relation
        listed = [(iri, each.direction) for each in relations.found for iri in each.iris]
        assert Counter(listed) == Counter(find_predicates(kg, thing))


@each_graph
def test_each_relation_of_triad_can_be_chosen_by_its_row(graph: str) -> None:
    kg = GRAPHS[graph]
    iris = sorted({predicate for _, predicate, _ in triples_of(graph)})
    names = kg.names(iris)
    relations = tuple(Relation(iri, names[iri]) for iri in iris)
    triplet = Triplet("this", "is", "?that")
    for number, relation in enumerate(relations, 1):
        choice, _, model = alone(
            lambda run: choose_relations(relations, triplet, "Which?", (), run),
            {"relation_choice": {"reason": "so", "numbers": [number]}},
            kg=kg,
            of=TRIAD,
        )
        assert choice.chosen == (relation,)
        rows = model.requests[0].variables["relations"]
        shown = [str({key: row[key] for key in row if key != "number"}) for row in rows]
        assert len(set(shown)) == len(relations)


@each_graph
def test_each_name_of_a_predicate_in_chatty_kg_keeps_all_queries_that_it_names(graph: str) -> None:
    kg = GRAPHS[graph]
    iris = sorted({predicate for _, predicate, _ in triples_of(graph)})
    names = kg.names(iris)
    queries = tuple(
        CandidateQuery(f"SELECT * {{ ?s <{i}> ?o }}", (), (names[i],), 1.0) for i in iris
    )
    relation = LinkedRelation(
        Fact("this", "zzz", "?x"),
        tuple(RankedPredicate(iri, names[iri], "out", 0.1) for iri in iris),
    )
    linked = LinkingResult((), (relation,))
    for name in names.values():
        selection, _, _ = alone(
            lambda run: select_predicates(
                GeneratedQueries(queries, len(queries)), "Which?", linked, run
            ),
            {"predicate_selection": {"reasoning": "so", "predicates": [[name]]}},
            kg=kg,
        )
        assert [query.predicates for query in selection.queries] == [
            (name,) for other in names.values() if other == name
        ]


def ids_of_things(database: Database) -> Iterator[tuple[str, str]]:
    """The ids in the tables of classes, each with a query that gives it and ten more at most."""
    for table in database.schema.tables:
        if table.columns[0].name != "id":
            continue
        for start in count(0, 10):
            query = f'SELECT id FROM "{table.name}" ORDER BY id LIMIT 10 OFFSET {start}'
            rows = database.execute_sql(query, ragonite.SETTINGS).rows
            for (thing_id,) in rows:
                yield thing_id, query
            if not rows:
                break


@pytest.mark.long
@each_graph
def test_each_thing_in_the_database_of_ragonite_can_be_cited(graph: str) -> None:
    cited = {}
    for thing_id, query in ids_of_things(induce(GRAPHS[graph])):
        uses = ragonite.sql(query), ragonite.passages("xyz"), ragonite.FINISH
        answer = ragonite.cited((thing_id, 1))
        run, _ = ragonite.answered(*uses, answer=answer, kg=GRAPHS[graph])
        [value] = run.answer.values
        cited[thing_id] = value.term
    assert len(set(cited.values())) == len(cited)
    instances = {
        subject
        for subject, predicate, object_ in triples_of(graph)
        if predicate == RDF.type and isinstance(subject, URIRef) and is_own_class(object_)
    }
    assert set(cited.values()) >= instances


# Runs of all systems, and whatever shows them


def run_on(graph: str, name: str) -> Run:
    """A finished run of a system that has as much of the graph in it as the system can hold."""
    kg = GRAPHS[graph]
    system = load_system(name)
    if name == "surveyor":
        drafted = surveying.draft(EVERYTHING, "table", "subject", "predicate", "object")
        model = Scripted(surveying.script(drafted, names=surveying.mention()))
        return run_of(system, QUESTIONS[graph], model, kg=kg).go()
    if name == "ragonite":
        tables = induce(kg).schema.tables[:4]
        uses = [ragonite.sql(f'SELECT * FROM "{table.name}"') for table in tables]
        answer = ragonite.cited(text="See [1].")
        model = Scripted(ragonite.script(*uses, ragonite.passages("Dune"), answer=answer))
        return run_of(system, QUESTIONS[graph], model, kg=kg).go()
    if name == "robodata":
        run = machine.robodata(Scripted(machine.script(produce=machine.produce())), kg).go()
        run.override("local_graph[turn 5]", local_graph_of(graph))
        ids = local_graph_of(graph).id_mapping
        shown = [ids.format_id(node) for node in local_graph_of(graph).nodes]
        replies = machine.script(produce=machine.produce(answers=shown))
        return run.fork(models=Scripted(replies)).go()
    return run_of(system, QUESTIONS[graph], open_model("rules"), kg=kg).go()


cached_run = cache(run_on)
each_system = pytest.mark.parametrize("name", list_systems())


def check_page(text: str) -> Page:
    """The page of an HTML text, in which no text of the graph is HTML and no two choices look alike."""
    assert "<script>alert(1)" not in text
    shown = Page(text)
    choices: dict[Any, list[str]] = {}
    for element in shown.elements:
        if element.attributes.get("data-do") == "take" and element.text != "take this one":
            choices.setdefault(element.scope, []).append(element.text)
        if element.tag == "select":
            options = [option.text for option in element.inputs if option.tag == "option"]
            assert len(set(options)) == len(options)
    rows = [row.text for row in shown.elements if row.tag == "tr"]
    rows = [row for row in rows if row.endswith("take this one")]
    assert len(set(rows)) == len(rows)
    for texts in choices.values():
        assert len(set(texts)) == len(texts)
    return shown


@each_graph
@each_system
def test_a_run_of_each_system_is_answered_saved_loaded_and_replayed(
    graph: str, name: str, tmp_path: Path
) -> None:
    run = cached_run(graph, name)
    assert run.status == "done"
    assert run.answer.values or run.answer.text or run.answer.reason
    run.save(tmp_path / "run.jsonl")
    loaded = kgwb.load_run(tmp_path / "run.jsonl")
    assert (loaded.answer, keys(loaded)) == (run.answer, keys(run))
    for key in keys(run):
        assert loaded.output(key) == run.output(key)


@each_graph
def test_surveyor_answers_with_every_triple_and_each_has_a_label_of_its_terms(graph: str) -> None:
    answer = cached_run(graph, "surveyor").answer
    assert {value.row for value in answer.values} == set(triples_of(graph))


@each_graph
def test_robodata_answers_with_every_node(graph: str) -> None:
    """Forms of one value are one, a list is its members, and a remark says each of both."""
    answer = cached_run(graph, "robodata").answer
    values = Counter(value.term for value in answer.values)
    nodes = set(local_graph_of(graph).nodes) - {RDF.nil}
    assert set(values) <= nodes and set(values.values()) == {1}
    for forms in ONE_VALUE[graph]:
        [shown] = forms & set(values)
        nodes -= forms - {shown}
    assert set(values) == nodes
    empty_lists = int(RDF.nil in local_graph_of(graph).nodes)
    assert len(answer.remarks) == len(ONE_VALUE[graph]) + empty_lists


@each_graph
@each_system
def test_every_page_of_a_run_can_be_rendered(graph: str, name: str) -> None:
    run = cached_run(graph, name)
    for step in run.steps:
        check_page(render_step_page(step))
        if isinstance(step.output, Record):
            check_page(render_record_page(step.output))
    check_page(render_record_page(run.answer))
    check_page(render_differences_page(run.diff(run)))
    shown = check_page(render_run_page(run))
    for value in run.answer.values[:12]:
        if value.row:  # a row whose triples are shown is not told a second time
            continue
        words = " ".join(single_line(value.label)[:40].split()).strip()
        assert words.rstrip() in shown.text


@each_graph
@each_system
def test_every_widget_of_a_run_can_be_rendered(graph: str, name: str) -> None:
    run = run_on(graph, name)
    session = session_of(run)
    bench = Workbench(GRAPHS[graph], "rules", system=name)
    bench.runs.append(run)
    widgets: list[Live] = [Debugger(session), SubgraphPanel(session), Chat(bench)]
    widgets.append(ComparisonPanel(run, run, ("first", "second")))
    widgets += [AgentCell(session, step.key) for step in run.steps]
    for widget in widgets:
        check_page(widget.static_html())
        # The view raises what the widget would show in its place.
        check_page(str(widget.view()))


@each_graph
def test_a_graph_can_be_chosen_and_its_survey_is_shown_with_every_class(
    graph: str, tmp_path: Path
) -> None:
    file = tmp_path / "nasty.ttl"
    file.write_text(TURTLE[graph])
    chooser = GraphChooser(str(file))
    shown = check_page(chooser.static_html())
    page_of_survey = check_page(render_survey_page(writer_of(graph).survey))
    for iri in ClassNames.of_survey(writer_of(graph)).titles:
        name = GRAPHS[graph].names([iri])[iri]
        assert name in page_of_survey.text
        assert name in shown.text
