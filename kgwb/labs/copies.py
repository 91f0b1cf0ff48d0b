"""Works of a class that have more in common than honest students would have by chance."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import log
from typing import NamedTuple

from kgwb.labs.hand_ins import HandIn
from kgwb.labs.rows import Remark, Submission, group, remark_on
from kgwb.labs.tasks import Lab

MIN_COMPARED_CHARS = 30
"""Right answers that are shorter are often equal by chance, and are not compared."""
MAX_CHANCE_GROUP = 3
"""So many equal right answers are remarked on; what more students answer is the natural answer."""
NATURAL_PART = 0.4
"""What more than this part of those who tried a task have in common is natural, and no sign of a copy."""
MIN_SCORE = 0.5
"""Pairs with this score or more count as copied. tests/simulated_classes.py measures what it finds."""
TIMES = "equal times of tries"
WRONG = "equal wrong answers"
TRIES = "equal numbers of tries and hints"
RIGHT = "equal right answers"
KINDS = (TIMES, WRONG, TRIES, RIGHT)
TIME_WEIGHT = 2.0
"""How much an equal time counts beside other traits: even one is rare by chance."""
WORD = re.compile(r"\?\w+|\w+")
"""A word, or a variable of SPARQL."""


class _Trait(NamedTuple):
    """Something about a work that it may share with others."""

    kind: str
    task: str
    value: str


_Traits = Mapping[str, set[_Trait]]
"""The traits of a work by task."""


def find_copies(lab: Lab, works: Sequence[Submission]) -> list[Remark]:
    """Return a remark for each group of works that were probably copied, and for other equal answers.

    Two works are compared task by task: the times of tries, the wrong answers, the numbers of tries
    and hints, and, where the task has ``is_free``, the right answer. Whitespace, order, case and
    names of variables do not count. A shared trait counts as the logarithm of the part that has
    it of those who tried the task, so that what is rare says most. This is multiplied by the part
    of their traits in the task that the two share (Dice), and the part that they do not share is
    taken off. Works that are linked by pairs are a group. A right answer that at most
    MAX_CHANCE_GROUP works of no such group have in common is remarked on in other words.
    """
    holders: dict[_Trait, list[int]] = {}
    by_task = []
    for number, work in enumerate(works):
        traits: dict[str, set[_Trait]] = defaultdict(set)
        for trait in set(_list_traits(lab, work.hand_in)):
            traits[trait.task].add(trait)
            holders.setdefault(trait, []).append(number)
        by_task.append(traits)
    tried = Counter(chain.from_iterable(by_task))
    weights = {}
    for trait, numbers in holders.items():
        weights[trait] = _weigh(trait, len(numbers), tried[trait.task])
    group_of = list(range(len(works)))
    for first, second in combinations(range(len(works)), 2):
        if _score_pair(by_task[first], by_task[second], weights) >= MIN_SCORE:
            joined = group_of[second]
            for number, group_number in enumerate(group_of):
                if group_number == joined:
                    group_of[number] = group_of[first]

    remarks = []
    for members in group(range(len(works)), lambda number: group_of[number]):
        if len(members) > 1:
            shared = _describe_shared(lab, members, holders)
            copies = [works[number] for number in members]
            remarks.append(remark_on(copies, f"probably copied ({shared})"))
    for trait, numbers in holders.items():
        is_in_one_group = len({group_of[number] for number in numbers}) == 1
        if trait.kind == RIGHT and len(numbers) <= MAX_CHANCE_GROUP and not is_in_one_group:
            alike = [works[number] for number in numbers]
            text = f"the same right answer to {trait.task}, which can be by chance"
            remarks.append(remark_on(alike, text))
    return remarks


def _weigh(trait: _Trait, count: int, size: int) -> float:
    """Return how much it says that two works share a trait.

    ``count`` works have it, of the ``size`` works that tried the task.
    """
    if trait.kind != TIMES and count > NATURAL_PART * size:
        return 0.0
    part = max(count - 1.5, 0.5) / size  # without the two, and as if half a work more had it
    weight = -log(part)
    if trait.kind == TIMES:
        weight *= TIME_WEIGHT
    return weight


def _score_pair(first: _Traits, second: _Traits, weights: Mapping[_Trait, float]) -> float:
    """Return how much two works have in common, less what they have not."""
    score = 0.0
    for task in first.keys() | second.keys():
        of_first = first.get(task, set())
        of_second = second.get(task, set())
        shared = of_first & of_second
        part = 2 * len(shared) / (len(of_first) + len(of_second))
        weight = sum(weights[trait] for trait in shared)
        score += weight * part - (1 - part)
    return score


def _describe_shared(
    lab: Lab, members: Sequence[int], holders: Mapping[_Trait, Sequence[int]]
) -> str:
    """Return the kinds of traits, each with its tasks, that several members and few other works have."""
    tasks: dict[str, set[str]] = defaultdict(set)
    for trait, numbers in holders.items():
        inside = len(set(members).intersection(numbers))
        if inside > 1 and 2 * inside > len(numbers):
            tasks[trait.kind].add(trait.task)
    shown = []
    for kind in KINDS:
        listed = [name for name in lab.tasks if name in tasks[kind]]
        if listed:
            shown.append(f"{kind}: {', '.join(listed)}")
    return "; ".join(shown)


def _list_traits(lab: Lab, hand_in: HandIn) -> Iterator[_Trait]:
    """Yield what a work may share with others.

    The last answer to a solved task is taken for the right one.
    """
    for name, task in lab.tasks.items():
        progress = hand_in.progress(name)
        for time in progress.times:
            yield _Trait(TIMES, name, time)
        wrong = progress.answers
        if progress.state == "solved":
            wrong = wrong[:-1]
        for answer in wrong:
            yield _Trait(WRONG, name, _normalize(answer))
        if progress.tries or progress.hints:
            yield _Trait(TRIES, name, f"{progress.tries} {progress.hints}")
        if task.is_free and progress.data:
            right = _normalize(progress.data.text)
            if len(right) >= MIN_COMPARED_CHARS:
                yield _Trait(RIGHT, name, right)


def _normalize(answer: str) -> str:
    """Return the words of an answer in lower case, sorted and joined by spaces, with "?" for each variable."""
    words = []
    for word in WORD.findall(answer.casefold()):
        if word.startswith("?"):
            words.append("?")
        else:
            words.append(word)
    return " ".join(sorted(words))
