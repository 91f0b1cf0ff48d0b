"""Finding a system: by its name, an import path or a file. What a saved run names is found by name alone."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from kgwb.errors import (
    AgentFailedError,
    KgwbError,
    NotRecordedError,
    PromptError,
    SettingError,
)
from kgwb.kg import GraphSource
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.records import JsonObject
from kgwb.run import Run, System
from kgwb.run.diagnostics import last_own_frame, own_place
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.run.record import DAMAGED_FILE_ERRORS, RunFile, damaged_file_error
from kgwb.run.run import read_only_run
from kgwb.settings import Settings

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
EARLIER_MUTED_RUN = "its triples were muted by an earlier version, so its graph is needed to run on"
"""Why a run of a version that rewrote queries for muted triples cannot be replayed from its file."""

EARLIER_PROMPTS = "it was asked with other prompts than those of this version"
"""Why a run whose prompts are gone or were changed, and that lacks a call now, cannot be replayed from its file."""


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
    # Without one that knows all, the first raises an error that names the unknown setting.
    settings_class = settings_classes[0]
    for each in settings_classes:
        if set(changes).issubset(each.setting_names()):
            settings_class = each
            break
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
    the file has, and ``run.read_only`` says what is missing. So is a finished run of an earlier
    version whose calls are no longer made as recorded, unless its graph or a model is given: with
    muted triples, or with a prompt that now has another name.

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
    if system is not None:
        run_system = resolve_system(system)
    else:
        try:
            # It is only looked up by its name: nothing is imported on a file's word.
            name = str(header.get("system", "chatty_kg"))
            run_system = load_system(name)
        except SettingError as exc:
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
    except KgwbError as exc:
        if not can_only_replay:
            raise
        if run.recorded_status != "done":
            return run
        is_stale = isinstance(exc, NotRecordedError | PromptError)
        missing = _find_earlier_form(run) if is_stale else ""
        if not missing:
            raise
        return read_only_run(path, missing)
    except DAMAGED_FILE_ERRORS as exc:
        raise damaged_file_error(path, exc) from exc


def _find_earlier_form(run: Run) -> str:
    """Return why a loaded run of an earlier version lacks calls that it made; "" if it is none.

    An earlier version rewrote the queries of a run with muted triples. It also had other prompts, and
    gave their agents other things: this is looked for in kgwb's own systems, since one from elsewhere
    may be given prompts of any name.
    """
    queries = [call for call in run.calls.values() if call.kind in ("select", "ask", "construct")]
    if run.kg.muted and not any("muted" in call.request for call in queries):
        return EARLIER_MUTED_RUN
    system = run.system
    if system.origin:
        return ""
    shipped = Prompts().for_system(system.prompts)
    for name, text in run.prompts.texts.items():
        if name not in system.prompt_names or shipped.text(name) != text:
            return EARLIER_PROMPTS
    return ""


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


SystemSource: TypeAlias = System | str | Path
"""A system, or what ``resolve_system`` finds one by."""
SYSTEM_NAMES = ("chatty_kg", "dog", "ragonite", "robodata", "surveyor", "triad")
"""The names of the systems that come with kgwb.

A system is the value SYSTEM of the package of its name.
"""
ENTRY_POINT_GROUP = "kgwb.systems"
"""The group of entry points by which an installed package announces its systems."""
DEFAULT_VALUE = "SYSTEM"
"""The name of the value in a module that is its system, if no other is given."""
SOURCE_FORMATS = "a name, an import path (mytog.tog:SYSTEM), a file (./tog.py), or a System"

_file_modules: dict[Path, tuple[int, ModuleType]] = {}
"""The module of each file that was loaded as a system, with the file's time of change in ns."""


