"""Lab 3: six systems on the same questions. Which answers do they give, by which triples, at what cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import median

from kgwb.labs.answers import AnswerTriples, NamedChoice, NamedNumber
from kgwb.labs.changed_graphs import expand_iri, judge_live
from kgwb.labs.material import CLAIMS
from kgwb.labs.recorded import (
    F1_TOLERANCE,
    answer_labels,
    answers_of_system,
    mean_f1,
    recorded_systems,
)
from kgwb.labs.tasks import Choice, Lab, TriedQuestion, open_sample
from kgwb.labs.texts import Problem, say
from kgwb.llm import ChatModel
from kgwb.llm import model as open_model
from kgwb.run import Run
from kgwb.run.answers import Answer
from kgwb.terms import Triple
from kgwb.workbench import Workbench, recording

LAB = Lab(3, "lab3.title")
SHARED_RUN_NAME = "films/{}/4"
"""The recording of a question that every system answers, with the name of the system left open."""
MUTED_RUN_NAME = "films/chatty_kg/4"
"""The recording in which triples are muted."""
REMAINING_LABEL = "Inception"
"""The only value of its answer that should remain."""
VERIFIABLE_CLAIMS = {"C", "E", "F"}
"""The claims that the recorded runs show. For the others one needs other runs to compare with."""


@LAB.choice(NamedNumber)
def find_best_systems() -> Choice:
    """The recorded systems with the highest mean F1, with the mean of each, which may be off by F1_TOLERANCE."""
    means = {system: mean_f1(system) for system in recorded_systems()}
    numbers = {}
    for system, mean in means.items():
        numbers[system] = (mean - F1_TOLERANCE, mean + F1_TOLERANCE)
    return Choice(find_highest(means), means, numbers)


@LAB.choice(NamedChoice)
def find_cheapest_systems() -> Choice:
    """The recorded systems with the lowest median of model calls, of which one is enough."""
    saved = {}
    for system in recorded_systems():
        saved[system] = -median(answer.totals.model_calls for answer in answers_of_system(system))
    return Choice(find_highest(saved), saved, one_suffices=True)


def find_highest(values: Mapping[str, float]) -> list[str]:
    """Return the names with the highest value."""
    highest = max(values.values())
    return [name for name, value in values.items() if value == highest]


@LAB.choice(NamedChoice)
def find_wrong_systems() -> Choice:
    """The systems with an answer that has labels and an F1 of 0; one recorded question is enough."""
    systems = recorded_systems()
    right = []
    for name in systems:
        if any(answer.labels and answer.f1 == 0 for answer in answers_of_system(name)):
            right.append(name)
    return Choice(right, systems)


@LAB.choice(int)
def count_shared_triples() -> Choice:
    """The number of triples that support the answers of all recorded systems to the question of SHARED_RUN_NAME.

    Systems without an answer do not count.
    """
    supports = []
    for name in recorded_systems():
        answer = recording(SHARED_RUN_NAME.format(name)).answer
        if answer:
            supports.append(set(answer.support))
    return Choice([len(set.intersection(*supports))])


def try_muted_triples(triples: Sequence[Triple], model: ChatModel | str) -> list[TriedQuestion]:
    """Ask a model the question of task 3.5 over the graph films without some triples; return one result.

    All agents of Chatty-KG that ask a model ask this one. The answer is right if it equals that of
    ``rules`` without these triples. Raises what opening the model raises.
    """
    recorded = _run_to_mute()
    remaining = recorded.mute(*triples).go()
    expected = answer_labels(remaining)
    workbench = Workbench(open_sample("films"), open_model(model))
    run = workbench.begin(recorded.question).mute(*triples)
    return [judge_live(run, expected)]


@LAB.task(try_live=try_muted_triples)
def check_muted_triples(triples: AnswerTriples) -> Problem:
    """Return "" if muting these triples leaves only REMAINING_LABEL as the answer, else feedback.

    Each of them must support the answer, and there must be fewer than the answer has values. IRIs
    are read as ``expand_iri`` does. The question is asked again without the triples, by the model
    ``rules``. The first problem found is returned, in the order: no support, what is left, too
    many.
    """
    answer = recording(MUTED_RUN_NAME).answer or Answer("list")
    known = {tuple(map(str, triple)): triple for triple in answer.support}
    muted: dict[Triple, None] = {}
    for triple in triples:
        key = tuple(map(expand_iri, triple))
        if key not in known:
            return "3.5.no-support"
        muted[known[key]] = None
    remaining = _run_to_mute().mute(*muted).go()
    labels = answer_labels(remaining)
    if labels != {REMAINING_LABEL}:
        return say("3.5.left", labels=", ".join(sorted(labels)) or say("result.nothing"))
    if len(muted) >= len(answer.values):
        return "3.5.fewer"
    return ""


@LAB.choice(NamedChoice)
def find_verifiable_claims() -> Choice:
    """The letters of the claims that the recorded runs show."""
    return Choice(VERIFIABLE_CLAIMS, CLAIMS)


@cache
def _run_to_mute() -> Run:
    """Return the run in whose forks triples are muted. It is kept, as a new one takes seconds."""
    return recording(MUTED_RUN_NAME, kg=open_sample("films"), model="rules")
