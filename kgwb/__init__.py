"""kgwb: step through question answering over knowledge graphs by LLM agents, edit, run on, compare.

    workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
    workbench.ask("Who directed Arrival?")

Importing kgwb opens nothing; everything below loads when it is first used.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import TYPE_CHECKING, Any

from kgwb.masking import masked
from kgwb.text import remove_controls
from kgwb.version import __version__

if TYPE_CHECKING:
    from kgwb.kg import open_kg
    from kgwb.labs import lab
    from kgwb.systems import profile
    from kgwb.ui.lab import PromptLab
    from kgwb.workbench import Workbench, compare, debug, load_run, model, recording

__all__ = [
    "PromptLab",
    "Workbench",
    "__version__",
    "compare",
    "debug",
    "lab",
    "load_run",
    "model",
    "open_kg",
    "profile",
    "recording",
]

_HOMES = {
    "PromptLab": "kgwb.ui.lab",
    "lab": "kgwb.labs",
    "open_kg": "kgwb.kg",
    "profile": "kgwb.systems",
}
"""Where the names are that are not in ``kgwb.workbench``."""


def _readable(record: logging.LogRecord) -> bool:
    """Whether anybody set up logging for a record, of which a text is left that does nothing but be read."""
    record.msg, record.args, record.exc_info = (
        remove_controls(masked(record.getMessage())),
        None,
        None,
    )
    return logging.getLogger(record.name).hasHandlers()


logging.getLogger("kgwb").addHandler(logging.NullHandler())
for _name in (
    "kgwb",
    "rdflib.term",
):  # the latter has words, and a traceback, for each odd term of the data
    logging.getLogger(_name).addFilter(_readable)
warnings.filterwarnings("ignore", category=UserWarning, module=r"rdflib\.term", append=True)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_HOMES.get(name, "kgwb.workbench")), name)
    raise AttributeError(f"module 'kgwb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
