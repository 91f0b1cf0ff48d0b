"""A run that can only be read, from what its steps recorded: its system is not there."""

from __future__ import annotations

from pathlib import Path

from kgwb.errors import SettingError
from kgwb.kg.base import Graph
from kgwb.records import from_data
from kgwb.run.agents import AgentKind, System, agent
from kgwb.run.answers import Answer
from kgwb.run.run import Run
from kgwb.run.run_file import SavedRun, damage_errors
from kgwb.run.steps import Step


def read_only_run(path: str | Path, missing: str) -> Run:
    """Return the run of a file as its steps recorded it. It cannot be executed or edited.

    Outputs and inputs are the JSON data of the file. ``missing`` says what is missing to execute
    the run; it is ``run.read_only``. A file that was written call by call has no steps, so the run
    has its calls and its answer only.

    Raises RunFileError if the file is damaged or is not a run file.
    """
    saved = SavedRun.read(path, "call", "notice", "step", "end")
    with damage_errors(path):
        return read_only_run_of(saved, missing)


def read_only_run_of(saved: SavedRun, missing: str, kg: Graph | None = None) -> Run:
    """Return a run that can only be read, from what a run file says.

    ``kg`` is the graph that a person can ask about the run. Raises DAMAGED_FILE_ERRORS and
    InputErrors if something lacks its form.
    """
    run = Run.of_saved(_recorded_system(saved), saved, kg=kg)
    execution = run.execution
    execution.steps = [Step.from_data(data, run.calls) for data in saved.steps]
    end = saved.end
    if end is not None:
        execution.status = end.status
        execution.position = end.position
        execution.answer = from_data(end.answer, Answer | None)
        execution.recorded_seconds = end.recorded_seconds
        if end.error:
            execution.error = SettingError(end.error)
    run.read_only = missing
    return run


def _recorded_system(saved: SavedRun) -> System:
    """Return a system with the agents of the recorded steps, which cannot be executed.

    An agent is of the kind "model" if its first step has attempts or prompts, else "code" or what
    the step says, as those of a trace do. Supervisors are read from the parents of the steps, in
    order.
    """
    agents = {}
    supervisors: dict[str, list[str]] = {}
    agent_of_step = {}
    for data in saved.steps:
        agent_name = from_data(data["agent"], str)
        agent_of_step[data["key"]] = agent_name
        kind = "model" if data["attempts"] or data["prompts"] else data.get("kind", "code")
        if agent_name not in agents:
            agents[agent_name] = agent(agent_name, kind=from_data(kind, AgentKind))(_cannot_execute)
        supervisor = agent_of_step.get(data["parent"])
        if supervisor is not None:
            supervised = supervisors.setdefault(supervisor, [])
            if agent_name not in supervised:
                supervised.append(agent_name)
    return System(saved.header.system, _cannot_execute, agents.values(), supervisors=supervisors)


# Without a docstring, which would be an agent's purpose, and without annotations: these are texts,
# which Python compiles to read them, and nothing that a file of a stranger leads to may do that.
def _cannot_execute(*_):  # type: ignore[no-untyped-def]
    raise SettingError(
        "the run cannot be continued: its system was not found",
        hint="name the system when you load the run: kgwb.load_run(path, system='./mine.py')",
    )


def restore_times(run: Run, path: Path) -> None:
    """Set the times of a run to those in its file, in place of those of the replay that opened it.

    Steps that the file does not have keep theirs; the next execution takes its own times. Raises
    RunFileError if the file cannot be read.
    """
    saved = SavedRun.read(path, "step", "end")
    for data in saved.steps:
        step = run.steps_by_key.get(data["key"])
        if step is not None:
            step.seconds = from_data(data["seconds"], float)
            step.recorded_seconds = from_data(data.get("recorded_seconds"), float | None)
    if saved.end is not None:
        run.execution.recorded_seconds = saved.end.recorded_seconds
