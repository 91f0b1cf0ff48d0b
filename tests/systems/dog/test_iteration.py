"""A hop: names in the walk, heads that stay, and the ablations."""

import pytest
from debate import (
    ROLES,
    filtering,
    remark,
    trying,
    two_hops,
)
from small import FILMS, answer_of, dog, films, iri

from kgwb.run.answers import Value
from kgwb.settings import Settings
from kgwb.systems.dog.records import (
    combine_names,
)

TRIPLES = [
    ["Arrival", "director", "Denis Villeneuve"],
    ["Denis Villeneuve", "birth place", "Gentilly"],
]


COMMENTS = ':dune rdfs:comment "film of 2021" . :lynchs_dune rdfs:comment "film of 1984" .'


@pytest.mark.parametrize(
    ("described", "newer", "older"),
    [
        ("", "Dune (1)", "Dune (2)"),
        (COMMENTS, "Dune (film of 2021)", "Dune (film of 1984)"),
        (":dune a :Part .", "Dune (Film, Part)", "Dune (Film)"),
    ],
)
def test_films_of_one_name_have_different_names_in_the_walk(
    described: str, newer: str, older: str
) -> None:
    turtle = f"{FILMS} :novel rdfs:label 'The Novel' . :dune :basedOn :novel . :lynchs_dune :basedOn :novel ."
    model = two_hops(
        topic_entity={"entities": ["The Novel"]},
        relation_filtering=filtering("director"),
        answer_trying=[trying(), trying(older)],
        simplifying_expert=remark(f"Which of [{newer} | {older}] did Lynch direct?"),
    )
    run = dog(
        "Which film of The Novel did Lynch direct?", model, films(turtle + described), Settings()
    ).go()
    first, second = (
        request.variables["found"] for request in model.requests if "found" in request.variables
    )
    assert [triple[-1] for triple in first[0]["triples"]] == [newer, older]
    assert [older, "director", "David Lynch"] in second[0]["triples"]
    assert [(value.term, value.label) for value in answer_of(run).values] == [
        (iri("lynchs_dune"), "Dune")
    ]


def test_an_entity_whose_turn_comes_later_stays_a_head() -> None:
    debated = remark("Which of [Arrival | 2 others] is based on [Story of Your Life]?")
    model = two_hops(
        topic_entity={"entities": ["Denis Villeneuve", "Story of Your Life"]},
        relation_filtering=[filtering(name) for name in ("~director", "", "based on", "~based on")],
        answer_trying=[trying(), trying("Arrival")],
        **dict.fromkeys(ROLES, debated),
    )
    run = dog("Which film by Denis Villeneuve is based on Story of Your Life?", model).go()
    assert str(run.answer) == "Arrival"
    [relations] = [step for step in run.steps if step.key.startswith("relations[hop 2/Story")]
    assert relations.inputs["head"].values[0].term == iri("story")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["Dune"], "Dune"),
        (["A", "B"], "A | B"),
        (["A", "B", "C"], "A | 2 others"),
        (["[REC|2]"], "(REC/2)"),
    ],
)
def test_several_vertices_have_one_name_in_a_question(names: list[str], shown: str) -> None:
    assert combine_names([Value(iri("x"), name) for name in names]) == shown
