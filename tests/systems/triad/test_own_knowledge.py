"""Own knowledge: the model answers without the graph, by a setting."""

from typing import Any

import pytest
from rdflib import Literal
from small import answer_of
from triads import answered, triplets


@pytest.mark.parametrize(
    ("kind", "reply", "ablation", "term"),
    [
        ("select", " Moscow ", "none", Literal("Moscow")),
        ("select", "1,234", "none", Literal("1,234")),
        ("select", " ", "none", None),
        ("yes or no", "False", "boolean_fallback", Literal(False)),
        ("count", "Moscow", "none", Literal("Moscow")),
        ("count", "1,234", "none", Literal(1234)),
        ("count", "3", "boolean_fallback", None),
    ],
)
def test_a_reply_becomes_a_value_of_the_type_that_is_asked_for(
    kind: str, reply: str, ablation: str, term: Any
) -> None:
    run, _ = answered(
        triplets=triplets("Nothing | born in | ?x"),
        answer_type={"type": kind},
        own_knowledge_fact={"answer": reply},
        own_knowledge_truth={"answer": reply},
        settings={"own_knowledge": True, "ablation": ablation},
    )
    answer = answer_of(run)
    assert [value.term for value in answer.values] == ([] if term is None else [term])
    assert (answer.ungrounded, bool(answer.reason)) == (term is not None, True)
