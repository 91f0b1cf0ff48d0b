"""How Triad's agents ask the model: with whose guidelines, and what a further attempt changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from kgwb.records import JsonObject
from kgwb.run import Run
from kgwb.run.ask import Check, ask
from kgwb.systems.triad.settings import TriadSettings

R = TypeVar("R", bound=BaseModel)
PUBLISHED = "_published"
"""The end of the name of a prompt that has the text of the paper's appendix."""


def prompt_of_guidelines(prompt: str, run: Run) -> str:
    """Return the name of a prompt with the guidelines that the setting ``guidelines`` names."""
    if TriadSettings.of_run(run).guidelines == "published":
        return prompt + PUBLISHED
    return prompt


def ask_in_attempt(
    prompt: str,
    variables: JsonObject,
    failed: Sequence[str] | None,
    reply_class: type[R],
    check: Check[R],
    run: Run,
) -> R:
    """Ask the model as a part of an attempt to find a query, and return its valid reply.

    ``failed`` says why each earlier attempt found no query. With the setting ``retry_feedback`` the
    model is told. The prompts of the appendix have no place for it: as published it is asked the
    same again, with another seed. None is for an agent that does not know of earlier attempts.
    """
    if failed is None:
        return ask(prompt, variables, reply_class, run, checks=(check,))
    told: list[str] = []
    if not prompt.endswith(PUBLISHED):
        if TriadSettings.of_run(run).retry_feedback:
            told = list(failed)
        variables = {**variables, "failed": told}
    sample = 0 if told else len(failed)
    return ask(prompt, variables, reply_class, run, checks=(check,), sample=sample)
