"""Topic entities: the names of a question in brackets."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from small import DOG, alone
from tables import read_table

from kgwb.errors import InvalidReplyError
from kgwb.systems.dog.question import bracket_names, find_topic_entities
from kgwb.systems.dog.records import (
    TopicEntities,
)


def find_topics(question: str, *entities: str) -> tuple[TopicEntities, Any]:
    """The topic entities if a model names these, and the model."""
    replies = {"topic_entity": {"entities": list(entities)}}
    topics, _, model = alone(lambda run: find_topic_entities(question, run), replies, of=DOG)
    return topics, model


def test_all_names_get_brackets_in_the_spelling_of_the_question() -> None:
    topics, _ = find_topics("who wrote ARRIVAL and Dune?", "dune", "Arrival")
    assert topics == TopicEntities("who wrote [ARRIVAL] and [Dune]?", ("ARRIVAL", "Dune"))
    marked = "which films star [Amy Adams] and [Jeremy Renner]"
    topics, model = find_topics(marked)  # the model is not asked
    assert (topics, model.call_count()) == (
        TopicEntities(marked, ("Amy Adams", "Jeremy Renner")),
        0,
    )


@pytest.mark.parametrize(
    ("question", "names", "marked"), read_table(Path(__file__).with_name("bracketed_names.jsonl"))
)
def test_a_name_gets_brackets_at_its_first_place(
    question: str, names: list[str], marked: str
) -> None:
    assert bracket_names(question, names).question == marked


@pytest.mark.parametrize(
    ("names", "problem", "taken"),
    [
        ([], "no entity is named: name what 'who directed Dune or arrival?' is about", None),
        (
            ["Solaris"],
            "'Solaris' is not in the question: copy the names from 'who directed Dune or",
            None,
        ),
        (["Dune", " "], "'' is not in the question", ["Dune"]),
        (["Dune or", "Dune"], "'Dune' is part of another name", ["Dune or"]),
        (["Dune: Part One"], "'Dune: Part One' is not in the question", ["Dune"]),
        (["Arrivals", "Dune"], "'Arrivals' is not in the question", ["Dune", "arrival"]),
    ],
)
def test_a_wrong_name_is_sent_back_and_in_the_end_replaced_by_the_nearest_label(
    names: list[str], problem: str, taken: list[str] | None
) -> None:
    question = "who directed Dune or arrival?"
    with pytest.raises(InvalidReplyError, match=re.escape(problem)) if not taken else nullcontext():
        topics, model = find_topics(question, *names)
        assert problem in model.requests[-1].messages[-1].content
        assert list(topics.entities) == taken
        assert topics.question.replace("[", "").replace("]", "") == question
