"""The words of a question about names of a graph, compared with its predicates and classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

from kgwb.kg.base import Direction
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.llm.rules import words as en
from kgwb.llm.rules.classes import (
    CLASS_RELATION,
    MAX_CLASS_WORDS,
    normal_noun,
)
from kgwb.llm.rules.conditions import (
    NON_CONTENT_WORDS,
)
from kgwb.llm.rules.grammar import (
    Fact,
    ParsedQuestion,
    expected_value_type,
)
from kgwb.llm.rules.predicates import (
    AGENT_ENDINGS,
    NAME_SEPARATOR,
    Predicates,
    VertexPredicate,
    asked_kind,
    find_similar_predicates,
    max_similarity,
)
from kgwb.llm.rules.words import (
    KIN_GROUPS,
    RELATION_PHRASES,
    Words,
    are_kin,
    compare_wordings,
    relation_phrase,
    singularize,
    stem,
)

MIN_PREDICATE_SIMILARITY = 0.45
"""Similarity from which a word of the question asks for a predicate."""
MIN_CLASS_SIMILARITY = 0.5
"""Similarity from which a word of the question names a class."""
A_TRUTH_VALUE = "a truth value"
"""The kind of value that a yes-or-no question about one thing asks for."""
EMPTY_WORDS = NON_CONTENT_WORDS | en.VAGUE_WORDS | en.NEUTRAL_WORDS | en.POLITE_SUBJECTS
"""Words that need nothing in the query to stand for them."""
UNSPECIFIC_WORDS = en.FUNCTION_WORDS | en.TIME_WORDS | {"place", "location", "type", "part"}
"""Words that two relations may have in common and still be different."""
VALUE_KINDS = ("a time", "a place", "a number")
"""What is asked for of each of several things, and seldom in common."""
WORDS_BEFORE_ASKED_NOUN = ("what", "which", "many")


def has_other_direction(fact: Fact, name: str, predicate: VertexPredicate) -> bool:
    """Return whether a fact leads another way than a predicate of its name, as wordings tell or leave open."""
    subject, relation, _ = fact
    direction: Direction = "out" if predicate.is_incoming != (subject == name) else "in"
    return compare_wordings(relation, predicate.name).contradicts(direction)


class QuestionWords:
    """The words of a question about names of a graph, and how like its predicates and classes they are."""

    def __init__(self, words: Words, embeddings: Embeddings) -> None:
        """Keep the words in lower case, with "" in the place of names."""
        self.words = words
        self.embeddings = embeddings
        self.value_type, _ = expected_value_type(words)
        self.kind = asked_kind(words)
        self.positions: list[int] = []
        """Where words stand that may ask for a relation.

        Words of NON_CONTENT_WORDS do not, unless they begin a known relation of two words.
        """
        for position, (word, following) in enumerate(pairwise([*words, ""])):
            if f"{word}_{following}" in RELATION_PHRASES or word not in NON_CONTENT_WORDS:
                self.positions.append(position)

    def _phrases_at(self, position: int) -> list[str]:
        """Return the phrases that the word at a position may ask for.

        These are the word, its relation phrase, and the relation phrases of the word with what is
        asked for or with a neighbour. If the word with "of" or "from" after it names a relation,
        only that is returned: "made of" does not ask for a maker.
        """
        word = self.words[position]
        following = self.words[position + 1 : position + 2]
        word_and_next = "_".join([word, *following])
        if following in (["of"], ["from"]) and word_and_next in RELATION_PHRASES:
            return [RELATION_PHRASES[word_and_next]]
        pairs = [word, word_and_next, f"{word}_{self.value_type}", f"who_{word}"]
        if position > 0:
            pairs.append(f"{self.words[position - 1]}_{word}")
        return [word, *(RELATION_PHRASES[pair] for pair in pairs if pair in RELATION_PHRASES)]

    def kin_positions(self) -> list[int]:
        """Return where words stand that may say a relation by their kin."""
        last = len(self.words) - 1
        positions = []
        for position, word in enumerate(self.words):
            is_vague = word in en.VAGUE_WORDS and position < last  # what does X play
            if stem(word) in KIN_GROUPS and word not in NON_CONTENT_WORDS and not is_vague:
                positions.append(position)
        return positions

    def asked_phrases(self) -> list[str]:
        """Return the phrases of up to MAX_CLASS_WORDS words after "which", "what" or "many".

        They are in normal form with the last word in the singular, the longest first. The first such
        word of the question counts. Returns nothing without one.
        """
        for position, word in enumerate(self.words, start=1):
            if word in WORDS_BEFORE_ASKED_NOUN:
                ends = range(min(position + MAX_CLASS_WORDS, len(self.words)), position, -1)
                phrases = [normal_noun(" ".join(self.words[position:end])) for end in ends]
                return list(filter(None, phrases))
        return []

    def _is_asked_noun(self, position: int) -> bool:
        """Return whether a word stands right after "which", "what" or "many"."""
        return position > 0 and self.words[position - 1] in WORDS_BEFORE_ASKED_NOUN

    def _is_type(self, word: str, types: Collection[str]) -> bool:
        """Return whether a word is a form of the name of a class or datatype, or like it."""
        if any(has_word_of_stem(each, word) for each in types):
            return True
        likeness = max_similarity(relation_phrase(word), list(types), self.embeddings)
        return likeness >= MIN_CLASS_SIMILARITY

    def _says(self, predicate: VertexPredicate, position: int) -> bool:
        """Return whether a predicate's name says the word at a position, as it is or by a known relation."""
        is_asked = self._is_asked_noun(position)
        if is_asked and self._is_any_class(self.words[position], predicate.value_types):
            return True
        said = stems_of(predicate.name)
        for phrase in self._phrases_at(position):
            if not said.isdisjoint(map(stem, set(phrase.split()) - UNSPECIFIC_WORDS)):
                return True
        word = self.words[position]
        is_vague = word in en.VAGUE_WORDS | en.TIME_WORDS
        return not is_asked and (is_vague or says_maker(word, predicate))

    def _is_any_class(self, phrase: str, names: Iterable[str]) -> bool:
        """Return whether a phrase means one of these classes.

        It does if its last word has the stem of a word of the class or is its kin, or if its
        similarity with one of them is at least MIN_CLASS_SIMILARITY, as it is or in the singular.
        """
        listed = list(names)
        for word in normalize(phrase).split()[-1:]:
            for name in map(normalize, listed):
                if stem(word) in map(stem, name.split()) or are_kin(word, name):
                    return True
        for form in (phrase, singularize(phrase)):
            if max_similarity(form, listed, self.embeddings) >= MIN_CLASS_SIMILARITY:
                return True
        return False


