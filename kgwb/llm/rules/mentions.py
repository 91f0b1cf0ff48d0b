"""Finding the names in a question: text in square brackets, labels of the graph, capitalised words."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import wraps
from itertools import chain
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from kgwb.kg.base import Graph
from kgwb.kg.names import replace_marks
from kgwb.llm.rules import words as en
from kgwb.llm.rules.words import RELATION_PHRASES, Token, singularize, tokenize

MAX_KEPT = 64
"""How many findings of one graph are kept: those of the questions that are asked at the same time."""
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


def kept_by_graph(find: Callable[[Graph, Key], T]) -> Callable[[Graph, Key], T]:
    """Make a function keep its last MAX_KEPT results of each graph, by its other argument.

    A question is read by several rules of one run, and each would ask the graph the same again.
    Threads may share what is kept. It is dropped with the graph; a graph with muted triples is
    another graph.
    """
    findings: WeakKeyDictionary[Graph, dict[Key, T]] = WeakKeyDictionary()

    @wraps(find)
    def find_once(kg: Graph, key: Key) -> T:
        kept = findings.get(kg, {})
        if key in kept:
            return kept[key]
        found = find(kg, key)
        newest = list(findings.get(kg, {}).items())[1 - MAX_KEPT :]  # with those of other threads
        findings[kg] = dict(newest) | {key: found}
        return found

    return find_once


BRACKETED_NAME = re.compile(r"\[([^\[\]]+)\]")
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
SIGNS = re.compile(r"[^\w\s]{0,3}")
"""The signs after a word that may belong to a name; no name ends in more of them."""
MAX_NAME_TOKENS = 18
NATIONALITY_ENDINGS = ("ian", "ean", "ish", "ese")
KIND_INTRODUCTIONS = en.WH_WORDS | en.DETERMINERS | en.PRONOUNS
"""Words after which a single word is a type and not a name: "which city", "the film"."""


class Mention(NamedTuple):
    """Successive tokens of a question that name something."""

    start: int
    """Position of the first token."""
    end: int
    """Position after the last token."""
    text: str

    @property
    def size(self) -> int:
        """How many tokens it has."""
        return self.end - self.start

    def overlaps(self, others: list[Mention]) -> bool:
        """Return whether it shares a token with one of the others."""
        return any(other.start < self.end and self.start < other.end for other in others)


Mentions = Sequence[Mention]


def find_mentions(question: str, kg: Graph | None) -> Mentions:
    """Return the names in a question, from left to right; they do not overlap.

    If the question has names in square brackets, only these count. Otherwise names are labels of
    the graph that are likely to be meant as names, and runs of capitalised words; where several
    overlap, the longest is taken. If there is none, it is the longest label in lower case. Without
    a graph there are no labels. They are kept for the questions asked last.
    """
    bracketed = bracketed_mentions(question)
    if bracketed:
        return bracketed
    if kg is None:
        return _MentionFinder(question, kg).find_unmarked()
    return _find_unmarked_mentions(kg, question)


@kept_by_graph
def _find_unmarked_mentions(kg: Graph, question: str) -> Mentions:
    """Return the names in a question without square brackets."""
    return _MentionFinder(question, kg).find_unmarked()


def bracketed_mentions(question: str) -> list[Mention]:
    """Return the names in square brackets, without the brackets and quotes around them, from left to right.

    Each name spans the tokens inside of its brackets. Brackets without a token are passed over;
    without brackets the list is empty.
    """
    tokens = tokenize(question)
    mentions = []
    for match in BRACKETED_NAME.finditer(question):
        start, end = match.span()
        inside = [place for place, token in enumerate(tokens) if start <= token.start < end]
        if inside:
            name = match[1]
            unmarked = replace_marks(name, " ").strip()
            if unmarked in name:  # the marks stand around it, and not inside of it
                name = unmarked
            mentions.append(Mention(inside[0], inside[-1] + 1, name))
    return mentions


def words_without_names(mentions: Iterable[Mention], tokens: Sequence[Token]) -> list[str]:
    """Return the words of a question in lower case, with "" in the place of those of names."""
    words = [token.lowercase for token in tokens]
    for mention in mentions:
        words[mention.start : mention.end] = [""] * mention.size
    return words


class _MentionFinder:
    """A question in which names without square brackets are looked for."""

    def __init__(self, question: str, kg: Graph | None) -> None:
        self.question = question
        self.tokens = tokenize(question)
        self.kg = kg

    def find_unmarked(self) -> list[Mention]:
        """Return the names in the question that no brackets mark, in order, without overlaps.

        Candidates are likely labels and runs of capitalised words. The longest are taken first, and
        those that overlap one of these are dropped. Without any candidate it is the longest label
        in lower case, if there is a label.
        """
        labels = self._find_labels()
        likely = [label for label in labels if self._is_likely_name(label)]
        candidates = likely.copy()
        for run in self._capitalized_runs():
            if self._is_name(run, likely):
                candidates.append(run)
        candidates.sort(key=_size_and_position, reverse=True)

        mentions: list[Mention] = []
        for candidate in candidates:
            if not candidate.overlaps(mentions):
                mentions.append(candidate)
        if not mentions:
            mentions = self._find_lowercase_name(labels)
        elif len(mentions) == 1:
            mentions += self._find_lowercase_end(labels, mentions)
        return sorted(mentions)

    def _find_lowercase_end(self, labels: list[Mention], mentions: list[Mention]) -> list[Mention]:
        """Return the label after a preposition that a yes-or-no question ends with: "allergic to pollen"."""
        end = len(self.tokens)
        if self.tokens[0].lowercase not in en.AUXILIARIES:
            return []
        for label in labels:
            word_before = self.tokens[label.start - 1].lowercase
            if label.end == end and word_before in en.PREPOSITIONS and not label.overlaps(mentions):
                return [label]
        return []

    def _find_labels(self) -> list[Mention]:
        """Return every part of the question that is a label of the graph; parts may overlap.

        A part has up to MAX_NAME_TOKENS tokens, and a letter or digit in the first and the last. The
        signs after it belong to it if it is a label with them, as "C++" and "Man's Favorite Sport?"
        are. A plural in lower case may stand for a label in the singular. Adjectives of nationality
        are left out. All parts are looked up with one request.
        """
        if self.kg is None:
            return []
        edges = []
        for position, token in enumerate(self.tokens):
            if LETTER_OR_DIGIT.search(token.text):
                edges.append(position)
        endings = {last: self._endings_of(last) for last in edges}
        spellings_of: dict[Mention, list[str]] = {}
        for first in edges:
            for last in edges:
                if first <= last < first + MAX_NAME_TOKENS:
                    part = self._mention(first, last + 1)
                    beginning = self.question[self.tokens[first].start : self.tokens[last].start]
                    spellings_of[part] = [beginning + ending for ending in endings[last]]
        texts = dict.fromkeys(chain.from_iterable(spellings_of.values()))
        labels = self.kg.exact(list(texts))
        found = []
        for part, spellings in spellings_of.items():
            names = [spelling for spelling in spellings if spelling in labels]
            if names and not self._is_adjective(part):
                found.append(part._replace(text=names[0]))
        return found

    def _endings_of(self, position: int) -> list[str]:
        """Return how labels may spell a token at their end, the spelling nearest to the question first.

        It has the signs that follow it directly: all, fewer, none. A plural in lower case has a
        singular.
        """
        token = self.tokens[position]
        signs = SIGNS.match(self.question, token.end)
        assert signs is not None, "the pattern matches an empty text too"
        endings = []
        for end in range(signs.end(), token.end - 1, -1):
            endings.append(self.question[token.start : end])
        singular = singularize(token.text)
        if token.text.islower() and singular != token.text:
            endings.append(singular)
        return endings

    def _mention(self, start: int, end: int) -> Mention:
        """Return the mention from token ``start`` to before token ``end``, as the question has it."""
        first = self.tokens[start]
        last = self.tokens[end - 1]
        text = self.question[first.start : last.end]
        return Mention(start, end, text)

    def _is_likely_name(self, label: Mention) -> bool:
        """Return whether words that are a label are meant as a name.

        They are if one is written like a name, with a capital or a digit. In lower case they are if
        they are several, and none is a function word, a verb or a word for a relation.
        """
        tokens = self.tokens[label.start : label.end]
        has_common_word = False
        for token in tokens:
            if token.looks_like_name:
                return True
            if token.is_common_word:
                has_common_word = True
        return len(tokens) > 1 and not has_common_word

    def _capitalized_runs(self) -> list[Mention]:
        """Return runs of words that are written like names, from left to right.

        One word of NAME_CONNECTORS may stand between two of them. A run does not begin with a number
        alone, nor with the first word of the question unless that has a digit.
        """
        runs: list[Mention] = []
        for position, token in enumerate(self.tokens):
            if not token.looks_like_name:
                continue
            end = position + 1
            if runs and self._can_continue(runs[-1], position):
                runs[-1] = self._mention(runs[-1].start, end)
                continue
            has_digit = any(character.isdigit() for character in token.text)
            can_begin = position > 0 or has_digit
            if can_begin and not token.text.isdigit():
                runs.append(self._mention(position, end))
        return runs

    def _can_continue(self, run: Mention, position: int) -> bool:
        """Return whether a token continues a run: directly, or after one word of NAME_CONNECTORS.

        The run may get MAX_NAME_TOKENS long.
        """
        if position - run.start >= MAX_NAME_TOKENS:
            return False
        if run.end == position:
            return True
        word_before = self.tokens[position - 1].lowercase
        return word_before in en.NAME_CONNECTORS and run.end == position - 1

    def _is_name(self, run: Mention, labels: list[Mention]) -> bool:
        """Return whether a run of capitalised words is a name.

        It is not if it is an adjective of nationality or a single word for a relation. A run that
        overlaps one of the labels is a name only if the graph's label search finds all its words.
        """
        first_word = self.tokens[run.start].lowercase
        is_relation_word = run.size == 1 and first_word in RELATION_PHRASES
        if is_relation_word or self._is_adjective(run):
            return False
        if self.kg is None or not run.overlaps(labels):
            return True
        found = self.kg.search(run.text, 3)
        return found.how == "all words"

    def _is_adjective(self, mention: Mention) -> bool:
        """Return whether a name is a single adjective of nationality before a noun."""
        return mention.size == 1 and self._is_nationality_adjective(mention.start)

    def _is_nationality_adjective(self, position: int) -> bool:
        """Return whether a token is an adjective of nationality before a noun: "German films".

        Such a word names nothing. It is capitalised, has a typical ending or is in NATIONALITIES,
        and a word in lower case follows that is neither a function word nor a verb.
        """
        if position + 1 == len(self.tokens):
            return False
        word = self.tokens[position].text
        if not word[0].isupper():
            return False
        if word not in en.NATIONALITIES and not word.endswith(NATIONALITY_ENDINGS):
            return False
        noun = self.tokens[position + 1].text
        if noun in en.FUNCTION_WORDS or en.is_verb(noun):
            return False
        return noun.islower()

    def _find_lowercase_name(self, labels: list[Mention]) -> list[Mention]:
        """Return the longest label of a question without capitals, the last of equals; else [].

        A label that begins with a function word does not count, nor a single word that is a type: one
        after KIND_INTRODUCTIONS or an adjective of nationality. If no other label is left, one after
        a determiner does ("the baguette").
        """
        names = []
        after_determiners = []
        for label in labels:
            first_word = self.tokens[label.start].lowercase
            is_introduced = self._introduces_kind(label.start - 1)
            is_kind = label.size == 1 and is_introduced
            if first_word not in en.FUNCTION_WORDS and not is_kind:
                names.append(label)
            elif (
                is_kind and label.start and self.tokens[label.start - 1].lowercase in en.DETERMINERS
            ):
                after_determiners.append(label)
        names = names or after_determiners
        names.sort(key=_size_and_position)
        return names[-1:]

    def _introduces_kind(self, position: int) -> bool:
        """Return whether the token at a position may introduce a kind of thing; -1 is before all."""
        if position < 0:
            return False
        word = self.tokens[position].lowercase
        return word in KIND_INTRODUCTIONS or self._is_nationality_adjective(position)


def _size_and_position(mention: Mention) -> tuple[int, int]:
    """Return a sort key: by number of tokens, then by position."""
    return mention.size, mention.start
