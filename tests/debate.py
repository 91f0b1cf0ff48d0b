"""Replies of a good model to DoG's agents, about the birth place of a film's director."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from small import answer_of, dog, iri, vertex

from kgwb.llm import ChatRequest, Scripted
from kgwb.run.answers import Value
from kgwb.run.prompts import Prompts
from kgwb.run.systems import profile
from kgwb.systems.dog.question import RemarkReply, make_question_checks
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


def choose_first(request: ChatRequest) -> dict[str, Any]:
    """The reply that links a name to its first candidate."""
    return vertex(1, request.variables["candidates"][0]["label"])


TWO_HOPS: Mapping[str, Any] = {
    "linking/vertex_selection": choose_first,
    "dog/topic_entity": {"entities": ["Arrival"]},
    "dog/relation_filtering": [
        filtering("director"),
        filtering("birth place", "Where was he born?"),
    ],
    "dog/answer_trying": [trying(), trying("Gentilly")],
    "dog/answer_trying_published": [trying(), trying("Gentilly")],
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
ROLES = ("simplifying_expert", "critic", "linguist")


def two_hops(**changed: Any) -> Scripted:
    """A model for the two hops, with other replies where given; they are those of published prompts too."""
    replies = dict(TWO_HOPS)
    for name, reply in changed.items():
        replies |= {f"dog/{name}": reply, f"dog/{name}_published": reply}
    return Scripted(replies)


def check_role(role: str) -> None:
    """Check that the question of a role goes on from what was found, in replies and in the prompt's examples.

    A reply that does not is sent back with the names, and after theta attempts used as it is.
    """
    settings = profile("fast", system="dog")
    if role == "fused_agent":
        settings = profile("fast", system="dog", ablation="fused_agent")
    lost = remark("What are some of his films?")
    still = remark("Where was the director [Denis Villeneuve] of [Arrival] born?")
    run = dog(QUESTION, two_hops(**{role: [lost, still, lost]}), settings=settings).go()
    assert str(answer_of(run)) == "Gentilly"  # the walk goes on from what was found
    problems = [problem for attempt in run[role].attempts for problem in attempt.problems]
    names = ["[Denis Villeneuve]", "[Arrival]", "[Denis Villeneuve]"]
    assert [name in problem.problem for name, problem in zip(names, problems, strict=True)] == [
        True
    ] * 3
    assert len({problem.name for problem in problems}) == 2
    assert len(run[role].notes) == 1

    examples = Prompts().load(f"dog/{role}").examples
    assert len(examples) == 3
    for _, example in examples:
        question, solved, _, text = example.splitlines()
        hops = []
        for hop in json.loads(solved.removeprefix("Solved: ")):
            hops.append(SolvedHop(hop["entity"], hop["relation"], hop["found"]))
        reply = RemarkReply.model_validate_json(text)
        assert [check.test(reply) for check in make_question_checks(question, hops)] == ["", ""]
        assert not any(hop.entity in reply.question for hop in hops)
