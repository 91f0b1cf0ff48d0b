"""The systems: one folder each. No system imports another; the modules beside the folders are shared."""

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
"""The names of the systems.

A system is the value SYSTEM of the module ``pipeline`` in the folder of its name.
"""


def list_systems() -> tuple[str, ...]:
    """Return the names of the systems."""
    return SYSTEM_NAMES


def load_system(name: str) -> System:
    """Import a system and return it. Raises SettingError if there is no system of that name."""
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
    """Return the settings of a profile, "fast", "paper" or "reference", with changes.

    They are settings of the named system. Without one they are settings of the first system that
    has all settings to be changed. With ``are_strings`` the new values are texts that a person
    typed, and they are parsed.

    Raises SettingError for an unknown system or setting, for a profile that the system does not
    have, and for an impossible value.
    """
    system_names = [system] if system else SYSTEM_NAMES
    settings_classes = [load_system(known_name).settings for known_name in system_names]
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
    kg: Graph | None = None,
    model: ChatModel | str | Mapping[str, ChatModel] | None = None,
    resume: bool = False,
) -> Run:
    """Load a saved run, execute it as far as its file goes, and return it.

    Without ``kg`` and ``model`` every call is answered from the file. With ``resume`` new calls
    are added to the file. A run that was saved while it was paused is paused again at the same
    step. A run that had failed, was cancelled or was interrupted is returned as far as it went, and
    its ``error`` says what stopped it.

    Raises RunFileError if the file is damaged or is not a run file, and NotRecordedError if the run
    was finished and its file lacks a call. With ``kg`` or ``model``, raises the error that stops
    the run now.
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
