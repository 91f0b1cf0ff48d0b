"""A run that can be run again: one question to one system over one graph, recorded.

A system is a plain function from a question and its dialogue to an answer. Whatever it does that
costs, varies or can fail goes through its Run, which records it by its content. Executing the system
again takes what is recorded from the record. Stepping, editing, comparing and replaying all rest on
that.

``run`` is what a person does with a run, and ``engine`` how it is executed. ``calls``, ``steps`` and
``run_file`` are its record; ``differences`` compares two, and ``replay`` answers from one.
``agents`` has System and agents, ``ask`` and ``tools`` ask models, and ``prompts`` reads prompt files.
"""

from typing import TYPE_CHECKING

from kgwb.deprecated import renamed_names
from kgwb.run.agents import AgentSpec, System, agent, remember_turn
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
