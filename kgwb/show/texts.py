"""Texts with something marked in them, and what two texts have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from kgwb.show.html import MOST_ROWS, Html, and_more, aside, div, join, safe, short, span, tag

MOST_ALIGNED = 1_000
"""Items of a list that difflib compares: its time grows with the square of their number."""
MOST_LETTERS = 2_000
"""Letters of a line that are compared and shown; its length is shown where it has more."""
LIKE = 0.35
"""Share of the shorter text's letters that two texts must have in common for single words to be marked."""


class Part(NamedTuple):
    """A part of two lists, the same in both or not."""

    same: bool
    first: slice
    second: slice


def aligned(first: Sequence[str], second: Sequence[str]) -> Iterator[Part]:
    """The parts of two lists, in order; where much lies between their ends, it has nothing in common."""
    begin = _alike(first, second)
    end = _alike(first[begin:][::-1], second[begin:][::-1])
    old, new = first[begin : len(first) - end], second[begin : len(second) - end]
    parts = [("replace", 0, len(old), 0, len(new))]
    if max(len(old), len(new)) <= MOST_ALIGNED:
        parts = list(SequenceMatcher(None, old, new).get_opcodes())
    yield Part(True, slice(begin), slice(begin))
    for what, i, j, k, m in parts:
        yield Part(what == "equal", slice(begin + i, begin + j), slice(begin + k, begin + m))
    yield Part(True, slice(begin + len(old), len(first)), slice(begin + len(new), len(second)))


def _alike(first: Sequence[str], second: Sequence[str]) -> int:
    """How many items both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (item, other) in pairs if item != other), min(len(first), len(second)))


def word_changes(before: str, after: str) -> tuple[Html, Html]:
    """Two texts, each with the words marked that the other has not; whole if they have little in common."""
    old, new = (re.findall(r"\w+|\W", text) for text in (before, after))
    parts = list(aligned(old, new))
    shared = sum(len(word) for part in parts if part.same for word in old[part.first] if word.isalnum())
    if before != after and shared <= LIKE * min(len(before), len(after)):
        return tag("del", before) if before else Html(), tag("ins", after) if after else Html()
    sides: tuple[list[Html], list[Html]] = ([], [])
    for part in parts:
        for side, mark, words in ((0, "del", old[part.first]), (1, "ins", new[part.second])):
            text = "".join(words)
            sides[side].append(safe(text) if part.same or not text else tag(mark, text))
    return join(*sides[0]), join(*sides[1])


def changed_words(before: str, after: str) -> Html:
    """A text before and after it was changed, each below its heading."""
    old, new = word_changes(before, after)
    return div("kv", span("soft", "before"), span("", old), span("soft", "after"), span("b", new))


def changes(before: Sequence[str], after: Sequence[str]) -> tuple[int, Html]:
    """How many lines differ, and the first of them below each other with the words marked that differ."""
    rows: list[Html] = []
    pairs = [
        pair
        for part in aligned(before, after)
        if not part.same
        for pair in zip_longest(before[part.first], after[part.second])
    ]
    for old, new in pairs[:MOST_ROWS]:
        first, second = word_changes(short(old or "", MOST_LETTERS), short(new or "", MOST_LETTERS))
        rows += [div("del", first, data_s="−")] if old is not None else []
        rows += [div("ins", second, data_s="+")] if new is not None else []
    more = and_more(len(pairs) - MOST_ROWS)
    return len(pairs), div("diff", *rows, aside(more) if more else "")


def highlighted(text: str, pattern: str, class_: str = "filled") -> Html:
    """A text with all marked that a regular expression without groups matches; nothing by an empty one."""
    parts = re.split(f"({pattern})", text) if pattern else [text]
    return join(*(tag("mark", part, class_=class_) if n % 2 else safe(part) for n, part in enumerate(parts)))


def marked(text: str, words: Iterable[str]) -> Html:
    """A text with some of its words marked, letter case aside."""
    wanted = "|".join(re.escape(word) for word in words if word.strip())
    return highlighted(text, rf"(?i:(?<!\w)(?:{wanted})(?!\w))" if wanted else "")
