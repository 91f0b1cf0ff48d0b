"""The prompt lab: questions of a benchmark asked again after a change, with the calls it does not touch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kgwb import systems
from kgwb.bench.cost import Budget, Prices, sum_usage
from kgwb.bench.figures import LoadedResults
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import (
    INFORMATIONAL_ENTRIES,
    BenchRow,
    Results,
    describe_config_changes,
    find_run_file,
    get_verdict,
    is_lost,
    lock_folder,
)
from kgwb.bench.runner import Benchmark, BenchSetup, EarlierRuns, fingerprint, run_file_path
from kgwb.deprecated import RenamedAttribute, renamed_names
from kgwb.errors import InputError, KgwbError
from kgwb.kg import Graph, cache_dir
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel
from kgwb.run import Replay, Run
from kgwb.run.calls import Call
from kgwb.run.models import open_model
from kgwb.run.prompts import Prompts
from kgwb.run.steps import Step
from kgwb.text import pluralize

RETRIES_FOLDER = "retries"
"""Folder of what was asked again, below that of the results."""
SELECTOR_FIELDS = ("hops", "type", "language", "dialogue")
"""Fields of a line by which questions can be chosen, as "type=count"."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What asking again will take, from the least to the most."""

    questions: int
    without_saved_run: int
    """Questions whose runs were not kept, so that all of their calls are made again."""
    calls: tuple[int, int]
    """The least: calls of the agents that are changed. The most: also those of every agent after them."""
    tokens: tuple[int, int]
    money: tuple[float, float] | None
    """None where a model has no price."""
    currency: str = ""

    def __str__(self) -> str:
        parts = [pluralize(self.questions, "question"), f"{_format_range(self.calls)} model calls"]
        parts.append(f"about {_format_range(self.tokens)} tokens")
        parts += [f"{_format_range(self.money)} {self.currency}"] if self.money else []
        unkept = (
            f" ({self.without_saved_run} without a kept run: asked in full)"
            if self.without_saved_run
            else ""
        )
        return ", ".join(parts) + unkept


def _format_range(ends: tuple[float, float]) -> str:
    low, high = (f"{end:,.4g}" if isinstance(end, float) else f"{end:,}" for end in ends)
    return low if low == high else f"{low} to {high}"


