"""Own knowledge: the model answers without the graph, by a setting."""

from __future__ import annotations

import pytest
from small import answer_of
from triads import answered, triplets


@pytest.mark.parametrize(
    ("kind", "ablation", "label"),
    [
        ("select", "none", "Moscow"),
        ("yes or no", "none", "true"),
        ("count", "none", "Moscow"),
        ("count", "boolean_fallback", ""),
        ("select", "boolean_fallback", ""),
        ("yes or no", "boolean_fallback", "true"),
        ("select", "no_fallback", ""),
    ],
)
def test_own_knowledge_is_used_for_some_types_of_answers_and_is_marked(
    kind: str, ablation: str, label: str
) -> None:
    run, _ = answered(
        triplets=triplets("Nothing | born in | ?x"),
        answer_type={"type": kind},
        own_knowledge_fact={"answer": "Moscow"},
        own_knowledge_truth={"answer": "True"},
        settings={"own_knowledge": True, "ablation": ablation},
    )
    answer = answer_of(run)
    assert (answer.labels, answer.ungrounded) == ((label,) if label else (), bool(label))
