"""RoboData on the graph of two dozen triples: replies of a scripted model in each state, and runs."""

from __future__ import annotations

from typing import Any

from small import run_of

from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import load_system

ROBODATA = load_system("robodata")
QUESTION = "Who directed Dune with Timothée Chalamet?"
PROVEN = [
    ["orgx:dune", "orgx:director", "orgx:denis"],
    ["orgx:dune", "orgx:starring", "orgx:timothee"],
]


def judges(next_state: str, thought: str = "so") -> dict[str, Any]:
    """A reply of a state that evaluates."""
    return {"thought": thought, "next": next_state}


def goes(next_state: str, *actions: Any, thought: str = "so") -> dict[str, Any]:
    """A reply of a state that uses tools."""
    return {**judges(next_state, thought), "actions": [*actions]}


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, **arguments}


def search(name: str = "Dune") -> dict[str, Any]:
    return use("search_entities", name=name)


def fetch(
    predicate: str, *nodes: str, to: bool = False, others: tuple[str, ...] = ()
) -> dict[str, Any]:
    tool = f"fetch_relationship_{'to' if to else 'from'}_node"
    return use(tool, nodes=[*nodes], predicate=predicate, others=[*others])


def produce(
    *support: Any, kind: str = "things", answers: Any = ("orgx:denis",), **more: Any
) -> dict[str, Any]:
    sentence = {"text": "Denis Villeneuve directed Dune.", "support": [*support]}
    reply = {
        "thought": "so",
        "sentences": [sentence],
        "kind": kind,
        "answers": [*answers],
        "missing": "",
    }
    return {**reply, **more}


FETCHED = goes(
    "EVAL_LOCAL", fetch("orgx:director", "orgx:dune"), fetch("orgx:starring", "orgx:dune")
)


def script(**replies: Any) -> dict[str, Any]:
    """What is said in each state; ``replies`` by the name of the prompt."""
    usual: dict[str, Any] = {
        "remote": [
            goes("REMOTE", search()),
            goes("EVAL_REMOTE", use("get_entity_info", entity="orgx:dune")),
        ],
        "eval_remote": judges("UPDATE"),
        "update": FETCHED,
        "local": goes("EVAL_LOCAL", use("get_node", node="orgx:dune")),
        "eval_local": judges("PRODUCE"),
        "produce": produce(*PROVEN),
        "assessment": {"strategy": "It searches, then fetches."},
        "observation": {"judgement": "sound", "advice": "Fetch both triples."},
    }
    return {f"robodata/{name}": reply for name, reply in (usual | replies).items()}


def robodata(model: Any, kg: Graph | None = None, **settings: Any) -> Run:
    """A run of RoboData, not executed yet."""
    return run_of(ROBODATA, QUESTION, model, kg=kg, settings=ROBODATA.settings(**settings))


def answered(kg: Graph | None = None, settings: Any = (), **replies: Any) -> tuple[Run, Scripted]:
    """A run that went to its end, and the model it asked."""
    model = Scripted(script(**replies))
    return robodata(model, kg, **dict(settings)).go(), model
