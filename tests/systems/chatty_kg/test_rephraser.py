"""Rephraser: the standalone question, from questions and answers said before."""

from __future__ import annotations

import pytest
from small import alone

from kgwb.errors import InvalidReplyError
from kgwb.flow import Context, Turn
from kgwb.systems.chatty_kg.chat import rephrase
from kgwb.systems.chatty_kg.records import Rephrased

TALKED = Context(
    (
        Turn("Who directed Dune?", ("Denis Villeneuve",), entities=("Dune",)),
        Turn("Where was he born?", ("Gentilly",), standalone="Where was Denis Villeneuve born?"),
    )
)


def test_it_sees_answers_entities_and_standalone_forms() -> None:
    reply = {"rephraser": {"question": "In which country \n is Gentilly?"}}
    rephrased, _, model = alone(lambda run: rephrase("Which country is that in?", TALKED, run), reply)
    assert rephrased == Rephrased("In which country is Gentilly?", "Which country is that in?")
    assert model.requests[0].variables["dialogue"] == [
        {"question": "Who directed Dune?", "answers": ["Denis Villeneuve"], "about": ["Dune"]},
        {"question": "Where was Denis Villeneuve born?", "answers": ["Gentilly"], "about": []},
    ]


def test_an_empty_question_is_turned_away() -> None:
    with pytest.raises(InvalidReplyError, match="the question is empty"):
        alone(lambda run: rephrase("And he?", TALKED, run), {"rephraser": {"question": "\n"}})
