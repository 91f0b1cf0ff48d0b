"""What two lists of words or lines have in common, in time that grows as they do.

difflib compares every pair of items, at worst once for each item: two replies of 10,000 equal lines took
minutes. So it gets short lists only; longer ones are split first at the items that stand once in each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MOST_PAIRS = 10_000
"""Pairs of items that difflib compares; lists of more pairs that nothing splits have nothing in common."""


class Part(NamedTuple):
    """A part of two lists, the same in both or not."""

    same: bool
    first: slice
    second: slice


def aligned(first: Sequence[str], second: Sequence[str]) -> Iterator[Part]:
    """The parts of two lists, in order."""
    i = j = 0
    anchors = _anchors(first, second) if len(first) * len(second) > MOST_PAIRS else []
    for k, m in (*anchors, (len(first), len(second))):
        yield from _between(first[i:k], second[j:m], i, j)
        i, j = k, m


def _between(first: Sequence[str], second: Sequence[str], i: int, j: int) -> Iterator[Part]:
    """The parts of two lists that begin at ``i`` and ``j``: the same beginning, the middle, the same end."""
    begin = _alike(first, second)
    end = _alike(first[begin:][::-1], second[begin:][::-1])
    one, other = first[begin : len(first) - end], second[begin : len(second) - end]
    middle = [("replace", 0, len(one), 0, len(other))]
    if len(one) * len(other) <= MOST_PAIRS:
        middle = list(SequenceMatcher(None, one, other, autojunk=False).get_opcodes())
    yield Part(True, slice(i, i + begin), slice(j, j + begin))
    i, j = i + begin, j + begin
    for what, k, m, p, q in middle:
        yield Part(what == "equal", slice(i + k, i + m), slice(j + p, j + q))
    i, j = i + len(one), j + len(other)
    yield Part(True, slice(i, i + end), slice(j, j + end))


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """How many items both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(first), len(second)))


def _anchors(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """The places of items that stand once in each list: the most that come in the same order in both."""
    counts, others = Counter(first), Counter(second)
    places = {item: place for place, item in enumerate(second)}
    lowest: list[int] = []  # the second place at the end of the best chain of each length
    before: dict[tuple[int, int], tuple[int, int]] = {}
    ends: list[tuple[int, int]] = []
    for place, item in enumerate(first):
        if counts[item] == others[item] == 1:
            pair = place, places[item]
            length = bisect_left(lowest, pair[1])
            lowest[length : length + 1], ends[length : length + 1] = [pair[1]], [pair]
            if length:
                before[pair] = ends[length - 1]
    chain = ends[-1:]
    while chain and chain[-1] in before:
        chain.append(before[chain[-1]])
    return chain[::-1]
