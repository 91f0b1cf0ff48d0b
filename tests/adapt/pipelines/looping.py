"""A graph of LangGraph with four nodes and a loop: it drafts queries until one has rows."""

import os
from typing import TypedDict

import rdflib
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from scripted_chat import ScriptedChat

from kgwb import build  # added

llm = ScriptedChat()
llm = build.wrap_langchain(llm)  # added
graph = rdflib.Graph().parse(os.environ["FILMS"])
graph = build.wrap_rdflib(graph)  # added
MAX_DRAFTS = 3


class State(TypedDict, total=False):
    question: str
    name: str
    query: str
    drafts: int
    rows: list
    text: str


@tool
def take_name(name: str) -> str:
    """Take a name out of the question."""
    return name


def mention(state: State) -> State:
    """The name in the question, as the argument of a tool."""
    reply = llm.bind_tools([take_name]).invoke(f"Name in: {state['question']}")
    return {"name": reply.tool_calls[0]["args"]["name"], "drafts": 0}


def draft(state: State) -> State:
    """A query, another one each time."""
    reply = llm.invoke(f"Draft {state['drafts']} for {state['name']}")
    return {"query": reply.content, "drafts": state["drafts"] + 1}


def look_up(state: State) -> State:
    """The values of the query."""
    rows = graph.query(state["query"])
    return {"rows": [str(row[0]) for row in rows]}


def phrase(state: State) -> State:
    """The answer as a sentence."""
    return {"text": llm.invoke(f"Say: {', '.join(state['rows'])}").content}


def is_found(state: State) -> str:
    if state["rows"] or state["drafts"] >= MAX_DRAFTS:
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

ends = {"start": lambda text: {"question": text}, "answer": lambda state: state["rows"]}  # added
SYSTEM = build.system_from_langgraph(app, **ends)  # added
