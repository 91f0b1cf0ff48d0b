"""Clients of the library openai, whose requests a run records as those of any other client."""

from __future__ import annotations

from typing import TypeVar

from kgwb.errors import SettingError

Client = TypeVar("Client")


def wrap_openai(client: Client) -> Client:
    """Return an OpenAI or AsyncOpenAI client as it is: a run records its requests without a wrapper.

    Raises SettingError if it is no client of the library openai.
    """
    import openai

    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise SettingError(
            f"wrap_openai got a {type(client).__name__}, which is not a client of the library openai",
            hint="pass openai.OpenAI(...) or openai.AsyncOpenAI(...)",
        )
    return client
