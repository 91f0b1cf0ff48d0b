"""The answer: values, a number or a truth value, with the triples that support them."""

from typing import Any
from unittest.mock import Mock

import pytest
from small import answer_of, films
from triads import SCRIPT, TRIAD, choice, template, triad, triplets

from kgwb.errors import GraphTimeoutError
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.systems.triad.records import Attempt


def attempts(run: Run) -> list[Attempt]:
    return [step.output for step in run.steps if step.agent == "attempt"]


@pytest.mark.parametrize(
    ("parts", "head", "kind", "label"),
    [
        ("Dune | directed by | David Lynch", "ASK", "yes or no", "true"),
        ("Dune | directed by | Amy Adams", "ASK", "yes or no", "false"),
        ("Arrival | starring | ?x", "SELECT ?x", "yes or no", "true"),
        ("Arrival | starring | ?x", "SELECT ?x", "count", "2"),
        ("Arrival | starring | ?x", "SELECT (COUNT(?x) AS ?n)", "count", "2"),
        ("Denis Villeneuve | children | ?n", "SELECT ?n", "count", "3"),
    ],
)
def test_the_answer_is_a_truth_value_or_a_number_if_the_question_asks_for_one(
    parts: str, head: str, kind: str, label: str
) -> None:
    subject, relation, object_ = parts.split(" | ")
    name = {"children": "number of children", "directed by": "director"}.get(relation, relation)
    end = object_ if object_.startswith("?") else f"<{object_}>"

    def model(request: Any) -> Any:
        if request.task != "triad/relation_choice":
            return replies[request.task]
        return choice(
            *(r["number"] for r in request.variables["relations"] if r["triple"][1] == name)
        )

    replies = SCRIPT | {
        "triad/triplets": triplets(parts),
        "triad/template": template(f"{head} {{ <{subject}> <{relation}> {end} . }}"),
        "triad/query_choice_judgement": choice(1),
        "triad/answer_type": {"type": kind},
    }
    settings = TRIAD.settings(answer_type_from="model")
    run = triad(Scripted(model), "So?", settings=settings).go()
    assert answer_of(run).labels == (label,)
    kinds = {"yes or no": "boolean", "count": "count"}
    assert answer_of(run).kind == kinds[kind]
    assert len(attempts(run)) == 1  # "no" is an answer: there is no second attempt


TOO_SLOW = Mock(side_effect=GraphTimeoutError("too slow"))


def test_an_answer_whose_triples_cannot_be_looked_for_has_no_support_but_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films()
    run = triad(Scripted(SCRIPT), kg=kg).go(until="query_choice")
    monkeypatch.setattr(kg, "select", TOO_SLOW)
    run.go()
    assert (answer_of(run).labels, answer_of(run).support) == (("Missoula",), ())
    [note] = run["answer"].notes
    assert "too slow" in note
