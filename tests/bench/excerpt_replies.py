"""The replies of a model to the excerpts of the papers' question sets, for ``--model scripted:FILE``.

It says what the rules of each system say, counts tokens, and has nothing to say to one question.
"""

from __future__ import annotations

import inspect
import json

from kgwb import open_kg
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import ChatReply, ChatRequest

KG = open_kg("films")
EMBEDDINGS = Embeddings("lexical")
NOT_ANSWERED = ("How long is Seven Samurai?", "who directed Parasite")
"""The questions to which the model has nothing to say, one in each excerpt."""


def reply(request: ChatRequest) -> ChatReply:
    """Return the reply of the rule as a language model's, with about four characters a token."""
    sent = sum(len(message.content) for message in request.messages)
    text = write(request)
    return ChatReply(
        text, model="script", prompt_tokens=sent // 4, completion_tokens=1 + len(text) // 4
    )


def write(request: ChatRequest) -> str:
    """Return the text of the reply."""
    asked = " ".join(message.content for message in request.messages)
    is_answered = not any(question in asked for question in NOT_ANSWERED)
    if request.rule is None or not is_answered:
        return "I cannot say."
    available = {**request.variables, "kg": KG, "embeddings": EMBEDDINGS}
    names = inspect.signature(request.rule).parameters
    return json.dumps(request.rule(**{name: available[name] for name in names}))


SCRIPT = reply
