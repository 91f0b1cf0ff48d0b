"""Comparing texts in the same way on every graph: normal forms, words, and scores of labels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from rdflib import URIRef

from kgwb.kg.base import Hit

MAX_SEARCH_CHARS = 2_000
"""Characters of a searched text that are read; the rest is ignored."""
MAX_SEARCH_WORDS = 32
"""Distinct words of a searched text that are used; the rest is ignored."""

SAME_WORDS_SCORE = 0.995
"""The score of a label that has the words of the searched text, but other signs or accents."""

SimilarWords = Mapping[str, Mapping[str, float]]
"""For each word that is in no label, similar words of labels with a likeness from 0 to 1."""
NO_SIMILAR_WORDS: SimilarWords = MappingProxyType({})

_ASCII_SEPARATORS = bytes(byte for byte in range(128) if not chr(byte).isalnum())
_SEPARATORS_TO_SPACES = bytes.maketrans(_ASCII_SEPARATORS, b" " * len(_ASCII_SEPARATORS))
_LETTER_FOLDING = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
"""Letters that Unicode does not decompose into a basic letter and an accent."""


def normalize(text: str) -> str:
    """Return the normal form of a text: its words in lower case and without accents.

    A word is a run of letters and digits, and one space stands between words. A text without
    letters and digits is returned in lower case, without the spaces around it.
    """
    folded = text.casefold()
    if folded.isascii():
        separated = folded.encode().translate(_SEPARATORS_TO_SPACES)
        words = separated.decode().split()
    else:
        words = _split_words(folded)
    if not words:
        return folded.strip()
    return " ".join(words)


def exact_form(text: str) -> str:
    """Return a form of a text that is equal for texts that differ only in letter case.

    Signs and accents stay. Differences in white space, and in how Unicode composes a letter, do not
    count either. Source: The Unicode Standard, D145 (canonical caseless matching).
    """
    if text.isascii():
        folded = text.lower()
    else:
        decomposed = unicodedata.normalize("NFD", text)
        folded = unicodedata.normalize("NFD", decomposed.casefold())
    return " ".join(folded.split())


def _split_words(text: str) -> list[str]:
    """Return the words of a text in any script, in order, without accents.

    Letters are decomposed (NFKD), and those of _LETTER_FOLDING replaced. Vowel signs of Indic
    scripts stay. Every other character that is no letter or digit separates words.
    """
    decomposed = unicodedata.normalize("NFKD", text).translate(_LETTER_FOLDING)
    chars = []
    for char in decomposed:
        # Marks of combining class 0 are vowels of Indic scripts and belong to the word. The marks
        # of all other classes are accents.
        is_accent = unicodedata.combining(char) != 0
        if is_accent:
            continue
        if _is_word_character(char):
            chars.append(char)
        else:
            chars.append(" ")
    return "".join(chars).split()


def _is_word_character(char: str) -> bool:
    """Return whether a character is a letter, a digit or a mark."""
    if char.isalnum():
        return True
    return unicodedata.category(char).startswith("M")


UNIT_WORDS = frozenset("currency unit units".split())
"""Words in the names of predicates that say in what a number of the same node is counted."""


def names_unit(name: str) -> bool:
    """Return whether the name of a predicate says that it leads to the unit of a number: "unit text"."""
    return not UNIT_WORDS.isdisjoint(normalize(name).split())


def normalized_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text in normal form and in order.

    Reads MAX_SEARCH_CHARS characters and returns MAX_SEARCH_WORDS words at most; none for a text
    without letters and digits.
    """
    searched = normalize(text[:MAX_SEARCH_CHARS])
    words = []
    for part in searched.split():
        # A text that has no words is its own normal form, so its parts are not words.
        if all(map(_is_word_character, part)):
            words.append(part)
    return _first_distinct(words)


