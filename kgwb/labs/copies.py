"""Works of a class that have more in common than honest students would have by chance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import log
from typing import NamedTuple

from kgwb.labs.hand_ins import HandIn
from kgwb.labs.rows import Remark, Submission, remark_on
from kgwb.labs.tasks import Lab

MIN_COMPARED_CHARS = 30
"""Right answers that are shorter are often equal by chance, and are not compared."""
MAX_CHANCE_GROUP = 3
"""So many equal right answers are remarked on; what more students answer is the natural answer."""
NATURAL_PART = 0.4
"""What more than this part of those who tried a task have in common is natural, and no sign of a copy."""
MIN_SCORE = 5.5
"""Pairs with this score or more count as copied. tests/simulated_classes.py measures what it finds."""
TIMES = "equal times of tries"
WRONG = "equal wrong answers"
TRIES = "equal numbers of tries and hints"
RIGHT = "equal right answers"
KINDS = (TIMES, WRONG, TRIES, RIGHT)
TIME_WEIGHT = 2.0
"""How much an equal time counts beside other traits: even one is rare by chance."""


class _Trait(NamedTuple):
    """Something about a work that it may share with others."""

    kind: str
    task: str
    value: str


_Traits = Mapping[_Trait, object]
"""The traits of a work are the keys."""


def find_copies(lab: Lab, works: Sequence[Submission]) -> list[Remark]:
    """Return a remark for each group of works that were probably copied, and for other equal answers.

    Two works are compared by the times of tries, the wrong answers, the numbers of tries and hints,
    and, where the task has ``is_free``, the right answer. Whitespace, order, case and names of
    variables do not count. A shared trait counts as the logarithm of the part that has it of those
    who tried the task, so that what is rare says most. Their sum is multiplied by the part of their
    traits that the two share (Dice). Works that are linked by pairs are a group. A right answer that
    at most MAX_CHANCE_GROUP works of no such group have in common is remarked on in other words.
    """
    traits = [dict.fromkeys(_list_traits(lab, work.hand_in)) for work in works]
    holders: dict[_Trait, list[int]] = {}
    tried: Counter[str] = Counter()
    for number, of_work in enumerate(traits):
        tried.update({trait.task for trait in of_work})
        for trait in of_work:
            holders.setdefault(trait, []).append(number)
    weights = {}
    for trait, numbers in holders.items():
        weights[trait] = _weigh(trait, len(numbers), tried[trait.task])
    groups = [{number} for number in range(len(works))]
    for first, second in combinations(range(len(works)), 2):
        if _score_pair(traits[first], traits[second], weights) >= MIN_SCORE:
            joined = groups[first] | groups[second]
            for number in joined:
                groups[number] = joined

    remarks = []
    for number, members in enumerate(groups):
        if len(members) > 1 and number == min(members):
            shared = _describe_shared(lab, members, holders)
            copies = [works[member] for member in sorted(members)]
            remarks.append(remark_on(copies, f"probably copied ({shared})"))
    for trait, numbers in holders.items():
        is_in_one_group = groups[numbers[0]].issuperset(numbers)
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
    return TIME_WEIGHT * weight if trait.kind == TIMES else weight


def _score_pair(first: _Traits, second: _Traits, weights: Mapping[_Trait, float]) -> float:
    """Return how much two works have in common."""
    shared = first.keys() & second.keys()
    if not shared:
        return 0.0
    part = 2 * len(shared) / (len(first) + len(second))
    return part * sum(weights[trait] for trait in shared)


def _describe_shared(
    lab: Lab, members: Collection[int], holders: Mapping[_Trait, Sequence[int]]
) -> str:
    """Return the kinds of traits, each with its tasks, that several members and few other works have."""
    found = set()
    for trait, numbers in holders.items():
        inside = len(set(members).intersection(numbers))
        if inside > 1 and 2 * inside > len(numbers):
            found.add((trait.kind, trait.task))
    shown = []
    for kind in KINDS:
        listed = [name for name in lab.tasks if (kind, name) in found]
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
    """Return the words of an answer in lower case, sorted and joined by spaces, with "_" for each variable."""
    without_names = re.sub(r"\?\w+", " _ ", answer.casefold())
    return " ".join(sorted(re.findall(r"\w+", without_names)))
