"""The model alone: what it is shown, and what its reply becomes without the graph."""

from typing import Any

import pytest
from rdflib import Literal
from small import PAPER, alone, iri

from kgwb.run.answers import Context, Turn
from kgwb.systems.chatty_kg.chat import ask_model_alone

TALKED = Context((Turn("Who directed Dune?", ("Denis Villeneuve",), standalone="not shown"),))


@pytest.mark.parametrize(
    ("question", "answers", "kind", "terms"),
    [
        ("Who made it?", [" Ted Chiang ", "", "Ted Chiang"], "list", [iri("ted")]),
        ("Which?", ["Dune"], "list", [Literal("Dune")]),  # two vertices have this label
        ("Who made it?", ["Nobody", "Amy Adams"], "list", [Literal("Nobody"), iri("amy")]),
        ("Is it long?", ["Yes", "no"], "boolean", [Literal(True)]),
        ("Is it long?", ["perhaps"], "boolean", [Literal(False)]),
    ],
)
def test_a_name_is_the_only_vertex_of_this_label_or_a_text(
    question: str, answers: Any, kind: str, terms: list[Any]
) -> None:
    reply = answers if isinstance(answers, str) else {"answers": answers}
    answer, run, model = alone(
        lambda run: ask_model_alone(question, TALKED, run), {"model_alone": reply}, settings=PAPER
    )
    assert (answer.kind, [value.term for value in answer.values]) == (kind, terms)
    assert (answer.ungrounded, bool(answer.reason)) == (bool(terms), not terms)
    assert run.totals.queries == 0
    assert model.requests[0].variables["dialogue"] == [
        {"question": "Who directed Dune?", "answers": ["Denis Villeneuve"]}
    ]
