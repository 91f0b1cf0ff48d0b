"""What answers cost: seconds by stage, calls, queries, tokens, and money by a table of prices."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from math import nan
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy
from pydantic import BaseModel, Field

from kgwb import disk
from kgwb.errors import InputError
from kgwb.llm.base import is_local
from kgwb.records import JsonObject, describe_validation_error
from kgwb.run.agents import OTHER_STAGE, System
from kgwb.run.steps import Call, Step, Totals
from kgwb.text import pluralize

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
        """Return the price of a model: the first whose pattern matches the model's name.

        Patterns are those of a shell ("gpt-4o*"); letter case counts. Raises InputError if none
        matches.
        """
        for price in self.price:
            if fnmatchcase(model, price.model):
                return price
        raise InputError(
            f"the price table {self.file} has no price for {model!r}",
            hint=f'add a [[price]] with model = "{model}" to it, or name another table with --prices',
        )

    def compute_money(self, row: Mapping[str, Any]) -> float:
        """Return what the tokens in a row of a results file cost, in the table's currency.

        Tokens of prompts and of completions have different prices, each for a million. It is 0 if
        the row has no ``models``, as in earlier versions. Raises InputError if a model has no
        price, or if it has one and its server did not report the tokens of a call.
        """
        money = 0.0
        for model, used in row.get("models", {}).items():
            price = self.find_price(model)
            if price.input or price.output:
                _check_counted(model, used)
            input_money = price.input * used["prompt_tokens"]
            output_money = price.output * used["completion_tokens"]
            money += (input_money + output_money) / 1e6
        return money

    def compute_amount(self, row: Mapping[str, Any], budget: str) -> float:
        """Return how much of one of BUDGET_NAMES a row used.

        "money" is that of ``compute_money``, and "tokens" are those of prompts and completions
        together. What the row does not have is 0. Raises InputError for "money" as
        ``compute_money`` does, and for "tokens" if a server did not report those of a call.
        """
        if budget == "money":
            return self.compute_money(row)
        amount: float = row.get(budget, 0)
        if budget == "tokens":
            for model, used in row.get("models", {}).items():
                _check_counted(model, used)
            amount = row.get("prompt_tokens", 0) + row.get("completion_tokens", 0)
        return amount


def _check_counted(model: str, used: Mapping[str, Any]) -> None:
    """Raise InputError if a server did not report the tokens of prompt and reply of each call.

    ``used`` are the counts of ``sum_usage``; those of earlier versions do not say of how many calls
    the tokens are unknown. A model without a server may report none: a local one, or one that has
    a name of its own. The name of a model of a server begins with whose it is, as in "openai:".
    """
    has_server = ":" in model and not is_local(model)
    if not has_server and not used["prompt_tokens"] and not used["completion_tokens"]:
        return
    uncounted = used.get("uncounted_calls", used["calls"] if not used["prompt_tokens"] else 0)
    if uncounted:
        raise InputError(
            f"it is not known what the calls of {model} cost: its server did not report "
            f"all tokens of {pluralize(uncounted, 'call')}",
            hint="see what the provider says, and limit tokens or money in another way there",
        )


def load_prices(path: str | Path | None = None) -> Prices:
    """Read a TOML file of prices like prices.toml, which is the default, and return it.

    Raises InputError if the file cannot be read or has another form.
    """
    path = Path(path or DEFAULT_PRICES_FILE)
    try:
        data = tomllib.loads(disk.read_text(path))
        data["file"] = str(path)
        return Prices.model_validate(data)
    except (OSError, ValueError, RecursionError) as exc:
        problem = describe_validation_error(exc)
        hint = f"name a table with --prices that has the form of {DEFAULT_PRICES_FILE}"
        raise InputError(f"cannot read the price table {path}: {problem}", hint=hint) from exc


# --- the cost of a run


class StageTime(NamedTuple):
    """How long a stage took."""

    seconds: float
    model_seconds: float
    """The part of them that was spent waiting for models."""


def sum_seconds_by_stage(
    system: System, steps: Sequence[Step], total_s: float
) -> dict[str, StageTime]:
    """Return how the seconds of a run divide among the stages of its system. They add up to ``total_s``.

    Stages are those of the system's gold decisions, which are named after the paper's figures, else
    those that the system declares for its agents. A step inside a step of a stage is part of that
    stage. What is spent elsewhere is OTHER_STAGE, which is left out if it is 0. Steps that were
    executed at the same time share the time that passed. Calls from the record took no time. If the
    steps took longer together than ``total_s``, all times are reduced in proportion. They are
    rounded to microseconds.
    """
    stage_by_agent = system.stage_by_agent
    seconds = dict.fromkeys([*stage_by_agent.values(), OTHER_STAGE], 0.0)
    model_seconds = dict(seconds)
    supervised: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        supervised[step.parent] += step.seconds
    stage_by_key: dict[str, str] = {}
    for step in steps:  # supervisors come before the steps that they supervise
        stage = stage_by_key.get(step.parent, OTHER_STAGE)
        if stage == OTHER_STAGE:
            stage = stage_by_agent.get(step.agent, OTHER_STAGE)
        stage_by_key[step.key] = stage
        own = max(0.0, step.seconds - supervised[step.key])
        waiting = _wait_for_models(step)
        seconds[stage] += own
        model_seconds[stage] += min(own, waiting)

    spent = sum(seconds.values())
    share = 1.0
    if spent > total_s:
        share = total_s / spent
    else:
        seconds[OTHER_STAGE] += total_s - spent
    times = {}
    for stage, stage_s in seconds.items():
        own = round(stage_s * share, 6)
        waiting = round(model_seconds[stage] * share, 6)
        if own or stage != OTHER_STAGE:
            times[stage] = StageTime(own, waiting)
    return times


def _wait_for_models(step: Step) -> float:
    """Return how many seconds a step waited for models: those of its last ``live_calls`` model calls.

    The calls before these came from the record, and took no time.
    """
    if not step.live_calls:
        return 0.0
    waits = [call.seconds for call in step.model_calls]
    first_live = max(0, len(waits) - step.live_calls)
    return sum(waits[first_live:])


def sum_usage(calls: Sequence[Call]) -> JsonObject:
    """Return the cost of calls as fields of a row of a results file.

    They are "seconds" and "model_seconds", rounded to microseconds, the counts of COUNT_FIELDS, and
    "models": the calls and the tokens of prompts and completions by the model's name, and how many
    calls did not say both. Each call counts, also one from the record.
    """
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seconds = 0.0
    for call in calls:
        seconds += call.seconds
        if call.kind == "model":
            name = call.request["model"]
            counts = models[name]
            counts["calls"] += 1
            counts["prompt_tokens"] += call.result.prompt_tokens
            counts["completion_tokens"] += call.result.completion_tokens
            if not call.result.is_counted(name):
                counts["uncounted_calls"] += 1
    totals = Totals.of(calls, 0, seconds)
    usage: JsonObject = {
        "seconds": round(totals.seconds, 6),
        "model_seconds": round(totals.model_seconds, 6),
    }
    for name in COUNT_FIELDS:
        usage[name] = getattr(totals, name)
    usage["models"] = dict(models)
    return usage


def list_served_models(calls: Iterable[Call]) -> dict[str, list[str]]:
    """Return, by the model's name, the versions that answered, as the servers named them, sorted.

    A version is the name in the reply, such as "gpt-4o-2024-08-06", and the fingerprint if there is
    one. A model whose replies say no more than its name is left out.
    """
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for call in calls:
        if call.kind != "model":
            continue
        name = call.request["model"]
        said = []
        for text in (call.result.model, call.result.fingerprint):
            if text and not name.endswith(text):
                said.append(text)
        if said:
            versions[name].add(", ".join(said))
    return {name: sorted(texts) for name, texts in versions.items()}


def merge_versions(
    first: Mapping[str, Sequence[str]], second: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the versions in both mappings by the model's name, each once; those of ``first`` come first."""
    merged: dict[str, list[str]] = {}
    for versions_by_name in (first, second):
        for name, versions in versions_by_name.items():
            known = merged.setdefault(name, [])
            for version in versions:
                if version not in known:
                    known.append(version)
    return merged


