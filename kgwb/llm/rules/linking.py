"""How the model ``rules`` answers the prompts that several systems share: it chooses vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.label_search import normalize
from kgwb.kg.names import MAX_COMPARED_CHARS, compare_names
from kgwb.llm.base import ReplyData, Rule
from kgwb.llm.rules.grammar import parse_question
from kgwb.llm.rules.predicates import max_similarity
from kgwb.llm.rules.words import FUNCTION_WORDS, singularize

YEAR_WEIGHT = 2.0
"""What a number that question and candidate have in common counts, beside the similarity."""
WORD_WEIGHT = 0.25
"""What each word counts that they have in common."""


def choose_vertex(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return the number and label of the candidate that an entity of a question means, as a reply.

    It is a candidate whose label is the name as it is written, else one whose label is the same
    name (``compare_names``). Of several, it is the one that fits the question best. Otherwise it is
    the one spelled most alike among those whose names are near. If there is none, the number is 0
    and the label empty. Candidates have "number", "label", "type", "description", and perhaps
    "relations". The reply has a "reason" as well. Raises ModelError if there are several and the
    grammar cannot read the question.
    """
    by_distance: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for candidate in candidates:
        likeness = compare_names(entity, candidate["label"])
        by_distance[likeness.distance].append(candidate)
    same, near, _ = by_distance.values()
    exact = [candidate for candidate in same if candidate["label"] == entity]
    if not same and not near:
        reason = f"no label is like {entity!r}"
        return {"reason": reason, "number": 0, "label": ""}
    if len(exact or same) > 1:
        best = _choose_homonym(question, entity, exact or same, kg, embeddings)
    else:
        best = max(exact or same or near, key=lambda each: _rank_label(entity, each["label"]))
    reason = "the label is the name" if same else "the label most like the name"
    return {"reason": reason, "number": best["number"], "label": best["label"]}


def _rank_label(name: str, label: str) -> tuple[bool, float]:
    """Return a key that ranks a label for a name: first whether it begins with the name, then the spelling."""
    begins_with_name = normalize(label).startswith(normalize(name))
    return begins_with_name, _compare_spelling(name, label)


def _choose_homonym(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> Any:
    """Return the candidate that fits a question best, the first of equals.

    The score is YEAR_WEIGHT if the question shares a number with the candidate's type and
    description, WORD_WEIGHT for each shared word, and the highest similarity of the candidate's
    relations to those that the question asks for. Words after " not ", the entity and these
    relations' words do not count. Raises ModelError if the grammar cannot read the question.
    """
    relations = []
    for subject, relation, object_ in parse_question(question, kg).facts:
        if entity in (subject, object_):
            relations.append(relation)
    stated, _, _ = question.partition(" not ")
    read_words = " ".join([entity, *relations])
    asked_words = _content_words(stated) - _content_words(read_words)

    scores = []
    for candidate in candidates:
        description = f"{candidate['type']} {candidate['description']}"
        shared = asked_words & _content_words(description)
        has_number = any(word.isdigit() for word in shared)
        own_relations = []
        for text in candidate.get("relations", []):
            name, _, _ = text.partition(": ")
            own_relations.append(name)
        similarities = [max_similarity(name, own_relations, embeddings) for name in relations]
        score = WORD_WEIGHT * len(shared)
        if has_number:
            score += YEAR_WEIGHT
        score += max(similarities, default=0.0)
        scores.append(score)
    best = scores.index(max(scores))
    return candidates[best]


def choose_vertices(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> ReplyData:
    """Return a reply with the number and label of the one candidate of ``choose_vertex``, or with empty lists."""
    choice: Any = choose_vertex(question, entity, candidates, kg, embeddings)
    is_chosen = choice["number"] > 0
    return {
        "reason": choice["reason"],
        "numbers": [choice["number"]] if is_chosen else [],
        "labels": [choice["label"]] if is_chosen else [],
    }


def choose_label(entity: str, labels: Sequence[str]) -> ReplyData:
    """Return the label spelled most like an entity; of equals, the one whose name is nearest, then the first."""

    def rank(label: str) -> tuple[float, int]:
        """Return a key that is greatest for the best label."""
        return _compare_spelling(entity, label), -compare_names(entity, label).distance

    return {"label": max(labels, key=rank)}


def choose_local_name(entity: str, names: Sequence[str]) -> ReplyData:
    """Return the local name spelled most like an entity, the first of equals."""
    best = max(names, key=lambda name: _compare_spelling(entity, name))
    return {"name": best}


def _compare_spelling(name: str, text: str) -> float:
    """Return the ratio of matching characters of two names, 0 to 1, regardless of case, accents and signs.

    Only the first MAX_COMPARED_CHARS of each are compared.
    """
    first = normalize(name)[:MAX_COMPARED_CHARS]
    second = normalize(text)[:MAX_COMPARED_CHARS]
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.ratio()


def _content_words(text: str) -> set[str]:
    """Return the words of a text in the singular, without function words."""
    words = normalize(text).split()
    return {singularize(word) for word in words} - FUNCTION_WORDS


LINKING_RULES: Mapping[str, Rule] = {
    "linking/vertex_selection": choose_vertex,
    "linking/vertex_selection_several": choose_vertices,
    "linking/vertex_selection_labels": choose_label,
    "linking/vertex_selection_names": choose_local_name,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