def resolve_system(source: SystemSource) -> System:
    """Return the system that a person names, and import its module if need be.

    A System is returned as it is. A path, or a text that ends in ".py" or ".py:VALUE", is a file. A
    text with a colon or a point is an import path, ``module:VALUE``. Any other text is a name, see
    ``load_system``. Without VALUE it is SYSTEM. A file or module that is given so becomes the
    system's ``origin``. The text must come from the person, never from a file, since what it names
    is executed. Raises SettingError if there is no such system, or its module cannot be imported.
    """
    if isinstance(source, System):
        return source
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise SettingError(
            f"a value of the type {kind} cannot be used as a system", hint=f"give {SOURCE_FORMATS}"
        )
    text = os.fspath(source)
    place, value_name = _split_value_name(text)
    if isinstance(source, os.PathLike) or place.endswith(".py"):
        module = load_file(Path(place))
    elif ":" in text or "." in text:
        module = _import_module(place)
    else:
        return load_system(text)
    system = _system_in(module, value_name, place)
    system.origin = text
    return system


def load_value(text: str) -> object:
    """Execute the file or import the module in "./file.py:NAME" or "module:NAME", and return the value NAME.

    The text must come from the person, since this executes code. Raises SettingError for a text of
    another form, and if there is no such module or value.
    """
    place, _, value_name = text.rpartition(":")
    if not place:
        raise SettingError(
            f"{text!r} does not name a value of a file or a module",
            hint="write it as ./file.py:NAME or module:NAME",
        )
    module = load_file(Path(place)) if place.endswith(".py") else _import_module(place)
    try:
        return getattr(module, value_name)
    except AttributeError as exc:
        raise SettingError(
            f"{place} has no value {value_name}",
            hint="name a value that it defines at the top level",
        ) from exc


def list_systems() -> tuple[str, ...]:
    """Return the names of the systems: kgwb's own, then those of installed packages."""
    return (*SYSTEM_NAMES, *installed_systems())


def load_system(name: str) -> System:
    """Import a system by its name, one of ``list_systems``, and return it.

    A name may come from a file: nothing is imported for other texts. Raises SettingError if there
    is no system of that name, or the package that announces it cannot be imported.
    """
    if name in SYSTEM_NAMES:
        module = importlib.import_module(f"kgwb.systems.{name}")
        own: System = module.SYSTEM
        _check_name(own, name)
        return own
    entry_point = installed_systems().get(name)
    if entry_point is None:
        known = ", ".join(list_systems())
        raise SettingError(
            f"kgwb has no system named {name!r}",
            hint=f"choose one of {known}; or give an import path (mytog.tog:SYSTEM) or a file "
            "(./tog.py)",
        )
    value_name = entry_point.attr or DEFAULT_VALUE
    module = _import_module(entry_point.module)
    system = _system_in(module, value_name, entry_point.module)
    _check_name(system, name)
    system.origin = f"{entry_point.module}:{value_name}"
    return system


def _check_name(system: System, name: str) -> None:
    """Raise SettingError if a system has another name than the one it is loaded by."""
    if system.name != name:
        raise SettingError(
            f"the system {system.name} is announced under the name {name}",
            hint=f"announce it as {system.name} in the pyproject.toml of its package: run files name it so",
        )


def installed_systems() -> Mapping[str, EntryPoint]:
    """Return the entry points of systems in installed packages, by the system's name.

    Nothing is imported. A name of kgwb's own systems is left out; of two packages with the same
    name the first one counts.
    """
    return _read_entry_points(tuple(sys.path))


