"""Lab 3: the systems on the same questions. Who answers what, on which triples, at what cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from statistics import fmean, median

from kgwb.labs.recorded import RecordedAnswer, answers_of_system, recorded_systems
from kgwb.labs.tasks import Lab, open_sample
from kgwb.run import Run
from kgwb.workbench import recording

LAB = Lab(3, "All systems, the same questions")
SHARED_RUN_NAME = "films/{}/4"
"""A join that all systems answer: which triples do all of them stand on?"""
MUTED_RUN_NAME, REMAINING_LABEL = "films/chatty_kg/4", "Inception"
"""An answer, and the only one of its values that is to be left."""
CLAIMS = {
    "A": "Chatty-KG executes up to ten times fewer queries than another system, KGQAn.",
    "B": "RAGonite answers more with both tools than with either alone.",
    "C": "DoG answers a question of several hops one hop after the other, and simplifies it in between.",
    "D": "Triad gains from answering of its own knowledge where the graph yields nothing.",
    "E": "RoboData gives for each sentence of its answer the triples that it rests on.",
    "F": "Chatty-KG does not answer from the language model where the graph yields nothing.",
}
"""Claims of the papers; those that the recorded runs show, and those for which one needs other runs."""
VERIFIABLE_CLAIMS = {"C", "E", "F"}


@LAB.task(
    "Which system has the highest mean F1?",
    "runs['dog'] has the 24 recorded questions of DoG; each has its F1, such as runs['dog'][0].f1.",
    "statistics.mean(row.f1 for row in runs['dog']) is one system's mean. Work out all six.",
    "Take the mean over both graphs, and do not round before: two of the systems are close to each other.",
)
def check_best_f1(system: str) -> str:
    return _check_highest(
        system, lambda rows: fmean(row.f1 for row in rows), "another system has a higher mean F1"
    )


@LAB.task(
    "Which system asks its model least often, in the median?",
    "A row's totals hold what the run cost; model_calls is how often it asked a model.",
    "statistics.median(row.totals.model_calls for row in runs['dog']) is one system's median.",
    "The number of agents says little: many are code, and where there is one candidate, no model is asked.",
)
def check_fewest_model_calls(system: str) -> str:
    remark = "another system asks less often in the median"
    return _check_highest(
        system, lambda rows: -median(row.totals.model_calls for row in rows), remark
    )


@LAB.task(
    "Which systems gave only wrong values to a question?",
    "A row's labels are what was answered, its gold what is right. What do the two share?",
    "Leave out the rows without labels: there the system said that it has no answer.",
    "Two sets share nothing if `row.labels & row.gold` is empty. It is not enough that F1 is below 1.",
)
def check_wrong_systems(names: list[str]) -> str:
    rows = {name: answers_of_system(name) for name in recorded_systems()}
    right = {
        name
        for name in rows
        if any(row.labels and not row.labels & row.gold_labels for row in rows[name])
    }
    if extra := sorted({*names} - right):
        known = extra[0] in rows
        return (
            f"{extra[0]} never gave only wrong values"
            if known
            else f"the systems are {', '.join(rows)}"
        )
    return "" if {*names} == right else "there is one more"


@LAB.task(
    "How many triples do all six answers to question 4 of films stand on?",
    "value.support holds the triples that one value of an answer stands on.",
    "Take for each system the set of the triples that support any of its values.",
    "Which triples are in all six sets? set.intersection(*sets) holds them, if `sets` is a list of sets.",
)
def check_shared_triples(number: int) -> str:
    answers = [
        run.answer
        for name in recorded_systems()
        if (run := recording(SHARED_RUN_NAME.format(name))).answer
    ]
    supports = [{triple for value in each.values for triple in value.support} for each in answers]
    right = len(set.intersection(*supports))
    return "" if number == right else f"that is too {'many' if number > right else 'few'}"


@LAB.task(
    f"Mute as few triples as you can, so that only {REMAINING_LABEL} is left",
    "In the debugger, press Mute beside a triple: what is left? run.mute(triple).go() does the same.",
    "A film is in the answer only with both of its triples. How many of them must be muted for it to go?",
    "run.answer.values[1].support[0] is a triple; a list of such triples, one a film, is the answer.",
)
def check_muted_triples(triples: Sequence[tuple[str, str, str]]) -> str:
    values = answer.values if (answer := recording(MUTED_RUN_NAME).answer) else ()
    known = {tuple(map(str, each)): each for value in values for each in value.support}
    asked = {tuple(part.strip("<> ") for part in triple) for triple in triples}
    if asked - known.keys():
        return "the answer does not stand on all of these: take triples of value.support, or write whole IRIs"
    left = _run_to_mute().mute(*map(known.__getitem__, asked)).go().answer
    labels = left.labels if left else ()
    if {*labels} != {REMAINING_LABEL}:
        return f"without these is left: {', '.join(labels) or 'nothing'}"
    return "it can be done with fewer triples" if len(asked) >= len(values) else ""


@LAB.task(
    "Which claims of the papers can be seen in these runs?",
    "To see that something helps, one needs runs with and without it, or of the system it is compared with.",
    "Own knowledge is off in these runs, no tool was taken away, and six systems were recorded.",
    "Open a run that a claim is about, such as kgwb.recording('films/dog/3'), and look for what it says.",
)
def check_claims(letters: list[str]) -> str:
    chosen = {letter.strip().upper() for letter in letters}
    if strange := sorted(chosen - set(CLAIMS)):
        return f"there is no claim {strange[0]!r}: they are A to {max(CLAIMS)}"
    if extra := sorted(chosen - VERIFIABLE_CLAIMS):
        return f"for claim {extra[0]} one would have to compare with other runs"
    return "another one can be seen, too" if chosen != VERIFIABLE_CLAIMS else ""


@cache
def _run_to_mute() -> Run:
    """The run whose triples are muted in forks of it; to ask it anew takes seconds."""
    return recording(MUTED_RUN_NAME, kg=open_sample("films"), model="rules")


def _check_highest(
    system: str, metric: Callable[[tuple[RecordedAnswer, ...]], float], remark: str
) -> str:
    """What is wrong with a system as the one of the highest figure."""
    figures = {name: metric(answers_of_system(name)) for name in recorded_systems()}
    if system not in figures:
        return f"the systems are {', '.join(figures)}"
    return "" if figures[system] == max(figures.values()) else remark
