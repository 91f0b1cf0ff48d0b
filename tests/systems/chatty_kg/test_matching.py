"""Matching: entities side by side, classes for kinds of things, and the values of homonyms."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal
from rdflib.namespace import RDF
from small import (
    DOG,
    FILMS,
    PAPER,
    Alone,
    alone,
    answer_of,
    chatty,
    films,
    iri,
    published,
    qir,
    vertex,
    workbench,
)

from kgwb import open_kg
from kgwb.bench.serve import make_answer_query
from kgwb.kg.queries import find_literal
from kgwb.llm import ChatRequest, Scripted
from kgwb.run import Run
from kgwb.run.answers import CANNOT_EXPRESS, Answer, Context
from kgwb.run.linking import retrieve_candidates
from kgwb.show.notebook import to_html
from kgwb.systems.chatty_kg import HANDOVER_HINT
from kgwb.systems.chatty_kg.matching import match_qir
from kgwb.systems.chatty_kg.records import QIR, Fact

FACTS = (Fact("?film", "director", "Denis Villeneuve"), Fact("?film", "starring", "Amy Adams"))


def test_entities_and_relations_are_linked() -> None:
    linked, run, model = alone(
        lambda run: match_qir(QIR(FACTS, "?film"), "Which film?", Context(), run)
    )
    assert [link.entity for link in linked.links] == ["Denis Villeneuve", "Amy Adams"]
    assert all(link.vertex for link in linked.links)
    assert [relation.predicates[0].name for relation in linked.relations] == [
        "director",
        "starring",
    ]
    assert model.call_count() == 0
    assert [step.key for step in run.steps if step.parent == "matching"] == [
        "entity_linking[Denis Villeneuve]",
        "entity_linking[Amy Adams]",
        f"relation_linking[{FACTS[0]}]",
        f"relation_linking[{FACTS[1]}]",
    ]


def test_an_entity_named_twice_is_linked_once() -> None:
    facts = (Fact("Dune", "director", "?x"), Fact("Dune", "starring", "?y"))
    replies = {"vertex_selection": vertex(1, "Dune")}
    linked, _, model = alone(
        lambda run: match_qir(QIR(facts, "?x"), "Who?", Context(), run), replies, kg=films()
    )
    assert (len(linked.links), model.call_count()) == (1, 1)


def test_entities_are_linked_side_by_side_on_a_remote_model_in_their_order() -> None:
    twins = (
        ':amy2 rdfs:label "Amy Adams" ; :director :denis . :denis2 rdfs:label "Denis Villeneuve" .'
    )
    both = threading.Barrier(2, timeout=60)  # passed only if both are asked at the same time

    def choose(request: ChatRequest) -> Any:
        both.wait()
        time.sleep(0.1 if request.variables["entity"] == "Denis Villeneuve" else 0)
        return vertex(1, request.variables["entity"])

    system = Alone(lambda run: match_qir(QIR(FACTS, "?film"), "Which film?", Context(), run))
    model = Scripted(choose, remote=True)
    run = Run(system, "Which film?", kg=films(FILMS + twins), models=model).go()
    order = ["Denis Villeneuve", "Amy Adams"]
    assert [step.subject for step in run.steps if step.agent == "vertex_selection"] == order
    assert [link.entity for link in run.output("matching").links] == order


BOATS = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Boat a owl:Class ; rdfs:label "Boat" ; rdfs:comment "Anything that floats." .
:Tug a owl:Class ; rdfs:label "Tug" ; rdfs:subClassOf :Boat ; :drawnBy :ada .
:RiverTug a owl:Class ; rdfs:label "River tug" ; rdfs:subClassOf :Tug .
:Ferry a owl:Class ; rdfs:label "Ferry" ; rdfs:subClassOf :Boat .
:Pilot a owl:Class ; rdfs:label "Pilot" . :home rdfs:label "home port" ; rdfs:domain :Boat .
:brisk a :RiverTug ; rdfs:label "Brisk" ; :home :oslo ; :owner :nord .
:gale a :Tug ; rdfs:label "Gale" ; :home :oslo .
:mary a :Ferry ; rdfs:label "Mary" ; :home :oslo ; :passengers 90 .
:oslo rdfs:label "Oslo" . :nord rdfs:label "Nord" .
:ada a :Pilot ; rdfs:label "Ada" ; :steers :mary ; :occupation :painter . :painter rdfs:label "painter" .
:sam1 a :Pilot ; rdfs:label "Sam" ; :memberOf :sales ; :phone "1" . :sales rdfs:label "Sales" .
:sam2 a :Pilot ; rdfs:label "Sam" ; :memberOf :marketing ; :phone "2" . :marketing rdfs:label "Marketing" .
"""
TUGS = qir("?tug | home port | Oslo", "?tug | type | tug", target="?tug")


