"""Question sets, metrics, and benchmarks of a system on them; everything loads when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgwb.bench.cost import Budget, costs, load_prices
    from kgwb.bench.formats import load_questions, save_questions
    from kgwb.bench.gold import with_gold, with_queries
    from kgwb.bench.ladder import losses, where_lost
    from kgwb.bench.report import Report
    from kgwb.bench.results import Results, read_results
    from kgwb.bench.runner import Bench, Setup
    from kgwb.bench.statistics import compare, interval, retention

_HOMES = {
    **dict.fromkeys(("Budget", "costs", "load_prices"), "cost"),
    **dict.fromkeys(("load_questions", "save_questions"), "formats"),
    **dict.fromkeys(("with_gold", "with_queries"), "gold"),
    **dict.fromkeys(("losses", "where_lost"), "ladder"),
    "Report": "report",
    **dict.fromkeys(("Results", "read_results"), "results"),
    **dict.fromkeys(("Bench", "Setup"), "runner"),
    **dict.fromkeys(("compare", "interval", "retention"), "statistics"),
}
__all__ = [
    "Bench",
    "Budget",
    "Report",
    "Results",
    "Setup",
    "compare",
    "costs",
    "interval",
    "load_prices",
    "load_questions",
    "losses",
    "read_results",
    "retention",
    "save_questions",
    "where_lost",
    "with_gold",
    "with_queries",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f"kgwb.bench.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'kgwb.bench' has no attribute {name!r}")
