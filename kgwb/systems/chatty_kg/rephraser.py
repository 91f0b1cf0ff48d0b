"""Rephraser agent: a question that depends on the dialogue, made self-contained (section 4.2.2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kgwb.flow import Context
from kgwb.run import Run, agent
from kgwb.run.ask import Check, ask
from kgwb.systems.chatty_kg.records import Rephrased


class RephraserReply(BaseModel):
    """The standalone question."""

    model_config = ConfigDict(extra="forbid")
    question: str


@agent("rephraser", kind="model")
def rephrase(question: str, context: Context, run: Run) -> Rephrased:
    """The question with pronouns and omissions resolved from the dialogue, and nothing added."""
    dialogue = [
        {
            "question": turn.standalone or turn.question,
            "answers": list(turn.answers),
            "about": list(turn.entities),
        }
        for turn in context.turns
    ]
    not_empty: Check[RephraserReply] = Check(
        "not empty", lambda r: "" if r.question.strip() else "the question is empty"
    )
    variables = {"question": question, "dialogue": dialogue}
    reply = ask("chatty_kg/rephraser", variables, RephraserReply, run, checks=(not_empty,))
    return Rephrased(" ".join(reply.question.split()), question)
