"""A run that can only be read, from what its steps recorded: its system is not there."""

# Annotations are types here, not texts: resolving a text compiles it, and nothing that a file of a
# stranger leads to may compile anything.

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from kgwb.errors import RunFileError, SettingError
from kgwb.kg.base import Graph
from kgwb.records import JsonObject, from_data
from kgwb.run.agents import AgentKind, System, agent
from kgwb.run.answers import Answer
from kgwb.run.engine import Status
from kgwb.run.run import Run
from kgwb.run.run_file import RunFile, damage_errors
from kgwb.run.steps import Attempt, Origin, Step


def read_only_run(path: str | Path, missing: str) -> Run:
    """Return the run of a file as its steps recorded it. It cannot be executed or edited.

    Outputs and inputs are the JSON data of the file. ``missing`` says what is missing to execute
    the run; it is ``run.read_only``. A file that was written call by call has no steps, so the run
    has its calls and its answer only.

    Raises RunFileError if the file is damaged or is not a run file.
    """
    header, *entries = RunFile(Path(path)).entries()
    with damage_errors(path):
        return run_of_entries(header, entries, missing)


def run_of_entries(
    header: JsonObject, entries: Sequence[JsonObject], missing: str, kg: Graph | None = None
) -> Run:
    """Return a run that can only be read, from the header and the entries of a run file.

    ``kg`` is the graph that a person can ask about the run. Raises DAMAGED_FILE_ERRORS and
    InputErrors if the entries lack their form.
    """
    data_of_steps = [entry["step"] for entry in entries if "step" in entry]
    calls = [entry for entry in entries if "call" in entry]
    system = _recorded_system(header, data_of_steps)
    run = Run.of_entries(system, header, calls, kg=kg)
    run.steps = [_read_step(data, run) for data in data_of_steps]
    for entry in entries:
        if "end" in entry:
            _read_end(run, entry["end"])
    run.read_only = missing
    return run


def _recorded_system(header: JsonObject, data_of_steps: Sequence[JsonObject]) -> System:
    """Return a system with the agents of the recorded steps, which cannot be executed.

    An agent is of the kind "model" if its first step has attempts or prompts, else "code".
    Supervisors are read from the parents of the steps, in order.
    """
    name = from_data(header["system"], str)
    agents = {}
    supervisors: dict[str, list[str]] = {}
    agent_of_step = {}
    for data in data_of_steps:
        agent_name = from_data(data["agent"], str)
        agent_of_step[data["key"]] = agent_name
        kind: Any = data.get("kind", "code")  # the steps of a trace have it
        if data["attempts"] or data["prompts"]:
            kind = "model"
        if kind not in get_args(AgentKind):
            raise RunFileError(
                f"the run file cannot be read: its step {data['key']} has the unknown kind {kind!r}",
                hint="restore the file from a copy, or open it with the kgwb that wrote it",
            )
        if agent_name not in agents:
            agents[agent_name] = agent(agent_name, kind=kind)(_cannot_execute)
        supervisor = agent_of_step.get(data["parent"])
        if supervisor is not None:
            supervised = supervisors.setdefault(supervisor, [])
            if agent_name not in supervised:
                supervised.append(agent_name)
    return System(name, _cannot_execute, agents.values(), supervisors=supervisors)


def _cannot_execute(*_: Any) -> Any:  # without a docstring, which would be an agent's purpose
    """Raise SettingError, because the system of the run is missing."""
    raise SettingError(
        "the run cannot be continued: its system was not found",
        hint="name the system when you load the run: kgwb.load_run(path, system='./mine.py')",
    )


def _read_step(data: JsonObject, run: Run) -> Step:
    """Return the step that JSON data of a run file describes, with its output and inputs as data.

    Raises RunFileError for an unknown origin, and KeyError or a ValueError for data of another
    form.
    """
    origin = data["origin"]
    if origin not in get_args(Origin):
        raise RunFileError(
            f"the run file cannot be read: its step {data['key']} has the unknown origin {origin!r}",
            hint="restore the file from a copy, or open it with the kgwb that wrote it",
        )
    return Step(
        key=from_data(data["key"], str),
        agent=from_data(data["agent"], str),
        subject=from_data(data["subject"], str),
        parent=from_data(data["parent"], str),
        inputs=from_data(data["inputs"], JsonObject),
        output_type=Any,
        output=_as_tuple(_output_data(data, run)),
        done=from_data(data["done"], bool),
        origin=origin,
        calls=from_data(data["calls"], list[str]),
        live_calls=from_data(data["live_calls"], int),
        attempts=from_data(data["attempts"], list[Attempt]),
        prompts=from_data(data["prompts"], list[str]),
        notes=from_data(data["notes"], list[str]),
        seconds=from_data(data["seconds"], float),
        recorded_seconds=from_data(data.get("recorded_seconds"), float | None),
        error=from_data(data["error"], str),
        known_calls=run.calls,
    )


def restore_times(run: Run, path: Path) -> None:
    """Set the times of a run to those in its file, in place of those of the replay that opened it.

    Steps that the file does not have keep theirs; the next execution takes its own times. Raises
    RunFileError if the file cannot be read.
    """
    for entry in RunFile(path).entries():
        if "step" in entry:
            step = run.steps_by_key.get(entry["step"].get("key"))
            if step is not None:
                data = entry["step"]
                step.seconds = from_data(data.get("seconds", step.seconds), float)
                step.recorded_seconds = from_data(data.get("recorded_seconds"), float | None)
        elif "end" in entry:
            run.recorded_seconds = _read_total_seconds(entry["end"])


def _output_data(data: JsonObject, run: Run) -> Any:
    """Return the recorded output of a step as JSON data.

    It may be stored as the key of the call whose reply it is (``output_of_call``).
    """
    if "output_of_call" not in data:
        return data["output"]
    call = run.calls[data["output_of_call"]]
    return call.to_data()["reply"]


def _as_tuple(data: Any) -> Any:
    """Return JSON data with a list at its top as a tuple, as agents return several records."""
    if isinstance(data, list):
        return tuple(data)
    return data


def _read_end(run: Run, data: JsonObject) -> None:
    """Set status, position, answer and error of a run to those of an "end" entry.

    The error becomes a SettingError with the recorded message; None if it is empty. Raises
    RunFileError for an unknown status.
    """
    if data["status"] not in get_args(Status):
        raise RunFileError(
            f"the run file cannot be read: the run has the unknown status {data['status']!r}",
            hint="restore the file from a copy, or open it with the kgwb that wrote it",
        )
    run.status = data["status"]
    run.position = from_data(data["position"], int)
    run.answer = from_data(data["answer"], Answer | None)
    run.recorded_seconds = _read_total_seconds(data)
    run.error = None
    if data["error"]:
        run.error = SettingError(from_data(data["error"], str))


def _read_total_seconds(data: JsonObject) -> float:
    """Return how long an execution took when its calls were made, from the data of its "end".

    0 if the file does not say.
    """
    totals = data.get("totals", {})
    seconds: float = from_data(totals.get("recorded_seconds"), float | None) or 0.0
    if not seconds:
        seconds = from_data(totals.get("seconds", 0.0), float)
    return seconds
