"""What answers cost: seconds by stage, calls, queries, tokens, and money under a table of prices."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy
from pydantic import BaseModel, Field

from kgwb import disk
from kgwb.errors import InputError
from kgwb.run.agents import System
from kgwb.run.calls import Call
from kgwb.run.steps import Step, Totals

DEFAULT_PRICES_FILE = Path(__file__).with_name("prices.toml")
COUNT_FIELDS = ("model_calls", "prompt_tokens", "completion_tokens", "queries")
BUDGET_NAMES = ("money", "tokens", "model_calls", "seconds")
NonNegativeAmount = Annotated[float, Field(strict=True, ge=0, lt=1e15)]


class Price(BaseModel, frozen=True, extra="forbid"):
    """What a million tokens cost."""

    model: str
    """Pattern of the model's name: "*" is anything."""
    input: NonNegativeAmount
    output: NonNegativeAmount
    date: str = ""
    source: str = ""


class Prices(BaseModel, frozen=True):
    """A table of prices; the first that fits a model counts."""

    currency: str
    price: tuple[Price, ...] = ()
    file: str = ""

    def find_price(self, model: str) -> Price:
        """The price of a model. Raises InputError if there is none."""
        for price in self.price:
            if fnmatchcase(model, price.model):
                return price
        hint = f'add a [[price]] with model = "{model}" there, or give another table with --prices'
        raise InputError(f"{self.file} has no price of {model!r}", hint=hint)

    def compute_money(self, row: Mapping[str, Any]) -> float:
        """What a line of a results file cost. Raises InputError if there is no price for a model."""
        return sum(
            (price.input * used["prompt_tokens"] + price.output * used["completion_tokens"]) / 1e6
            for model, used in row.get("models", {}).items()
            if (price := self.find_price(model))
        )

    def compute_amount(self, row: Mapping[str, Any], budget: str) -> float:
        """What a line used of one of ``BUDGETS``. Raises InputError if there is no price for a model."""
        tokens = row.get("prompt_tokens", 0) + row.get("completion_tokens", 0)
        amounts: Mapping[str, float] = {**row, "tokens": tokens}
        return float(self.compute_money(row)) if budget == "money" else amounts.get(budget, 0)


def load_prices(path: str | Path | None = None) -> Prices:
    """The prices of a TOML file like the shipped one (None). Raises InputError."""
    path = Path(path or DEFAULT_PRICES_FILE)
    try:
        return Prices.model_validate(tomllib.loads(disk.read_text(path)) | {"file": str(path)})
    except (OSError, ValueError, RecursionError) as exc:
        hint = f"write it like {DEFAULT_PRICES_FILE}"
        raise InputError(f"cannot read the prices {path}: {exc}", hint=hint) from exc


# --- what a run cost


def sum_seconds_by_stage(system: System, steps: Iterable[Step]) -> dict[str, float]:
    """Seconds by stage, as its ``gold`` names them for the paper's figures, else as the system declares them.

    A step within a step of a stage is part of it.
    """
    titled = [
        (title.removesuffix(" ↻").lower(), agents) for title, agents in system.stages if title
    ]
    known = system.gold
    stage_of = (
        known.stages if known else {agent: title for title, agents in titled for agent in agents}
    )
    seconds = dict.fromkeys(stage_of.values(), 0.0)
    within: set[str] = set()
    for step in steps:  # supervisors come before what they supervise
        if step.parent in within:
            within.add(step.key)
        elif step.agent in stage_of:
            within.add(step.key)
            seconds[stage_of[step.agent]] += step.seconds
    return {name: round(value, 6) for name, value in seconds.items()}


def sum_usage(calls: Sequence[Call]) -> dict[str, Any]:
    """What calls cost, in all and by the model's name, as a line of a results file has it."""
    models: dict[str, Counter[str]] = {}
    for call in calls:
        if call.kind == "model":
            tokens = {
                name: getattr(call.result, name) for name in ("prompt_tokens", "completion_tokens")
            }
            models.setdefault(call.request["model"], Counter()).update({"calls": 1, **tokens})
    totals = Totals.of(calls, 0, sum(call.seconds for call in calls))
    counts = {name: getattr(totals, name) for name in COUNT_FIELDS}
    return {"seconds": round(totals.seconds, 6), **counts, "models": models}


# --- what a benchmark cost


class CostSummary(NamedTuple):
    """One kind of cost over the questions whose lines have it."""

    questions: int
    total: float
    median: float
    p95: float
    """95 % of the questions cost at most this, interpolated."""


def summarize_costs(
    rows: Collection[Mapping[str, Any]], prices: Prices | None = None
) -> dict[str, CostSummary]:
    """Seconds (by stage too), calls, tokens, queries, with ``prices`` money: by name. Raises InputError."""
    figures = {"seconds": [row["seconds"] for row in rows]}
    for row in rows:
        for name, seconds in row.get("stages", {}).items():
            figures.setdefault(f"seconds, {name}", []).append(seconds)
    for name in COUNT_FIELDS:
        figures[name.replace("_", " ")] = [row[name] for row in rows if name in row]
    if prices:
        figures[prices.currency] = [prices.compute_money(row) for row in rows if "models" in row]
    return {
        name: CostSummary(
            len(column), float(sum(column)), *numpy.quantile(column or [0.0], [0.5, 0.95]).tolist()
        )
        for name, column in figures.items()
    }


class Budget:
    """What a benchmark may use up: money, tokens, model calls, seconds of work summed over questions.

    It is counted over what the results folder holds and what is asked now.
    """

    def __init__(self, limits: Mapping[str, float | str], prices: Prices | None = None) -> None:
        """Raises InputError for a limit that is none of ``BUDGETS``, or no number above 0."""
        self.limits: dict[str, float] = {}
        for name, limit in limits.items():
            if name not in BUDGET_NAMES:
                raise InputError(
                    f"{name!r} is no budget", hint=f"give one of {', '.join(BUDGET_NAMES)}"
                )
            try:
                self.limits[name] = float(limit)
            except ValueError as exc:
                raise InputError(f"{name} cannot be {limit!r}", hint="give a number") from exc
            if not self.limits[name] > 0:  # nor is NaN
                raise InputError(
                    f"the budget {name}={limit} is not above 0", hint="give a larger one"
                )
        self.prices = prices or load_prices()
        self.used = dict.fromkeys(limits, 0.0)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a line; of one that was lent calls, what it paid for. Raises InputError without a price."""
        for name in self.limits:
            self.used[name] += self.prices.compute_amount(row.get("paid", row), name)

    @property
    def exhausted(self) -> str:
        """Which limit is reached, in words; empty if none is."""
        return ", ".join(
            f"{name.replace('_', ' ')} {self.used[name]:,.6g} of {limit:,.6g}"
            for name, limit in self.limits.items()
            if self.used[name] >= limit
        )
