"""The answer and its support, checked against the graph."""

from __future__ import annotations

from typing import Any

import pytest
from machine import (
    PROVEN,
    answered,
    produce,
)
from small import answer_of, iri

from kgwb.run.answers import NOT_IN_GRAPH


def test_values_have_the_order_of_the_sentences_that_prove_them() -> None:
    directed = ["orgx:dune", "orgx:director", "orgx:denis"]
    starring = ["orgx:dune", "orgx:starring", "orgx:timothee"]
    proofs = {"orgx:denis": directed, "orgx:timothee": starring}
    for order in (("orgx:denis", "orgx:timothee"), ("orgx:timothee", "orgx:denis")):
        sentences = [{"text": name, "support": [proofs[name]]} for name in order]
        reply = produce(answers=("orgx:denis", "orgx:dune", "orgx:timothee"), sentences=sentences)
        run, _ = answered(produce=reply)
        answer = answer_of(run)
        assert answer.text == f"{order[0]} (1) {order[1]} (2)"
        # Dune is in both sentences, and comes where the local graph has it.
        ends = [name.removeprefix("orgx:") for name in order]
        terms = [value.term for value in answer.values if value.term != iri("dune")]
        assert terms == [iri(end) for end in ends]


@pytest.mark.parametrize(
    ("kind", "answers", "shape", "label"),
    [
        ("count", ("orgx:denis", "orgx:timothee", "orgx:nobody"), "count", "2"),
        ("yes", (), "boolean", "true"),
        ("no", (), "boolean", "false"),
    ],
)
def test_numbers_and_truth_values(kind: str, answers: Any, shape: str, label: str) -> None:
    run, _ = answered(produce=produce(*PROVEN, kind=kind, answers=answers))
    answer = answer_of(run)
    assert (answer.kind, answer.labels, len(answer.support)) == (shape, (label,), 2)


@pytest.mark.parametrize("proving", [0, 1, 2])
def test_yes_is_in_doubt_unless_each_sentence_is_proved(proving: int) -> None:
    supports = [PROVEN if number < proving else [] for number in range(2)]
    sentences = [{"text": "so", "support": support} for support in supports]
    run, _ = answered(produce=produce(kind="yes", answers=(), sentences=sentences))
    assert ("proved" in answer_of(run).doubt) == (proving < 2)


def test_an_answer_without_values_has_what_is_missing_as_its_reason() -> None:
    missing = "the budget"
    run, _ = answered(produce=produce(kind="nothing", answers=(), missing=missing))
    assert not run.answer
    assert answer_of(run).reason == f"{NOT_IN_GRAPH}: {missing}"


def test_an_answer_of_unknown_nodes_has_no_values() -> None:
    run, _ = answered(produce=produce(*PROVEN, answers=("orgx:nobody",)))
    assert not run.answer
