"""Language models, and what stands in for one: ``model("openai:gpt-4o")``, ``model("rules")``, ...

Importing this imports neither openai nor ollama; making a model of that kind does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgwb.deprecated import renamed_names
from kgwb.errors import ModelError, UnknownModelError
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message, ReplyMode
from kgwb.llm.human import Human, PendingRequest, shared_human
from kgwb.llm.ollama import OllamaModel
from kgwb.llm.openai import OpenAIModel
from kgwb.llm.remote import RemoteModel
from kgwb.llm.rules import RulesModel
from kgwb.llm.scripted import Scripted
from kgwb.masking import mask_url

__all__ = [
    "SPEC_FORMATS",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Human",
    "Message",
    "ModelStatus",
    "OllamaModel",
    "OpenAIModel",
    "PendingRequest",
    "RemoteModel",
    "ReplyMode",
    "Scripted",
    "check_models",
    "model",
]

SPEC_FORMATS = (
    "rules",
    "human",
    "openai:MODEL",
    "openai:MODEL@http://HOST:PORT/v1",
    "ollama:MODEL",
    "replay:FILE",
)
SERVER_MODELS: dict[str, Callable[..., RemoteModel]] = {
    "openai": OpenAIModel,
    "ollama": OllamaModel,
}


def model(spec: ChatModel | str, **options: Any) -> ChatModel:
    """The model that a specification names: one of ``FORMS``; ``ollama`` takes an address after "@" too.

    A model is itself. ``options`` go to the model's class: ``base_url`` for ``openai`` and ``ollama``. Raises
    UnknownModelError for a specification that is none and for a missing key, RunFileError if ``replay``
    cannot read its file.
    """
    if not isinstance(spec, str):
        if not hasattr(spec, "complete"):
            raise UnknownModelError(
                f"{spec!r} is no model", hint=f"give one of {', '.join(SPEC_FORMATS)}"
            )
        return spec
    kind, _, rest = spec.strip().partition(":")
    if kind in ("rules", "human") and not rest:
        return RulesModel(**options) if kind == "rules" else shared_human(**options)
    name, _, address = re.sub("@(?=https?://)", "\n", rest, count=1).partition("\n")
    if kind in SERVER_MODELS and name:
        return SERVER_MODELS[kind](name, **options | ({"base_url": address} if address else {}))
    raise UnknownModelError(
        f"no model named {mask_url(spec)!r}", hint=f"write it as one of {', '.join(SPEC_FORMATS)}"
    )


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Whether one kind of model can be used here and now, in words without any key."""

    kind: str
    """The first word of its specification: "rules", "human", "openai", "ollama" or "replay"."""
    is_usable: bool
    detail: str
    """One line: where, or why not and what to do."""
    models: tuple[str, ...] = ()
    """What the server lists, sorted."""


def check_models(timeout_s: float = 1.0) -> tuple[ModelStatus, ...]:
    """The state of each kind of model; waits up to ``timeout_s`` for the list of each server."""
    servers = []
    for kind, make in SERVER_MODELS.items():
        try:
            server = make("")
            models = server.list_models(timeout_s)
        except ModelError as error:
            why = f"{error.message}; {error.hint}" if error.hint else error.message
            servers.append(ModelStatus(kind, False, why))
        else:
            what = f"has {len(models)} models" if models else "answers, but has no models"
            servers.append(ModelStatus(kind, bool(models), f"{server.url} {what}", models))
    return (
        ModelStatus("rules", True, "needs no key and no network"),
        ModelStatus("human", True, "you answer the prompts, in a notebook"),
        *servers,
        ModelStatus("replay", True, "needs a run file, as in replay:FILE"),
    )


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