class RetryExperiment:
    """The results of a folder, to be asked again with other prompts, models or settings.

    Graph and models are those that were measured, or ``kg``, ``model`` and ``models`` (by agent), also by
    their names. Raises InputError where the folder holds no results, or its graph is another one now.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        models: Mapping[str, ChatModel | str] | None = None,
    ) -> None:
        self.earlier_results = LoadedResults.read(Path(folder))
        self.system = systems.load_system(str(self.earlier_results.config.get("system")))
        self.kg = self.earlier_results.open_graph(kg)
        specs = {**({"": model} if model else {}), **(models or {})}
        self._given_models = {name: open_model(each) for name, each in specs.items()}
        kept = {
            name: self._open_measured_model(name)
            for name in self.earlier_results.model_specs
            if name not in self._given_models
        }
        self.models = {**kept, **self._given_models}

    def _open_measured_model(self, agent: str) -> ChatModel:
        """A model that was measured: the one that was given, where it is that one."""
        model = self._given_models.get(agent)
        fits = model is not None and model.name == self.earlier_results.model_specs[agent]
        return model if model and fits else self.earlier_results.model(agent)

    def make_setup(
        self, prompts: Prompts | None = None, typed_settings: Mapping[str, str] | None = None
    ) -> BenchSetup:
        """What was measured with other prompts (those that are there now), and settings as they were typed.

        Raises SettingError, and InputError where nothing differs from what was measured.
        """
        config, form, typed = (
            self.earlier_results.config,
            self.system.settings,
            typed_settings or {},
        )
        known = {
            name: value
            for name, value in config.get("settings", {}).items()
            if name in form.setting_names()
        }
        present = form(**known)
        new = form.of_profile(present.profile, parse_strings=True, **typed)
        changed = present.with_changes(**{name: getattr(new, name) for name in typed})
        embeddings = Embeddings(
            str(config.get("embeddings")), cache_folder=cache_dir(), trusted=False
        )
        setup = BenchSetup(
            self.kg, self.system, self.models, changed, prompts or Prompts(), embeddings
        )
        if not any(describe_config_changes(config, setup.to_config())):
            hint = f"change a setting, a model, or a prompt, in a file such as {self.system.name}/NAME.md"
            raise InputError(
                f"nothing differs from what {self.earlier_results.folder} measured", hint=hint
            )
        return setup

    def get_results_folder(self, setup: BenchSetup, name: str) -> Path:
        """Where its results are kept: the same set-up has the same folder, so that it is gone on with."""
        config = {
            key: value
            for key, value in setup.to_config().items()
            if key not in INFORMATIONAL_ENTRIES
        }
        content = fingerprint(json.dumps(config, sort_keys=True))[:6]
        return (
            self.earlier_results.folder
            / RETRIES_FOLDER
            / f"{quote(name, safe=' =,%')[:80]}.{content}"
        )

    # --- which questions

    def choose_questions(self, selectors: Iterable[str] = ()) -> list[BenchQuestion]:
        """The questions that any of ``only`` names; by default all lost ones and as many that were right.

        "lost", "wrong", "errors", "right", "all", "blamed=AGENT" (by the ladder), "type=count" and the like,
        or an id. The turns of a dialogue come with those before them. Raises InputError.
        """
        rows, chosen = list(self.earlier_results.rows.values()), set[str]()
        for what in selectors:
            if not (fitting := {row["id"] for row in rows if what in self._selectors_of(row)}):
                hint = "give lost, wrong, errors, right, all, blamed=AGENT, type=NAME or a question's id"
                raise InputError(
                    f"no question of {self.earlier_results.folder} is {what!r}", hint=hint
                )
            chosen |= fitting
        if not selectors:
            missed = [row["id"] for row in rows if is_lost(row)]
            right = [row["id"] for row in rows if get_verdict(row) == "right"]
            number = min(len(missed), len(right))
            chosen = {*missed, *(right[place * len(right) // number] for place in range(number))}
            if not missed:
                raise InputError(
                    "no answer was lost", hint="choose what is asked again, as --only all"
                )
        last = Counter[str]()
        for row in rows:
            if row["id"] in chosen and "dialogue" in row:
                last[row["dialogue"]] = max(last[row["dialogue"]], row.get("turn", 0))
        questions = []
        for row in rows:
            if row["id"] in chosen or row.get("turn", 0) < last[row.get("dialogue", "")]:
                data = {
                    name: row[name]
                    for name in ("id", "question", *SELECTOR_FIELDS, "turn")
                    if name in row
                }
                data |= {"answers": row["gold"], "columns": row.get("columns", ())}
                if labels := row.get("labels", {}):
                    data["answer_labels"] = [
                        labels.get(value, value) for value in row["gold"] or ()
                    ]
                questions.append(BenchQuestion(**data, rows=row.get("gold_table", ())))
        return questions

    def _selectors_of(self, row: BenchRow) -> set[str]:
        """Every word that names a line."""
        kinds = {
            "all",
            row["id"],
            get_verdict(row),
            *(f"{name}={row[name]}" for name in SELECTOR_FIELDS if name in row),
        }
        kinds |= {"lost"} if is_lost(row) else set()
        kinds |= {"errors"} if row["error"] is not None else set()
        return kinds | {
            f"blamed={self.earlier_results.losses_by_id.get(row['id'], {}).get('agent')}"
        }

    # --- what it takes

    def estimate_cost(
        self,
        setup: BenchSetup,
        questions: Sequence[BenchQuestion],
        *,
        prices: Prices,
        repeats: int = 1,
    ) -> CostEstimate:
        """What asking these takes, by what they cost before: nothing is asked for it.

        Each kept run is executed up to the first agent whose model would have to be asked.
        """
        silent = {name: Replay((), name=model.name) for name, model in setup.models.items()}
        quiet = replace(setup, models=silent)
        least, most, unkept = [], [], 0
        for question in questions:
            row = self.earlier_results.rows[question.id]
            if file := find_run_file(
                self.earlier_results.folder, {"run": run_file_path(question.id)}
            ):
                low, high = self._find_missing_calls(quiet, file)
                least.append(sum_usage(low))
                most.append(sum_usage(high))
            else:
                unkept += 1
                least.append(row)
                most.append(row)
        times = 2 * repeats - 1  # before and after the change

        def span(budget: str) -> tuple[Any, Any]:
            low, high = (
                sum(prices.compute_amount(row, budget) for row in rows) for rows in (least, most)
            )
            return times * low, times * high

        money = None
        with suppress(InputError):
            money = span("money")
        calls, tokens = span("model_calls"), span("tokens")
        return CostEstimate(len(questions), unkept, calls, tokens, money, prices.currency)

    def _find_missing_calls(self, setup: BenchSetup, file: Path) -> tuple[list[Call], list[Call]]:
        """The recorded model calls that a set-up cannot use: of the agents it changes, and of all after."""
        before = systems.load_run(file)
        run = setup.begin(before.question, before.dialogue)
        run.resume(file, include_finished=True)
        with suppress(KgwbError):
            run.go()
        above = {step.parent for step in run.steps}
        changed = {step.agent for step in run.steps if step.error and step.key not in above}
        places = [place for place, step in enumerate(before.steps) if step.agent in changed]
        if run.error is None or not places:
            return [], []
        after = before.steps[places[0] :]
        of_changed = [step for step in after if step.agent in changed]
        return _list_model_calls(before, of_changed, run), _list_model_calls(before, after, run)

    # --- asking

    def ask_again(  # how much, how fast, and who is told
        self,
        setup: BenchSetup,
        questions: Sequence[BenchQuestion],
        folder: Path,
        *,
        repeats: int = 1,
        workers: int = 1,
        budget: Budget | None = None,
        on_row: Callable[[BenchRow], object] = lambda row: None,
    ) -> str:
        """Ask these again and keep what comes of it in a folder; goes on where it stopped.

        With ``repeats`` whatever differs is asked so often, before and after the change. The budget counts
        what is paid for, not what is recorded. Returns which budget stopped it, or "".
        """
        models = (
            {name: self._open_measured_model(name) for name in self.earlier_results.model_specs}
            if repeats > 1
            else {}
        )
        earlier = EarlierRuns(self.earlier_results.folder.resolve(), models, repeats)
        how: Any = {"workers": workers, "budget": budget or Budget({}), "on_row": on_row}
        with lock_folder(folder):
            results = Results(folder, setup.to_config(questions))
            runner = Benchmark(setup, results, **how, save_runs=True, earlier_runs=earlier)
            runner.run(questions)
        return runner.stop_reason

    ask = RenamedAttribute("ask", "ask_again")
    changed = RenamedAttribute("changed", "make_setup")
    choose = RenamedAttribute("choose", "choose_questions")
    estimate = RenamedAttribute("estimate", "estimate_cost")


def _list_model_calls(before: Run, steps: Iterable[Step], run: Run) -> list[Call]:
    """The model calls of steps, each under the name of the model that would be asked now."""
    return [
        replace(call, request={**call.request, "model": run.model_name(step.agent)})
        for step in steps
        for call in map(before.calls.__getitem__, step.calls)
        if call.kind == "model"
    ]


if not TYPE_CHECKING:  # a type checker would take every name for known
    __getattr__ = renamed_names(__name__)
