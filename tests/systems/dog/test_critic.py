"""The critic of the debate."""

import pytest
from debate import (
    MARKED,
    check_role,
    remark,
)
from small import DOG, alone, iri

from kgwb.run.answers import Value
from kgwb.systems.dog.question import simplify_as_critic
from kgwb.systems.dog.records import FilledTriples, SolvedHop


@pytest.mark.parametrize(("found", "cut"), [(12, None), (110, "the first 12 of 110")])
def test_the_roles_see_three_triples_and_how_many_tails_the_name_stands_for(
    found: int, cut: str | None
) -> None:
    solved = (SolvedHop("Arrival", "starring", "A | 11 others"),)
    names = [f"A{number}" for number in range(12)]
    triples = tuple(("Arrival", "starring", name) for name in names)
    values = tuple(Value(iri(name), name) for name in names)
    filled = (FilledTriples("list", values, triples=triples, found=found),)
    script = {"critic": remark("Where were [A | 11 others] born?")}
    _, _, model = alone(
        lambda run: simplify_as_critic("round 1", MARKED, solved, (), filled, run), script, of=DOG
    )
    [shown] = model.requests[0].variables["solved"]
    assert (shown["count"], shown["examples"]) == (12, [list(triple) for triple in triples[:3]])
    assert ("cut" in shown) == bool(cut)
    assert shown.get("cut", "").startswith(cut or "")


def test_its_question_goes_on_from_what_was_found() -> None:
    check_role("critic")