def lowercase_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text in lower case and in order, with their accents.

    This is for the indexes of engines, which may keep accents. Reads MAX_SEARCH_CHARS characters
    and returns MAX_SEARCH_WORDS words at most.
    """
    searched = text[:MAX_SEARCH_CHARS].lower()
    words = re.findall(r"[^\W_]+", searched)
    return _first_distinct(words)


def _first_distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return the first MAX_SEARCH_WORDS words, each once, in their order."""
    distinct = tuple(dict.fromkeys(words))
    return distinct[:MAX_SEARCH_WORDS]


@lru_cache(maxsize=1024)
def language_rank(language: str, languages: tuple[str, ...]) -> int:
    """Return the position of a language tag in the preferred languages, 0 for the best.

    "en-GB" counts as "en" if only that is preferred. The rank of any other language is the number
    of preferred languages. Upper and lower case of ``language`` are the same.
    """
    language = language.lower()
    for rank, preferred in enumerate(languages):
        if language == preferred:
            return rank
        if preferred and language.startswith(f"{preferred}-"):
            return rank
    return len(languages)


def score_label(text: str, label: str) -> float:
    """Return how well a label fits a searched text, from 0 to 1.

    The score is 1 only for a label that is the text but for letter case (``exact_form``). It is
    SAME_WORDS_SCORE for one that is equal in normal form, such as "C#" for "C++" or "Cafe" for
    "Café". For others see ``_score_normal_forms``.
    """
    if exact_form(text) == exact_form(label):
        return 1.0
    return _score_normal_forms(normalize(text), normalize(label), NO_SIMILAR_WORDS)


def _score_normal_forms(text: str, label: str, similar_words: SimilarWords) -> float:
    """Return how well a label fits a searched text, from 0 to 1. Both are in normal form.

    Equal texts score SAME_WORDS_SCORE; 0 if either has no words. Otherwise the score is 0.99 times
    the share of the letters of both that ``_shared_letters`` counts as common (the Dice
    coefficient), times 0.9 unless the label contains the text as it stands. It is between 0.01 and
    0.99, with 6 digits.
    """
    if text == label:
        return SAME_WORDS_SCORE
    label_words = label.split()
    text_words = dict.fromkeys(text.split())
    if not text_words or not label_words:
        return 0.0

    shared = 0.0
    for word in text_words:
        likeness_of = similar_words.get(word, {})
        shared += _shared_letters(word, label_words, likeness_of)
    letters = sum(map(len, [*text_words, *label_words]))
    dice = 2 * shared / letters
    score = 0.99 * dice
    if text not in label:
        score *= 0.9
    score = max(0.01, min(0.99, score))
    return round(score, 6)


def _shared_letters(
    word: str, label_words: Sequence[str], likeness_of: Mapping[str, float]
) -> float:
    """Return how many letters of a word count as found in a label.

    All if the label has the word, and 90 % if a word of the label begins with it. Otherwise the
    number of letters times the greatest value in ``likeness_of`` of a word of the label; 0 without
    one.
    """
    if word in label_words:
        return len(word)
    if any(label_word.startswith(word) for label_word in label_words):
        return 0.9 * len(word)
    likeness = max(likeness_of.get(label_word, 0.0) for label_word in label_words)
    return likeness * len(word)


def rank_labels(
    text: str,
    labels: Iterable[tuple[str, str, str]],
    limit: int,
    similar_words: SimilarWords = NO_SIMILAR_WORDS,
) -> list[Hit]:
    """Return the best ``limit`` hits of a search, by score and then by IRI.

    ``labels`` are (IRI, label, label in normal form). Scores are those of ``score_label``. Each IRI
    is returned once, with its best label; of labels with the same score, the first in the alphabet.
    """
    exact_text = exact_form(text)
    normal_text = normalize(text)
    best: dict[str, tuple[float, str, str]] = {}
    for iri, label, normal_label in labels:
        score = _score_normal_forms(normal_text, normal_label, similar_words)
        if exact_form(label) == exact_text:
            score = 1.0
        candidate = (-score, iri, label)
        if iri not in best or candidate < best[iri]:
            best[iri] = candidate
    hits = []
    ranked = sorted(best.values())
    for negative_score, iri, label in ranked[:limit]:
        hit = Hit(URIRef(iri), label, -negative_score)
        hits.append(hit)
    return hits
