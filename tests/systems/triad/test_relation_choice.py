"""Relation choice: each relation that is offered can be chosen."""

from typing import Any

import pytest
from small import iri
from triads import AS_URIS, CASE, NUMBERS, URIS, on_twins


@pytest.mark.parametrize(("settings", "replies"), [({}, NUMBERS), (AS_URIS, URIS)])
def test_every_entity_and_relation_that_is_offered_can_be_chosen(
    settings: dict[str, Any], replies: dict[str, Any]
) -> None:
    run, _ = on_twins({**CASE, **settings}, **replies)
    [entity] = [step.output for step in run.steps if step.agent == "entity_choice"]
    assert {option.iri for option in entity.chosen} == {
        iri(f"orange_{kind}") for kind in ("city", "river", "fruit")
    }
    [relation] = [step.output for step in run.steps if step.agent == "relation_choice"]
    assert {option.iri for option in relation.chosen} == {iri("near"), iri("close"), iri("x_near")}
