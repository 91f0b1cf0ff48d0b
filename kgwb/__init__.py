"""kgwb: step through question answering over knowledge graphs by LLM agents, edit, and run on.

    workbench = kgwb.Workbench(kgwb.open_kg("films"), kgwb.model("rules"))
    workbench.ask("Who directed Arrival?")

Importing kgwb opens nothing. Everything below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from typing import TYPE_CHECKING, Any

from kgwb.text import mask_urls_in_text, remove_controls

if TYPE_CHECKING:
    from kgwb.adapt.traces import open_trace
    from kgwb.disk import __version__
    from kgwb.kg import open_kg
    from kgwb.labs import lab
    from kgwb.run.systems import profile
    from kgwb.ui.error_coding import ErrorCoding
    from kgwb.ui.lab import PromptLab
    from kgwb.workbench import Workbench, compare, debug, load_run, model, recording

__all__ = [
    "ErrorCoding",
    "PromptLab",
    "Workbench",
    "__version__",
    "compare",
    "debug",
    "lab",
    "load_run",
    "model",
    "open_kg",
    "open_trace",
    "profile",
    "recording",
]

_MODULES = {
    "__version__": "kgwb.disk",
    "ErrorCoding": "kgwb.ui.error_coding",
    "PromptLab": "kgwb.ui.lab",
    "lab": "kgwb.labs",
    "open_kg": "kgwb.kg",
    "open_trace": "kgwb.adapt.traces",
    "profile": "kgwb.run.systems",
}
"""The modules of public names that are not in ``kgwb.workbench``."""
_SHOWN_CLASSES = (
    ("kgwb.run.run", "Run"),
    ("kgwb.run.steps", "Step"),
    ("kgwb.run.differences", "Differences"),
    ("kgwb.records", "Record"),
)
"""Classes whose objects a notebook shows as HTML."""


def _mask_log_record(record: logging.LogRecord) -> bool:
    """Mask secrets in a log record, in place, and return whether it is to be logged.

    Passwords and keys in addresses are masked; control characters and tracebacks are removed. False
    if no handler has been set up for the record's logger.
    """
    record.msg = remove_controls(mask_urls_in_text(record.getMessage()))
    record.args = None
    record.exc_info = None
    return logging.getLogger(record.name).hasHandlers()


def _to_html(value: object) -> str:
    """Return an object of kgwb as HTML. The views are imported only now."""
    from kgwb.show.comparison import to_html

    return to_html(value)


def _show_in_notebooks() -> None:
    """Register in a running IPython how objects of kgwb are shown as HTML.

    The classes are registered by name, so that they need not be imported. Outside of IPython
    nothing is done.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    formatter = getattr(shell, "display_formatter", None)
    if formatter is not None:
        for module, class_name in _SHOWN_CLASSES:
            formatter.formatters["text/html"].for_type_by_name(module, class_name, _to_html)


logging.getLogger("kgwb").addHandler(logging.NullHandler())
for _name in ("kgwb", "rdflib.term"):  # rdflib logs a traceback for each odd term of the data
    logging.getLogger(_name).addFilter(_mask_log_record)
warnings.filterwarnings("ignore", category=UserWarning, module=r"rdflib\.term", append=True)
_show_in_notebooks()


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(_MODULES.get(name, "kgwb.workbench")), name)
    raise AttributeError(f"module 'kgwb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
