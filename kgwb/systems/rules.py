"""What the model ``rules`` does for the agents that the systems share: it chooses vertices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.rules import SPELLING, grammar, rule
from kgwb.llm.rules.words import FUNCTION_WORDS, stem

NEAR_ENOUGH = 0.82
"""Ratio of matching characters from which a label that is not the name itself is taken for it."""
LETTERS = 300
"""Of a name that are compared for likeness, which takes quadratic time."""


@rule("linking/vertex_selection")
def vertex(
    question: str, entity: str, candidates: Sequence[Any], kg: Graph | None, embeddings: Embeddings
) -> dict[str, Any]:
    """The label that is the name, homonyms told apart; else one spelled nearly alike; else none."""
    same = [c for c in candidates if _plain(c["label"]) == _plain(entity)]
    holding = [c for c in candidates if {*_plain(entity).split()} <= {*_plain(c["label"]).split()}]
    best = max(
        same or holding or candidates,
        key=lambda c: (
            _plain(c["label"]).startswith(_plain(entity)),
            _alike(entity, c["label"]),
            -c["number"],
        ),
    )
    if len(same) > 1:
        read = grammar.read(question, kg).facts
        asked = _content(question.partition(" not ")[0]) - _content(
            " ".join([entity, *(says for _, says, _ in read)])
        )
        relations = [says for subject, says, object_ in read if entity in (subject, object_)]

        def fit(candidate: Any) -> float:
            """A year, shared words, and how like the candidate's relations are to the question's."""
            shared = asked & _content(f"{candidate['type']} {candidate['description']}")
            names = [relation.partition(": ")[0] for relation in candidate.get("relations", [])]
            close = [c for says in relations for c in embeddings.similarity(says, names, SPELLING)]
            return 2 * any(word.isdigit() for word in shared) + 0.25 * len(shared) + max(close, default=0.0)

        best = max(same, key=fit)
    elif not holding and _alike(entity, best["label"]) < NEAR_ENOUGH:
        return {"reason": f"no label is like {entity!r}", "number": 0, "label": ""}
    reason = "the label is the name" if same else "the label most like the name"
    return {"reason": reason, "number": best["number"], "label": best["label"]}


@rule("linking/vertex_selection_labels")
def label(entity: str, labels: Sequence[str]) -> dict[str, Any]:
    """The label most like the entity."""
    return {"label": _closest(entity, labels)}


@rule("linking/vertex_selection_names")
def local_name(entity: str, names: Sequence[str]) -> dict[str, Any]:
    """The local name most like the entity."""
    return {"name": _closest(entity, names)}


def _closest(name: str, texts: Sequence[str]) -> str:
    """The text that is the name, else the one spelled most alike, the first of equals."""
    return max(texts, key=lambda text: (_plain(text) == _plain(name), _alike(name, text)))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _alike(first: str, second: str) -> float:
    """The ratio of matching characters."""
    first, second = _plain(first)[:LETTERS], _plain(second)[:LETTERS]
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _content(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"\w+", text.casefold()) if word not in FUNCTION_WORDS}
