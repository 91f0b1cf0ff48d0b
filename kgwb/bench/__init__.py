"""Question sets, metrics, and benchmarks of a system on them."""

from kgwb.bench.cost import Budget, costs, load_prices
from kgwb.bench.formats import load_questions, save_questions
from kgwb.bench.ladder import where_lost
from kgwb.bench.metrics import compare, retention
from kgwb.bench.questions import with_gold, with_queries
from kgwb.bench.report import Report
from kgwb.bench.results import Results, read_results
from kgwb.bench.runner import Bench, Setup

__all__ = [
    "Bench",
    "Budget",
    "Report",
    "Results",
    "Setup",
    "compare",
    "costs",
    "load_prices",
    "load_questions",
    "read_results",
    "retention",
    "save_questions",
    "where_lost",
    "with_gold",
    "with_queries",
]
