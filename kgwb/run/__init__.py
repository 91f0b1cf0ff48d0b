"""A run that can be run again: one question to one system over one graph, recorded.

A system is a plain function from a question and its dialogue to an answer. Everything in it that
costs something, varies or can fail goes through its Run, which records it by its content. When the
system is executed again, recorded results are taken from the record. Stepping, editing, comparing
and replaying all rest on that.

``run`` and ``edits`` are what a person does with a run, ``engine`` is how it is executed, and
``execution`` where it stops. ``calls`` and ``steps`` are its record, ``run_entries`` and
``run_file`` its file; ``differences`` compares two, and ``replay`` answers from one. ``agents`` has
System and agents, ``ask`` and ``tools`` ask models, ``models`` opens them, ``prompts`` reads prompt
files, and ``gold`` is what agents should have decided.
"""

from typing import TYPE_CHECKING

from kgwb.deprecated import renamed_names
from kgwb.run.agent_spec import AgentSpec
from kgwb.run.agents import System, agent, remember_turn
from kgwb.run.engine import Status
from kgwb.run.replay import Replay
from kgwb.run.run import Run, Setup, check_question
from kgwb.run.steps import Origin

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


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
