"""Simulated classes, to measure how well copied works are found: ``python tests/simulated_classes.py SEED [classes]``.

40 students do lab 1, each for themselves. The answers, right and wrong, are those of tests/lab_answers.toml, the
more common first, and a part of the wrong ones is typed in a way that nobody else has. Half of the students have
a misconception, which makes them fail at many tasks in the same way. In each class another part, from a half to
nine tenths, finds the natural solution of a task. A copying group has two to eight members, and copies in one of
three ways:

- the file, with a new name and identity
- the file, and a third of the tasks done anew
- each answer, also the wrong ones, typed again with other spaces and names of variables; one in seven is one's own

Who types nothing but right answers again cannot be told from an honest student: only works with MIN_TYPED_ERRORS
wrong answers are copied in the last way.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, combinations
from pathlib import Path

from kgwb.labs.answers import StoredAnswer
from kgwb.labs.copies import find_copies
from kgwb.labs.hand_ins import HandIn, TaskProgress
from kgwb.labs.rows import Submission
from kgwb.labs.tasks import load_lab

ANSWERS = tomllib.loads((Path(__file__).parent / "lab_answers.toml").read_text(encoding="utf-8"))
WRONG = {task: [*chain(*answers["wrong"].values())] for task, answers in ANSWERS.items()}
CLASS_SIZE = 40
MAX_GROUPS = 6
MIN_TYPED_ERRORS = 5
START = datetime(2026, 11, 24, 8, tzinfo=UTC)
Pair = frozenset[str]


@dataclass
class Counted:
    """What was found in some classes."""

    groups: int = 0
    found_groups: int = 0
    """Those of which all members are in one remark."""
    pairs: int = 0
    found_pairs: int = 0
    honest_pairs: int = 0
    accused_pairs: int = 0
    """Honest pairs that stand in one remark on copies."""


def choose(rng: random.Random, answers: Sequence[str], common: float) -> str:
    """An answer of a list: with this probability the first, else a later one the less often the later it is."""
    if rng.random() < common or len(answers) == 1:
        return answers[0]
    weights = [1 / place for place in range(2, len(answers) + 1)]
    return rng.choices(answers[1:], weights)[0]


class Student:
    """Somebody who works alone: how able, how fast, and with which misconception."""

    def __init__(self, rng: random.Random, natural: float) -> None:
        self.rng = rng
        self.natural = natural
        self.ability = rng.uniform(0.35, 0.98)
        self.misconception = rng.randrange(5) if rng.random() < 0.5 else None
        self.now = START + timedelta(seconds=rng.uniform(0, 300))

    def do_task(self, name: str) -> TaskProgress:
        progress = TaskProgress()
        wrong = WRONG[name]
        while self.rng.random() > self.ability and progress.tries < 6:
            answer = choose(self.rng, wrong, 0.3)
            if self.misconception is not None and self.rng.random() < 0.6:
                answer = wrong[self.misconception % len(wrong)]
            elif self.rng.random() < 0.3:
                answer += f" {self.rng.randrange(10_000)}"
            self.answer(progress, answer)
        if progress.tries == 6:
            return progress.model_copy(update={"state": "tried"})
        self.answer(progress, choose(self.rng, ANSWERS[name]["right"], self.natural))
        return progress.model_copy(update={"state": "solved"})

    def answer(self, progress: TaskProgress, answer: str) -> None:
        self.now += timedelta(milliseconds=self.rng.expovariate(1 / 120_000))
        progress.tries += 1
        progress.answers = [*progress.answers, answer]
        progress.times = [*progress.times, self.now.isoformat(timespec="milliseconds")]
        progress.data = StoredAnswer(value=answer)

    def retype(self, copied: TaskProgress) -> TaskProgress:
        """The answers of another, each typed again."""
        progress = TaskProgress()
        for answer in copied.answers:
            typed = re.sub(r"\?\w+", lambda match: f"{match[0]}{self.rng.randrange(9)}", answer)
            self.answer(progress, typed.replace(" ", "  "))
        return progress.model_copy(update={"state": copied.state})


def copy_work(copier: Student, original: HandIn, way: str) -> dict[str, TaskProgress]:
    own_share = {"file": 0.0, "changed file": 1 / 3, "typed": 1 / 7}[way]
    tasks = {}
    for name, progress in original.tasks.items():
        if copier.rng.random() < own_share:
            tasks[name] = copier.do_task(name)
        elif way == "typed":
            tasks[name] = copier.retype(progress)
        else:
            tasks[name] = progress
    return tasks


def simulate_class(seed: int, size: int = CLASS_SIZE) -> tuple[list[Submission], list[set[str]]]:
    """The works of a class, and the names in its copying groups."""
    rng = random.Random(seed)
    names = [f"student {number}" for number in range(size)]
    waiting = list(names)
    rng.shuffle(waiting)
    groups = []
    for _ in range(rng.randint(0, MAX_GROUPS)):
        members = [waiting.pop() for _ in range(rng.randint(2, 8)) if waiting]
        if len(members) > 1:
            groups.append(members)
    works = {}
    lab = load_lab(1)
    natural = rng.uniform(0.5, 0.9)
    for name in names:
        student = Student(rng, natural)
        tasks = {task: student.do_task(task) for task in lab.tasks}
        works[name] = HandIn(kgwb_lab=1, student=name, tasks=tasks)
    for original, *copiers in groups:
        tries = sum(progress.tries for progress in works[original].tasks.values())
        has_errors = tries >= len(lab.tasks) + MIN_TYPED_ERRORS
        way = rng.choice(["file", "changed file", "typed"] if has_errors else ["file"])
        for name in copiers:
            tasks = copy_work(Student(rng, natural), works[original], way)
            works[name] = HandIn(kgwb_lab=1, student=name, tasks=tasks)
    rows = [Submission(name, hand_in=work, name=name) for name, work in works.items()]
    return rows, list(map(set, groups))


def pairs_of(groups: Sequence[set[str]]) -> set[Pair]:
    return {frozenset(pair) for members in groups for pair in combinations(members, 2)}


def count_found(seeds: Sequence[int]) -> Counted:
    """Look for copies in a class of each seed, and count what was found."""
    counted = Counted()
    for seed in seeds:
        works, groups = simulate_class(seed)
        remarks = find_copies(load_lab(1), works)
        accused = [set(remark.places) for remark in remarks if remark.text.startswith("probably")]
        copied = pairs_of(groups)
        counted.groups += len(groups)
        counted.found_groups += sum(any(members <= each for each in accused) for members in groups)
        counted.pairs += len(copied)
        counted.found_pairs += len(copied & pairs_of(accused))
        counted.honest_pairs += CLASS_SIZE * (CLASS_SIZE - 1) // 2 - len(copied)
        counted.accused_pairs += len(pairs_of(accused) - copied)
    return counted


if __name__ == "__main__":
    first = int(sys.argv[1])
    count = int(sys.argv[2]) if sys.argv[2:] else 10
    sys.stdout.write(f"{count_found(range(first, first + count))}\n")
