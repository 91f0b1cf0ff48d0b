"""A run that can be run again: one question to one system over one graph, recorded.

A system is a plain function from a question and its dialogue to an answer. Everything in it that
costs something, varies or can fail goes through its Run, which records it by its content. When the
system is executed again, recorded results are taken from the record. Stepping, editing, comparing
and replaying all rest on that.

A ``run`` is what a person holds, with its ``edits``. It has a ``record``, also on disk, of its calls
and of what a person put in, and an ``execution``, with its ``steps``; ``engine`` is what the agents of
a system see. ``store`` keeps the calls of many runs, and ``differences``
compares two. ``spans`` and ``otlp`` export one as a trace.
``agents`` has System and agents, ``ask`` asks models and graphs, ``models`` opens models, ``prompts`` reads
prompt files, ``systems`` finds systems, and ``gold`` is what agents should have decided. ``linking``
has agents that systems share. ``diagnostics`` finds mistakes of an agent, and reasons to doubt an
answer.
"""

from kgwb.run.agents import AgentSpec, System, agent, remember_turn
from kgwb.run.models import Replay
from kgwb.run.run import Run, Setup, check_question
from kgwb.run.steps import Origin, Status

__all__ = [
    "AgentSpec",
    "Origin",
    "Replay",
    "Run",
    "Setup",
    "Status",
    "System",
    "agent",
    "check_question",
    "remember_turn",
]
