"""Lab 3: six systems on the same questions. Which answers do they give, by which triples, at what cost?"""

from __future__ import annotations

from functools import cache
from statistics import median

from kgwb.flow import Answer
from kgwb.labs.forms import AnswerTriples, NamedChoice, NamedNumber, to_name
from kgwb.labs.material import CLAIMS
from kgwb.labs.recorded import answers_of_system, mean_f1, recorded_systems
from kgwb.labs.tasks import Lab, compare_choices, open_sample, open_samples
from kgwb.run import Run
from kgwb.terms import Triple
from kgwb.workbench import recording

F1_TOLERANCE = 0.005
"""How far a mean F1 may be from the right one, so that two decimals are enough."""


def prepare_checks() -> None:
    """Open the sample graphs, and replay the recordings of all systems."""
    open_samples()
    for system in recorded_systems():
        answers_of_system(system)


LAB = Lab(3, "All systems, the same questions", prepare=prepare_checks)
SHARED_RUN_NAME = "films/{}/4"
"""The recording of a question that every system answers, with the name of the system left open."""
MUTED_RUN_NAME = "films/chatty_kg/4"
"""The recording in which triples are muted."""
REMAINING_LABEL = "Inception"
"""The only value of its answer that should remain."""
VERIFIABLE_CLAIMS = {"C", "E", "F"}
"""The claims that the recorded runs show. For the others one needs other runs to compare with."""


@LAB.task(
    "Which system has the highest mean F1, and how high is it?",
    "runs['dog'] has the 24 recorded questions of DoG. Each has its F1, such as runs['dog'][0].f1.",
    "statistics.mean(row.f1 for row in runs['dog']) is the mean of one system. Compute all six.",
    "Take the mean over both graphs, and do not round before you compare.",
)
def check_best_f1(answer: NamedNumber) -> str:
    """Return "" for a recorded system with the highest mean F1, and this mean, else feedback.

    The mean may be rounded to two decimals. A system that was not recorded is answered with the
    list of those that were. Whether the system or the mean is wrong is not said.
    """
    name, f1 = answer
    means = {system: mean_f1(system) for system in recorded_systems()}
    system = to_name(name)
    if system not in means:
        return _list_systems()
    if abs(f1 - means[system]) > F1_TOLERANCE:
        return f"this is not the mean F1 of {system}"
    if means[system] < max(means.values()):
        return "this is its mean F1, but another system has a higher one"
    return ""


@LAB.task(
    "Which system asks its model least often, in the median?",
    "The totals of a row are what the run cost; model_calls is how often it asked a model.",
    "statistics.median(row.totals.model_calls for row in runs['dog']) is the median of one system.",
    "Do not go by the number of agents: many are code, and no model is asked about one candidate.",
)
def check_fewest_model_calls(system: str) -> str:
    """Return "" if no other recorded system has a lower median of model calls, else feedback.

    A system that was not recorded is answered with the list of those that were.
    """
    system = to_name(system)
    medians = {name: _median_model_calls(name) for name in recorded_systems()}
    if system not in medians:
        return _list_systems()
    if medians[system] > min(medians.values()):
        return "another system asks its model less often, in the median"
    return ""


@LAB.task(
    "Which systems gave only wrong values to a question?",
    "The labels of a row are the answer, and its gold_labels the right one. What do they share?",
    "Leave out the rows without labels: there the system said that it has no answer.",
    "Two sets share nothing if `row.labels & row.gold_labels` is empty. F1 below 1 is not enough.",
)
def check_wrong_systems(names: NamedChoice) -> str:
    """Return "" for the names of the systems that gave only wrong values for a question.

    At least one answer of such a system has no gold label among its labels. Otherwise return
    feedback.
    """
    systems = recorded_systems()
    right_names = [name for name in systems if _has_wrong_answer(name)]
    return compare_choices(
        [to_name(name) for name in names],
        right_names,
        systems,
        unknown=_list_systems(),
        wrong="{} never gave only wrong values",
        missing="there is another system that did",
    )


