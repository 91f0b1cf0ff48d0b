"""The systems: one folder each. No system imports another; the modules beside the folders are shared."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgwb.errors import AgentFailedError, KgwbError, SettingError
from kgwb.kg import GraphSource
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.records import JsonObject
from kgwb.run import Run, System
from kgwb.run.failures import last_own_frame
from kgwb.run.models import open_model
from kgwb.run.recorded import read_only_run
from kgwb.run.run_file import DAMAGED_FILE_ERRORS, RunFile, damaged_file_error
from kgwb.settings import Settings
from kgwb.systems.sources import (
    SYSTEM_NAMES,
    SystemSource,
    list_systems,
    load_system,
    resolve_system,
)

__all__ = [
    "SYSTEM_NAMES",
    "SystemSource",
    "list_systems",
    "load_run",
    "load_system",
    "profile",
    "resolve_system",
]
_log = logging.getLogger("kgwb")


def profile(
    name: str, /, *, system: SystemSource = "", are_strings: bool = False, **changes: Any
) -> Settings:
    """Return the settings of a profile, "fast", "paper" or "reference", with changes.

    They are settings of the given system. Without one they are settings of the first of kgwb's own
    systems that has all settings to be changed. With ``are_strings`` the new values are texts that
    a person typed, and they are parsed. Raises SettingError for an unknown system or setting, for a
    profile that the system does not have, and for an impossible value.
    """
    sources = [system] if system else SYSTEM_NAMES
    settings_classes = [resolve_system(source).settings for source in sources]
    for settings_class in settings_classes:
        if set(changes) <= set(settings_class.setting_names()):
            break
    else:
        # This one raises an error that names the unknown setting.
        settings_class = settings_classes[0]
    return settings_class.of_profile(name, parse_strings=are_strings, **changes)


def load_run(
    path: str | Path,
    *,
    system: SystemSource | None = None,
    kg: GraphSource | None = None,
    model: ChatModel | str | Mapping[str, ChatModel] | None = None,
    resume: bool = False,
) -> Run:
    """Load a saved run, execute it as far as its file goes, and return it.

    If the file names a system that is not there, the run can only be read: it has the steps that
    the file has, and ``run.read_only`` says what is missing.

    ``system`` is the system of the run. Without it, the name in the file is looked up among the
    names of systems. ``kg`` is a graph, or what ``open_kg`` opens, such as a path or a sample's
    name. Without ``kg`` and ``model`` every call is answered from the file. With
    ``resume`` new calls are added to the file. A run that was saved while it was paused is paused
    again at the same step. A run that had failed, was cancelled or was interrupted is returned as
    far as it went, and its ``error`` says what stopped it. The file is not changed without
    ``resume``. A warning is logged if ``kg`` is another graph than that of the file, since what is
    asked of it may be answered otherwise.

    Raises RunFileError if the file is damaged or is not a run file, and NotRecordedError if the run
    was finished and its file lacks a call. With ``kg`` or ``model``, raises the error that stops
    the run now.
    """
    header = next(RunFile(Path(path)).entries())
    try:
        run_system = _system_of_header(header, system)
    except SettingError as exc:
        if system is not None:
            raise
        return read_only_run(path, _describe_missing_system(header, exc))
    models = open_model(model) if isinstance(model, str) else model
    run = Run.load(path, run_system, kg=kg, models=models, append=resume)
    if kg is not None:
        _warn_of_another_graph(header, run.kg)
    until = run.recorded_position if run.recorded_status == "paused" else None
    can_only_replay = kg is None and model is None
    try:
        return run.go_explained(until)
    except AgentFailedError as exc:
        if can_only_replay and run.recorded_status == "failed":
            return run
        cause = exc.__cause__
        if isinstance(cause, DAMAGED_FILE_ERRORS) and last_own_frame(cause) is None:
            raise damaged_file_error(path, cause) from cause
        raise
    except KgwbError:
        if not can_only_replay or run.recorded_status == "done":
            raise
        return run
    except DAMAGED_FILE_ERRORS as exc:
        raise damaged_file_error(path, exc) from exc


def _system_of_header(header: JsonObject, source: SystemSource | None) -> System:
    """Return the system that the caller names, else the one that the header of a run file names.

    The header's is only looked up among the names of systems: nothing is imported on a file's word.
    Raises SettingError if there is no such system.
    """
    if source is not None:
        return resolve_system(source)
    return load_system(str(header.get("system", "chatty_kg")))


def _warn_of_another_graph(header: JsonObject, kg: Graph) -> None:
    """Log a warning if a graph is not the one that a run was recorded over."""
    recorded = header.get("graph", kg.identity)
    if recorded != kg.identity:
        _log.warning(
            "the run was recorded over another graph (%s): requests are sent to %s, and answers may "
            "differ from the recorded ones",
            header.get("source", recorded),
            kg.source,
        )


def _describe_missing_system(header: JsonObject, error: SettingError) -> str:
    """Return the message of the error by which a system could not be loaded, for the user.

    If the header of the run file says where the system came from, that is added.
    """
    text = error.message
    origin = header.get("system_from")
    if isinstance(origin, str):
        text += f"; it came from {origin}"
    return text
