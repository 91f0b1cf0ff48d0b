"""Recorded replies to prompts of lab 2: what a careful reader replies to a prompt that lacks something."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).with_name("prompt_replies.toml")


class RecordedReply(BaseModel):
    """A reply to a prompt, written by hand; ``prompt_replies.toml`` says how."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    lack: str = ""
    """The key of the text that says what the prompt lacks; empty for a prompt that lacks nothing."""
    of: str = ""
    """The field or the value that it lacks this for; empty if that is none."""
    question: str
    reply: str


@cache
def load_replies() -> tuple[RecordedReply, ...]:
    """Return the recorded replies in the order of their file."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["replies"]
    return tuple(RecordedReply(**row) for row in rows)


def find_reply(lack: str, of: str) -> RecordedReply:
    """Return the first recorded reply to a prompt that lacks ``lack`` for ``of``, a field or a value or "".

    Raises KeyError if there is none.
    """
    for recorded in load_replies():
        if (recorded.lack, recorded.of) == (lack, of):
            return recorded
    raise KeyError(lack, of)
