"""QIR agent: the checks of the triples validator, the last resort, and the QIR of a reply."""

from pathlib import Path
from typing import Any

import pytest
from small import alone, qir
from tables import read_table

from kgwb.errors import OverrideError
from kgwb.kg.base import AnswerKind
from kgwb.run.ask import schema_of
from kgwb.systems.chatty_kg.qir import QirReply, determine_kind, extract_qir
from kgwb.systems.chatty_kg.records import QIR, Comparison, Fact

GOOD = qir("Dune | director | ?person")


def extracted(*replies: Any) -> Any:
    return alone(lambda run: extract_qir("Who directed Dune?", run), {"qir": list(replies)})


@pytest.mark.parametrize(
    ("question", "said", "kind"), read_table(Path(__file__).with_name("opening_words.jsonl"))
)
def test_the_kind_goes_by_the_opening_words(
    question: str, said: AnswerKind, kind: AnswerKind
) -> None:
    assert determine_kind(question, said) == kind


@pytest.mark.parametrize(
    ("facts", "target", "problem"),
    [
        ((), "?b", "no triple names an entity"),
        ((Fact("Dune", "", "?b"),), "?b", "triple 1 lacks a part"),
        ((Fact("Dune", "director", "Lynch"),), "", "no triple has an unknown"),
        ((Fact("Dune", "director", "?b"),), "?c", "the target ?c is in no triple"),
        ((Fact("Dune", "director", "?b"),), "", "the target is empty"),
        ((Fact("Dune", "director", "?a b"),), "?a b", "write ?a_b"),
        ((Fact("Dune", "director", "?"),), "?", "write ?unknown"),
    ],
)
def test_a_qir_by_hand_goes_through_the_same_checks(
    facts: tuple[Fact, ...], target: str, problem: str
) -> None:
    _, run, _ = extracted(GOOD)
    with pytest.raises(OverrideError) as caught:
        run.override("qir", QIR(facts, target))
    assert problem in caught.value.message
    run.override(
        "qir",
        {"facts": [{"subject": "Dune", "relation": "writer", "object": "?b"}], "target": "?b"},
    )
    assert [fact.relation for fact in run.go().output("qir").facts] == ["writer"]


def test_a_person_may_compare_an_unknown_and_no_model_is_asked_to() -> None:
    _, run, _ = extracted(GOOD)
    facts = (Fact("Dune", "director", "?b"),)
    with pytest.raises(OverrideError):
        run.override("qir", QIR(facts, "?b", comparisons=(Comparison("?c", "max"),)))
    first = Comparison("?b", "min")
    run.override("qir", QIR(facts, "?b", comparisons=(first,)))
    assert run.go().output("qir").comparisons == (first,)
    assert "comparisons" not in schema_of(QirReply)["properties"]