def asked(question: str, reply: Any, turtle: str = BOATS, **replies: Any) -> tuple[Run, Scripted]:
    script = {"chatty_kg/qir": reply} | {
        name.replace("__", "/"): one for name, one in replies.items()
    }
    model = Scripted(script)
    return chatty(question, model, films(turtle)).go(), model


# --- a kind of thing is a class


@pytest.mark.parametrize(
    "engine",
    [
        "file",
        pytest.param("oxigraph", marks=pytest.mark.long),
        pytest.param("virtuoso", marks=pytest.mark.long),
    ],
)
def test_a_kind_is_a_class_and_its_instances_are_those_of_its_subclasses_too(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "boats.ttl"
    file.write_text(BOATS)
    kg = open_kg(file if engine == "file" else request.getfixturevalue(engine).load(file))
    model = Scripted({"chatty_kg/qir": TUGS})
    run = chatty("Which tugs are at home in Oslo?", model, kg).go()
    answer = answer_of(run)
    assert (answer.labels, model.call_count()) == (("Brisk", "Gale"), 1)
    assert (iri("brisk"), RDF.type, iri("RiverTug")) in answer.support
    rows = {row[0] for row in kg.select(make_answer_query(run)).rows}
    assert rows == {iri("brisk"), iri("gale")}


def test_instances_give_the_candidates_of_the_other_triples_and_the_ontology_gives_none() -> None:
    run, _ = asked("Which tugs are at home in Oslo?", TUGS)
    kind, home = (step.output for step in run.steps if step.agent == "relation_linking")
    [by_type] = kind.predicates  # no domain, no subclass, nothing that is a fact about the class
    assert (by_type.iri, by_type.classes) == (RDF.type, (iri("RiverTug"), iri("Tug")))
    assert {predicate.name for predicate in home.predicates} == {"home port", "owner"}


def test_a_class_is_chosen_by_the_model_where_none_is_called_so() -> None:
    def choose(request: Any) -> Any:
        if request.task == "chatty_kg/qir":
            return qir("?vessel | type | vessel", kind="count")
        number = next(c["number"] for c in request.variables["candidates"] if c["label"] == "Boat")
        return vertex(number, "Boat", "it floats")

    model = Scripted(choose)
    run = chatty("How many vessels are there?", model, films(BOATS)).go()
    assert answer_of(run).labels == ("3",)
    candidates = model.requests[1].variables["candidates"]
    boat = next(candidate for candidate in candidates if candidate["label"] == "Boat")
    assert boat["type"] == "class"
    assert "floats" in boat["description"]
    assert {c["label"] for c in candidates} >= {"Ferry", "Tug", "River tug", "Pilot"}


@pytest.mark.parametrize(
    ("question", "reply", "answers"),
    [
        ("Is Brisk a tug?", qir("Brisk | type | tug", kind="boolean"), ("true",)),
        ("Is Mary a tug?", qir("Mary | type | tug", kind="boolean"), ("false",)),
        ("Which pilot?", qir("?who | occupation | pilot", "?who | steers | Mary"), ("Ada",)),
        (
            "Who paints?",
            qir("?who | occupation | painter"),
            ("Ada",),
        ),  # no class but a vertex is called so
        *(
            ("Which tugs?", {**TUGS, "beyond": nothing}, ("Brisk", "Gale"))
            for nothing in ([], [" "], ["None."])
        ),
    ],
)
def test_a_type_or_an_occupation_may_be_a_class_or_a_vertex(
    question: str, reply: Any, answers: tuple[str, ...]
) -> None:
    run, model = asked(question, reply)
    assert (answer_of(run).labels, model.call_count()) == (answers, 1)


def test_as_published_a_class_is_found_by_its_label_like_any_vertex() -> None:
    script = {
        "chatty_kg/classifier": {"reason": "", "label": "self-contained"},
        "linking/vertex_selection_labels": {"label": "Boat"},
        "chatty_kg/predicate_selection_published": {"reasoning": "", "predicates": ["type"]},
        "chatty_kg/qir_published": published(qir("?boat | type | boat")),
    }
    settings = PAPER.with_changes(question_language="en")
    run = chatty("Which boats are there?", Scripted(script), films(BOATS), settings=settings).go()
    assert run["vertex_selection"].output.vertex.iri == iri("Boat")
    assert "type" in [predicate.name for predicate in run.output("relation_linking").predicates]


# --- words that tell which of several homonyms is meant

PHONE = qir("Sam | phone | ?number")


def test_homonyms_are_shown_with_what_the_question_may_name_near_them() -> None:
    question = "What is the phone number of Sam from Marketing?"
    run, model = asked(question, PHONE, linking__vertex_selection=vertex(2, "Sam"))
    assert answer_of(run).labels == ("2",)
    for candidate, place, number in zip(
        model.requests[1].variables["candidates"], ("Sales", "Marketing"), "12", strict=True
    ):
        assert candidate["relations"] == [f"member of: {place}", f"phone: {number}"]


@pytest.mark.parametrize("place", ["Marketing", "HR"])
def test_what_the_question_names_comes_before_other_values(place: str) -> None:
    more = "".join(f':sam2 :memberOf :club{n} . :club{n} rdfs:label "Club {n}" .' for n in range(9))
    more += ':sam2 :memberOf :hr . :hr rdfs:label "HR" .'
    question = f"What is the phone number of Sam from {place}?"
    _, model = asked(question, PHONE, BOATS + more, linking__vertex_selection=vertex(2, "Sam"))
    assert model.requests[1].variables["candidates"][1]["relations"][0] == f"member of: {place}"


def test_a_name_is_linked_anew_if_another_vertex_is_meant() -> None:
    script = {
        "chatty_kg/qir": PHONE,
        "chatty_kg/classifier": {"reason": "", "label": "self-contained"},
        "linking/vertex_selection": [vertex(2, "Sam"), vertex(1, "Sam")],
    }
    bench = workbench(Scripted(script), films(BOATS))
    for words, number in ((" from Marketing", "2"), ("", "2"), (" from Sales", "1")):
        run = bench.ask(f"What is the phone number of Sam{words}?")
        assert answer_of(run).labels == (number,)


def test_another_system_sees_candidates_as_before() -> None:
    retrieved, _, _ = alone(lambda run: retrieve_candidates("Sam", run), kg=films(BOATS), of=DOG)
    assert {candidate.relations for candidate in retrieved.candidates} == {("member of", "phone")}


# --- what triples cannot express

OLDEST = qir(
    "?boat | type | boat",
    "?boat | passengers | ?n",
    target="?boat",
    beyond=["the largest: an order by ?n"],
)


@pytest.mark.parametrize("reply", [OLDEST, {**OLDEST, "triples": [], "entities": [], "target": ""}])
def test_a_question_that_triples_cannot_express_is_not_answered(reply: Any) -> None:
    run, model = asked("Which boat is the largest?", reply)
    [beyond] = OLDEST["beyond"]
    reason = f"{CANNOT_EXPRESS}: {beyond}; {HANDOVER_HINT}"
    assert answer_of(run) == Answer("list", reason=reason)
    assert (model.call_count(), run.totals.queries) == (1, 0)
    assert str(run["qir"].output) == f"{CANNOT_EXPRESS}: {beyond}"
    assert reason in to_html(run)
    assert not films(BOATS).select(make_answer_query(run)).rows


def test_the_rest_is_answered_once_a_person_takes_the_part_out() -> None:
    run, _ = asked("Which boat is the largest?", OLDEST)
    qir_record = run["qir"].output
    run.override("qir", QIR(qir_record.facts[:1], qir_record.target)).go()
    assert answer_of(run).labels == ("Brisk", "Gale", "Mary")


def test_a_truth_value_is_found_by_its_word() -> None:
    kg = films("@prefix : <http://example.org/> . :b1 :shorePower true . :b2 :shorePower false .")
    assert find_literal(kg, "True") == Literal(True)
    assert find_literal(kg, "yes") is None


def test_a_literal_is_found_whatever_its_words_begin_with() -> None:
    kg = films('@prefix : <http://example.org/> . :ann :jobTitle "Harbour Master" .')
    assert find_literal(kg, "harbour master") == Literal("Harbour Master")
