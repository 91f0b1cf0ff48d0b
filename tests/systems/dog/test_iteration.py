"""A hop: names in the walk, heads that stay, and the ablations."""

import pytest
from debate import (
    ROLES,
    filtering,
    remark,
    trying,
    two_hops,
)
from small import dog, iri

from kgwb.run.answers import Value
from kgwb.systems.dog.records import (
    combine_names,
)


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
