"""RoboData on the graph of two dozen triples: replies of a scripted model in each state, and runs."""

from __future__ import annotations

import re
from typing import Any

from nasty_graphs import twins
from rdflib import BNode, URIRef
from small import iri, requests_to, run_of

from kgwb.kg import Graph
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.run.systems import load_system
from kgwb.systems.robodata.records import LocalGraph

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


CALLS = {"remote": 2, "eval_remote": 1, "update": 1, "eval_local": 1, "produce": 1}


def variables_of(model: Scripted, prompt: str, name: str) -> list[str]:
    """The values of a variable in the requests with a prompt, in order."""
    return [str(request.variables[name]) for request in requests_to(model, prompt)]


DIRECTED = (iri("dune"), iri("director"), iri("denis"))


STARRING = (iri("dune"), iri("starring"), iri("timothee"))


KG = twins()


def whole_graph() -> LocalGraph:
    """The graph of twins as a local graph, without blank nodes, which no tool fetches."""
    triples = []
    for triple in KG.select("SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o").rows:
        if not any(isinstance(term, BNode) for term in triple):
            triples.append(triple)
    iris = sorted({term for triple in triples for term in triple if isinstance(term, URIRef)})
    return LocalGraph().with_names(KG.names(iris).items()).with_triples([], triples)


LOCAL = whole_graph()


SHOWN = LOCAL.format_for_prompt(1_000_000).splitlines()


TRIPLES = SHOWN[SHOWN.index("Triples") + 1 :]


IDS = sorted({id_ for line in TRIPLES for id_ in line.split(" | ")[::2]})


def as_written(shown_id: str) -> str:
    """An id as the model is told to write it: a literal without its quotes."""
    return re.sub(r'^"(.*)"((?:@|\^\^)\S+)?$', r"\1\2", shown_id)
