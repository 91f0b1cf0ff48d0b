"""The systems: one folder each, none importing another. The modules beside the folders are shared."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgwb.deprecated import renamed_names
from kgwb.errors import KgwbError, RunFileError, SettingError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.run import Run, System
from kgwb.run.models import open_model
from kgwb.run.run_file import DAMAGED_FILE_ERRORS, RunFile
from kgwb.settings import Settings

SYSTEM_NAMES = ("chatty_kg", "dog", "ragonite", "robodata", "surveyor", "triad")
"""The systems. Each is the value SYSTEM of the module ``pipeline`` in the folder of its name."""


def list_systems() -> tuple[str, ...]:
    """Return the names of the systems."""
    return SYSTEM_NAMES


def load_system(name: str) -> System:
    """Return a system by its name. Raises SettingError if there is none of that name."""
    if name not in SYSTEM_NAMES:
        raise SettingError(
            f"no system named {name!r}", hint=f"choose one of {', '.join(SYSTEM_NAMES)}"
        )
    pipeline = importlib.import_module(f"{__name__}.{name}.pipeline")
    loaded: System = pipeline.SYSTEM
    return loaded


def profile(
    name: str, /, *, system: str = "", are_strings: bool = False, **changes: Any
) -> Settings:
    """Return the settings of profile ``paper`` or ``fast``, with changes.

    They are settings of the system, or without one of the first system that has all settings that
    are changed. With ``texts`` the changes are texts that a person typed.

    Raises SettingError for an unknown profile or setting, and for an impossible value.
    """
    settings_classes = [
        (removed)(known).settings for known in ([system] if system else SYSTEM_NAMES)
    ]
    for settings_class in settings_classes:
        if set(changes) <= set(settings_class.setting_names()):
            return settings_class.of_profile(name, parse_strings=are_strings, **changes)
    return settings_classes[0].of_profile(
        name, parse_strings=are_strings, **changes
    )  # which names the unknown


(removed) = load_system  # in a function that has a parameter ``system``


def load_run(
    path: str | Path,
    *,
    kg: Graph | None = None,
    model: ChatModel | str | Mapping[str, ChatModel] | None = None,
    resume: bool = False,
) -> Run:
    """Return a saved run, executed as far as its file goes.

    Without ``kg`` and ``model`` every call is answered from the file, and nothing else is asked.
    With ``resume`` new calls are written to the file. A run that was saved paused is paused again.
    One that had failed, was cancelled or was not finished comes back as far as it went; its
    ``error`` says what stopped it.

    Raises RunFileError for a file that is no run file or is damaged, and NotRecordedError for a
    finished run whose file lacks a call. With ``kg`` or ``model``, raises what stops the run now.
    """
    header = next(RunFile(Path(path)).entries())
    models = open_model(model) if isinstance(model, str) else model
    run_system = load_system(header.get("system", "chatty_kg"))
    run = Run.load(path, run_system, kg=kg, models=models, append=resume)
    until = run.recorded_position if run.recorded_status == "paused" else None
    try:
        return run.go(until=until)
    except KgwbError:
        if kg is not None or model is not None or run.recorded_status == "done":
            raise
        return run
    except DAMAGED_FILE_ERRORS as exc:
        raise RunFileError(
            f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
        ) from exc


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
