"""Equal answers of several students."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from kgwb.labs.hand_ins import HandIn
from kgwb.labs.rows import CollectedWork, Remark
from kgwb.labs.tasks import Lab

MIN_COMPARED_CHARS = 30
"""Shorter answers are often equal by chance, and are not compared."""
MAX_CHANCE_GROUP = 3
"""Of any class, so many equal answers are remarkable."""
MAX_GROUP_PART = 0.2
"""What more than this part of a class answers is the natural answer, and is not remarked."""
WORD = re.compile(r"\?\w+|\w+")
"""A word, or a variable of SPARQL."""


def find_equal_answers(lab: Lab, works: Sequence[CollectedWork]) -> list[Remark]:
    """Return a remark for each group of students with equal answers, which names students and tasks.

    Only tasks with ``is_free`` are compared, by the stored answer, and only answers of at least
    MIN_COMPARED_CHARS characters; whitespace, order, case and names of variables do not count. A
    group is remarked if it has at most MAX_CHANCE_GROUP students, or MAX_GROUP_PART of the class if
    that is more: what more students answer is the natural answer. Empty if there are no such
    groups.
    """
    max_group = max(MAX_CHANCE_GROUP, MAX_GROUP_PART * len(works))
    tasks_of_group: dict[tuple[int, ...], list[str]] = {}
    for name, task in lab.tasks.items():
        if not task.is_free:
            continue
        students: dict[str, list[int]] = {}
        for number, work in enumerate(works):
            compared = _normalize_answer(work.hand_in, name)
            if len(compared) >= MIN_COMPARED_CHARS:
                students.setdefault(compared, []).append(number)
        for same_answer in students.values():
            if 1 < len(same_answer) <= max_group:
                tasks_of_group.setdefault(tuple(same_answer), []).append(name)
    remarks = []
    for numbers, names in tasks_of_group.items():
        alike = [works[number] for number in numbers]
        tasks = ", ".join(names)
        group_names = ", ".join(work.name for work in alike)
        text = (
            f"equal answers to {tasks}: {group_names} (apart from spaces, order and names; "
            "short answers can be equal by chance)"
        )
        remarks.append(Remark(text, tuple(work.file.place for work in alike)))
    return remarks


def _normalize_answer(hand_in: HandIn, task: str) -> str:
    """Return the words of a stored answer in lower case, sorted and joined by spaces; "" if there is none.

    Of a run these are the words of its overrides. Each variable, such as "?x", is written "?".
    """
    stored = hand_in.progress(task).data
    if stored is None:
        return ""
    data = stored.run.overrides if stored.run else stored.value
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    words = []
    for word in WORD.findall(text.casefold()):
        words.append("?" if word.startswith("?") else word)
    return " ".join(sorted(words))
