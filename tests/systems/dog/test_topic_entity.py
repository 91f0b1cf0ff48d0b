"""Topic entities: marked in the question, or found and then marked."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import pytest
from small import DOG, alone

from kgwb.errors import InvalidReplyError
from kgwb.systems.dog.records import Topics
from kgwb.systems.dog.topic_entity import find_topics, mark


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
    ("names", "problem", "taken"),
    [
        ([], "no entity is named: name what 'who directed Dune or arrival?' is about", None),
        (["Solaris"], "'Solaris' is not in the question: copy the names from 'who directed Dune or", None),
        (["Dune", " "], "'' is not in the question", ["Dune"]),
        (["Dune or", "Dune"], "'Dune' is part of another name", ["Dune or"]),
        (["Dune: Part One"], "'Dune: Part One' is not in the question", ["Dune"]),
        (["Arrivals", "Dune"], "'Arrivals' is not in the question", ["Dune", "arrival"]),
    ],
)
def test_a_refused_name_is_sent_back_with_the_question_and_the_graphs_nearest_taken_at_last(
    names: list[str], problem: str, taken: list[str] | None
) -> None:
    question = "who directed Dune or arrival?"
    with pytest.raises(InvalidReplyError, match=re.escape(problem)) if not taken else nullcontext():
        topics, model = found(question, *names)
        assert problem in model.requests[-1].messages[-1].content
        assert list(topics.entities) == taken
        assert topics.question.replace("[", "").replace("]", "") == question
