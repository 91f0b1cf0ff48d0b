"""A ToolCallingAgent of smolagents 1.26.0 with one tool: it asks a graph of rdflib."""

import os

import rdflib
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

from kgwb import build  # added

graph = rdflib.Graph().parse(os.environ["FILMS"])
graph = build.wrap_rdflib(graph)  # added
TASK = """Answer the question by SPARQL queries over a graph of films.
The prefix fl: is <https://kgwb.example/films/>. Films have fl:director, fl:composer, fl:starring and rdfs:label.
Question: """


@tool
def sparql(query: str) -> str:
    """Execute a SPARQL query, and return its rows, one a line.

    Args:
        query: a SELECT query of SPARQL 1.1.
    """
    rows = graph.query(query)
    return "\n".join(" | ".join(map(str, row)) for row in rows) or "no rows"


model = OpenAIServerModel("scripted", api_base="http://localhost:11434/v1", api_key="none")
agent = ToolCallingAgent([sparql], model, max_steps=5, verbosity_level=0)
STEPS = build.steps_in(sparql, look_up="forward") + build.steps_in(model, think="generate")  # added


def answer(question):
    return agent.run(TASK + question)


SYSTEM = build.system_from_function("smolagents_agent", answer, agents=STEPS)  # added
