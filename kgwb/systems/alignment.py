"""Aligning what a system read in a question with the triple patterns of a gold query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import permutations, product
from typing import Generic, Protocol, TypeVar

from kgwb.kg.algebra import TriplePattern
from kgwb.kg.base import Direction
from kgwb.run.gold import GoldQuery

MAX_ALIGNED_FACTS = 4
"""Facts that are compared with a gold query in every order."""


class Fact(Protocol):
    """What a system read in a question: a relation between two ends in words, unknowns as "?x"."""

    @property
    def relation(self) -> str: ...

    @property
    def ends(self) -> tuple[str, str]: ...


F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class Alignment(Generic[F]):
    """A way in which facts are the patterns of a gold query."""

    ends: Mapping[str, str]
    """The gold term of each end of the facts."""
    facts: Mapping[F, tuple[TriplePattern, Direction]]
    """For each fact a pattern, and the direction from the fact's subject."""


def align_facts(facts: Sequence[F], target: str, gold: GoldQuery) -> Alignment[F] | None:
    """Return the alignment of facts with the patterns of a gold query whose names are most similar.

    ``target`` is the unknown that the facts ask for; empty if it is not known. Every order of the
    patterns and every direction is tried. None is returned if none fits, and for a gold query of
    another number of patterns, of more than MAX_ALIGNED_FACTS patterns, or with a literal. Of
    equally similar ones the first is returned.
    """
    number = len(gold.patterns)
    if number != len(facts) or number > MAX_ALIGNED_FACTS:
        return None
    if any(map(has_literal, gold.patterns)):
        return None
    alignments = _find_alignments(facts, target, gold)
    similarity = partial(_name_similarity, names=gold.names)
    return max(alignments, key=similarity, default=None)


def _find_alignments(facts: Sequence[F], target: str, gold: GoldQuery) -> Iterator[Alignment[F]]:
    """Yield each way in which facts can be the patterns of a gold query.

    Each order of the patterns is tried with each direction of every fact, see ``_align_ends``.
    """
    both: tuple[Direction, Direction] = ("out", "in")
    for patterns in permutations(gold.patterns):
        for directions in product(both, repeat=len(patterns)):
            pairs = zip(patterns, directions, strict=True)
            pattern_of = dict(zip(facts, pairs, strict=True))
            ends = _align_ends(pattern_of, target, gold)
            if ends:
                yield Alignment(ends, pattern_of)


def _align_ends(
    facts: Mapping[F, tuple[TriplePattern, Direction]], target: str, gold: GoldQuery
) -> Mapping[str, str]:
    """Return the gold term of each end of the facts; an empty mapping if the patterns do not fit them.

    ``facts`` has a pattern and a direction for each fact. They fit if entities stand for vertices,
    unknowns for unknowns, ``target`` for the gold target, each end always for one term, and no two
    ends for the same term.
    """
    ends = {}
    if target:
        ends[target] = gold.target
    for fact, (pattern, direction) in facts.items():
        subject, _, object_ = pattern
        terms = (subject, object_) if direction == "out" else (object_, subject)
        for end, term in zip(fact.ends, terms, strict=True):
            if _is_unknown(end) != _is_unknown(term) or ends.setdefault(end, term) != term:
                return {}
    is_one_to_one = len(set(ends.values())) == len(ends)
    return ends if is_one_to_one else {}


def _name_similarity(alignment: Alignment[F], names: Mapping[str, str]) -> float:
    """Return the sum of the similarities of relations and entities to the names of their gold terms.

    Each similarity is the ratio of matching characters, 0 to 1, regardless of letter case. Unknowns
    do not count. A term without a name is compared as it is written.
    """
    pairs = []
    for fact, (pattern, _) in alignment.facts.items():
        pairs.append((fact.relation, pattern[1]))
    for end, term in alignment.ends.items():
        if not _is_unknown(end):
            pairs.append((end, term))
    similarity = 0.0
    for words, term in pairs:
        name = names.get(term, term)
        similarity += SequenceMatcher(None, words.casefold(), name.casefold()).ratio()
    return similarity


def has_literal(pattern: TriplePattern) -> bool:
    """Return whether a term of a pattern is neither an IRI nor an unknown."""
    return any(term[0] not in "<?" for term in pattern)


def reword_fact(
    fact: F, alignment: Alignment[F], question: str, names: Mapping[str, str]
) -> tuple[str, str, str]:
    """Return subject, relation and object of an aligned fact in words of the question.

    A relation keeps its words if the question has any of them, else it is replaced by the name of
    the gold predicate. Each end keeps its words or becomes the label of its gold vertex, as
    ``_choose_words`` decides. Letter case does not count.
    """
    question = question.casefold()
    (_, predicate, _), _ = alignment.facts[fact]
    ends = []
    for end in fact.ends:
        label = names.get(alignment.ends[end], end)
        ends.append(_choose_words(end, label, question))
    relation = fact.relation
    if not _contains_word(relation, question):
        relation = names.get(predicate, relation)
    return ends[0], relation, ends[1]


def _choose_words(words: str, label: str, question: str) -> str:
    """Return the words of an end, or the label of its gold vertex instead.

    The label is returned if the question has none of the words, or has the whole label: the fact
    then has too much or too little of it. An unknown is returned as it is. ``question`` is in lower
    case.
    """
    if _is_unknown(words) or words.casefold() == label.casefold():
        return words
    if label.casefold() in question or not _contains_word(words, question):
        return label
    return words


def _contains_word(words: str, question: str) -> bool:
    """Return whether a question has the beginning of one of the words: its first four letters.

    Words of less than three letters do not count. Four letters are enough, since the question may
    have another ending of the word. ``question`` is in lower case.
    """
    long_words = re.findall(r"\w{3,}", words.casefold())
    return any(word[:4] in question for word in long_words)


def _is_unknown(name: str) -> bool:
    return name.startswith("?")
