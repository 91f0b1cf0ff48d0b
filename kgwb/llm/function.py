"""A plain function as a model: from the messages of a request to the text of the reply."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from kgwb.errors import ModelError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest

ChatFunction = Callable[[Sequence[dict[str, str]]], str]
"""Takes messages of the form {"role": ..., "content": ...}, and returns the text of the reply."""


class FunctionModel(ChatModel):
    """A model that is a function of a person: a request is passed on as messages."""

    remote = True
    """It may take long, so it runs on a thread of its own."""

    def __init__(self, function: ChatFunction, *, name: str = "") -> None:
        """Wrap a function. ``name`` is part of the key of its calls; by default the function's."""
        own_name = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = name or f"function:{own_name}"
        self._function = function

    def __repr__(self) -> str:
        return f"FunctionModel({self.name!r})"

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return what the function replies to the messages.

        The messages are given as a list of dictionaries with "role" and "content". ``kg``,
        ``cancel`` and the schema are not used.

        Raises ModelError if it returns no text, and what the function raises.
        """
        started = time.perf_counter()
        messages = []
        for message in request.messages:
            messages.append({"role": message.role, "content": message.content})
        text = self._function(messages)
        if not isinstance(text, str):
            raise ModelError(
                f"the model {self.name} returned {type(text).__name__}, not a text",
                hint="correct the function of this model: it must return the text of the reply",
            )
        return ChatReply(text, model=self.name, seconds=time.perf_counter() - started)
