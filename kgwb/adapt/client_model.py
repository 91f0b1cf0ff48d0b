"""A client of a language model, as the model that a run asks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgwb.adapt.replays import missing_calls_noted
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message
from kgwb.llm.notice import announce
from kgwb.llm.openai import OPENAI_URL
from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.calls import Call

TASK = "chat"
"""The task of every request of a client: it has no prompt."""
SendMessages = Callable[[Sequence[Message]], ChatReply]
"""Sends messages by the client with all else that the pipeline gave it, and returns the reply."""


class ClientModel(ChatModel):
    """Answers one request of a pipeline by the pipeline's own client."""

    remote = True

    def __init__(self, name: str, url: str, send: SendMessages) -> None:
        """``url`` is the address of the client's server; empty if it is not known."""
        self.name = name
        self.url = url
        self._send = send

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Return the client's reply to the messages of the request, which a person may have edited.

        If the client's server is on another machine, a notice first says what leaves this one.
        Raises what the client raises.
        """
        announce(self.name, self.url, kg)
        return self._send(request.messages)


def ask_client(
    run: Run,
    name: str,
    messages: Sequence[Message],
    options: JsonObject,
    send: SendMessages,
    *,
    url: str,
) -> Call:
    """Return the recorded call of a client, or make and record it.

    ``url`` is the address of its server; empty if it is not known. ``options`` are all the
    parameters that decide the reply besides the messages. Raises what ``send`` raises, and
    NotRecordedError in a replay that lacks the call.
    """
    request = ChatRequest(TASK, tuple(messages), options=options)
    with missing_calls_noted(run):
        call, _ = run.chat(request, ClientModel(name, url, send))
    return call


def url_of_openai_client(name: str) -> str:
    """Return the address in the name of a client of openai, "openai:MODEL@URL"; without one, OpenAI's own."""
    _, *address = re.split("@(?=https?://)", name, maxsplit=1)
    return address[0] if address else OPENAI_URL


def json_options(options: Mapping[str, Any]) -> JsonObject:
    """Return options of a client as JSON data. What has no JSON form is the name of its class.

    An object in memory, such as a callback, has no text that is the same the next time.
    """
    return {name: _json_value(value) for name, value in options.items()}


def _json_value(value: Any) -> Any:
    """Return a value of a request as JSON data that identifies it.

    A class with a JSON schema becomes that schema, an object of pydantic its fields, and another
    object the name of its type.
    """
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        return value.model_json_schema()
    if isinstance(value, Mapping):
        return json_options(value)
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return type(value).__qualname__