def has_word_of_stem(name: str, word: str) -> bool:
    """Return whether a word of a name is a form of another word."""
    return stem(word) in stems_of(name)


def stems_of(name: str) -> set[str]:
    """Return the stems of the words of a name."""
    return set(map(stem, normalize(name).split()))


def predicates_like(
    relation: str, predicates: Predicates, embeddings: Embeddings
) -> list[VertexPredicate]:
    """Return the predicates that are like a relation, without regard to a " by" at its end.

    Without a relation there are none.
    """
    names = [predicate.name for predicate in predicates]
    if relation not in names:
        relation = relation.removesuffix(" by")
    similar = find_similar_predicates(relation, names, embeddings) if relation else []
    return [predicate for predicate in predicates if predicate.name in similar]


def is_class_called(phrase: str, classes: Iterable[str]) -> bool:
    """Return whether one of some classes has a name, or has it after an adjective or noun: "ferry", "car ferry"."""
    return any(each == phrase or each.endswith(f" {phrase}") for each in classes)


def says_maker(word: str, predicate: VertexPredicate) -> bool:
    """Return whether a word for making may stand beside the name of a predicate: "wrote" beside "lyrics by"."""
    return predicate.name.endswith(AGENT_ENDINGS) and are_kin(word, "make")


def types_of(predicates: Predicates) -> set[str]:
    """Return the names of the classes and datatypes that predicates lead to."""
    names: set[str] = set()
    for predicate in predicates:
        names |= predicate.value_types
    return names


def is_lookup(reading: ParsedQuestion) -> bool:
    """Return whether a reading asks for one predicate of one name, and is not a yes-or-no question.

    Further facts may state the class of the answers, or ask for the values behind blank nodes.
    """
    if reading.kind == "boolean" or not reading.facts:
        return False
    further = [relation for _, relation, _ in reading.facts[1:]]
    return all(relation == CLASS_RELATION or NAME_SEPARATOR in relation for relation in further)
