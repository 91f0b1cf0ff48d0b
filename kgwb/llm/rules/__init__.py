"""``rules``: the embedded default model. Deterministic, offline, without a key; it ignores prompts.

It reads the task's variables with a small grammar and with string and embedding similarity, and spots names
by the graph's own label index. Nothing in it is keyed to a graph or a question set.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatReply, ChatRequest
from kgwb.llm.rules import dialogue, grammar, walking
from kgwb.llm.rules.words import FUNCTION_WORDS, stem

NEAR_ENOUGH = 0.82
"""Ratio of matching characters from which a label that is not the name itself is taken for it."""
LETTERS = 300
"""Of a name that are compared for likeness, which takes quadratic time."""
SPELLING = 0.3
"""Share of spelling in the similarity of names."""
RELEVANT = 0.34
"""Similarity a predicate must have with a relation to be taken for it."""
TIMES_AND_PLACES = frozenset(("date", "year", "time", "place", "location", "of"))
AS_GOOD = 0.06
"""Predicates within this of the best one are kept beside it."""


class Rules:
    """The model ``rules``. It needs the graph only to look labels up."""

    name = "rules"
    remote = False

    def __init__(self, embeddings: Embeddings | None = None) -> None:
        self.embeddings = embeddings or Embeddings()
        self._tasks: Mapping[str, Callable[[Mapping[str, Any], Graph | None], dict[str, Any]]] = {
            "translator": lambda given, kg: {"question": given["question"]},
            "classifier": lambda given, kg: dialogue.classify(given["question"], kg),
            "rephraser": lambda given, kg: dialogue.rephrase(given["question"], given["dialogue"], kg),
            "qir": lambda given, kg: grammar.triples(given["question"], kg),
            "vertex_selection": self._vertex,
            "vertex_selection_labels": lambda given, kg: {"label": closest(given["entity"], given["labels"])},
            "vertex_selection_names": lambda given, kg: {"name": closest(given["entity"], given["names"])},
            "predicate_selection": self._by_triple,
            "predicate_selection_published": self._pooled,
            "answer_writer": lambda given, kg: {"sentence": " ".join([given["question"], *given["answer"]])},
            "topic_entity": walking.topics,
            "relation_filtering": lambda given, kg: walking.relation(given, kg, self._best_first),
            "answer_trying": lambda given, kg: walking.trying(given, kg, self._best_first),
            "simplifying_expert": walking.expert,
            "critic": walking.critic,
            "linguist": walking.linguist,
            "fused_agent": walking.fused,
            "own_knowledge": lambda given, kg: {"answers": []},
        }

    def complete(self, request: ChatRequest, kg: Graph | None, cancel: threading.Event) -> ChatReply:
        """The reply to one task. Raises ModelError for a task it has no rule for."""
        task = self._tasks.get(request.task.rpartition("/")[2])
        if task is None:
            hint = "choose another model for this agent"
            raise ModelError(f"rules has no rule for {request.task}", hint=hint)
        return ChatReply(json.dumps(task(request.variables, kg), ensure_ascii=False), model=self.name)

    def _vertex(self, given: Mapping[str, Any], kg: Graph | None) -> dict[str, Any]:
        """The label that is the name, homonyms told apart; else one spelled nearly alike; else none."""
        entity, candidates = given["entity"], given["candidates"]
        same = [c for c in candidates if _plain(c["label"]) == _plain(entity)]
        holding = [c for c in candidates if {*_plain(entity).split()} <= {*_plain(c["label"]).split()}]
        best = max(same or holding or candidates, key=lambda c: (_alike(entity, c["label"]), -c["number"]))
        if len(same) > 1:
            facts = _facts(given, kg)
            best = max(same, key=lambda c: self._fit(c, given, facts))
        elif not holding and _alike(entity, best["label"]) < NEAR_ENOUGH:
            return {"reason": f"no label is like {entity!r}", "number": 0, "label": ""}
        reason = "the label is the name" if same else "the label most like the name"
        return {"reason": reason, "number": best["number"], "label": best["label"]}

    def _fit(self, candidate: Any, given: Mapping[str, Any], facts: Sequence[Sequence[str]]) -> float:
        """How well a homonym fits: a year, shared words, and how like its relations are to the facts."""
        entity, names = given["entity"], candidate.get("relations", [])
        asked = _content(given["question"]) - _content(" ".join([entity, *(says for _, says, _ in facts)]))
        shared = asked & _content(f"{candidate['type']} {candidate['description']}")
        said = [says for subject, says, object_ in facts if entity in (subject, object_)]
        close = [c for says in said for c in self.embeddings.similarity(says, names, SPELLING)]
        return 2 * any(word.isdigit() for word in shared) + 0.25 * len(shared) + max(close, default=0.0)

    def _by_triple(self, given: Mapping[str, Any], kg: Graph | None) -> dict[str, Any]:
        """For each triple the predicates named most like its relation; none if none is like enough."""
        kept = [self._like(relation["triple"][1], relation["predicates"]) for relation in given["relations"]]
        return {"reasoning": "the names most like each relation", "predicates": kept}

    def _pooled(self, given: Mapping[str, Any], kg: Graph | None) -> dict[str, Any]:
        facts, names = _facts(given, kg), given["predicates"]
        kept = [name for _, relation, _ in facts for name in self._like(relation, names)]
        return {"reasoning": "the names most like each relation", "predicates": list(dict.fromkeys(kept))}

    def _like(self, relation: str, names: Sequence[str]) -> list[str]:
        event = _event(relation)
        if event != relation:  # where somebody was buried is no birth place, for all that both are places
            names = [name for name in names if not name.endswith((" by", "er", "or"))]
            events = [_event(name) or event for name in names]
            close = self.embeddings.similarity(event, events, SPELLING) if event else [1.0] * len(names)
            names = [name for name, c in zip(names, close, strict=True) if c >= RELEVANT]
        close = self.embeddings.similarity(relation, names, SPELLING)
        least = 0.0 if relation == grammar.KIND else max(close, default=0.0) - AS_GOOD
        return [name for name, c in zip(names, close, strict=True) if c >= max(RELEVANT, least)]

    def _best_first(self, relation: str, names: Sequence[str]) -> list[str]:
        kept = self._like(relation, names)
        close = dict(zip(kept, self.embeddings.similarity(relation, kept, SPELLING), strict=True))
        return sorted(kept, key=lambda name: -close[name])


def _event(relation: str) -> str:
    """What a relation says besides that it leads to a time or a place."""
    return " ".join(word for word in relation.split() if word not in TIMES_AND_PLACES)


def closest(name: str, texts: Sequence[str]) -> str:
    """The text that is the name, else the one spelled most alike, the first of equals."""
    return max(texts, key=lambda text: (_plain(text) == _plain(name), _alike(name, text)))


def _facts(given: Mapping[str, Any], kg: Graph | None) -> list[list[str]]:
    read: Any = grammar.triples(given["question"], kg)["triples"]
    return [[fact["subject"], fact["predicate"], fact["object"]] for fact in read]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _alike(one: str, other: str) -> float:
    """The ratio of matching characters."""
    one, other = _plain(one)[:LETTERS], _plain(other)[:LETTERS]
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _content(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"\w+", text.casefold()) if word not in FUNCTION_WORDS}