def add_usage(first: Mapping[str, Any], second: Mapping[str, Any]) -> JsonObject:
    """Return the sum of two results of ``sum_usage``, field by field and model by model.

    A field that one of them lacks counts as 0.
    """
    models: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total: JsonObject = {}
    for usage in (first, second):
        for name, amount in usage.items():
            if name == "models":
                for model, counts in amount.items():
                    models[model].update(counts)
                continue
            sum_so_far = total.get(name, 0)
            total[name] = round(sum_so_far + amount, 6)
    total["models"] = dict(models)
    return total


# --- the cost of a benchmark


class CostSummary(NamedTuple):
    """One kind of cost, over the questions whose rows have it."""

    questions: int
    total: float
    median: float
    p95: float
    """95th percentile over questions, interpolated."""

    @classmethod
    def of_amounts(cls, amounts: Sequence[float]) -> CostSummary:
        """Return the summary of the amounts of questions; all figures are 0 without any."""
        median, p95 = numpy.quantile(amounts or [0.0], [0.5, 0.95])
        return cls(len(amounts), float(sum(amounts)), float(median), float(p95))


def summarize_costs(
    rows: Collection[Mapping[str, Any]], prices: Prices | None = None
) -> dict[str, CostSummary]:
    """Return the number, sum, median and 95th percentile of each kind of cost over rows, by its name.

    The kinds are seconds, seconds of each stage, COUNT_FIELDS, executed queries, and with
    ``prices`` money, under the name of the currency. The wait for models stands apart: the seconds
    of a stage are without it, and "seconds, STAGE, model" is the wait alone, which is left out
    where no question waited. A row without a value of a kind does not count for it; without any
    value all figures are 0. Raises InputError as ``Prices.compute_money`` does.
    """
    amounts: dict[str, list[float]] = {"seconds": [], "seconds, model": []}
    for row in rows:
        for name, seconds in _list_seconds(row):
            amounts.setdefault(name, []).append(seconds)
    for name in (*COUNT_FIELDS, "executed_queries"):
        shown_name = name.replace("_", " ")
        amounts[shown_name] = [row[name] for row in rows if name in row]
    if prices:
        priced_rows = [row for row in rows if "models" in row]
        amounts[prices.currency] = list(map(prices.compute_money, priced_rows))
    summaries = {}
    for name, column in amounts.items():
        if any(column) or not name.endswith(", model"):
            summaries[name] = CostSummary.of_amounts(column)
    return summaries


