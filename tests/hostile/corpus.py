"""Texts that want to be more than text: the one place where labels, literals, questions and IRIs come from.

A script among them that ran would set ``window.ran``; nothing that kgwb shows may ever do so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from tables import read_table

T = TypeVar("T")
SEED = 20_261_122

KINDS: dict[str, tuple[str, ...]] = {}
"""The texts of ``texts.jsonl`` by kind."""
for _kind, _text in read_table(Path(__file__).with_name("texts.jsonl")):
    KINDS[_kind] = (*KINDS.get(_kind, ()), _text)
QUOTES, NUL, ORDERS, PLAIN = (KINDS[kind] for kind in ("quotes", "nul", "orders", "plain"))
HALVES = KINDS["halves"]
"""Texts with half a character."""
IRIS = KINDS["iris"]
"""IRIs that an engine holds and a browser should not follow blindly."""
NO_IRIS = KINDS["no_iris"]
"""What some engines hold as IRIs and no query can write."""
FORBIDDEN = KINDS["writes"] + KINDS["forbidden"]
"""What would change a graph, load something, or ask elsewhere."""
LONG = (
    "a" * 3_000,
    "word " * 700,
    "<b>" * 2_000,
    "(" * 2_000,
    "\\" * 2_001,
    '"' * 2_001,
    "\u202e" * 1_000,
)
FAMILIES = (
    QUOTES,
    *(KINDS[kind] for kind in ("placeholders", "queries", "markup", "signs")),
    NUL,
    ORDERS,
    LONG,
)


@cache
def texts(count: int = 1_000, *, halves: bool = False) -> tuple[str, ...]:
    """The first ``count`` distinct hostile texts: each by itself, then mixed; always the same ones.

    ``halves`` has half characters among them, which no graph holds, but a run file or a reply may.
    """
    chance = random.Random(SEED)
    families = [*FAMILIES, *([HALVES] * 2 if halves else [])]
    found = dict.fromkeys(text for family in families for text in family if text)
    while len(found) < count:
        pieces = [chance.choice(chance.choice(families)) for _ in range(chance.randint(1, 3))]
        pieces.insert(chance.randint(0, len(pieces)), chance.choice(PLAIN))
        found.setdefault(chance.choice(("", " ", "", "\n")).join(pieces))
    return tuple(found)[:count]


def outcomes(
    examples: int, strategy: st.SearchStrategy[Any], judged: Callable[[Any], T]
) -> list[T]:
    """What ``judged`` makes of so many examples, always the same ones."""
    made: list[T] = []

    @seed(SEED)
    @settings(max_examples=examples, database=None, phases=[Phase.generate])
    @given(strategy)
    def judge(example: Any) -> None:
        made.append(judged(example))

    judge()
    assert len(made) >= examples
    return made
