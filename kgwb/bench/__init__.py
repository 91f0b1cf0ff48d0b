"""Question sets, metrics, and benchmarks of a system on them."""

from kgwb.bench.comparisons import SystemComparison, compare_runs
from kgwb.bench.cost import Budget, load_prices, summarize_costs
from kgwb.bench.formats import load_questions, save_questions
from kgwb.bench.ladder import locate_losses
from kgwb.bench.metrics import compare_results, compute_retention
from kgwb.bench.questions import add_gold_answers, add_gold_queries
from kgwb.bench.report import Report
from kgwb.bench.results import Results, read_results
from kgwb.bench.runner import Benchmark, BenchSetup

__all__ = [
    "BenchSetup",
    "Benchmark",
    "Budget",
    "Report",
    "Results",
    "SystemComparison",
    "add_gold_answers",
    "add_gold_queries",
    "compare_results",
    "compare_runs",
    "compute_retention",
    "load_prices",
    "load_questions",
    "locate_losses",
    "read_results",
    "save_questions",
    "summarize_costs",
]
