"""RAGonite on the graph of two dozen triples: replies of a scripted model, and runs with them."""

from __future__ import annotations

from typing import Any

from small import run_of

from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.systems import load_system

RAGONITE = load_system("ragonite")
QUESTION = "Which films did Denis Villeneuve direct?"
DIRECTED = (
    "SELECT f.id, f.name FROM film f JOIN thing p ON p.id = f.director"
    " WHERE p.name LIKE 'denis%' ORDER BY f.id"
)


def use(tool: str, **arguments: str) -> dict[str, Any]:
    """A reply that uses a tool."""
    return {"thought": "so", "action": {"tool": tool, **arguments}}


def sql(query: str = DIRECTED) -> dict[str, Any]:
    return use("sql", query=query)


def passages(question: str = QUESTION) -> dict[str, Any]:
    return use("passages", question=question)


FINISH = use("finish")


def cited(*values: tuple[str, int], text: str = "These [1].", kind: str = "list") -> dict[str, Any]:
    """A reply with the answer; each value is given with the number of its source."""
    return {
        "reason": "the sources say so",
        "kind": kind,
        "answer": text,
        "values": [{"value": value, "sources": [source]} for value, source in values],
    }


ARRIVAL = cited(("arrival", 1), ("dune", 1), ("sicario", 1))


def ragonite(model: Any, question: str = QUESTION, **options: Any) -> Run:
    """A run of RAGonite, not executed yet."""
    return run_of(RAGONITE, question, model, **options)


def script(*uses: dict[str, Any], answer: Any = ARRIVAL) -> dict[str, Any]:
    """The replies of a run: uses of tools in order, then the answer."""
    return {
        "ragonite/tool_selector": list(uses or (sql(), passages(), FINISH)),
        "ragonite/answerer": answer,
    }


def answered(*uses: dict[str, Any], answer: Any = ARRIVAL, **options: Any) -> tuple[Run, Scripted]:
    """A finished run, and the model that it asked."""
    model = Scripted(script(*uses, answer=answer))
    return ragonite(model, **options).go(), model
