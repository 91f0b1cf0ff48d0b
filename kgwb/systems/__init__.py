"""The systems: one folder each, none importing another; the modules beside them are what they share."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

from kgwb.errors import SettingError
from kgwb.run import System


def names() -> tuple[str, ...]:
    """The systems that are there."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def system(name: str) -> System:
    """The system of that name. Raises SettingError naming those there are."""
    if name not in names():
        raise SettingError(f"no system named {name!r}", hint=f"choose one of {', '.join(names())}")
    made: System = importlib.import_module(f"{__name__}.{name}.pipeline").SYSTEM
    return made
