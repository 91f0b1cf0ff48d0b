"""What the model ``rules`` does for the agents that the systems share: it chooses vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.kg.text import normalize
from kgwb.llm.base import Rule
from kgwb.llm.rules import SPELLING_WEIGHT, grammar
from kgwb.llm.rules.words import FUNCTION_WORDS, singularize

MIN_SPELLING_SIMILARITY = 0.82
"""Ratio of matching characters from which a label that is not the name itself is taken for it."""
MAX_COMPARED_CHARS = 300
"""Of a name that are compared for likeness, which takes quadratic time."""


def choose_vertex(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The label that is the name, homonyms told apart; else one spelled nearly alike; else none."""
    name = normalize(entity)
    same = [c for c in candidates if normalize(c["label"]) == name]
    holding = [c for c in candidates if {*name.split()} <= {*normalize(c["label"]).split()}]
    likest = same or holding or candidates
    best = max(
        likest,
        key=lambda c: (
            normalize(c["label"]).startswith(name),
            _compare_spelling(entity, c["label"]),
        ),
    )
    if not holding and _compare_spelling(entity, best["label"]) < MIN_SPELLING_SIMILARITY:
        return {"reason": f"no label is like {entity!r}", "number": 0, "label": ""}
    if len(same) > 1:
        facts = grammar.parse_question(question, kg).facts
        relations = [says for subject, says, object_ in facts if entity in (subject, object_)]
        asked = _find_content_words(question.partition(" not ")[0]) - _find_content_words(
            " ".join([entity, *relations])
        )

        def fit(candidate: Any) -> float:
            """A year, shared words, and how like the candidate's relations are to the question's."""
            shared = asked & _find_content_words(f"{candidate['type']} {candidate['description']}")
            names = [relation.partition(": ")[0] for relation in candidate.get("relations", [])]
            close = [
                c for says in relations for c in embeddings.similarity(says, names, SPELLING_WEIGHT)
            ]
            return 2 * any(map(str.isdigit, shared)) + 0.25 * len(shared) + max(close, default=0.0)

        best = max(same, key=fit)
    reason = "the label is the name" if same else "the label most like the name"
    return {"reason": reason, "number": best["number"], "label": best["label"]}


def choose_label(entity: str, labels: Sequence[str]) -> dict[str, Any]:
    """The label most like the entity, the first of equals."""
    return {"label": max(labels, key=lambda text: _compare_spelling(entity, text))}


def choose_local_name(entity: str, names: Sequence[str]) -> dict[str, Any]:
    """The local name most like the entity, the first of equals."""
    return {"name": max(names, key=lambda text: _compare_spelling(entity, text))}


def _compare_spelling(name: str, text: str) -> float:
    """The ratio of matching characters."""
    return SequenceMatcher(
        None,
        normalize(name)[:MAX_COMPARED_CHARS],
        normalize(text)[:MAX_COMPARED_CHARS],
        autojunk=False,
    ).ratio()


def _find_content_words(text: str) -> set[str]:
    return {singularize(word) for word in normalize(text).split()} - FUNCTION_WORDS


RULES: Mapping[str, Rule] = {
    "linking/vertex_selection": choose_vertex,
    "linking/vertex_selection_labels": choose_label,
    "linking/vertex_selection_names": choose_local_name,
}
"""For each prompt, the function by which the model ``rules`` answers it."""
