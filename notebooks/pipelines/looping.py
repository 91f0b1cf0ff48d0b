"""A graph of LangGraph with four nodes and a loop: it drafts queries until one has rows."""

import os
from typing import TypedDict

import rdflib
from langgraph.graph import END, START, StateGraph
from openai import OpenAI

from kgwb import build  # added

client = OpenAI(base_url="http://localhost:11434/v1", api_key="none")
client = build.wrap_openai(client)  # added
graph = rdflib.Graph().parse(os.environ["FILMS"])
graph = build.wrap_rdflib(graph)  # added
MAX_DRAFTS = 3


class State(TypedDict, total=False):
    question: str
    name: str
    queries: list
    rows: list
    text: str


def ask(text):
    messages = [{"role": "user", "content": text}]
    reply = client.chat.completions.create(model="scripted", messages=messages)
    return reply.choices[0].message.content


def mention(state: State) -> State:
    """The name in the question."""
    return {"name": ask(f"Which one name is in this question? {state['question']}"), "queries": []}


def draft(state: State) -> State:
    """A query, another one than those that had no rows."""
    text = f"Write a SPARQL query for {state['question']} It is about {state['name']}."
    for query in state["queries"]:
        text += f"\nThis one has no rows: {query}"
    return {"queries": [*state["queries"], ask(text)]}


def look_up(state: State) -> State:
    """The values of the latest query."""
    return {"rows": [str(row[0]) for row in graph.query(state["queries"][-1])]}


def phrase(state: State) -> State:
    """The answer as a sentence."""
    return {"text": ask(f"Say in a sentence: {state['question']} {', '.join(state['rows'])}")}


def is_found(state: State) -> str:
    if state["rows"] or len(state["queries"]) >= MAX_DRAFTS:
        return "phrase"
    return "draft"


builder = StateGraph(State)
for node in (mention, draft, look_up, phrase):
    builder.add_node(node)
builder.add_edge(START, "mention")
builder.add_edge("mention", "draft")
builder.add_edge("draft", "look_up")
builder.add_conditional_edges("look_up", is_found, ["draft", "phrase"])
builder.add_edge("phrase", END)
app = builder.compile()


def start(question):  # added
    return {"question": question}  # added


SYSTEM = build.system_from_langgraph(app, start=start, answer=lambda state: state["rows"])  # added
