"""How like names of predicates are to the relations of a question, by embeddings and spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgwb.kg.embeddings import Embeddings
from kgwb.llm.rules.grammar import IS_A_RELATION

Names = Sequence[str]
SPELLING_WEIGHT = 0.3
"""Share of spelling in the similarity of names."""
MIN_RELATION_SIMILARITY = 0.34
"""Similarity that a predicate must have with a relation to be taken for it."""
SIMILARITY_TOLERANCE = 0.06
"""Predicates within this of the best one are kept beside it."""
NUMBER = re.compile(r"\d+")
TIME_AND_PLACE_WORDS = frozenset(("date", "year", "time", "place", "location", "of"))
NAME_SEPARATOR = ", "
"""Between the names of a relation that is a list of names."""
AGENT_ENDINGS = (" by", "er", "or")
"""Endings of predicates that lead to an agent, and so never to a time or a place."""


def find_similar_predicates(relation: str, names: Names, embeddings: Embeddings) -> list[str]:
    """Return the names of predicates that are like a relation, in their order; [] if none is.

    A name that is the relation, but for letter case, is returned alone. Names with other numbers
    than the relation are not like it: "p18" is another thing than "p1".

    A name must have MIN_RELATION_SIMILARITY and be within SIMILARITY_TOLERANCE of the best one; the
    latter is not needed for IS_A_RELATION. If the relation is the time or place of an event, the
    predicate must be like that event too: "burial place" is not like "birth place".

    Of a list of names, as ``write_name_list`` makes it, the names in that list are returned.
    """
    if NAME_SEPARATOR in relation:
        parts = relation.split(NAME_SEPARATOR)
        return [name for name in names if name in parts]

    searched = relation.casefold()
    same = [name for name in names if name.casefold() == searched]
    if same:
        return same
    names = _without_other_numbers(relation, names)
    event = without_time_and_place(relation)
    if event not in ("", relation):
        names = _predicates_of_event(event, names, embeddings)
    similarities = embeddings.similarity(relation, names, SPELLING_WEIGHT)
    threshold = MIN_RELATION_SIMILARITY
    if similarities and relation != IS_A_RELATION:
        threshold = max(threshold, max(similarities) - SIMILARITY_TOLERANCE)
    return _names_from(threshold, names, similarities)


def write_name_list(names: Names) -> str:
    """Return a relation that stands for names of predicates, and for no others that are like them.

    A list of one name has it twice: alone it would be a relation that other names may be like.
    """
    listed = list(names)
    if len(listed) == 1:
        listed *= 2
    return NAME_SEPARATOR.join(listed)


def max_similarity(phrase: str, names: Names, embeddings: Embeddings) -> float:
    """Return the similarity of a phrase with the name most like it; 0.0 without names.

    Names with other numbers than the phrase do not count.
    """
    names = _without_other_numbers(phrase, names)
    similarities = embeddings.similarity(phrase, names, SPELLING_WEIGHT)
    return max(similarities, default=0.0)


def _without_other_numbers(phrase: str, names: Names) -> list[str]:
    """Return the names that have no numbers, or the same numbers in the same order as the phrase.

    All names are returned if the phrase has no numbers.
    """
    numbers = NUMBER.findall(phrase)
    if not numbers:
        return list(names)
    kept = []
    for name in names:
        name_numbers = NUMBER.findall(name)
        if name_numbers in ([], numbers):
            kept.append(name)
    return kept


def _predicates_of_event(event: str, names: Names, embeddings: Embeddings) -> list[str]:
    """Return the names of predicates that may be the time or place of an event, in their order.

    A name is compared without its words for time and place: what is left must be like the event
    (MIN_RELATION_SIMILARITY), and a name of which nothing is left is kept. Names with AGENT_ENDINGS
    are left out.
    """
    candidates = []
    events = []
    for name in names:
        if name.endswith(AGENT_ENDINGS):
            continue
        candidates.append(name)
        events.append(without_time_and_place(name) or event)
    similarities = embeddings.similarity(event, events, SPELLING_WEIGHT)
    return _names_from(MIN_RELATION_SIMILARITY, candidates, similarities)


def _names_from(threshold: float, names: Names, similarities: Sequence[float]) -> list[str]:
    """Return the names whose similarity is not below a threshold, in their order."""
    similar = []
    for name, similarity in zip(names, similarities, strict=True):
        if similarity >= threshold:
            similar.append(name)
    return similar


def without_time_and_place(relation: str) -> str:
    """Return a relation without TIME_AND_PLACE_WORDS."""
    words = [word for word in relation.split() if word not in TIME_AND_PLACE_WORDS]
    return " ".join(words)
