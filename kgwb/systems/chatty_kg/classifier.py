"""Classifier agent: can a question be understood alone? (section 4.2.1, equation 2)"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kgwb.flow import Context
from kgwb.run import Run, agent
from kgwb.run.ask import ask
from kgwb.systems.chatty_kg.records import Classified


class ClassifierReply(BaseModel):
    """The label with what in the question decided it."""

    model_config = ConfigDict(extra="forbid")
    reason: str
    label: Literal["self-contained", "dependent"]


PRONOUN = re.compile(r"\b(he|she|him|his|hers?|it|its|they|them|theirs?)\b(?!')")
NAME = re.compile(r"(?<=[\s(])[\"'“«]?[^\W\d_a-z]|\d")


@agent("classifier", kind="model")
def classify(question: str, context: Context, run: Run) -> Classified:
    """Self-contained or dependent, from the question alone.

    ``fast`` does not ask a model where there is no doubt: nothing was said before, or a pronoun stands
    before any name.
    """
    if run.settings.fast and not context.turns:
        return Classified("self-contained", "nothing was said before")
    if run.settings.fast and (pronoun := unresolved(question)):
        return Classified("dependent", f"nothing before {pronoun!r} says what it stands for")
    reply = ask("chatty_kg/classifier", {"question": question}, ClassifierReply, run)
    return Classified(reply.label, reply.reason)


def unresolved(question: str) -> str:
    """The first pronoun, if no name (a capital after the first word, or a digit) stands before it."""
    pronoun = PRONOUN.search(question)
    name = NAME.search(question)
    return pronoun.group() if pronoun and not (name and name.start() < pronoun.start()) else ""
