"""Relation filtering: replies of the model, and when it is not asked."""

from typing import Any

import pytest
from debate import (
    DIRECTOR,
    filtering,
)
from small import DOG, alone

from kgwb import profile
from kgwb.systems.dog.hop import (
    filter_relation,
)
from kgwb.systems.dog.records import (
    Relation,
    Relations,
)


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
