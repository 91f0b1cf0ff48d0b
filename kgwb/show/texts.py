"""Texts with something marked in them, and what two texts have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from operator import eq

from kgwb.show.html import MOST_ROWS, Html, div, join, left_out, safe, short, tag

MOST_ALIGNED = 1_000
"""Items of a list that difflib compares: its time grows with the square of their number."""
MOST_LETTERS = 2_000
"""Letters of a line that are compared and shown; its length is shown where it has more."""
LIKE = 0.35
"""Share of the shorter text's letters that two texts must have in common for single words to be marked."""


def aligned(first: list[str], second: list[str]) -> list[tuple[bool, list[str], list[str]]]:
    """The parts of two lists, in order, and whether they are the same in both.

    Where much lies between their ends, it has nothing in common.
    """
    begin = _alike(first, second)
    end = _alike(first[begin:][::-1], second[begin:][::-1])
    old, new = first[begin : len(first) - end], second[begin : len(second) - end]
    middle = [(False, old, new)]
    if max(len(old), len(new)) <= MOST_ALIGNED:
        codes = SequenceMatcher(None, old, new).get_opcodes()
        middle = [(what == "equal", old[i:j], new[k:m]) for what, i, j, k, m in codes]
    tail = first[len(first) - end :]
    return [(True, first[:begin], first[:begin]), *middle, (True, tail, tail)]


def _alike(first: list[str], second: list[str]) -> int:
    """How many items both begin with."""
    return sum(takewhile(bool, map(eq, first, second)))


def word_changes(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, each with the words marked that the other has not; whole if they have little in common."""
    parts = aligned(re.findall(r"\w+|\W", before), re.findall(r"\w+|\W", after))
    shared = sum(len(word) for same, words, _ in parts if same for word in words if word.isalnum())
    if before != after and shared <= LIKE * min(len(before), len(after)):
        return tag("del", before) if before else Html(), tag("ins", after) if after else Html()
    sides: tuple[list[Html], list[Html]] = ([], [])
    for same, *words in parts:
        for side, mark, text in zip(sides, ("del", "ins"), map("".join, words), strict=True):
            side.append(safe(text) if same or not text else tag(mark, text))
    return join(*sides[0]), join(*sides[1])


def changes(before: list[str], after: list[str]) -> tuple[int, Html]:
    """How many lines differ, and the first of them below each other with the words marked that differ."""
    rows: list[Html] = []
    unequal = ((old, new) for same, old, new in aligned(before, after) if not same)
    pairs = [pair for old, new in unequal for pair in zip_longest(old, new)]
    for old, new in pairs[:MOST_ROWS]:
        first, second = word_changes(short(old or "", MOST_LETTERS), short(new or "", MOST_LETTERS))
        rows += [div("del", first, data_s="−")] if old is not None else []
        rows += [div("ins", second, data_s="+")] if new is not None else []
    return len(pairs), div("diff", *rows, left_out(len(pairs) - MOST_ROWS))


def highlighted(text: str, pattern: str, class_: str = "filled") -> Html:
    """A text with all marked that a regular expression without groups matches; nothing by an empty one."""
    parts = re.split(f"({pattern})", text) if pattern else [text]
    return join(*(tag("mark", part, class_=class_) if n % 2 else safe(part) for n, part in enumerate(parts)))


def marked(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    return highlighted(text, rf"(?i:(?<!\w)(?:{wanted})(?!\w))" if wanted else "")
