"""The seam between kgwb and language models: one request, one reply, one method."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from kgwb.kg.base import Graph

ReplyMode = Literal["schema", "json", "prompt", "none"]
"""How a reply's form was enforced: native JSON schema, JSON mode, the prompt alone, or not at all."""
ReplyData = dict[str, Any]
"""A reply as JSON data."""
Rule = Callable[..., ReplyData]
"""Answers a prompt without a language model: returns the reply as JSON data.

It takes by name what it needs of the prompt's variables, and ``kg`` (the Graph or None) and
``embeddings``.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is asked. Hosted models use ``messages``; ``rules`` uses ``task`` and ``variables``."""

    task: str
    """Name of the agent that asks, e.g. "chatty_kg/qir"."""
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply; None asks for free text."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """What the prompt was filled with, as JSON data."""
    temperature: float = 0.0
    seed: int | None = 7
    max_output_tokens: int = 2048
    timeout_s: float = 60.0
    rule: Rule | None = field(default=None, compare=False)
    """What the model ``rules`` answers with; None if the system has no rule for this prompt."""

    def recorded_content(self) -> dict[str, Any]:
        """What decides whether a recorded reply may be used again, besides model and repeat number."""
        return {
            "messages": [[message.role, message.content] for message in self.messages],
            "schema": self.schema,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_output_tokens": self.max_output_tokens,
        }


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model answered, with what it cost."""

    text: str
    mode: ReplyMode = "none"
    model: str = ""
    """As the server names it."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    finish_reason: str = "stop"
    """"stop", "length", "content_filter", "refusal", ... in the server's words."""
    tries: int = 1
    """How often the adapter had to send the request (transient failures, or a mode the server refused)."""
    first_token_s: float | None = None
    """Seconds from sending the request that was answered until its first text came; None if not streamed."""


def parse_token_count(value: object) -> int:
    """The tokens that a server says it counted; 0 where that is no number of tokens."""
    return value if type(value) is int and 0 <= value < 2**53 else 0


class ChatModel(Protocol):
    """A language model, or whatever stands in for one."""

    name: str
    """The specification that makes it, e.g. "openai:gpt-4o"; it keys recorded calls and holds no secret."""
    remote: bool
    """Whether a call may take long and should run where a cancel can leave it behind."""

    def complete(
        self, request: ChatRequest, kg: Graph | None, cancel: threading.Event
    ) -> ChatReply:
        """Answer one request; ``kg`` is the run's graph, for models that look mentions up themselves.

        Raises a ModelError. Invalid text is not an error here: the caller validates.
        """
        ...
