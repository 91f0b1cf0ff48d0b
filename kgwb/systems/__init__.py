"""The systems: one folder each, none importing another; the modules beside them are what they share."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kgwb import llm
from kgwb.errors import KgwbError, RunFileError, SettingError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.run import Run, System
from kgwb.run.record import DAMAGED, RunFile
from kgwb.settings import Settings
from kgwb.systems.gold import Oracle


def names() -> tuple[str, ...]:
    """The systems that are there."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def system(name: str) -> System:
    """The system of that name. Raises SettingError naming those there are."""
    if name not in names():
        raise SettingError(f"no system named {name!r}", hint=f"choose one of {', '.join(names())}")
    for part in ("rules", "views"):  # what is in them registers itself
        _part(name, part)
    loaded: System = importlib.import_module(f"{__name__}.{name}.pipeline").SYSTEM
    return loaded


def _part(name: str, part: str) -> Any:
    """A module of a system's folder; None if it has none of that name."""
    module = f"{__name__}.{name}.{part}"
    return importlib.import_module(module) if importlib.util.find_spec(module) else None


system_of = system  # where an argument has that name


def profile(name: str, /, *, system: str = "", texts: bool = False, **changes: Any) -> Settings:
    """The settings of profile ``paper`` or ``fast``, with changes, which may be ``texts`` that were typed.

    Those of the system, else of the first one that has all that is changed. Raises SettingError.
    """
    forms = [system_of(known).settings for known in ([system] if system else names())]
    fits = (form for form in forms if set(changes) <= set(form.names()))
    return next(fits, forms[0]).of_profile(name, texts=texts, **changes)


@cache  # every question of a benchmark asks for it
def oracle(name: str) -> Oracle | None:
    """What gold means to the agents of that system; None if it does not say."""
    loaded: Oracle | None = _part(name, "gold") if name in names() else None
    return loaded


def load_run(
    path: str | Path,
    *,
    kg: Graph | None = None,
    model: ChatModel | str | Mapping[str, ChatModel] | None = None,
    resume: bool = False,
) -> Run:
    """A saved run, executed as far as its file goes; without ``kg`` and ``model`` nobody is asked.

    ``resume`` goes on writing to the file. A paused run comes back paused; one that was saved failed,
    cancelled or unfinished comes back as far as it went, with what stopped it as ``error``. Raises
    RunFileError, and NotRecordedError for a finished run whose file lacks a call; with ``kg`` or ``model``,
    whatever stops it now.
    """
    header = next(RunFile(Path(path)).lines())
    models = llm.model(model) if isinstance(model, str) else model
    run = Run.load(
        path, system(header.get("system", "chatty_kg")), kg=kg, models=models, resume=resume
    )
    try:
        return run.go(until=run.recorded_position if run.recorded_status == "paused" else None)
    except KgwbError:
        if kg is not None or model is not None or run.recorded_status == "done":
            raise
        return run
    except DAMAGED as exc:
        raise RunFileError(
            f"{path} is damaged: {exc!r}", hint="restore the file from a copy"
        ) from exc