@lru_cache(maxsize=8)
def _read_entry_points(search_path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Read the entry points of systems from the metadata of the packages on a search path.

    Returns them by name, see ``installed_systems``. Reading takes long, so the result is kept for
    each of the last eight search paths.
    """
    found: dict[str, EntryPoint] = {}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        if entry_point.name not in SYSTEM_NAMES:
            found.setdefault(entry_point.name, entry_point)
    return found


def _split_value_name(text: str) -> tuple[str, str]:
    """Split a text such as "mytog.tog:SYSTEM" into the module or file and the name of the value in it.

    Without a name it is DEFAULT_VALUE. A colon that is followed by a slash or a backslash belongs
    to the path of a file.
    """
    place, colon, value_name = text.rpartition(":")
    if not colon or "/" in value_name or "\\" in value_name:
        return text, DEFAULT_VALUE
    return place, value_name


def _import_module(name: str) -> ModuleType:
    """Return a module by its dotted name. The current folder is searched too, after all others.

    Raises SettingError if it cannot be imported.
    """
    with _explained_import(name), _searched_folder(Path.cwd(), is_first=False):
        return importlib.import_module(name)


def load_file(path: Path) -> ModuleType:
    """Execute a Python file and return its module; a file that has not changed since is not executed again.

    It may import the modules beside it. A changed file is executed in the same module, as
    ``importlib.reload`` does, so that systems that were loaded before use the new functions. Raises
    SettingError if there is no such file, or executing it fails.
    """
    path = path.expanduser().resolve()
    if not path.is_file() or path.suffix != ".py":
        raise SettingError(f"there is no Python file {path}", hint="give the path of a .py file")
    changed_at = path.stat().st_mtime_ns
    known_changed_at, module = _file_modules.get(path, (0, None))
    if module is not None and known_changed_at == changed_at:
        return module
    if module is None:
        module = _make_file_module(path)
    with _explained_import(str(path)), _searched_folder(path.parent, is_first=True):
        _execute_module(module)
    _file_modules[path] = (changed_at, module)
    return module


def _make_file_module(path: Path) -> ModuleType:
    """Return a new module for a file, which is neither executed nor registered in ``sys.modules`` yet.

    Its name is the file's without ".py". If a module of this name exists or could be imported, the
    name gets the folder's name before it and a number after it.
    """
    name = path.stem
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        name = f"{path.parent.name}_{path.stem}_{len(_file_modules)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the name of the file ends in .py
    return importlib.util.module_from_spec(spec)


def _execute_module(module: ModuleType) -> None:
    """Execute the file of a module in the module, which is registered in ``sys.modules`` meanwhile and after.

    So other modules can import it while it is executed. A new module that fails is removed again.
    Raises what the file raises.
    """
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    is_new = spec.name not in sys.modules
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if is_new:
            del sys.modules[spec.name]
        raise


@contextmanager
def _searched_folder(folder: Path, *, is_first: bool) -> Iterator[None]:
    """Add a folder to the module search path for the code inside the ``with`` block, and remove it afterwards.

    With ``is_first`` its modules go before all others, else after them.
    """
    entry = str(folder)
    if is_first:
        sys.path.insert(0, entry)
    else:
        sys.path.append(entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


@contextmanager
def _explained_import(place: str) -> Iterator[None]:
    """Turn any exception of the import inside the ``with`` block, but a KgwbError, into a SettingError.

    The message has the error; the hint has the file and line of the person's code where it arose,
    or, for a missing module, what to install.
    """
    try:
        yield
    except KgwbError:
        raise
    except Exception as exc:
        hint = f"correct it where it arose: {own_place(exc)}"
        if isinstance(exc, ModuleNotFoundError):
            hint = f"install {exc.name}, or go to the folder that holds it"
        raise SettingError(
            f"{place} cannot be imported: {type(exc).__name__}: {exc}", hint=hint
        ) from exc


def _system_in(module: ModuleType, value_name: str, place: str) -> System:
    """Return the system that a module has under a name. Raises SettingError if that is missing or no System.

    The error's hint names a system that the module has under another name, or says how to write
    one. ``place`` names the module in messages.
    """
    value = getattr(module, value_name, None)
    if isinstance(value, System):
        return value
    others = [name for name, other in vars(module).items() if isinstance(other, System)]
    hint = f"write at its end: {value_name} = System(...)"
    if others:
        hint = f"it has the system {others[0]}: give {place}:{others[0]}"
    problem = f"{place} has no value {value_name}"
    if value is not None:
        problem = f"{value_name} of {place} is {type(value).__name__}, not a System"
    raise SettingError(problem, hint=hint)
