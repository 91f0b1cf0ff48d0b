#!/usr/bin/env bash
# LangGraph, rdflib: what an agent found in a graph is plain text once its state was saved.
#
# Expected. A checkpoint is the state of a LangGraph graph at a step; with a checkpointer an agent
# can stop for a person's approval and go on from where it was. Sets and Decimals come back from a
# checkpoint as they were. So an agent that was stopped answers as one that was not.
#
# Seen (langgraph 1.2.24, langgraph-checkpoint 4.3.2, rdflib 7.6.0). IRIs, literals and blank nodes
# of rdflib are subclasses of str, and each is written as a str: datatypes and languages are gone,
# without a warning. A tuple, such as a row, inside a list is a list. It happens where the state is
# read back: an agent that runs through in one go has the terms, and the same agent stopped before
# its second step has texts. There numbers are compared as texts, "5" being greater than "39", and
# an IRI bound to a variable of a query finds nothing.
#
#   second step             run through                    after a stop
#   types                   URIRef, Literal, tuple         str, str, list
#   larger than 5           39                             none
#   facts of the IRI        2                              0
#   language of the label   en                             none
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    langgraph==1.2.24 langgraph-checkpoint==4.3.2 rdflib==7.6.0

venv/bin/python - <<'PY'
import warnings
from importlib.metadata import version
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from rdflib import Graph, Literal, URIRef

warnings.simplefilter("error", UserWarning)
for package in ("langgraph", "langgraph-checkpoint", "rdflib"):
    print(package, version(package))
GRAPH = Graph().parse(
    data='@prefix : <http://example.org/> . :Rome :label "Rome"@en ; :districts 39 .', format="turtle"
)
ROME = URIRef("http://example.org/Rome")


class State(TypedDict):
    city: str
    numbers: list
    labels: list
    rows: list
    seen: dict


def find(state: State) -> dict:
    return {
        "city": next(GRAPH.subjects(URIRef("http://example.org/districts"))),
        "numbers": [Literal(5), *GRAPH.objects(ROME, URIRef("http://example.org/districts"))],
        "labels": list(GRAPH.objects(ROME, URIRef("http://example.org/label"))),
        "rows": [(1, 2)],
    }


def answer(state: State) -> dict:
    numbers = state["numbers"]
    bound = GRAPH.query("SELECT ?p ?o { ?s ?p ?o }", initBindings={"s": state["city"]})
    return {
        "seen": {
            "types": [type(x).__name__ for x in (state["city"], numbers[0], state["rows"][0])],
            "larger than 5": [str(number) for number in numbers if number > numbers[0]],
            "facts of the IRI": len(bound),
            "language": [getattr(label, "language", None) for label in state["labels"]],
        }
    }


def agent(stop: bool) -> dict:
    graph = StateGraph(State)
    graph.add_node("find", find)
    graph.add_node("answer", answer)
    graph.add_edge(START, "find")
    graph.add_edge("find", "answer")
    graph.add_edge("answer", END)
    app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["answer"] if stop else [])
    thread = {"configurable": {"thread_id": "1"}}
    state = app.invoke({"rows": []}, thread)
    return (app.invoke(None, thread) if stop else state)["seen"]


through, stopped = agent(stop=False), agent(stop=True)
for name in through:
    print(f"{name:<17} run through {through[name]} | after a stop {stopped[name]}")
if through != {
    "types": ["URIRef", "Literal", "tuple"],
    "larger than 5": ["39"],
    "facts of the IRI": 2,
    "language": ["en"],
} or stopped != {
    "types": ["str", "str", "list"],
    "larger than 5": [],
    "facts of the IRI": 0,
    "language": [None],
}:
    raise SystemExit("the behaviour has changed")
PY
