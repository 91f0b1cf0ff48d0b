"""A run that can be run again: one question to one system over one graph, recorded.

A system is a plain function from a question and its dialogue to an answer. Everything in it that
costs something, varies or can fail goes through its Run, which records it by its content. When the
system is executed again, recorded results are taken from the record. Stepping, editing, comparing
and replaying all rest on that.

``run`` and ``edits`` are what a person does with a run, ``engine`` is how it is executed, and
``execution`` where it stops. ``calls`` and ``steps`` are its record, ``run_entries`` and
``run_file`` its file; ``store`` keeps the calls of many. ``differences`` compares two, ``replay``
answers from one, and ``recorded`` shows one whose system is missing. ``exported_spans`` and
``otlp`` export one as a trace.
``agents`` has System and agents, ``agent_spec`` what is known of an agent, ``ask`` and ``tools``
ask models, ``models`` opens them, ``prompts`` reads prompt files, ``messages`` is what a model is
sent as a text, and ``gold`` is what agents should have decided.
``outputs``, ``past_calls`` and ``varying`` find mistakes of an agent: an output of another type, a
request past the run, and a request that differs the second time.
"""

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
