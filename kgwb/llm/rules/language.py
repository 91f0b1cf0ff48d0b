"""Whether a text is English, by its most common words."""

from __future__ import annotations

import re

ENGLISH_WORDS = frozenset(
    "the of is was were are did does do has have who what when where which how whose whom in and by for with "
    "that he she it his its her they to on from an name list give show tell".split()
)
"""Common words by which an English question is recognized."""
FOREIGN_WORDS = frozenset(
    "der das den dem ein eine ist war wer wie wo welche welcher welches wurde hat haben und von im zum "
    "el la los las es fue quien quién que qué cual cuál cuando cuándo donde dónde en del por una "
    "le les un une est qui quel quelle quand où du des dans par il lo gli chi che quale dove di "
    "o os as quem quando onde em da het een wie wat wanneer waar welke van zijn".split()
)
"""Common words of German, Spanish, French, Italian, Portuguese and Dutch."""


def looks_english(text: str) -> bool:
    """Return whether a text has at least as many of ENGLISH_WORDS as of FOREIGN_WORDS.

    A word counts once ("La La Land"). A text that has neither looks English if all its characters
    are ASCII.
    """
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    english = len(words.intersection(ENGLISH_WORDS))
    foreign = len(words.intersection(FOREIGN_WORDS))
    if english == foreign == 0:
        return text.isascii()
    return english >= foreign
