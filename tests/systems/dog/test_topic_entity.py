"""Topic entities: marked in the question, or found and then marked."""

from __future__ import annotations

from typing import Any

import pytest
from small import DOG, alone

from kgwb.errors import InvalidReplyError
from kgwb.systems.dog.topic_entity import find_topics, mark
from kgwb.walk import Topics


def found(question: str, *entities: str) -> tuple[Topics, Any]:
    replies = {"topic_entity": {"entities": list(entities)}}
    topics, _, model = alone(lambda run: find_topics(question, run), replies, of=DOG)
    return topics, model


def test_a_marked_question_costs_no_model_call() -> None:
    topics, model = found("which films star [Amy Adams] and [Jeremy Renner]")
    assert topics.entities == ("Amy Adams", "Jeremy Renner")
    assert (topics.question, model.calls()) == ("which films star [Amy Adams] and [Jeremy Renner]", 0)


def test_all_names_are_marked_in_the_questions_own_spelling() -> None:
    topics, _ = found("who wrote ARRIVAL and Dune?", "dune", "Arrival")
    assert topics == Topics("who wrote [ARRIVAL] and [Dune]?", ("ARRIVAL", "Dune"))


@pytest.mark.parametrize(
    ("question", "names", "marked"),
    [
        ("the arrivals of Arrival", ["Arrival"], "the arrivals of [Arrival]"),  # a whole word before a part
        ("who made Dune and Dune Part Two", ["Dune Part Two"], "who made Dune and [Dune Part Two]"),
        ("Wer drehte »Amélie«?", ["Amélie"], "Wer drehte »[Amélie]«?"),
        ("films like $9.99 (2008)", ["$9.99"], "films like [$9.99] (2008)"),
        ("哪部电影", ["电影"], "哪部[电影]"),
    ],
)
def test_a_name_is_marked_where_it_stands(question: str, names: list[str], marked: str) -> None:
    assert mark(question, names).question == marked


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([], "no entity is named"),
        (["Sicario"], "'Sicario' is not in the question"),
        (["Dune", " "], "'' is not in the question"),
        (["Dune", "Dune Part Two"], "'Dune' is part of another name"),
    ],
)
def test_a_name_that_is_not_copied_is_sent_back(names: list[str], problem: str) -> None:
    with pytest.raises(InvalidReplyError, match=problem):
        found("who directed Dune Part Two?", *names)
