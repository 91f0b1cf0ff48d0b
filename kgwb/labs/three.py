"""Lab 3: six systems on the same questions. Which answers do they give, by which triples, at what cost?"""

from __future__ import annotations

from collections.abc import Sequence

from kgwb.labs.answers import AnswerTriples, NamedChoice, NamedNumber
from kgwb.labs.changed_graphs import expand_iri, judge_live
from kgwb.labs.recorded import add_choice, answer_labels
from kgwb.labs.tasks import Lab, TriedQuestion, open_sample
from kgwb.labs.texts import Problem, say
from kgwb.llm import ChatModel
from kgwb.llm import model as open_model
from kgwb.run.answers import Answer
from kgwb.terms import Triple
from kgwb.workbench import Workbench, recording

LAB = Lab(3, "lab3.title")
MUTED_RUN_NAME = "films/chatty_kg/4"
"""The recording in which triples are muted."""
REMAINING_LABEL = "Inception"
"""The only value of its answer that should remain."""


add_choice(LAB, NamedNumber)
add_choice(LAB, NamedChoice)
add_choice(LAB, NamedChoice)
add_choice(LAB, int)


def try_muted_triples(triples: Sequence[Triple], model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 3.5 over the graph films without some triples; return one result.

    All agents of Chatty-KG that ask a model ask this one. The answer is right if it equals that of
    ``rules`` without these triples. Raises what opening the model raises.
    """
    recorded = recording(MUTED_RUN_NAME, kg=open_sample("films"), model="rules")
    remaining = recorded.mute(*triples).go()
    expected = answer_labels(remaining)
    workbench = Workbench(open_sample("films"), open_model(model))
    run = workbench.begin(recorded.question).mute(*triples)
    return [judge_live(run, expected)]


@LAB.task(try_live=try_muted_triples)
def check_muted_triples(triples: AnswerTriples) -> Problem:
    """Return "" if muting these triples leaves only REMAINING_LABEL as the answer, else feedback.

    Each of them must support the answer, and there must be fewer than the answer has values. IRIs
    are read as ``expand_iri`` does. A value is left if none of the triples that support it is muted. The first
    problem found is returned, in the order: no support, what is left, too many.
    """
    answer = recording(MUTED_RUN_NAME).answer or Answer("list")
    known = {tuple(map(str, triple)): triple for triple in answer.support}
    muted: set[Triple] = set()
    for triple in triples:
        key = tuple(map(expand_iri, triple))
        if key not in known:
            return "3.5.no-support"
        muted.add(known[key])
    labels = [value.label for value in answer.values if muted.isdisjoint(value.support)]
    if labels != [REMAINING_LABEL]:
        return say("3.5.left", labels=", ".join(sorted(labels)) or say("result.nothing"))
    if len(muted) >= len(answer.values):
        return "3.5.fewer"
    return ""


add_choice(LAB, NamedChoice)
