"""Classifier agent: can a question be understood alone? (section 4.2.1, equation 2)"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from kgwb.flow import Classified, Context
from kgwb.run import Run, agent
from kgwb.structured import ask


class ClassifierReply(BaseModel):
    """The label with what in the question decided it."""

    model_config = ConfigDict(extra="forbid")
    reason: str
    label: Literal["self-contained", "dependent"]


@agent("classifier")
def classify(question: str, context: Context, run: Run) -> Classified:
    """Self-contained or dependent, from the question alone; ``fast`` does not ask while there is no history."""
    if run.settings.fast and not context.turns:
        return Classified("self-contained", "nothing was said before")
    reply = ask("chatty_kg/classifier", {"question": question}, ClassifierReply, run)
    return Classified(reply.label, reply.reason)
