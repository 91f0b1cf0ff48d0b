"""An answer about a thing of another name, or about one of several of a name, is in doubt, and says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from machine import PROVEN, QUESTION, ROBODATA, produce, script
from rdflib import RDF, RDFS, Graph, Literal
from small import CHATTY, DOG, FILMS, answer_of, films, iri, run_of
from tables import read_table

import kgwb
from kgwb.llm import Scripted
from kgwb.run import Run, System, agent
from kgwb.run.answers import Answer, Candidate, Link, Value
from kgwb.run.systems import load_system
from kgwb.show.run_state import RunState, answer_view

RIVERS = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:City rdfs:label "city" . :Song rdfs:label "song" .
:hesse a :City ; rdfs:label "Frankfurt" ; :river :main .
:brandenburg a :City ; rdfs:label "Frankfurt" ; :river :oder .
:ballad a :Song ; rdfs:label "Frankfurt" ; :composer :anna .
:bonn a :City ; rdfs:label "Bonn" ; :river :rhine .
:hymn a :Song ; rdfs:label "Bonn" ; :composer :anna .
:main rdfs:label "Main" . :oder rdfs:label "Oder" . :rhine rdfs:label "Rhine" . :anna rdfs:label "Anna" .
"""


@pytest.fixture
def workbench() -> kgwb.Workbench:
    return kgwb.Workbench(films(RIVERS), "rules")


@pytest.mark.parametrize("system", [CHATTY, DOG, load_system("triad")])
def test_an_answer_names_the_things_of_the_same_name(system: System, tmp_path: Path) -> None:
    run = kgwb.Workbench(films(RIVERS), "rules", system=system).ask(
        "What is the river of Frankfurt?"
    )
    answer = answer_of(run)
    [reading] = answer.read_names
    assert {str(reading.iri), *(str(other.iri) for other in reading.others)} == {
        str(iri("hesse")),
        str(iri("brandenburg")),  # and not the ballad, which has no river
    }
    view = answer_view(RunState.of(run))
    assert view.icon == "doubt"
    assert answer.doubt in view.details
    assert kgwb.load_run(run.save(tmp_path / "run.jsonl")).answer == answer


def test_a_value_that_is_only_like_a_word_of_the_question_tells_nothing_apart() -> None:
    rivers = RIVERS.replace('"Main"', '"River Main"').replace('"Oder"', '"River Oder"')
    run = kgwb.Workbench(films(rivers), "rules").ask("What is the river of Frankfurt?")
    assert "2 things are named Frankfurt" in answer_of(run).doubt


def test_a_vertex_that_a_person_put_in_is_in_no_doubt(workbench: kgwb.Workbench) -> None:
    run = workbench.ask("What is the river of Frankfurt?")
    link = run.output("vertex_selection")
    [other] = [each for each in link.candidates if each.iri == iri("brandenburg")]
    run.override("vertex_selection", replace(link, vertex=other)).go()
    assert (answer_of(run).labels, answer_of(run).doubt) == (("Oder",), "")


@pytest.mark.parametrize(
    ("question", "turtle", "support", "is_in_doubt"),
    [
        (QUESTION, "", PROVEN, False),
        (QUESTION, "", PROVEN[:1], True),  # the support says nothing of the actor
        (QUESTION, ":lynchs_dune :starring :timothee .", PROVEN, True),
        ("Who directed Dune?", "", PROVEN, True),
        ("Who directed a film with Timothée Chalamet?", "", PROVEN, False),  # met on the way
    ],
)
def test_what_else_a_question_names_tells_two_things_of_a_name_apart(
    question: str, turtle: str, support: list[list[str]], is_in_doubt: bool
) -> None:
    model = Scripted(script(produce=produce(*support)))
    run = run_of(ROBODATA, question, model, kg=films(FILMS + turtle)).go()
    readings = [(reading.iri, reading.name) for reading in answer_of(run).read_names]
    assert readings == ([(iri("dune"), "Dune")] if is_in_doubt else [])


READ_NAMES = read_table(Path(__file__).with_name("read_names.jsonl"))


@pytest.mark.parametrize("row", READ_NAMES, ids=str)
def test_what_was_read_is_compared_with_the_names_in_the_question(row: dict[str, Any]) -> None:
    labels = row.get("labels", ["Orchid"])
    types = tuple(row.get("types", ()))
    things = [Candidate(iri(f"c{n}"), label, types=types) for n, label in enumerate(labels)]
    graph = Graph()
    for thing in things:
        graph.add((thing.iri, RDF.type, iri("Company")))
        graph.add((thing.iri, RDFS.label, Literal(thing.label)))
        graph.add((thing.iri, iri("founder"), iri("sorin")))
    if "also" in row:
        graph.add((things[0].iri, RDFS.label, Literal(row["also"])))

    @agent
    def link(run: Run) -> Link:
        if "mention" not in row:
            return Link("", None)
        if "value" in row:
            return Link(row["mention"], None, value=Literal(row["value"]))
        return Link(row["mention"], things[0], tuple(things))

    def answer(question: object, dialogue: object, run: Run) -> Answer:
        link(run)
        pattern = row.get("query", "<{0}> :founder ?p")
        queries = [
            f"PREFIX : <{iri('')}> SELECT ?p {{ {pattern.format(each.iri)} }}" for each in things
        ]
        rows = [run.kg.select(query).rows for query in dict.fromkeys(queries)]
        names = tuple((thing.iri, thing.label) for thing in things)
        return Answer("list", (Value(rows[0][0][0], "Sorin"),), tuple(queries), names=names)

    system = System("one", answer, [link])
    run = Run(system, row["asked"], kg=kgwb.open_kg(graph), models=None).go()
    read = [[each.name, each.read_as, each.difference] for each in answer_of(run).read_names]
    assert [read, bool(answer_of(run).remarks)] == row["read"]
