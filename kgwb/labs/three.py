"""Lab 3: six systems on the same questions. Which answers do they give, by which triples, at what cost?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median

from kgwb.labs.answers import AnswerTriples, NamedChoice, NamedNumber, to_name
from kgwb.labs.changed_graphs import answer_labels, judge_live
from kgwb.labs.material import CLAIMS
from kgwb.labs.recorded import F1_TOLERANCE, answers_of_system, mean_f1, recorded_systems
from kgwb.labs.tasks import Lab, TriedQuestion, compare_choices, open_sample
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


@LAB.task()
def check_best_f1(answer: NamedNumber) -> Problem:
    """Return "" for a recorded system with the highest mean F1, and this mean, else feedback.

    The mean may be off by F1_TOLERANCE. A system that was not recorded is answered with the list of
    those that were. A wrong mean is told before whether the system is the best.
    """
    name, f1 = answer
    means = {system: mean_f1(system) for system in recorded_systems()}
    system = to_name(name)
    if system not in means:
        return _list_systems()
    if abs(f1 - means[system]) > F1_TOLERANCE:
        return say("3.1.other-mean", system=system)
    if means[system] < max(means.values()):
        return "3.1.not-highest"
    return ""


@LAB.task()
def check_fewest_model_calls(system: str) -> Problem:
    """Return "" if no other recorded system has a lower median of model calls, else feedback.

    A system that was not recorded is answered with the list of those that were.
    """
    system = to_name(system)
    medians = {}
    for name in recorded_systems():
        calls = [answer.totals.model_calls for answer in answers_of_system(name)]
        medians[name] = median(calls)
    if system not in medians:
        return _list_systems()
    if medians[system] > min(medians.values()):
        return "3.2.not-lowest"
    return ""


@LAB.task()
def check_wrong_systems(names: NamedChoice) -> Problem:
    """Return "" for exactly the systems that have an answer with only wrong values, else feedback.

    Such an answer has labels and an F1 of 0; one recorded question is enough. Names may be written
    in any case, in any order.
    """
    systems = recorded_systems()
    right_names = []
    for name in systems:
        if any(answer.labels and answer.f1 == 0 for answer in answers_of_system(name)):
            right_names.append(name)
    return compare_choices(
        [to_name(name) for name in names],
        right_names,
        systems,
        unknown="3.3.unknown",
        wrong="3.3.wrong",
        missing="3.3.missing",
    )


@LAB.task()
def check_shared_triples(number: int) -> Problem:
    """Return "" for the number of triples that support the answers of all recorded systems, else feedback.

    The answers are those to the question of SHARED_RUN_NAME; systems without an answer do not
    count. The feedback does not say whether the number is too high.
    """
    supports = []
    for name in recorded_systems():
        answer = recording(SHARED_RUN_NAME.format(name)).answer
        if answer:
            supports.append(set(answer.support))
    right = len(set.intersection(*supports))
    if number != right:
        return "3.4.other-number"
    return ""


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
    may be in angle brackets. The question is asked again without the triples, by the model
    ``rules``. The first problem found is returned, in the order: no support, what is left, too
    many.
    """
    answer = recording(MUTED_RUN_NAME).answer or Answer("list")
    known = {tuple(map(str, triple)): triple for triple in answer.support}
    muted: dict[Triple, None] = {}
    for triple in triples:
        key = tuple(part.strip("<> ") for part in triple)
        if key not in known:
            return "3.5.no-support"
        muted[known[key]] = None
    remaining = _run_to_mute().mute(*muted).go()
    left = remaining.answer
    labels = left.labels if left else ()
    if set(labels) != {REMAINING_LABEL}:
        return say("3.5.left", labels=", ".join(labels) or say("result.nothing"))
    if len(muted) >= len(answer.values):
        return "3.5.fewer"
    return ""


@LAB.task()
def check_claims(letters: NamedChoice) -> Problem:
    """Return "" for exactly the letters of VERIFIABLE_CLAIMS, in any case and order, else feedback.

    They may be written together, as "CEF". The feedback names the first letter, by the alphabet,
    that is no claim or a wrong one, or says that one is missing.
    """
    return compare_choices(
        [letter for letter in "".join(letters).upper() if letter.isalnum()],
        VERIFIABLE_CLAIMS,
        CLAIMS,
        unknown="3.6.unknown",
        wrong="3.6.wrong",
        missing="3.6.missing",
    )


@cache
def _run_to_mute() -> Run:
    """Return the run in whose forks triples are muted. It is kept, as a new one takes seconds."""
    return recording(MUTED_RUN_NAME, kg=open_sample("films"), model="rules")


def _list_systems() -> Problem:
    """Return the feedback that lists the recorded systems."""
    return say("3.systems", systems=", ".join(recorded_systems()))
