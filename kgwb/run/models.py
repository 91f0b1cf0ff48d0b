"""Opening models by their specification."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from kgwb import llm
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest
from kgwb.run.replay import Replay

Models = Mapping[str, ChatModel | str] | ChatModel | str | None
"""A model or its specification for all agents, or by the name of an agent or a role; "" is the default."""


def open_model(spec: Any, **options: Any) -> ChatModel:
    """Return the model of a specification: "rules", "openai:gpt-4o", "replay:FILE", ...

    A model is returned as it is. A function from messages to a text is a model, and so is a client
    of the library openai with the name of a model (``name=``). "replay:FILE" is a model that
    answers with the replies of a run file; ``kgwb.llm.model`` describes the others and the
    ``options``.

    Raises UnknownModelError for an unknown specification and for a missing key, and RunFileError
    if a run file cannot be read.
    """
    if isinstance(spec, str):
        kind, _, path = spec.strip().partition(":")
        if kind == "replay" and path:
            return Replay.from_file(path)
    return llm.model(spec, **options)


def open_models(models: Models) -> dict[str, ChatModel]:
    """Return the models by agent name; a model for all agents is the default, under "".

    A model that is None is left out. Raises what ``open_model`` raises. Models for several agents
    are given by the name of the agent or role. For None, no model is returned.
    """
    if models is None:
        return {}
    if not isinstance(models, Mapping):
        models = {"": models}
    opened = {}
    for agent_name, model in models.items():
        if model is not None:
            opened[agent_name] = open_model(model)
    return opened


class StandIn:
    """A model that goes by another name, so that what is recorded under that name is found."""

    def __init__(self, model: ChatModel, name: str) -> None:
        self.model = model
        self.name = name
        self.remote = model.remote

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the reply of the model."""
        return self.model.complete(request, kg, cancel)
