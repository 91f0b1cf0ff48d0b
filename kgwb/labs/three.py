"""Lab 3: the systems on the same questions. Who answers what, on which triples, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from statistics import fmean, median

from kgwb.flow import Triple
from kgwb.labs.recorded import Recorded, of_system, systems
from kgwb.labs.tasks import Lab, graph
from kgwb.workbench import recording

LAB = Lab(3, "All systems, the same questions")
SHARED = "films/{}/4"
"""A join that several systems answer: which triples do all of them stand on?"""
MUTED = "films/chatty_kg/4"
CLAIMS = {
    "A": "Chatty-KG executes few queries: some two a question, where others needed eight to fifteen.",
    "B": "RAGonite answers more with both tools than with either alone.",
    "C": "DoG answers a question of several hops one hop after the other, and simplifies it in between.",
    "D": "Triad gains from answering of its own knowledge where the graph yields nothing.",
    "E": "RoboData gives for each sentence of its answer the triples that it rests on.",
    "F": "Chatty-KG does not answer from the language model where the graph yields nothing.",
}
"""Claims of the papers; those that the recorded runs show, and those for which one needs other runs."""
SHOWN = {"A", "C", "E", "F"}


@LAB.task(
    "Which system answers most of the recorded questions?",
    "kgwb.recording('films/dog/3') opens a run; its answer's labels are compared with the gold ones.",
    "Take the mean F1 of every system over all recorded questions.",
    "An empty answer is right where the graph cannot answer: F1 is 1 if both are empty.",
)
def best(system: str) -> str:
    means = {name: fmean(each.f1 for each in runs) for name, runs in _all().items()}
    if system not in means:
        return f"the systems are {', '.join(means)}"
    return "" if means[system] == max(means.values()) else "another system has a higher mean F1"


@LAB.task(
    "Which system asks the model least often?",
    "run.totals.model_calls is what one run asked.",
    "Take the median of each system over all recorded questions.",
    "It is not the one with the fewest agents: look at how many of its agents ask a model.",
)
def cheapest(system: str) -> str:
    calls = {name: median(each.run.totals.model_calls for each in runs) for name, runs in _all().items()}
    if system not in calls:
        return f"the systems are {', '.join(calls)}"
    return "" if calls[system] == min(calls.values()) else "another system asks less often in the median"


@LAB.task(
    "Which systems answer what the graph cannot answer?",
    "The seventh question of each graph has no gold answer.",
    "A system that says 'not in this graph' has answered nothing, and is right.",
    "The answer is a list, and may be empty: [].",
)
def overconfident(names: list[str]) -> str:
    right = {name for name, runs in _all().items() for each in runs if not each.gold and each.labels}
    if extra := sorted(set(names) - right):
        return (
            f"{extra[0]} answered nothing there" if extra[0] in _all() else f"there is no system {extra[0]}"
        )
    return "there is another one" if set(names) != right else ""


@LAB.task(
    "On which triples do all answers to question 4 of films stand?",
    "value.support holds the triples that one value of an answer stands on.",
    "Take for each system the set of all supporting triples, and what these sets share.",
    "Leave out the systems that did not answer it; give the number of triples.",
)
def shared(number: int) -> str:
    supports = [
        {triple for value in run.answer.values for triple in value.support}
        for name in systems()
        if (run := recording(SHARED.format(name))).answer and run.answer.values
    ]
    right = len(set.intersection(*supports)) if supports else 0
    return "" if number == right else f"that is too {'many' if number > right else 'few'}"


@LAB.task(
    "What does muting a triple do?",
    "run.mute(triple).go() asks again, of a graph without this triple.",
    "Open the run with its graph and a model: kgwb.recording(name, kg=kgwb.open_kg('films'), model='rules').",
    "Mute a triple that stands under one value only, and compare the answers' labels.",
)
def muted(triple: tuple[str, str, str]) -> str:
    run = recording(MUTED, kg=graph("films"), model="rules")
    values = run.answer.values if run.answer else ()
    asked = tuple(part.strip("<> ") for part in triple)
    known: dict[tuple[str, ...], Triple] = {
        tuple(map(str, each)): each for value in values for each in value.support
    }
    if asked not in known:
        return "no value of question 4 stands on this triple: give subject, predicate and object as IRIs"
    left = run.mute(known[asked]).go().answer
    gone = {value.label for value in values} - set(left.labels if left else ())
    return (
        ""
        if len(gone) == 1
        else f"without it {len(gone)} values are gone: find one that takes exactly one along"
    )


@LAB.task(
    "Which claims of the papers can be seen in these runs?",
    "To see that something helps, one needs runs with and without it.",
    "Own knowledge is off in these runs, and no tool was taken away.",
    "Four of the six can be seen.",
)
def claims(letters: list[str]) -> str:
    chosen = {letter.strip().upper() for letter in letters}
    if strange := sorted(chosen - set(CLAIMS)):
        return f"there is no claim {strange[0]!r}: they are A to {max(CLAIMS)}"
    if extra := sorted(chosen - SHOWN):
        return f"for claim {extra[0]} one would have to compare with other runs"
    return "another one can be seen, too" if chosen != SHOWN else ""


@lru_cache(maxsize=1)
def _all() -> Mapping[str, tuple[Recorded, ...]]:
    return {name: tuple(of_system(name)) for name in systems()}
