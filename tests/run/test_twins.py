"""An answer about one of several things of a name is in doubt, and says which one it is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machine import PROVEN, QUESTION, ROBODATA, produce, script
from small import CHATTY, DOG, FILMS, answer_of, films, iri, run_of

import kgwb
from kgwb.llm import Scripted
from kgwb.run import System
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
