"""Which kinds of models can be used here and now, for ``kgwb doctor``."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kgwb.errors import ModelError
from kgwb.llm.ollama import OllamaModel
from kgwb.llm.openai import OpenAIModel
from kgwb.llm.remote import RemoteModel


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Whether one kind of model can be used, in words without any key."""

    kind: str
    """The first word of its specification: "rules", "human", "openai", "ollama" or "replay"."""
    usable: bool
    detail: str
    """One line: where, or why not and what to do."""
    models: tuple[str, ...] = ()
    """What the server lists, sorted."""


def available(timeout_s: float = 1.0) -> tuple[ModelStatus, ...]:
    """The state of each kind of model; waits up to ``timeout_s`` for the list of each server."""
    return (
        ModelStatus("rules", True, "needs no key and no network"),
        ModelStatus("human", True, "you answer the prompts, in a notebook"),
        _server_status("openai", OpenAIModel, timeout_s),
        _server_status("ollama", OllamaModel, timeout_s),
        ModelStatus("replay", True, "needs a run file, as in replay:FILE"),
    )


def _server_status(kind: str, adapter: type[OpenAIModel | OllamaModel], timeout_s: float) -> ModelStatus:
    try:
        server = adapter("")
        models = _listed_in_time(server, timeout_s)
    except ModelError as error:
        return ModelStatus(kind, False, f"{error.message}; {error.hint}" if error.hint else error.message)
    if models is None:
        return ModelStatus(kind, False, f"no reply from {server.url} within {timeout_s:g} s")
    if not models:
        return ModelStatus(kind, False, f"{server.url} answers, but has no models")
    return ModelStatus(kind, True, f"{server.url} has {len(models)} models", models)


def _listed_in_time(server: RemoteModel, timeout_s: float) -> tuple[str, ...] | None:
    """None if not: looking up a host's name may take longer, and no timeout of a socket sees that."""
    outcome: list[tuple[str, ...] | ModelError] = []

    def ask() -> None:
        try:
            outcome.append(server.models(timeout_s))
        except ModelError as error:
            outcome.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout_s * 1.5)
    if not outcome:
        return None
    if isinstance(outcome[0], ModelError):
        raise outcome[0]
    return outcome[0]