@LAB.task(
    "How many triples support all of the six answers to question 4 of films?",
    "value.support has the triples that support one value of an answer.",
    "For each system, take the set of the triples that support any of its values.",
    "Which triples are in all six sets? If `sets` is a list of them, use set.intersection(*sets).",
)
def check_shared_triples(number: int) -> str:
    """Return "" for the number of triples that support the answers of all recorded systems.

    Otherwise return feedback, which does not say whether the number is too high.
    """
    supports = []
    for name in recorded_systems():
        answer = recording(SHARED_RUN_NAME.format(name)).answer
        if answer:
            supports.append(set(answer.support))
    right = len(set.intersection(*supports))
    if number == right:
        return ""
    return "this is not the number of triples that are in all six sets"


@LAB.task(
    f"Mute as few triples as you can, so that only {REMAINING_LABEL} is left",
    "In the debugger, press Mute beside a triple. What is left? run.mute(triple).go() does the same.",
    "A film is in the answer only with both of its triples. How many must be muted to remove it?",
    "run.answer.values[1].support[0] is a triple. The answer is a list of triples, one for each film.",
)
def check_muted_triples(triples: AnswerTriples) -> str:
    """Return "" if muting these triples leaves only REMAINING_LABEL, else feedback.

    Each of them must support the answer, and there must be fewer than the answer has values. IRIs
    may be in angle brackets. The first problem found is returned. The question is asked again
    without the triples, by the model ``rules``.
    """
    answer = recording(MUTED_RUN_NAME).answer or Answer("list")
    known = {tuple(map(str, triple)): triple for triple in answer.support}
    muted: dict[Triple, None] = {}
    for triple in triples:
        key = tuple(part.strip("<> ") for part in triple)
        if key not in known:
            return (
                "not all of these triples support the answer; "
                "use triples of value.support, or write whole IRIs"
            )
        muted[known[key]] = None
    left = _run_to_mute().mute(*muted).go().answer
    labels = left.labels if left else ()
    if set(labels) != {REMAINING_LABEL}:
        return f"without these triples, the answer is: {', '.join(labels) or 'nothing'}"
    if len(muted) >= len(answer.values):
        return "fewer triples are enough"
    return ""


@LAB.task(
    "Which claims of the papers can be seen in these runs?",
    "To see that something helps, you need runs with it and without it, or runs of the system that "
    "it is compared with.",
    "In these runs own knowledge is off, all tools are there, and six systems were recorded.",
    "Open a run that a claim is about, such as kgwb.recording('films/dog/3'), and look for the claim.",
)
def check_claims(letters: NamedChoice) -> str:
    """Return "" for the letters of VERIFIABLE_CLAIMS, in upper or lower case, else feedback.

    ``letters`` are in any order. The feedback names the first letter that is no claim or a wrong
    one.
    """
    return compare_choices(
        [letter.strip().upper() for letter in letters],
        VERIFIABLE_CLAIMS,
        CLAIMS,
        unknown=f"there is no claim {{!r}}; the claims are A to {max(CLAIMS)}",
        wrong="for claim {} you would have to compare with other runs",
        missing="another claim can be seen, too",
    )


@cache
def _run_to_mute() -> Run:
    """Return the run in whose forks triples are muted. It is kept, as a new one takes seconds."""
    return recording(MUTED_RUN_NAME, kg=open_sample("films"), model="rules")


def _median_model_calls(system: str) -> float:
    return median(answer.totals.model_calls for answer in answers_of_system(system))


def _has_wrong_answer(system: str) -> bool:
    """Return whether a system answered a recorded question, but with no gold label."""
    return any(answer.labels and answer.f1 == 0 for answer in answers_of_system(system))


def _list_systems() -> str:
    return f"the systems are {', '.join(recorded_systems())}"
