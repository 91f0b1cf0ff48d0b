"""The run that can be re-run: one question to one system over one graph, recorded.

A system is a plain function from a question and its dialogue to an answer. Whatever it does that costs,
varies or can fail goes through its Run, which records it by content. ``run`` is what a person does with it,
``engine`` how it is executed, ``record`` what is kept of it and ``saved`` its form on disk, ``agents`` what a
system and its agents are, ``ask`` the one door to a model, and ``prompts`` the files it fills.
"""

from kgwb.run.agents import AgentSpec, System, agent, remembered
from kgwb.run.engine import Status
from kgwb.run.record import Origin
from kgwb.run.recorded import Replay
from kgwb.run.run import Run, Setup, check_question

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
    "remembered",
]
