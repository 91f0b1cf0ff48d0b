"""The replies of a model to the conversations of RAGonite's section 4, for ``--model scripted:FILE``.

Each tool that is offered is used once, SPARQL with the gold query. Only what that found is answered.
"""

from __future__ import annotations

from typing import Any

from kgwb.bench import load_questions
from kgwb.kg import sample_path
from kgwb.llm import ChatRequest

ROUNDS = 3
"""How often a tool may be used; the setting ``rounds``."""
QUESTIONS = {
    question.question: question
    for question in load_questions(sample_path("films").with_suffix(".conversations.jsonl"))
}


def reply(request: ChatRequest) -> dict[str, Any]:
    """Return the use of a tool, or the answer."""
    question = QUESTIONS[request.variables["question"]]
    if request.task.startswith("ragonite/answerer"):
        return answer(request)
    uses = {
        "sparql": {"tool": "sparql", "query": question.sparql},
        "sql": {"tool": "sql", "query": "SELECT id, name FROM film"},
        "passages": {"tool": "passages", "question": question.standalone},
    }
    offered = [use for name, use in uses.items() if name in request.variables["tools"]]
    done = ROUNDS - request.variables["left"]
    action = offered[done] if done < len(offered) else {"tool": "finish"}
    return {"thought": "", "action": action}


def answer(request: ChatRequest) -> dict[str, Any]:
    """Return the gold answers if their query was executed, else no value."""
    question = QUESTIONS[request.variables["question"]]
    values = []
    if "[1] sparql" in request.variables["sources"]:
        for gold in question.answers or ():
            values.append({"value": gold, "sources": [1]})
    kind = "boolean" if "ASK" in (question.sparql or "") else "list"
    return {"reason": "", "kind": kind, "answer": "These.", "values": values}


SCRIPT = reply
