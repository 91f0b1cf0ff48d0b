"""How Triad's agents ask the model: with whose guidelines, and what a further attempt changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel

from kgwb.build import Check, JsonObject, Run, ask_model
from kgwb.systems.triad.settings import TriadSettings

R = TypeVar("R", bound=BaseModel)
PUBLISHED_PROMPTS: Mapping[str, str] = {
    "triad/triplets": "triad/triplets_published",
    "triad/template": "triad/template_published",
    "triad/answer_type": "triad/answer_type_published",
    "triad/entity_choice": "triad/entity_choice_published",
    "triad/relation_choice": "triad/relation_choice_published",
    "triad/query_choice": "triad/query_choice_published",
    "triad/own_fact": "triad/own_fact_published",
    "triad/own_truth": "triad/own_truth_published",
}
"""For each prompt, the one that has the text of the paper's appendix B, C or D."""


def prompt_of_guidelines(prompt: str, run: Run) -> str:
    """Return the name of a prompt, or of its version in PUBLISHED_PROMPTS with ``guidelines`` "published".

    Raises KeyError if a prompt without such a version is asked for with this setting.
    """
    if TriadSettings.of_run(run).guidelines == "published":
        return PUBLISHED_PROMPTS[prompt]
    return prompt


TOLD_PROMPTS = (
    "triad/triplets",
    "triad/entity_choice",
    "triad/relation_choice",
    "triad/template",
    "triad/written_query",
)
"""The prompts that have a place for why earlier attempts found no query."""


def ask_in_attempt(
    prompt: str,
    variables: JsonObject,
    failed: Sequence[str],
    reply_class: type[R],
    check: Check[R],
    run: Run,
) -> R:
    """Ask the model as a part of an attempt to find a query, and return its valid reply.

    ``failed`` says why each earlier attempt found no query. With the setting ``retry_feedback`` the
    model is told, if the prompt is one of TOLD_PROMPTS. A model that is not told gets the same
    request as another sample, numbered by the attempts so far. Raises what ``ask_model`` raises.
    """
    told: list[str] = []
    if prompt in TOLD_PROMPTS:
        if TriadSettings.of_run(run).retry_feedback:
            told = list(failed)
        variables = {**variables, "failed": told}
    sample = 0 if told else len(failed)
    return ask_model(prompt, variables, reply_class, run, checks=(check,), sample=sample)
