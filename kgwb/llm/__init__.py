"""Language models, and what stands in for one: ``model("openai:gpt-4o")``, ``model("rules")``, ...

Importing this imports neither openai nor ollama; making a model of that kind does.
"""

from __future__ import annotations

import re
from typing import Any

from kgwb.errors import UnknownModelError
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message, Mode
from kgwb.llm.human import Asked, Human, person
from kgwb.llm.ollama import OllamaModel
from kgwb.llm.openai import OpenAIModel
from kgwb.llm.replay import Replay
from kgwb.llm.scripted import Scripted
from kgwb.llm.status import ModelStatus, available
from kgwb.masking import shown

__all__ = [
    "Asked",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Human",
    "Message",
    "Mode",
    "ModelStatus",
    "OllamaModel",
    "OpenAIModel",
    "Replay",
    "Scripted",
    "available",
    "model",
]

FORMS = ("rules", "human", "openai:MODEL", "openai:MODEL@http://HOST:PORT/v1", "ollama:MODEL", "replay:FILE")


def model(spec: str, **options: Any) -> ChatModel:
    """The model that a specification names: one of ``FORMS``; ``ollama`` takes an address after "@" too.

    ``options`` go to the model's class: ``base_url`` for ``openai`` and ``ollama``. Raises UnknownModelError
    for a specification that is none and for a missing key, RunFileError if ``replay`` cannot read its file.
    """
    kind, _, rest = spec.strip().partition(":")
    if kind == "rules" and not rest:
        from kgwb.llm.rules import Rules

        return Rules(**options)
    if kind == "human" and not rest:
        return person(**options)
    if kind == "replay" and rest:
        return Replay.from_file(rest, **options)
    name, _, address = re.sub("@(?=https?://)", "\n", rest, count=1).partition("\n")
    if kind in ("openai", "ollama") and name:
        adapter = OpenAIModel if kind == "openai" else OllamaModel
        return adapter(name, **({"base_url": address} if address else {}), **options)
    raise UnknownModelError(f"no model named {shown(spec)!r}", hint=f"write it as one of {', '.join(FORMS)}")
