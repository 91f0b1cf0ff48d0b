"""The model alone: what it is shown, and what its reply becomes without the graph."""

from typing import Any

import pytest
from rdflib import Literal
from small import alone, iri

from kgwb.run.answers import Context
from kgwb.systems.chatty_kg.chat import ask_model_alone


@pytest.mark.parametrize(
    ("answers", "terms"),
    [
        ([" Ted Chiang ", "", "Ted Chiang"], [iri("ted")]),
        (["Dune"], [Literal("Dune")]),  # two vertices have this label
        ([], []),
    ],
)
def test_a_name_is_the_only_vertex_of_this_label_or_a_text(
    answers: list[str], terms: list[Any]
) -> None:
    answer, run, _ = alone(
        lambda run: ask_model_alone("Who made it?", Context(), run),
        {"model_alone": {"answers": answers}},
    )
    assert [value.term for value in answer.values] == terms
    assert (answer.ungrounded, bool(answer.reason)) == (bool(terms), not terms)
    assert run.totals.queries == 0
