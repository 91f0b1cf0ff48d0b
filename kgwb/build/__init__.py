"""What systems are built of. ``docs/reference/build.md`` tells each name.

The modules of this package have more, by theme: ``graph``, ``text``, ``linking``, ``survey``, ``views``,
``subgraph``, ``gold`` and ``rules``. kgwb's own systems are made of nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kgwb.errors import (
    GraphError,
    GraphTimeoutError,
    GraphUnreachableError,
    InputError,
    InvalidReplyError,
    NotRecordedError,
    QueryError,
    SettingError,
)
from kgwb.flow import (
    CANNOT_EXPRESS,
    NOT_IN_GRAPH,
    Answer,
    AnswerKind,
    Candidate,
    CandidateQuery,
    CitedText,
    Context,
    Dialogue,
    Direction,
    Link,
    Question,
    Reading,
    RetrievedCandidates,
    Turn,
    Value,
)
from kgwb.kg.base import Graph, ResultSet
from kgwb.llm.base import ChatModel, ChatReply, ChatRequest, Message, ReplyData, Rule
from kgwb.llm.local import Scripted
from kgwb.records import (
    Explanation,
    Hidden,
    JsonObject,
    Record,
    Role,
    Score,
    Sparql,
    from_data,
    to_data,
)
from kgwb.run import Run, remember_turn
from kgwb.run.agent_spec import Agent, AgentKind, AgentSpec
from kgwb.run.agents import Command, CommandResult, System, View, agent
from kgwb.run.ask import (
    JSON_CHECK_NAME,
    SCHEMA_CHECK_NAME,
    Check,
    Reply,
    find_problems,
    schema_config,
    try_to_ask,
)
from kgwb.run.ask import ask as ask_model
from kgwb.run.gold import GoldDecisions, GoldQuery, LinkedIris, Rung
from kgwb.run.prompts import Prompts
from kgwb.run.steps import Step
from kgwb.run.tools import Tool, act, tool, tool_from_function, use_tool
from kgwb.settings import STRICT_CONFIG, Count, Settings
from kgwb.systems.linking import LINKING_AGENTS, link_entity, retrieve_candidates, select_vertex
from kgwb.terms import Iri, Term, Triple, Triples

if TYPE_CHECKING:
    from kgwb.adapt.answers import make_answer
    from kgwb.adapt.checking import SystemCheck, check_system
    from kgwb.adapt.executor import wrap_executor
    from kgwb.adapt.langgraph import system_from_langgraph, wrap_langchain
    from kgwb.adapt.openai_client import wrap_openai
    from kgwb.adapt.pipelines import system_from_file, system_from_function
    from kgwb.adapt.rdflib_graph import wrap_rdflib
    from kgwb.adapt.sparql_wrapper import wrap_sparqlwrapper

__all__ = [
    "CANNOT_EXPRESS",
    "JSON_CHECK_NAME",
    "LINKING_AGENTS",
    "NOT_IN_GRAPH",
    "SCHEMA_CHECK_NAME",
    "STRICT_CONFIG",
    "Agent",
    "AgentKind",
    "AgentSpec",
    "Answer",
    "AnswerKind",
    "Candidate",
    "CandidateQuery",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "Check",
    "CitedText",
    "Command",
    "CommandResult",
    "Context",
    "Count",
    "Dialogue",
    "Direction",
    "Explanation",
    "GoldDecisions",
    "GoldQuery",
    "Graph",
    "GraphError",
    "GraphTimeoutError",
    "GraphUnreachableError",
    "Hidden",
    "InputError",
    "InvalidReplyError",
    "Iri",
    "JsonObject",
    "Link",
    "LinkedIris",
    "Message",
    "NotRecordedError",
    "Prompts",
    "QueryError",
    "Question",
    "Reading",
    "Record",
    "Reply",
    "ReplyData",
    "ResultSet",
    "RetrievedCandidates",
    "Role",
    "Rule",
    "Run",
    "Rung",
    "Score",
    "Scripted",
    "SettingError",
    "Settings",
    "Sparql",
    "Step",
    "System",
    "SystemCheck",
    "Term",
    "Tool",
    "Triple",
    "Triples",
    "Turn",
    "Value",
    "View",
    "act",
    "agent",
    "ask_model",
    "check_system",
    "find_problems",
    "from_data",
    "link_entity",
    "make_answer",
    "remember_turn",
    "retrieve_candidates",
    "schema_config",
    "select_vertex",
    "system_from_file",
    "system_from_function",
    "system_from_langgraph",
    "to_data",
    "tool",
    "tool_from_function",
    "try_to_ask",
    "use_tool",
    "wrap_executor",
    "wrap_langchain",
    "wrap_openai",
    "wrap_rdflib",
    "wrap_sparqlwrapper",
]

_ADAPTERS = {
    "SystemCheck": "kgwb.adapt.checking",
    "check_system": "kgwb.adapt.checking",
    "make_answer": "kgwb.adapt.answers",
    "system_from_file": "kgwb.adapt.pipelines",
    "system_from_function": "kgwb.adapt.pipelines",
    "system_from_langgraph": "kgwb.adapt.langgraph",
    "wrap_executor": "kgwb.adapt.executor",
    "wrap_langchain": "kgwb.adapt.langgraph",
    "wrap_openai": "kgwb.adapt.openai_client",
    "wrap_rdflib": "kgwb.adapt.rdflib_graph",
    "wrap_sparqlwrapper": "kgwb.adapt.sparql_wrapper",
}
"""The modules of the names about pipelines that already run: imported when one of them is used."""


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:
        return getattr(importlib.import_module(_ADAPTERS[name]), name)
    raise AttributeError(f"module 'kgwb.build' has no attribute {name!r}")