def _list_seconds(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the times of a row by their names: in all, and of each stage without and with its wait."""
    yield "seconds", row["seconds"]
    if "model_seconds" in row:
        yield "seconds, model", row["model_seconds"]
    waits = row.get("stage_model_seconds", {})
    for stage, seconds in row.get("stages", {}).items():
        wait = waits.get(stage, 0.0)
        name = f"seconds, {stage}"
        yield name, seconds - wait
        yield f"{name}, model", wait


class Budget:
    """Limits on what a benchmark may use: money, tokens, model calls, and seconds.

    Seconds are summed over questions, also over those asked in parallel. The rows that the results
    folder already has count too.
    """

    def __init__(self, limits: Mapping[str, float | str], prices: Prices | None = None) -> None:
        """Set limits by name, one of BUDGET_NAMES.

        Raises InputError for another name, or a limit that is not a number above 0.
        """
        self.limits = {}
        for name, limit in limits.items():
            self.limits[name] = _parse_limit(name, limit)
        self.prices = prices or load_prices()
        self.used = dict.fromkeys(self.limits, 0.0)
        self._counted: set[tuple[Path, str, float]] = set()
        """The folder, id and seconds of each row of results that was added."""

    def add(self, row: Mapping[str, Any], folder: Path | None = None) -> None:
        """Add the cost of a row to what is used of each limit. A row of a results folder counts once.

        If the row reused recorded calls, only its own calls count ("paid"). Raises InputError if
        what is limited is not known (``Prices.compute_amount``).
        """
        if folder is not None:
            asked = folder, row["id"], row["seconds"]
            if asked in self._counted:
                return
            self._counted.add(asked)
        paid = row.get("paid", row)
        for name in self.limits:
            self.used[name] += self.prices.compute_amount(paid, name)

    @property
    def exhausted(self) -> str:
        """The limits that are reached, as text: "model calls 2 of 2"; "" if none is.

        Several are in the order in which they were given, separated by commas.
        """
        reached = []
        for name, limit in self.limits.items():
            used = self.used[name]
            if used >= limit:
                reached.append(f"{name.replace('_', ' ')} {used:,.6g} of {limit:,.6g}")
        return ", ".join(reached)


def _parse_limit(name: str, limit: float | str) -> float:
    """Return the limit of one of BUDGET_NAMES as a number.

    Raises InputError for another name, or a limit that is not a number above 0.
    """
    if name not in BUDGET_NAMES:
        raise InputError(
            f"a budget cannot limit {name!r}",
            hint=f"limit one of {', '.join(BUDGET_NAMES)}, such as {BUDGET_NAMES[0]}=100",
        )
    number = nan
    with suppress(ValueError):
        number = float(limit)
    if not number > 0:  # NaN is not above 0 either
        raise InputError(
            f"the budget {name}={limit} is not a number above 0",
            hint=f"write such a number, as in {name}=100",
        )
    return number
