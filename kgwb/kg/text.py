"""How texts are compared, the same on every graph: normal form, names from IRIs, the score of a label."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from rdflib import URIRef

from kgwb.kg.base import Hit

MAX_SEARCH_CHARS = 2_000
"""Characters of a searched text that count."""
MAX_SEARCH_WORDS = 32
"""Distinct words of a searched text that count."""

_LETTER_FOLDING = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)


def normalize(text: str) -> str:
    """The text without letter case and accents, its words (letters and digits) parted by single spaces.

    A text that has no letter or digit stays as it is, in lower case.
    """
    folded = text.casefold()
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded).translate(_LETTER_FOLDING)
        # Marks of class 0 are vowels (Indic scripts) and belong to the word; the others are accents.
        folded = "".join(
            char if _is_word_character(char) else " "
            for char in decomposed
            if not unicodedata.combining(char)
        )
        return " ".join(folded.split()) or text.casefold().strip()
    return " ".join(re.findall(r"[a-z0-9]+", folded)) or folded.strip()


def _is_word_character(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def normalized_words(text: str) -> tuple[str, ...]:
    """The distinct words of a text in normal form, at most MAX_WORDS."""
    complete = (
        word
        for word in normalize(text[:MAX_SEARCH_CHARS]).split()
        if all(map(_is_word_character, word))
    )
    return tuple(dict.fromkeys(complete))[:MAX_SEARCH_WORDS]


def lowercase_words(text: str) -> tuple[str, ...]:
    """The distinct words of a text in lower case with their accents, for engines that keep them."""
    return tuple(dict.fromkeys(re.findall(r"[^\W_]+", text[:MAX_SEARCH_CHARS].lower())))[
        :MAX_SEARCH_WORDS
    ]


@lru_cache(maxsize=1024)
def language_rank(language: str, languages: tuple[str, ...]) -> int:
    """The place of a language tag in the order of preference ("en-GB" is "en"); past its end if none."""
    language = language.lower()
    for rank, preferred in enumerate(languages):
        if language == preferred or (preferred and language.startswith(preferred + "-")):
            return rank
    return len(languages)


SimilarWords = Mapping[str, Mapping[str, float]]
"""For a word that no label has, those that stand in for it, with how like they are, 0 to 1."""


def score_label(text: str, label: str, similar_words: SimilarWords = MappingProxyType({})) -> float:
    """How well a label fits a text, both in normal form: 1 if equal, else the share of letters in common.

    A word counts in full where the label has it, by its length where a label's word begins with it, and by
    likeness where the label has one of its ``spellings``.
    """
    if text == label:
        return 1.0
    asked, present = text.split(), label.split()
    if not asked or not present:
        return 0.0
    shared = 0.0
    for word in dict.fromkeys(asked):
        if word in present:
            shared += len(word)
        elif any(other.startswith(word) for other in present):
            shared += 0.9 * len(word)
        else:
            near = (like for other, like in similar_words.get(word, {}).items() if other in present)
            shared += len(word) * max(near, default=0.0)
    share = 2 * shared / (len("".join(dict.fromkeys(asked))) + len("".join(present)))
    together = 1.0 if text in label else 0.9
    return round(min(0.99, max(0.01, 0.99 * share * together)), 6)


def rank_labels(
    text: str,
    labels: Sequence[tuple[str, str, str]],
    limit: int,
    spellings: SimilarWords = MappingProxyType({}),
) -> list[Hit]:
    """The best ``limit`` of (IRI, label, its normal form), each IRI once by its best label; ties by IRI."""
    best: dict[str, tuple[float, str]] = {}
    for iri, label, key in labels:
        value = score_label(text, key, spellings)
        if iri not in best or (-value, label) < (-best[iri][0], best[iri][1]):
            best[iri] = (value, label)
    order = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:limit]
    return [Hit(URIRef(iri), label, value) for iri, (value, label) in order]
