"""A ReAct program of dspy 3.4.1 with two tools: it finds a thing by its name, and asks a graph of rdflib."""

import os

import dspy
import rdflib

from kgwb import build  # added

graph = rdflib.Graph().parse(os.environ["FILMS"])
graph = build.wrap_rdflib(graph)  # added
lm = dspy.LM(
    "openai/scripted",
    api_base="http://localhost:11434/v1",
    api_key="none",
    cache=False,
    engine="litellm",
)
LABELLED = 'SELECT ?thing WHERE { ?thing rdfs:label "%s"@en }'


@build.agent  # added
def find_thing(name: str) -> list[str]:
    """Find the IRIs of things by their exact English name."""
    return [str(row.thing) for row in graph.query(LABELLED % name)]


@build.agent  # added
def sparql(query: str) -> list[str]:
    """Execute a SPARQL query with one variable. fl: is <https://kgwb.example/films/>; films have fl:composer."""
    return [str(row[0]) for row in graph.query(query)]


program = dspy.ReAct("question -> iris: list[str]", tools=[find_thing, sparql], max_iters=4)


def answer(question):
    with dspy.context(lm=lm):
        return program(question=question).iris


SYSTEM = build.system_from_function("dspy_react", answer, agents=[find_thing, sparql])  # added
