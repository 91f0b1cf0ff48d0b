"""The type of the answer: of the query, or of how many is asked for."""

from typing import Any

import pytest
from small import answer_of
from triads import SCRIPT, choice, template, triad, triplets

from kgwb.llm import Scripted


@pytest.mark.parametrize(
    ("question", "relation", "labels"),
    [
        ("How many actors star in Arrival?", "starring", ("2",)),
        ("What is the number of actors in Arrival?", "starring", ("2",)),
        ("Which actors star in Arrival?", "starring", ("Amy Adams", "Jeremy Renner")),
        ("How many children does Denis Villeneuve have?", "number of children", ("3",)),
    ],
)
def test_what_a_query_lists_is_counted_if_the_question_asks_how_many(
    question: str, relation: str, labels: tuple[str, ...]
) -> None:
    subject = "Denis Villeneuve" if "children" in question else "Arrival"

    def model(request: Any) -> Any:
        if request.task != "triad/relation_choice":
            return replies[request.task]
        relations = request.variables["relations"]
        return choice(*(each["number"] for each in relations if each["triple"][1] == relation))

    replies = SCRIPT | {
        "triad/triplets": triplets(f"{subject} | {relation} | ?x"),
        "triad/template": template(f"SELECT ?x WHERE {{ <{subject}> <{relation}> ?x . }}"),
        "triad/query_choice_judgement": choice(1),
    }
    answer = answer_of(triad(Scripted(model), question).go())
    assert tuple(sorted(answer.labels)) == labels
    assert answer.kind == ("list" if question.startswith("Which") else "count")
