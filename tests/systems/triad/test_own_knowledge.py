"""Own knowledge: the model answers without the graph, by a setting."""

from typing import Any

import pytest
from rdflib import Literal
from small import answer_of
from triads import answered, triplets


@pytest.mark.parametrize(
    ("kind", "reply", "term"),
    [
        ("select", " Moscow ", Literal("Moscow")),
        ("select", "1,234", Literal("1,234")),
        ("select", " ", None),
        ("count", "Moscow", Literal("Moscow")),
        ("count", "1,234", Literal(1234)),
    ],
)
def test_a_reply_becomes_a_value_of_the_type_that_is_asked_for(
    kind: str, reply: str, term: Any
) -> None:
    run, _ = answered(
        triplets=triplets("Nothing | born in | ?x"),
        answer_type={"type": kind},
        own_knowledge_fact={"answer": reply},
        settings={"own_knowledge": True},
    )
    answer = answer_of(run)
    assert [value.term for value in answer.values] == ([] if term is None else [term])
    assert (answer.ungrounded, bool(answer.reason)) == (term is not None, True)
