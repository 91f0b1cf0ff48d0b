"""The model ``rules``: deterministic, offline, without a key. It ignores the text of prompts.

It reads the variables of a prompt with a small grammar, with the similarity of spelling and
embeddings, and with the label index of the graph. Nothing in it is made for one graph or question
set. Its answers to the prompts of a system are in ``kgwb/systems/NAME/rules.py``.
"""

from __future__ import annotations

import inspect
import json
import threading
from functools import lru_cache

from kgwb.disk import cache_dir
from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Rule

BASELINE_REMARK = (
    "rules is a baseline: it reads no prompts, and does not understand; "
    "choose another model for that"
)


class RulesModel(ChatModel):
    """The model ``rules``: it answers each prompt with a function of the prompt's system.

    It needs the graph only to look labels up.
    """

    name = "rules"
    remote = False

    def __init__(self, embeddings: Embeddings | None = None) -> None:
        self.embeddings = embeddings or Embeddings(cache_folder=cache_dir())

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply of the rule for this prompt, as JSON text, without any model.

        The rule is a function of the system. It gets by name those of its parameters that are
        variables of the prompt, ``kg`` or ``embeddings``. The messages and ``cancel`` are not used.
        Raises ModelError if the system has no rule for the prompt, KeyError for another parameter
        of the rule, and what the rule raises.
        """
        if request.rule is None:
            raise ModelError(
                f"the model rules has no rule for the prompt {request.task}",
                hint="choose another model for this agent: models={AGENT: ...}, or --agent-model AGENT=SPEC",
            )
        available = {**request.variables, "kg": kg, "embeddings": self.embeddings}
        arguments = {}
        for name in _parameters_of(request.rule):
            arguments[name] = available[name]
        reply = request.rule(**arguments)
        return ChatReply(json.dumps(reply, ensure_ascii=False), model=self.name)


@lru_cache(maxsize=256)  # ``inspect`` takes as long as a tenth of a rule
def _parameters_of(rule: Rule) -> tuple[str, ...]:
    """Return the names of the parameters of a rule."""
    return tuple(inspect.signature(rule).parameters)
