"""Which kinds of models can be used here and now, for ``kgwb doctor``."""

from __future__ import annotations

from dataclasses import dataclass

from kgwb.errors import ModelError
from kgwb.llm.ollama import OllamaModel
from kgwb.llm.openai import OpenAIModel


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
        models = server.models(timeout_s)
    except ModelError as error:
        return ModelStatus(kind, False, f"{error.message}; {error.hint}" if error.hint else error.message)
    if not models:
        return ModelStatus(kind, False, f"{server.url} answers, but has no models")
    return ModelStatus(kind, True, f"{server.url} has {len(models)} models", models)
