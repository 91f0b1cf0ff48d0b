"""Replies of a good model to DoG's agents, about the birth place of a film's director."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from small import iri

from kgwb.run.answers import Value
from kgwb.systems.dog.records import Head, Relation, SolvedHop

QUESTION = "Where was the director of Arrival born?"
MARKED = "Where was the director of [Arrival] born?"
LEFT = "Where was [Denis Villeneuve] born?"
ARRIVAL = Head("Arrival", (Value(iri("arrival"), "Arrival"),), (iri("arrival"),))
DIRECTOR = Relation("director", "out", (iri("director"),))
SOLVED = SolvedHop("Arrival", "director", "Denis Villeneuve")


def filtering(relation: str, subquestion: str = "Who directed [Arrival]?") -> dict[str, str]:
    """The reply of relation filtering; "" is no relation."""
    return {"subquestion": subquestion, "relation": relation, "reason": "it says so"}


def trying(*answers: str) -> dict[str, Any]:
    """The reply of answer trying: yes with these answers, or no if there are none."""
    return {
        "sufficient": "yes" if answers else "no",
        "reason": "see the triples",
        "answers": list(answers),
    }


def remark(question: str, words: str = "well") -> dict[str, str]:
    """The reply of a role that proposes a question."""
    return {"remark": words, "question": question}


TWO_HOPS: Mapping[str, Any] = {
    "dog/topic_entity": {"entities": ["Arrival"]},
    "dog/relation_filtering": [
        filtering("director"),
        filtering("birth place", "Where was he born?"),
    ],
    "dog/answer_trying": [trying(), trying("Gentilly")],
    "dog/simplifying_expert": remark(
        "Where was the director [Denis Villeneuve] born?", "he directed it"
    ),
    "dog/critic": remark("Where was [Denis Villeneuve], the director, born?", "it is about him"),
    "dog/linguist": remark(LEFT, "who he is needs no words"),
}
"""Eight model calls: two hops, and a debate of one round between them."""
KEYS = [
    "topic_entity",
    "walk",
    "entity_linking[Arrival]",
    "entity_retriever[Arrival]",
    "vertex_selection[Arrival]",
    "iteration[hop 1]",
    "relations[hop 1/Arrival]",
    "relation_filtering[hop 1/Arrival]",
    "triple_filling[hop 1/Arrival]",
    "answer_trying[hop 1]",
    "simplifying[hop 1]",
    "simplifying_expert[hop 1/round 1]",
    "critic[hop 1/round 1]",
    "linguist[hop 1/round 1]",
    "iteration[hop 2]",
    "relations[hop 2/Denis Villeneuve]",
    "relation_filtering[hop 2/Denis Villeneuve]",
    "triple_filling[hop 2/Denis Villeneuve]",
    "answer_trying[hop 2]",
]
CALLS = 8
