"""A hop: names in the walk, heads that stay, and the ablations."""

from __future__ import annotations

from typing import Any

import pytest
from debate import (
    LEFT,
    MARKED,
    QUESTION,
    ROLES,
    TWO_HOPS,
    filtering,
    remark,
    trying,
    two_hops,
)
from small import FILMS, answer_of, dog, films, iri

from kgwb import profile
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
        ("", "Dune (dune)", "Dune (lynchs_dune)"),
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
    ("ablation", "calls", "speakers"),
    [
        ("none", 8, ["simplifying_expert", "critic", "linguist"]),
        ("no_linguist", 7, ["simplifying_expert", "critic"]),
        ("expert_only", 6, ["simplifying_expert"]),
        ("fused_agent", 6, ["fused_agent"]),
        ("no_focusing", 5, []),
    ],
)
def test_the_ablations_of_table_2(ablation: Any, calls: int, speakers: list[str]) -> None:
    changed: dict[str, Any] = {
        name: remark(LEFT) for name in ("fused_agent", "simplifying_expert", "critic")
    }
    if (
        ablation == "no_focusing"
    ):  # two hops, the third has no relation; then one try over all triples
        changed["relation_filtering"] = [*TWO_HOPS["dog/relation_filtering"], filtering("")]
        changed["answer_trying"] = trying("Gentilly")
    model = two_hops(**changed)
    run = dog(QUESTION, model, settings=profile("fast", ablation=ablation)).go()
    assert (str(run.answer), model.call_count()) == ("Gentilly", calls)
    assert [step.agent for step in run.steps if "round" in step.key] == speakers
    tried = [
        request.variables for request in model.requests if request.task == "dog/answer_trying"
    ][-1]
    triples = [triple for result in tried["found"] for triple in result["triples"]]
    first, second = TRIPLES
    assert (tried["question"], triples) == (
        (LEFT, [second]) if speakers else (MARKED, [first, second])
    )


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
