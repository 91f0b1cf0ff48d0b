"""The messages of a model call as one text, in which a person edits them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgwb.errors import PromptError
from kgwb.llm.base import Message

MESSAGE_LINE = re.compile(r"^\[(system|user|assistant|developer|tool)\]\s*$", re.MULTILINE)


def messages_to_text(messages: Iterable[Message]) -> str:
    """Return messages as text: each below a line with its role in brackets."""
    text = "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)
    return f"{text}\n"


def messages_from_text(text: str) -> tuple[Message, ...]:
    """Return the messages that ``messages_to_text`` wrote, or that a person changed.

    Empty lines around a message's content are removed. A message may be empty.

    Raises PromptError if the text does not begin with a role, or has no message.
    """
    before, *sections = MESSAGE_LINE.split(text.replace("\r\n", "\n"))
    if before.strip() or not sections:
        raise PromptError(
            "the edited messages do not begin with a role: each stands below a line with its role",
            hint="begin with a line [system], [user] or [assistant]",
        )
    messages = []
    for role, content in zip(sections[::2], sections[1::2], strict=True):
        messages.append(Message(role, content.strip("\n")))  # type: ignore[arg-type]
    return tuple(messages)
