"""What answers cost: seconds by stage, calls, queries, tokens, and money under a table of prices."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kgwb import disk
from kgwb.errors import InputError
from kgwb.run.agents import System
from kgwb.run.record import Call, Step
from kgwb.show.html import clean
from kgwb.systems import oracle

SHIPPED = Path(__file__).with_name("prices.toml")
BUDGETS = ("money", "tokens", "model_calls", "seconds")
_COUNTS = ("model_calls", "prompt_tokens", "completion_tokens", "queries")


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost."""

    model: str
    """Pattern of the model's name: "*" is anything."""
    input: float
    output: float
    date: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Prices:
    """A table of prices; the first that fits a model counts."""

    currency: str
    prices: tuple[Price, ...]
    file: str = ""

    def of(self, model: str) -> Price:
        """The price of a model. Raises InputError if there is none."""
        found = next((price for price in self.prices if fnmatchcase(model, price.model)), None)
        if found is None:
            hint = f'add a [[price]] with model = "{model}" there, or give another table with --prices'
            raise InputError(f"{self.file} has no price of {model!r}", hint=hint)
        return found

    def money(self, row: Mapping[str, Any], model: str | None = None) -> float:
        """What a line of a results file cost, or would have with another model; raises InputError."""
        return sum(
            (price.input * used["prompt_tokens"] + price.output * used["completion_tokens"]) / 1e6
            for name, used in row.get("models", {}).items()
            if (price := self.of(model or name))
        )


def load_prices(path: str | Path | None = None) -> Prices:
    """The prices of a TOML file like the shipped one (None). Raises InputError."""
    path = Path(path or SHIPPED)
    try:
        data = tomllib.loads(disk.read_text(path))
        prices = tuple(Price(**entry) for entry in data.get("price", ()))
        if not all(isinstance(price.model, str) for price in prices):
            raise ValueError("model is a text")
        if not all(_is_price(cost) for price in prices for cost in (price.input, price.output)):
            raise ValueError("input and output are prices of a million tokens, 0 or more")
        return Prices(str(data["currency"]), prices, str(path))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        hint = f"write it like {SHIPPED}"
        raise InputError(f"cannot read the prices {path}: {exc}", hint=hint) from exc


def _is_price(cost: object) -> bool:
    return type(cost) in (int, float) and 0 <= cost < 1e15  # type: ignore[operator]


# --- what a run cost


def stages(system: System, steps: Iterable[Step]) -> dict[str, float]:
    """Seconds by stage, as the system's own table says; a step within a step of a stage is part of it."""
    known = oracle(system.name)
    by_agent = known.STAGES if known else {}
    told = dict.fromkeys(by_agent.values(), 0.0)
    within: set[str] = set()
    for step in steps:  # supervisors come before what they supervise
        if step.parent in within:
            within.add(step.key)
        elif step.agent in by_agent:
            within.add(step.key)
            told[by_agent[step.agent]] += step.seconds
    return {name: round(seconds, 6) for name, seconds in told.items()}


def by_model(calls: Iterable[Call]) -> dict[str, dict[str, int]]:
    """Calls and tokens by the model's name."""
    told: dict[str, dict[str, int]] = {}
    for call in calls:
        if call.kind == "model":
            used = told.setdefault(
                call.request["model"], {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
            )
            used["calls"] += 1
            used["prompt_tokens"] += call.result.prompt_tokens
            used["completion_tokens"] += call.result.completion_tokens
    return told


# --- what a benchmark cost


@dataclass(frozen=True, slots=True)
class Cost:
    """One kind of cost over the questions whose lines tell it."""

    name: str
    questions: int
    total: float
    median: float
    p95: float
    """95 % of the questions cost at most this, interpolated."""


def costs(
    rows: Sequence[Mapping[str, Any]], prices: Prices | None = None, priced_as: Sequence[str] = ()
) -> list[Cost]:
    """Seconds in all and by stage, calls, tokens, queries; with ``prices`` the money.

    ``priced_as`` are models whose prices the same tokens are counted at too. Raises InputError for a model
    that has no price.
    """
    told = [_cost("seconds", [row["seconds"] for row in rows])]
    names = dict.fromkeys(stage for row in rows for stage in row.get("stages", {}))
    told += [
        _cost(f"seconds, {name}", [row["stages"][name] for row in rows if name in row.get("stages", {})])
        for name in names
    ]
    told += [_cost(name.replace("_", " "), [row[name] for row in rows if name in row]) for name in _COUNTS]
    if prices:
        known = [row for row in rows if "models" in row]
        told += [
            _cost(
                f"{prices.currency}, priced as {model}" if model else prices.currency,
                [prices.money(row, model) for row in known],
            )
            for model in (None, *priced_as)
        ]
    return told


def cost_table(told: Sequence[Cost]) -> str:
    """Costs as a table of text, a line each."""
    width = max(len(clean(cost.name)) for cost in told)
    lines = [f"{'cost a question':<{width}}  {'median':>12}  {'95th percentile':>15}  {'total':>14}"]
    for cost in told:
        figures = (f"{cost.median:>12,.4g}", f"{cost.p95:>15,.4g}", f"{cost.total:>14,.6g}")
        lines.append("  ".join([f"{clean(cost.name):<{width}}", *figures]))
    return "\n".join(lines)


def _cost(name: str, figures: Sequence[float]) -> Cost:
    import numpy

    median, p95 = numpy.quantile(figures, [0.5, 0.95]) if figures else (0.0, 0.0)
    return Cost(name, len(figures), float(sum(figures)), float(median), float(p95))


class Budget:
    """What a benchmark may use up: money, tokens, model calls, seconds of work summed over questions.

    It is counted over what the results folder holds and what is asked now.
    """

    def __init__(self, limits: Mapping[str, float], prices: Prices | None = None) -> None:
        """Raises InputError for a limit that is none of ``BUDGETS``, and for one that is not above 0."""
        if unknown := sorted({*limits} - {*BUDGETS}):
            raise InputError(f"{unknown[0]!r} is no budget", hint=f"give one of {', '.join(BUDGETS)}")
        for name, limit in limits.items():
            if not limit > 0:  # nor is NaN
                raise InputError(f"the budget {name}={limit} is not above 0", hint="give a larger one")
        self.limits, self.prices = limits, prices or load_prices()
        self.used = dict.fromkeys(limits, 0.0)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a line. Raises InputError if there is no price for its model."""
        for name in self.limits:
            if name == "money":
                self.used[name] += self.prices.money(row)
            elif name == "tokens":
                self.used[name] += row.get("prompt_tokens", 0) + row.get("completion_tokens", 0)
            else:
                self.used[name] += row.get(name, 0)

    @property
    def spent(self) -> str:
        """Which limit is reached, in words; empty if none is."""
        return ", ".join(
            f"{name.replace('_', ' ')} {self.used[name]:,.6g} of {limit:,.6g}"
            for name, limit in self.limits.items()
            if self.used[name] >= limit
        )
