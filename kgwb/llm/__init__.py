"""Language models and their replacements: ``model("openai:gpt-4o")``, ``model("rules")``, and others.

Importing this imports neither openai nor ollama. Making a model of that kind does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kgwb.errors import ModelError, UnknownModelError
from kgwb.llm.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    FunctionModel,
    Human,
    Message,
    PendingRequest,
    ReplyMode,
    Scripted,
    shared_human,
)
from kgwb.llm.remote import RemoteModel
from kgwb.llm.rules import RulesModel
from kgwb.llm.servers import OllamaModel, OpenAIModel
from kgwb.records import frozen
from kgwb.text import mask_url

__all__ = [
    "SPEC_FORMATS",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "FunctionModel",
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
LOCAL_MODELS: dict[str, Callable[..., ChatModel]] = {"rules": RulesModel, "human": shared_human}
SERVER_MODELS: dict[str, Callable[..., RemoteModel]] = {
    "openai": OpenAIModel,
    "ollama": OllamaModel,
}


def model(spec: Any, **options: Any) -> ChatModel:
    """Return the model that a specification names: one of SPEC_FORMATS.

    ``ollama`` takes an address after "@" as well. A specification that is a model is returned as it
    is. A function from messages to a text is a model. So is a client of the library openai with the
    name of a model: ``model(client, name="gpt-4o")``. ``options`` go to the class of the model:
    ``base_url`` for ``openai`` and ``ollama``, ``embeddings`` for ``rules``. ``replay`` is opened by
    ``kgwb.model``, and not here.

    Raises UnknownModelError if there is no such model, or the key or the address that it needs is
    missing or wrong.
    """
    if not isinstance(spec, str):
        return _wrap_model(spec, **options)

    kind, _, rest = spec.strip().partition(":")
    if kind in LOCAL_MODELS and not rest:
        return LOCAL_MODELS[kind](**options)
    # The name of a model may hold "@" too
    name, *address = re.split("@(?=https?://)", rest, maxsplit=1)
    if kind in SERVER_MODELS and name:
        if address:
            options["base_url"] = address[0]
        return SERVER_MODELS[kind](name, **options)
    masked = mask_url(spec)
    formats = ", ".join(SPEC_FORMATS)
    raise UnknownModelError(
        f"kgwb has no model named {masked!r}", hint=f"write the model as one of {formats}"
    )


def _wrap_model(given: Any, *, name: str = "") -> ChatModel:
    """Return the model that a value is: a model as it is, an openai client, or a function.

    A client has ``chat`` and ``base_url``, and needs the ``name`` of a model. Raises
    UnknownModelError for any other value, and for a client without a name.
    """
    if hasattr(given, "complete"):
        wrapped: ChatModel = given
        return wrapped
    if hasattr(given, "chat") and hasattr(given, "base_url"):
        if not name:
            hint = 'name the model: kgwb.model(client, name="gpt-4o")'
            raise UnknownModelError(
                f"no model was named for the client {type(given).__name__}",
                hint=hint,
            )
        return OpenAIModel(name, client=given)
    if callable(given):
        return FunctionModel(given, name=name)
    formats = ", ".join(SPEC_FORMATS)
    raise UnknownModelError(f"{given!r} cannot be used as a model", hint=f"give one of {formats}")


@frozen
class ModelStatus:
    """Whether one kind of model can be used here and now. Its texts hold no key."""

    kind: str
    """The first word of its specification: "rules", "human", "openai", "ollama" or "replay"."""
    is_usable: bool
    detail: str
    """One line: its address, or why it cannot be used and what to do."""
    models: tuple[str, ...] = ()
    """Names of the models that the server lists, sorted."""


def check_models(timeout_s: float = 1.0) -> tuple[ModelStatus, ...]:
    """Return a status for each kind of model: whether it can be used, and which models it has.

    The order is rules, human, the servers, replay. Servers are asked for their models; each may
    take up to 1.5 times ``timeout_s``. A server without models is not usable; one that fails has
    the error in ``detail``, and nothing is raised. The other kinds are always usable.
    """
    servers = []
    for kind, make_model in SERVER_MODELS.items():
        try:
            server = make_model("")
            models = server.list_models(timeout_s)
        except ModelError as error:
            detail = error.message
            if error.hint:
                detail = f"{error.message}; {error.hint}"
            servers.append(ModelStatus(kind, False, detail))
            continue
        detail = f"{server.url} answers, but has no models"
        if models:
            detail = f"{server.url} has {len(models)} models"
        servers.append(ModelStatus(kind, bool(models), detail, models))
    return (
        ModelStatus("rules", True, "needs no key and no network"),
        ModelStatus("human", True, "you answer the prompts, in a notebook"),
        *servers,
        ModelStatus("replay", True, "needs a run file, as in replay:FILE"),
    )
