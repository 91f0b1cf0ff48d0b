"""The fallback: what the model knows by itself, where the graph gave no answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from rdflib import Literal

from kgwb.flow import Answer, Value
from kgwb.run import Run, agent
from kgwb.run.ask import ask


class KnowledgeReply(BaseModel):
    """The answers from memory, none if it does not know."""

    model_config = ConfigDict(extra="forbid")
    answers: list[str]


@agent("own_knowledge", kind="model")
def remember(question: str, reason: str, run: Run) -> Answer:
    """An answer without the graph, marked as such; ``reason`` is why the graph gave none.

    Asked only by a setting, and whenever the walk ended without an answer: nobody looks at a gold answer.
    """
    reply = ask("dog/own_knowledge", {"question": question}, KnowledgeReply, run)
    names = dict.fromkeys(name.strip() for name in reply.answers if name.strip())
    values = tuple(Value(Literal(name), name) for name in names)
    return Answer("list", values, reason=reason, ungrounded=bool(values))
