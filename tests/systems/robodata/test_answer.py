"""The answer and its support, checked against the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machine import answered, produce
from small import answer_of, iri
from tables import read_table


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
    ("kind", "answers", "supports", "missing", "expected"),
    read_table(Path(__file__).with_name("produced_answers.jsonl")),
)
def test_what_no_sentence_proves_is_in_doubt(
    kind: str, answers: list[str], supports: Any, missing: str, expected: Any
) -> None:
    sentences = [{"text": f"S{n}", "support": support} for n, support in enumerate(supports)]
    reply = produce(kind=kind, answers=answers, sentences=sentences, missing=missing)
    answer = answer_of(answered(produce=reply)[0])
    sizes = [len(value.support) for value in answer.values]
    unproved = [label for label in answer.labels if label in answer.doubt]
    is_proved = "proved" not in answer.doubt
    said = [answer.kind, [*answer.labels], sizes, bool(answer.reason), is_proved, unproved]
    assert said == expected
