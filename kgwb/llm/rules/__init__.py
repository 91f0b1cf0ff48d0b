"""``rules``: the embedded default model. Deterministic, offline, without a key; it ignores prompts.

It reads a task's variables with a small grammar and with string and embedding similarity, and spots names by
the graph's own label index. Nothing in it is keyed to a graph or a question set. What it does for a task
stands with the system that the task belongs to, in ``kgwb/systems/NAME/rules.py``.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Sequence

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.llm.rules.grammar import IS_A_RELATION

BASELINE_REMARK = (
    "rules is a baseline: it reads no prompts, and does not understand; "
    "choose another model for that"
)
SPELLING_WEIGHT = 0.3
"""Share of spelling in the similarity of names."""
MIN_RELATION_SIMILARITY = 0.34
"""Similarity a predicate must have with a relation to be taken for it."""
TIME_AND_PLACE_WORDS = frozenset(("date", "year", "time", "place", "location", "of"))
SIMILARITY_TOLERANCE = 0.06
"""Predicates within this of the best one are kept beside it."""


class RulesModel(ChatModel):
    """The model ``rules``: it answers each prompt with a function of the prompt's system.

    It needs the graph only to look labels up.
    """

    name = "rules"
    remote = False

    def __init__(self, embeddings: Embeddings | None = None) -> None:
        self.embeddings = embeddings or Embeddings()

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply of the system's rule for this prompt.

        Raises ModelError if the system has no rule for it.
        """
        if request.rule is None:
            raise ModelError(
                f"rules has no rule for {request.task}", hint="choose another model for this agent"
            )
        known = {**request.variables, "kg": kg, "embeddings": self.embeddings}
        wanted = inspect.signature(request.rule).parameters
        reply = request.rule(**{name: known[name] for name in wanted})
        return ChatReply(json.dumps(reply, ensure_ascii=False), model=self.name)


def find_similar_predicates(
    relation: str, names: Sequence[str], embeddings: Embeddings
) -> list[str]:
    """The names of predicates that say a relation, in their order; none if none is like enough."""
    if ", " in relation:  # all parts of a value without a name
        return [name for name in names if name in relation.split(", ")]
    event = _without_time_and_place(relation)
    if event not in (
        "",
        relation,
    ):  # where one was buried is no birth place, though both are places
        names = [name for name in names if not name.endswith((" by", "er", "or"))]
        close = embeddings.similarity(
            event, [_without_time_and_place(name) or event for name in names], SPELLING_WEIGHT
        )
        names = [name for name, c in zip(names, close, strict=True) if c >= MIN_RELATION_SIMILARITY]
    close = embeddings.similarity(relation, names, SPELLING_WEIGHT)
    least = 0.0 if relation == IS_A_RELATION else max(close, default=0.0) - SIMILARITY_TOLERANCE
    return [
        name
        for name, c in zip(names, close, strict=True)
        if c >= max(MIN_RELATION_SIMILARITY, least)
    ]


def _without_time_and_place(relation: str) -> str:
    """What a relation says besides that it leads to a time or a place."""
    return " ".join(word for word in relation.split() if word not in TIME_AND_PLACE_WORDS)
