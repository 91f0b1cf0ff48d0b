"""The relations of a head: in both directions, each with a name that can be chosen."""

from typing import Any

import pytest
import rdflib
from debate import ARRIVAL, DIRECTOR, filtering, trying
from rdflib import BNode, Literal
from small import DOG, FILMS, alone, answer_of, films, iri, run_of

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.kg.base import vocabulary_for_url
from kgwb.llm import Scripted
from kgwb.run.answers import Value
from kgwb.systems.dog.hop import (
    filter_relation,
    get_relations,
)
from kgwb.systems.dog.records import (
    Head,
    Relation,
    Relations,
)


@pytest.mark.parametrize(("term", "names"), [(Literal(116), ["~runtime"]), (BNode("b"), [])])
def test_relations_of_literals_lead_back_and_a_blank_node_has_none(
    term: Any, names: list[str]
) -> None:
    relations, _, _ = alone(
        lambda run: get_relations(Head("it", (Value(term, "it"),)), run), of=DOG
    )
    assert [str(relation) for relation in relations.found] == names


TWINS = """
@prefix o: <http://example.org/other/> . @prefix q: <http://example.org/quiet/> .
:arrival :Director :amy ; :DIRECTOR :jeremy ; o:marked :ted ; o:spaced :gentilly ; q:blank :missoula .
o:marked rdfs:label "~director" . o:spaced rdfs:label "director  of" . :spaced rdfs:label "director of" .
:arrival :spaced :lynch . q:blank rdfs:label " " . :dune :basedOn :arrival .
"""


def test_every_relation_that_is_offered_can_be_chosen() -> None:
    kg = films(FILMS + TWINS)
    relations, _, _ = alone(lambda run: get_relations(ARRIVAL, run), kg=kg, of=DOG)
    names = [str(relation) for relation in relations.found]
    assert len(set(names)) == len(names)
    assert {"director", "Director", "DIRECTOR", "~based on"} <= set(names)
    assert sum(len(relation.iris) for relation in relations.found) == 11
    for number, name in enumerate(names):
        script = {"relation_filtering": filtering(name)}
        choice, _, _ = alone(
            lambda run: filter_relation(relations, "who?", run), script, kg=kg, of=DOG
        )
        assert choice.relation == relations.found[number]


def test_the_exact_name_of_a_relation_goes_before_one_in_other_letter_case() -> None:
    upper = Relation("Director", "out", (iri("Director"),))
    found = Relations("Arrival", (upper, DIRECTOR))
    assert found.find_relation("director") == DIRECTOR
    assert found.find_relation("Director") == upper
    assert found.find_relation(" director ") == DIRECTOR
    assert found.find_relation("DIRECTOR") == upper


NS = "http://rdf.freebase.com/ns/"


FREEBASE = """
@prefix ns: <http://rdf.freebase.com/ns/> .
ns:m.03_r3 ns:type.object.name "Jamaica"@en ; ns:common.topic.alias "Land of Wood and Water"@en ;
    ns:type.object.type ns:location.country ; ns:common.topic.notable_types ns:m.01mp ;
    ns:kg.object_profile.prominent_type ns:m.01mp ; ns:freebase.valuenotation.has_value ns:m.01mp ;
    ns:location.country.languages_spoken ns:m.01428y ;
    ns:government.governmental_jurisdiction.governing_officials ns:m.0med .
ns:m.01428y ns:type.object.name "Jamaican English"@en .
ns:m.0med ns:government.government_position_held.office_holder ns:m.0hold ;
    ns:government.government_position_held.from "2016" .
ns:m.0hold ns:type.object.name "Andrew Holness"@en ; ns:people.person.place_of_birth ns:m.0town .
ns:m.0town ns:type.object.name "Spanish Town"@en .
"""


def freebase() -> Graph:
    graph = rdflib.Graph().parse(data=FREEBASE, format="turtle")
    return open_kg(graph, vocabulary="freebase")


def test_names_are_those_of_freebase_and_its_own_domains_are_no_relations() -> None:
    replies = {
        "dog/topic_entity": {"entities": ["Jamaica"]},
        "dog/relation_filtering": filtering("location.country.languages spoken"),
        "dog/answer_trying": trying("Jamaican English"),
    }
    model = Scripted(replies)
    run = run_of(DOG, "what do they speak in Jamaica?", model, kg=freebase()).go()
    assert [str(value.term) for value in answer_of(run).values] == [f"{NS}m.01428y"]
    relations = [str(relation) for relation in run.output("relations").found]
    assert relations == [
        "government.governmental jurisdiction.governing officials",
        "location.country.languages spoken",
    ]


def test_the_vocabulary_of_an_address_of_freebase_is_known() -> None:
    assert vocabulary_for_url("http://lod.freebase.com/sparql") == freebase().vocabulary
