"""kgwb: step through question answering over knowledge graphs by LLM agents, edit, run on, compare.

    workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
    workbench.ask("Who directed Arrival?")

Importing kgwb opens nothing; everything below loads when it is first used.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgwb.kg import open_kg
    from kgwb.llm import model
    from kgwb.settings import profile
    from kgwb.workbench import Workbench, compare, debug, load_run

__version__ = "0.1.0"
__all__ = ["Workbench", "__version__", "compare", "debug", "load_run", "model", "open_kg", "profile"]

_HOMES = {
    "Workbench": "kgwb.workbench",
    "compare": "kgwb.workbench",
    "debug": "kgwb.workbench",
    "load_run": "kgwb.workbench",
    "model": "kgwb.llm",
    "open_kg": "kgwb.kg",
    "profile": "kgwb.settings",
}

logging.getLogger("kgwb").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'kgwb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
