"""Relation filtering: replies of the model, and when it is not asked."""

from typing import Any

import pytest
from debate import (
    DIRECTOR,
    filtering,
)
from small import DOG, alone, iri

from kgwb import profile
from kgwb.errors import InvalidReplyError
from kgwb.systems.dog.hop import (
    filter_relation,
)
from kgwb.systems.dog.records import (
    FilteredRelation,
    Relation,
    Relations,
)

OFFERED = Relations("Arrival", (DIRECTOR, Relation("starring", "in", (iri("starring"),))))


def filtered(*replies: Any) -> tuple[FilteredRelation, Any]:
    script = {"relation_filtering": list(replies)}
    result, _, model = alone(lambda run: filter_relation(OFFERED, "who?", run), script, of=DOG)
    return result, model


def test_the_relation_is_chosen_by_its_name_and_direction() -> None:
    choice, model = filtered(filtering("~Starring "))
    assert choice.relation == OFFERED.found[1]
    assert model.requests[0].variables == {
        "question": "who?",
        "entity": "Arrival",
        "relations": ["director", "~starring"],
    }
    assert filtered(filtering(""))[0].relation is None  # a model may choose none


def test_a_relation_in_the_wrong_direction_is_sent_back() -> None:
    assert filtered(filtering("starring"), filtering("director"))[0].relation == DIRECTOR
    with pytest.raises(InvalidReplyError, match="~director"):
        filtered(*[filtering("~director")] * 3)


@pytest.mark.parametrize(
    ("question", "ablation", "offered", "calls"),
    [
        ("where is [x]", "none", (), 0),
        ("where is [x]", "none", (DIRECTOR,), 0),
        ("which [x] has [y]", "none", (DIRECTOR,), 1),
        ("where is [x]", "no_focusing", (DIRECTOR,), 1),
    ],
)
def test_the_only_relation_is_taken_without_a_model_unless_choosing_none_has_a_meaning(
    question: str, ablation: Any, offered: tuple[Relation, ...], calls: int
) -> None:
    choice, _, model = alone(
        lambda run: filter_relation(Relations("x", offered), question, run),
        {"relation_filtering": filtering("")},
        settings=profile("fast", ablation=ablation),
        of=DOG,
    )
    assert (choice.relation, model.call_count()) == (
        DIRECTOR if offered and not calls else None,
        calls,
    )
