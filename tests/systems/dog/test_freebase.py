"""DoG on a piece of Freebase: names, domains that are noise, and mediators between two entities."""

from __future__ import annotations

import rdflib
from debate import filtering, trying
from small import DOG, answer_of, run_of

from kgwb import open_kg
from kgwb.kg import Graph
from kgwb.kg.base import vocabulary_for_url
from kgwb.llm import Scripted

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


def test_a_walk_goes_on_behind_a_mediator() -> None:
    replies = {
        "dog/topic_entity": {"entities": ["Jamaica"]},
        "dog/relation_filtering": [
            filtering("government.governmental jurisdiction.governing officials"),
            filtering("people.person.place of birth"),
        ],
        "dog/answer_trying": [trying(), trying("Spanish Town")],
    }
    for role in ("simplifying_expert", "critic", "linguist"):
        replies[f"dog/{role}"] = {
            "remark": "",
            "question": "where was [2016 | Andrew Holness] born?",
        }
    model = Scripted(replies)
    run = run_of(DOG, "where was the official of Jamaica born?", model, kg=freebase()).go()
    assert str(run.answer) == "Spanish Town"
    found = run.output("triple_filling[hop 1/Jamaica]")
    assert found.labels == ("2016", "Andrew Holness")
    assert len(answer_of(run).support) == 3


def test_the_vocabulary_of_an_address_of_freebase_is_known() -> None:
    assert vocabulary_for_url("http://lod.freebase.com/sparql") == freebase().vocabulary
