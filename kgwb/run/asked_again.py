"""Asking a recorded model call again: with other messages, of other models, several times."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel, ChatRequest, Message
from kgwb.records import JsonObject, Record
from kgwb.run.calls import Call
from kgwb.text import pluralize

DEFAULT_TEMPERATURE = 1.0
"""For a call of a trace that does not say: what most servers take then."""
DEFAULT_MAX_TOKENS = 2048
LIMIT_OPTIONS = ("max_output_tokens", "max_completion_tokens", "max_tokens")
"""Names of the limit of tokens in the two protocols of OpenAI."""
ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "ai": "assistant"}
"""The role under which a message is sent, by its role in the record; all others are the user's."""


@dataclass(frozen=True, slots=True)
class NewReply(Record):
    """A reply to a call that was asked again."""

    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NewReplies(Record):
    """The replies to a call that was asked again."""

    replies: tuple[NewReply, ...]
    before: str
    """The recorded reply."""

    def __str__(self) -> str:
        return pluralize(len(self.replies), "new reply")


def ask_call_again(
    call: Call,
    models: Sequence[ChatModel],
    messages: Sequence[Message] | None,
    times: int,
    kg: Graph | None,
) -> NewReplies:
    """Ask each model a recorded model call again, ``times`` times, and return the new replies.

    They come model by model. ``messages`` are sent in place of the recorded ones; None keeps these.
    The other parameters are those of the call, but each time after the first has the next seed if
    the call has one. Nothing is recorded. Raises the ModelErrors of the models.
    """
    replies = []
    for model in models:
        for number in range(times):
            request = _request_of(call, messages, number)
            reply = model.complete(request, kg, threading.Event())
            replies.append(
                NewReply(
                    reply.text,
                    model.name,
                    reply.prompt_tokens,
                    reply.completion_tokens,
                    reply.seconds,
                )
            )
    return NewReplies(tuple(replies), call.result.text)


def _request_of(call: Call, messages: Sequence[Message] | None, number: int) -> ChatRequest:
    """Return the request of a recorded model call; ``number`` is added to its seed if it has one.

    ``messages`` replace the recorded ones unless they are None. A temperature or limit that was not
    recorded is DEFAULT_TEMPERATURE or DEFAULT_MAX_TOKENS.
    """
    if messages is None:
        messages = recorded_messages(call)
    content: Any = call.request["content"]
    if "options" in content:
        content = _named_as_recorded(content["options"])
    temperature = content["temperature"]
    if temperature is None:
        temperature = DEFAULT_TEMPERATURE
    seed = content["seed"]
    if seed is not None:
        seed += number
    return ChatRequest(
        task=call.request["task"],
        messages=tuple(messages),
        schema=content["schema"],
        temperature=temperature,
        seed=seed,
        max_output_tokens=content["max_output_tokens"] or DEFAULT_MAX_TOKENS,
    )


def _named_as_recorded(options: JsonObject) -> JsonObject:
    """Return the options of a wrapped client under the names that requests of kgwb have.

    An option that was not given is None. Tools and a form of the reply are left out.
    """
    limits = [options.get(name) for name in LIMIT_OPTIONS]
    return {
        "schema": None,
        "temperature": options.get("temperature"),
        "seed": options.get("seed"),
        "max_output_tokens": next(filter(None, limits), None),
    }


def recorded_messages(call: Call) -> tuple[Message, ...]:
    """Return the messages of a recorded model call in order, with roles that can be sent again.

    A role that is not in ROLES becomes "user".
    """
    messages = []
    for role, text in call.request["content"]["messages"]:
        sent_role: Any = ROLES.get(role, "user")
        messages.append(Message(sent_role, text))
    return tuple(messages)
