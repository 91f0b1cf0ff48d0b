"""What answers cost: seconds by stage, calls, queries, tokens, and money by a table of prices."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
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
    """The price of a million tokens of a model."""

    model: str
    """Pattern of model names; "*" matches anything."""
    input: NonNegativeAmount
    output: NonNegativeAmount
    date: str = ""
    source: str = ""


class Prices(BaseModel, frozen=True):
    """A table of prices. The first price whose pattern matches a model's name applies."""

    currency: str
    price: tuple[Price, ...] = ()
    file: str = ""

    def find_price(self, model: str) -> Price:
        """Return the price of a model. Raises InputError if the table has none."""
        for price in self.price:
            if fnmatchcase(model, price.model):
                return price
        raise InputError(
            f"{self.file} has no price of {model!r}",
            hint=f'add a [[price]] with model = "{model}" there, or give another table with --prices',
        )

    def compute_money(self, row: Mapping[str, Any]) -> float:
        """Return the price of the tokens in a row of a results file.

        It is 0 if the row has no ``models``, as in earlier versions. Raises InputError if a model
        has no price.
        """
        money = 0.0
        for model, used in row.get("models", {}).items():
            price = self.find_price(model)
            input_money = price.input * used["prompt_tokens"]
            output_money = price.output * used["completion_tokens"]
            money += (input_money + output_money) / 1e6
        return money

    def compute_amount(self, row: Mapping[str, Any], budget: str) -> float:
        """Return how much of one of BUDGET_NAMES a row used.

        "tokens" are those of prompts and completions together. What the row does not have is 0. Raises
        InputError for "money" if a model has no price.
        """
        if budget == "money":
            return self.compute_money(row)
        amount: float = row.get(budget, 0)
        if budget == "tokens":
            amount = row.get("prompt_tokens", 0) + row.get("completion_tokens", 0)
        return amount


def load_prices(path: str | Path | None = None) -> Prices:
    """Return the prices of a TOML file like prices.toml, which is the default.

    Raises InputError if the file cannot be read or has another form.
    """
    path = Path(path or DEFAULT_PRICES_FILE)
    try:
        data = tomllib.loads(disk.read_text(path))
        return Prices.model_validate({**data, "file": str(path)})
    except (OSError, ValueError, RecursionError) as exc:
        hint = f"write it like {DEFAULT_PRICES_FILE}"
        raise InputError(f"cannot read the prices {path}: {exc}", hint=hint) from exc


# --- the cost of a run


def sum_seconds_by_stage(system: System, steps: Iterable[Step]) -> dict[str, float]:
    """Return the seconds of each stage of a system.

    Stages are those of the system's gold decisions, which are named after the paper's figures, else
    those that the system declares for its agents. The time of a step inside a step of a stage is
    already part of it, and is not added again.
    """
    stage_by_agent = _stage_by_agent(system)
    seconds = dict.fromkeys(stage_by_agent.values(), 0.0)
    counted_keys: set[str] = set()
    for step in steps:  # supervisors come before the steps that they supervise
        is_inside = step.parent in counted_keys
        if is_inside or step.agent in stage_by_agent:
            counted_keys.add(step.key)
        if step.agent in stage_by_agent and not is_inside:
            seconds[stage_by_agent[step.agent]] += step.seconds
    return {stage: round(value, 6) for stage, value in seconds.items()}


def _stage_by_agent(system: System) -> Mapping[str, str]:
    """Return the stage of each agent that is in one.

    A system with gold decisions has their stages. Of another system, they are the titles of its stages
    in lower case; stages without a title are left out.
    """
    if system.gold:
        return system.gold.stages
    stages = {}
    for title, agents in system.stages:
        if title:
            name = title.removesuffix(" ↻").lower()  # the sign marks a stage that is repeated
            stages.update(dict.fromkeys(agents, name))
    return stages


def sum_usage(calls: Sequence[Call]) -> dict[str, Any]:
    """Return the cost of calls as fields of a row: seconds, COUNT_FIELDS, and ``models``.

    ``models`` has calls and tokens by the model's name.
    """
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if call.kind == "model":
            counts = models[call.request["model"]]
            counts["calls"] += 1
            counts["prompt_tokens"] += call.result.prompt_tokens
            counts["completion_tokens"] += call.result.completion_tokens
    seconds = sum(call.seconds for call in calls)
    totals = Totals.of(calls, 0, seconds)
    usage: dict[str, Any] = {"seconds": round(totals.seconds, 6)}
    for name in COUNT_FIELDS:
        usage[name] = getattr(totals, name)
    usage["models"] = dict(models)
    return usage


# --- the cost of a benchmark


class CostSummary(NamedTuple):
    """One kind of cost, over the questions whose rows have it."""

    questions: int
    total: float
    median: float
    p95: float
    """95th percentile over questions, interpolated."""


def summarize_costs(
    rows: Collection[Mapping[str, Any]], prices: Prices | None = None
) -> dict[str, CostSummary]:
    """Return a summary of each kind of cost: seconds, seconds of each stage, COUNT_FIELDS, money.

    A summary has the number of values, their sum, median and 95th percentile; all are 0 without
    values. A row without a value of a kind does not count for it. Money, under the name of the
    currency, is computed only with ``prices``. Raises InputError if a model has no price.
    """
    amounts: dict[str, list[float]] = {"seconds": [row["seconds"] for row in rows]}
    for row in rows:
        for stage, seconds in row.get("stages", {}).items():
            amounts.setdefault(f"seconds, {stage}", []).append(seconds)
    for name in (*COUNT_FIELDS, "executed_queries"):
        amounts[name.replace("_", " ")] = [row[name] for row in rows if name in row]
    if prices:
        amounts[prices.currency] = [prices.compute_money(row) for row in rows if "models" in row]
    summaries = {}
    for name, column in amounts.items():
        median, p95 = numpy.quantile(column or [0.0], [0.5, 0.95]).tolist()
        summaries[name] = CostSummary(len(column), float(sum(column)), median, p95)
    return summaries


class Budget:
    """Limits on what a benchmark may use: money, tokens, model calls, and seconds.

    Seconds are summed over questions, also over those asked in parallel. The rows that the results
    folder already has count too.
    """

    def __init__(self, limits: Mapping[str, float | str], prices: Prices | None = None) -> None:
        """Set limits by name, one of BUDGET_NAMES.

        Raises InputError for another name, or a limit that is not a number above 0.
        """
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
            if not self.limits[name] > 0:  # NaN is not above 0 either
                raise InputError(
                    f"the budget {name}={limit} is not above 0", hint="give a larger one"
                )
        self.prices = prices or load_prices()
        self.used = dict.fromkeys(limits, 0.0)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count the cost of a row. If it reused recorded calls, only its own calls count.

        Raises InputError if money is limited and a model has no price.
        """
        for name in self.limits:
            self.used[name] += self.prices.compute_amount(row.get("paid", row), name)

    @property
    def exhausted(self) -> str:
        """The limits that are reached, as text: "model calls 2 of 2"; empty if none is."""
        reached = []
        for name, limit in self.limits.items():
            used = self.used[name]
            if used >= limit:
                reached.append(f"{name.replace('_', ' ')} {used:,.6g} of {limit:,.6g}")
        return ", ".join(reached)
