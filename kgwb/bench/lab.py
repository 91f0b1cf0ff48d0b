"""Asking questions of a benchmark again after a change, and keeping the prompts that helped.

Calls that did not change are reused. Kept prompts are a person's folder with a history, the file
``history.jsonl``, one line for each change. A line has the whole text of each prompt before and
after the change, so every earlier state can be restored. The prompts themselves are files
``SYSTEM/AGENT.md``, which ``--prompts`` reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from pydantic import BaseModel, model_validator

from kgwb import disk
from kgwb.bench.assertions import list_failed
from kgwb.bench.comparisons import (
    UNFOLDED_OUTCOMES,
    ResultsComparison,
    compare_with_each,
    load_prompt_texts,
)
from kgwb.bench.cost import Budget, Prices, sum_usage
from kgwb.bench.figures import LoadedResults
from kgwb.bench.formats import time_now
from kgwb.bench.ladder import locate_losses
from kgwb.bench.questions import (
    SLICE_FIELDS,
    TEST_SPLIT,
    BenchQuestion,
    slices_of,
    with_earlier_turns,
)
from kgwb.bench.results import (
    CONFIG_FILE,
    INFORMATIONAL_ENTRIES,
    RESULTS_FILE,
    BenchRow,
    QuestionSample,
    Results,
    add_remembered_turn,
    describe_config_changes,
    find_run_file,
    get_verdict,
    is_lost,
    is_shown,
    lock_folder,
    parse_json_lines,
    question_of_row,
    read_results,
)
from kgwb.bench.runner import (
    AskPlaces,
    Benchmark,
    BenchSetup,
    EarlierRuns,
    begin_question,
    fingerprint,
    open_store,
    run_file_path,
)
from kgwb.errors import InputError, KgwbError, SettingError
from kgwb.kg import Graph, cache_dir
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import ChatModel
from kgwb.records import JsonObject, frozen
from kgwb.run import Replay, Run, System, systems
from kgwb.run.answers import Dialogue
from kgwb.run.models import open_model
from kgwb.run.prompts import PROMPT_NAME, Prompts, copy_beside, shipped_names
from kgwb.run.record import current_settings
from kgwb.run.steps import Call, Step
from kgwb.run.store import CallStore, find_store
from kgwb.run.systems import SystemSource
from kgwb.show.html import div, static_page, tag
from kgwb.show.run_state import ANSWER_STATE_ICONS, RIGHT
from kgwb.show.tables import Table
from kgwb.text import list_first, pluralize, single_line

RETRIES_FOLDER = "retries"
"""Folder of what was asked again, inside the results folder."""
MAX_NAME_CHARS = 80
WITHOUT_GOLD = "without gold"
TEST_SLICE = f"split={TEST_SPLIT}"
MAX_TEST_LOOKS = 5
"""With so many changes the test part of a set can be asked: who chooses by it does not test any more."""
SELECTOR_WORDS = ("all", "lost", "errors", "failed", WITHOUT_GOLD, *ANSWER_STATE_ICONS)
"""Words that choose several questions. A question whose id is one of them is chosen as "id=lost"."""


@frozen
class CostEstimate:
    """The cost of asking questions again, each as (least, most)."""

    questions: int
    without_saved_run: int
    """The number of questions whose calls are not kept, so that all of them are made again."""
    calls: tuple[int, int]
    """Model calls. The least are those of the changed agents; the most, also those of all later agents."""
    tokens: tuple[int, int] | None
    """None if a server did not report those of all calls before."""
    money: tuple[float, float] | None
    """None if a model has no price, or its tokens are not known."""
    currency: str = ""

    def __str__(self) -> str:
        questions = pluralize(self.questions, "question")
        calls = _format_range(self.calls)
        tokens = f"about {_format_range(self.tokens)}" if self.tokens else "an unknown number of"
        text = f"{questions}, {calls} model calls, {tokens} tokens"
        if self.money:
            text += f", {_format_range(self.money)} {self.currency}"
        if self.without_saved_run:
            text += f" ({self.without_saved_run} without a record: all their calls are made again)"
        return text


def _format_range(ends: tuple[float, float]) -> str:
    """Return "8 to 10", or "8" if both ends are shown alike. A float has four figures."""
    low, high = map(_format_number, ends)
    return low if low == high else f"{low} to {high}"


def _format_number(number: float) -> str:
    """Return a number with commas; of a float four figures."""
    if isinstance(number, float):
        return f"{number:,.4g}"
    return f"{number:,}"


class RetryExperiment:
    """The results of a folder, to be asked again with other prompts, models or settings."""

    def __init__(
        self,
        folder: str | Path,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        models: Mapping[str, ChatModel | str] | None = None,
        system: SystemSource | None = None,
        base: str | Path | None = None,
    ) -> None:
        """Read the results, and open their graph and models.

        ``base`` is a retry, or a folder of kept prompts, which stands for the retry that its prompts
        come from: changes are made to its setup in place of that of ``folder``. ``kg``, ``model``
        and ``models`` (by agent) take the place of those that were measured.
        ``system`` must be given if the one that was measured is not among the names of systems.
        Raises InputError if the folder holds no results, or if the graph is not the one that was
        measured.
        """
        self.earlier_results = LoadedResults.read(Path(folder))
        self.base = self.earlier_results
        """The results whose setup is changed."""
        if base is not None:
            self.base = LoadedResults.read(_find_base(Path(base)))
        measured_system = self.earlier_results.config.get("system")
        if system is None:
            system = self._load_measured_system(str(measured_system))
        self.system = systems.resolve_system(system)
        self.kg = self.base.open_graph(self.earlier_results.open_graph(kg))
        specs = dict(models or {})
        if model:
            specs.setdefault("", model)
        self._given_models = {}
        for agent, spec in specs.items():
            self._given_models[agent] = open_model(spec)
        self.models: dict[str, ChatModel] = {}
        for agent in self.base.model_specs:
            if agent not in self._given_models:
                self.models[agent] = self.base.model(agent)
        self.models |= self._given_models

    def _load_measured_system(self, name: str) -> System:
        """Return the system of a name, which the results have.

        Raises SettingError if there is none: nothing is imported because a folder of results says so.
        """
        try:
            return systems.load_system(name)
        except SettingError as error:
            raise SettingError(
                f"the results in {self.earlier_results.folder} were measured with the system "
                f"{name!r}, and {error.message}",
                hint="name the system again, by its file or import path: --system ./FILE.py, or "
                "system=...",
            ) from error

    def _measured_models(self) -> dict[str, ChatModel]:
        """Return the models that were measured, by agent: a given one if its name is the same, else opened anew.

        Raises InputError for a model at an address of its own that was not given.
        """
        models = {}
        for agent, spec in self.earlier_results.model_specs.items():
            given_model = self._given_models.get(agent)
            if given_model and given_model.name == spec:
                models[agent] = given_model
            else:
                models[agent] = self.earlier_results.model(agent)
        return models

    def make_setup(
        self,
        prompts: Prompts | None = None,
        typed_settings: Mapping[str, str] | None = None,
        *,
        must_differ: bool = True,
    ) -> BenchSetup:
        """Return the setup of ``base``, with these prompts, models and changed settings.

        A prompt that is not given stays the one that was measured, if a saved run used it; else it is
        the one that kgwb has now. The values of settings are texts, as they are typed. Raises
        SettingError, PromptError for prompts that the system cannot use, and InputError if the setup
        ``must_differ`` from the one of ``base`` and nothing differs.
        """
        given_prompts = prompts or Prompts()
        self.system.check_prompts(given_prompts)
        setup = self._restore_setup(self.base, self.models, given_prompts, typed_settings or {})
        if must_differ and not self.describe_changes(setup):
            raise InputError(
                "no question is asked again, since nothing was changed: this is the setup that "
                f"{self.base.folder} was measured with",
                hint="change a prompt (in the editor, or in a file such as "
                f"{self.system.name}/NAME.md of the folder of prompts), a setting, or a model",
            )
        return setup

    def _restore_setup(
        self,
        results: LoadedResults,
        models: Mapping[str, ChatModel],
        prompts: Prompts,
        typed_settings: Mapping[str, str],
    ) -> BenchSetup:
        """Return the setup that results were measured with, with these models, and with given prompts and settings.

        A measured prompt that differs from the system's present one is added as text, if a saved run
        used it and it has the measured fingerprint. Given ones stay. Measured settings that this
        version lacks are left out; typed ones are parsed. Raises SettingError for an unknown name
        or an impossible value.
        """
        for name, text in _find_texts(results, self.system).items():
            if text is not None and not prompts.has_own(name):
                prompts = prompts.with_text(name, text)

        settings_class = self.system.settings
        stored = current_settings(results.config.get("settings", {}), self.system.name)
        settings = settings_class(**settings_class.select_known(stored))
        parsed = settings_class.of_profile(settings.profile, parse_strings=True, **typed_settings)
        changes = {}
        for name in typed_settings:
            changes[name] = getattr(parsed, name)
        return BenchSetup(
            kg=self.kg,
            system=self.system,
            models=models,
            settings=settings.with_changes(**changes),
            prompts=prompts,
            embeddings=Embeddings(
                str(results.config.get("embeddings")), cache_folder=cache_dir(), trusted=False
            ),
        )

    def describe_changes(self, setup: BenchSetup) -> list[str]:
        """Return a sentence for everything in which a setup differs from the one of ``base``; empty for that one."""
        changes = describe_config_changes(self.base.config, setup.to_config())
        return list(map(single_line, changes))

    def get_results_folder(self, setup: BenchSetup, name: str, *, is_test: bool = False) -> Path:
        """Return the folder for the results of a setup; nothing is written.

        The test part of a set has a folder of its own.

        Its name is ``name``, cut at MAX_NAME_CHARS characters, with a fingerprint of the
        configuration without INFORMATIONAL_ENTRIES. An existing folder with this fingerprint is
        returned whatever its name, so that asking again continues where it was.
        """
        config = setup.to_config()
        for entry in INFORMATIONAL_ENTRIES:
            config.pop(entry, None)
        config_text = json.dumps(config, sort_keys=True)
        content = fingerprint(config_text + TEST_SLICE * is_test)[:6]
        retries = self.earlier_results.folder / RETRIES_FOLDER
        quoted_name = quote(name, safe=" =,%")
        safe_name = quoted_name[:MAX_NAME_CHARS]
        new_folder = retries / f"{safe_name}.{content}"
        return min(retries.glob(f"*.{content}"), default=new_folder)

    # --- which questions

    def choose_questions(
        self, selectors: Collection[str] = (), slices: Collection[str] = ()
    ) -> list[BenchQuestion]:
        """Return the questions that any of the selectors names, in the order of the results.

        A selector is "lost", "wrong", "errors", "right", "all", "failed" (of which an assertion
        does not hold), "blamed=AGENT" (by the oracle ladder), a slice such as "type=count", or an
        id, which is written "id=lost" if it is one of these words. Without selectors these are all
        lost questions, and equally many right ones, evenly spaced. Only those in all ``slices`` are
        chosen (``_rows_in``). Earlier turns of their dialogues are added.

        Raises InputError if a selector names no question, and without selectors if none was lost.
        """
        rows = self.earlier_results.rows
        ids = with_earlier_turns(rows.values(), self._find_chosen(selectors, slices))
        return [question_of_row(row) for id_, row in rows.items() if id_ in ids]

    def _find_chosen(self, selectors: Collection[str], slices: Collection[str]) -> set[str]:
        """Return the ids of ``choose_questions``, without earlier turns."""
        if TEST_SLICE in slices and not (
            selectors and all(map(_is_independent_of_outcome, selectors))
        ):
            raise InputError(
                "questions of the test part cannot be chosen by what came of them",
                hint="ask all of them: --slice split=test --only all",
            )
        rows = self._rows_in(slices)
        if selectors:
            return self._find_selected(selectors, rows)
        return self._lost_and_right_ids(rows)

    def _rows_in(self, slices: Collection[str]) -> dict[str, BenchRow]:
        """Return the rows in all of the slices, by id. Those of the test part are there only if they are named.

        Raises InputError if there is none.
        """
        chosen = self.earlier_results.in_slices(slices).rows
        found = {}
        for id_, row in chosen.items():
            if is_shown(row) or TEST_SLICE in slices:
                found[id_] = row
        if not found:
            raise InputError(
                f"nothing can be chosen from {self.earlier_results.folder}: all these questions are of the "
                "test part",
                hint="ask all of them: --slice split=test --only all",
            )
        return found

    def _find_selected(self, selectors: Iterable[str], rows: Mapping[str, BenchRow]) -> set[str]:
        """Return the ids of the rows that at least one selector names.

        Raises InputError for the first selector that names none.
        """
        chosen_ids: set[str] = set()
        for selector in selectors:
            ids = {id_ for id_, row in rows.items() if selector in self._selectors_of(row)}
            if not ids:
                raise InputError(
                    f"no question of {self.earlier_results.folder} is selected by {selector!r}",
                    hint="select others (--only) with lost, wrong, errors, right, all, failed, blamed=AGENT, "
                    "type=NAME or the id of a question",
                )
            chosen_ids |= ids
        return chosen_ids

    def _selectors_of(self, row: BenchRow) -> set[str]:
        """Return every selector that names a row's question.

        These are "all", "id=ID", the verdict, the id itself unless it is one of SELECTOR_WORDS, and
        "NAME=VALUE" for its slices; "lost" and "errors" if it is so; and "blamed=AGENT", which
        is "blamed=None" if no agent is known.
        """
        selectors = {"all", f"id={row['id']}", get_verdict(row)}
        if row["id"] not in SELECTOR_WORDS:
            selectors.add(row["id"])
        selectors |= slices_of(row)
        if is_lost(row):
            selectors.add("lost")
        if list_failed(row):
            selectors.add("failed")
        if row["error"] is not None:
            selectors.add("errors")
        elif row["gold"] is None:
            selectors.add(WITHOUT_GOLD)
        loss = self.earlier_results.losses_by_id.get(row["id"], {})
        selectors.add(f"blamed={loss.get('agent')}")
        return selectors

    def _lost_and_right_ids(self, rows: Mapping[str, BenchRow]) -> set[str]:
        """Return the ids of all lost questions and of equally many right ones, evenly spaced over the rows.

        If fewer were right, all of them are returned. Raises InputError if no question was lost.
        """
        lost_ids = {id_ for id_, row in rows.items() if is_lost(row)}
        right_ids = _list_right_ids(rows)
        if not lost_ids:
            raise InputError(
                f"no answer in {self.earlier_results.folder} was wrong or missing, so by default there is "
                "nothing to ask again",
                hint="choose the questions yourself, such as with --only all",
            )
        count = min(len(lost_ids), len(right_ids))
        spaced_ids = set()
        for number in range(count):
            place = number * len(right_ids) // count
            spaced_ids.add(right_ids[place])
        return lost_ids | spaced_ids

    def sample(
        self, selectors: Collection[str] = (), slices: Collection[str] = ()
    ) -> QuestionSample:
        """Return what the questions of ``choose_questions`` say about all that are in the slices.

        Without selectors, each chosen question that was right stands for several, so that together
        they stand for all right ones. If selectors do not depend on what came of the questions, as
        "all" or "type=count", each question stands for itself. Else the sample is empty: of
        questions that were chosen for being lost, some come out right by chance. Raises InputError
        as ``choose_questions`` does.
        """
        chosen_ids = self._find_chosen(selectors, slices)
        if not all(map(_is_independent_of_outcome, selectors)):
            return QuestionSample()
        named_slices = [f"--slice {each}" for each in slices]
        name = " ".join([*selectors, *named_slices])
        if selectors:
            return QuestionSample(frozenset(chosen_ids), 1.0, name, len(chosen_ids))
        rows = self._rows_in(slices)
        right_ids = set(_list_right_ids(rows))
        right_weight = 1.0
        if right_ids:
            right_weight = len(right_ids) / len(right_ids & chosen_ids)
        represented = len(chosen_ids | right_ids)
        return QuestionSample(frozenset(chosen_ids), right_weight, name, represented)

    # --- the cost

    def describe_test_look(self, folder: Path) -> str:
        """Return a warning that says how often the test part of the set was asked, with a retry's folder.

        Raises InputError if that was MAX_TEST_LOOKS times already.
        """
        folders = {folder.resolve()}
        for retry in list_retries(self.earlier_results):
            if retry.results.has_test_part:
                folders.add(retry.folder.resolve())
        if len(folders) > MAX_TEST_LOOKS:
            raise InputError(
                f"the test part of {self.earlier_results.folder} was asked with {MAX_TEST_LOOKS} changes already: "
                "a further one would be chosen by it, and no longer tested",
                hint="choose by the other questions, and test with questions that are new",
            )
        return (
            f"the test part is asked with {len(folders)} of {MAX_TEST_LOOKS} changes: each further one that is "
            "chosen by it makes the verdict worth less"
        )

    def estimate_cost(
        self,
        setup: BenchSetup,
        questions: Sequence[BenchQuestion],
        *,
        prices: Prices,
        repeats: int = 1,
    ) -> CostEstimate:
        """Estimate the cost of asking questions again from what they cost before. No model is asked.

        Questions that were asked with this setup already cost nothing. The others are executed with
        the calls of the store, up to the first agents whose models would have to be asked. A
        question of which the store does not have what was asked before counts with what it cost
        then. With ``repeats``, the least is without any; the most is that all questions come out
        otherwise, and are asked so often before and after the change. Money is None if a model has
        no price, and both money and tokens if a server did not report the tokens of a call.
        """
        finished_ids = self._find_finished_ids(setup)
        names = {agent: model.name for agent, model in setup.models.items()}
        silent = replace(setup, models=_make_silent_models(names))
        store = find_store(self.earlier_results.folder)
        places = AskPlaces(self.earlier_results.folder, store)
        least: list[BenchRow] = []
        most: list[BenchRow] = []
        without_record = 0
        for question in questions:
            earlier_row = self.earlier_results.rows[question.id]
            if repeats > 1:
                most += [earlier_row] * (2 * (repeats - 1))
            if question.id in finished_ids:
                continue
            with open_store(setup, question, places) as calls:
                missing_calls = self._find_missing_calls(silent, question, calls)
            if missing_calls is None:
                without_record += 1
                least.append(earlier_row)
                most.append(earlier_row)
            else:
                least_calls, most_calls = missing_calls
                least.append(sum_usage(least_calls))
                most.append(sum_usage(most_calls))

        def span(budget: str) -> tuple[Any, Any]:
            """Return the least and the most of one of BUDGET_NAMES."""
            low = sum(prices.compute_amount(row, budget) for row in least)
            high = sum(prices.compute_amount(row, budget) for row in most)
            return low, high

        tokens = money = None
        with suppress(InputError):
            tokens = span("tokens")
        with suppress(InputError):
            money = span("money")
        return CostEstimate(
            questions=len(questions),
            without_saved_run=without_record,
            calls=span("model_calls"),
            tokens=tokens,
            money=money,
            currency=prices.currency,
        )

    def _find_finished_ids(self, setup: BenchSetup) -> set[str]:
        """Return the ids of the questions that the results folder of a setup has rows of.

        A question whose model or graph could not be reached is left out, as it is asked again.
        Empty without results.
        """
        folder = self.get_results_folder(setup, "")
        if not (folder / CONFIG_FILE).exists():
            return set()
        _, rows = read_results(folder)
        return {row["id"] for row in rows if not row.get("unreachable")}

    def _find_missing_calls(
        self, setup: BenchSetup, question: BenchQuestion, store: CallStore
    ) -> tuple[list[Call], list[Call]] | None:
        """Return the earlier model calls of a question that a setup must make anew, as two lists: least and most.

        The first has those of the agents that stopped for lack of a recorded reply; the second also
        those of all steps after the first of these agents. Both are empty if no agent stopped.
        Returns None if it is not recorded what was asked before. The setup's models must be empty
        replays.
        """
        run = begin_question(setup, question, self._dialogue_before(question))
        run.use_store(store)
        with suppress(KgwbError):
            run.go_explained()
        changed_agents = _list_stopped_agents(run)
        if run.error is None or not changed_agents:
            return [], []
        try:
            before = self.load_run(question)
        except KgwbError:
            return None
        changed_steps = []
        later_steps = []
        for step in before.steps:
            if step.agent in changed_agents:
                changed_steps.append(step)
            if changed_steps:
                later_steps.append(step)
        least_calls = _list_model_calls(changed_steps, run)
        return least_calls, _list_model_calls(later_steps, run)

    def load_run(self, question: BenchQuestion, retry: Path | None = None) -> Run:
        """Return the run of a question as it was measured: replayed from its file, else from the store.

        With the folder of a ``retry``, its run file comes first. No model is asked. Raises KgwbError if
        none of these has all that was asked.
        """
        folder = self.earlier_results.folder
        file = find_run_file(retry or folder, {"run": run_file_path(question.id)})
        if file:
            return systems.load_run(file, system=self.system)
        models = _make_silent_models(self.earlier_results.model_specs)
        setup = self._restore_setup(self.earlier_results, models, Prompts(), {})
        run = begin_question(setup, question, self._dialogue_before(question))
        places = AskPlaces(folder, find_store(folder))
        with open_store(setup, question, places) as store:
            run.use_store(store)
            return run.go_explained()

    def _dialogue_before(self, question: BenchQuestion) -> Dialogue:
        """Return the earlier turns of a question's dialogue, as the results remembered them.

        Empty for a question outside of dialogues; turns that were not answered are left out.
        """
        dialogue = Dialogue()
        if question.dialogue is None:
            return dialogue
        for row in self.earlier_results.rows.values():
            is_earlier = row.get("turn", 0) < question.turn
            if row.get("dialogue") == question.dialogue and is_earlier:
                dialogue = add_remembered_turn(dialogue, row)
        return dialogue

    # --- asking

    def ask_again(  # noqa: PLR0913  # how questions are asked is said by keywords
        self,
        setup: BenchSetup,
        questions: Sequence[BenchQuestion],
        folder: Path,
        *,
        sample: QuestionSample | None = None,
        repeats: int = 1,
        workers: int = 1,
        budget: Budget | None = None,
        on_row: Callable[[BenchRow], object] = lambda row: None,
    ) -> Benchmark:
        """Ask questions again, and write the results to a folder, which is locked meanwhile.

        ``sample`` is what they say about all questions; without one, each stands for itself. Asking
        continues where it was stopped, and every run is saved. With ``repeats``, questions that
        come out otherwise than before are asked so often, before and after the change. The budget
        counts the calls that are made, not those that the store has. Returns the benchmark, which
        says whether a budget stopped it.
        """
        measured_setup = self._make_measured_setup() if repeats > 1 else None
        earlier = self.earlier_results
        config = setup.to_config(questions)
        chosen = [each for each in questions if sample is None or each.id in sample.ids]
        if not all(is_shown(vars(question)) for question in chosen):
            self.describe_test_look(folder)
        if sample is not None:
            config = sample.add_to_config(config, _read_stored_config(folder))
        with lock_folder(folder, "wait until it ends, or stop it, and ask again then"):
            benchmark = Benchmark(
                setup,
                Results(folder, config),
                workers=workers,
                budget=budget or Budget({}),
                on_row=on_row,
                save_runs=True,
                earlier_runs=EarlierRuns(earlier.folder, earlier.rows, measured_setup),
                repeats=repeats,
            )
            benchmark.run(questions)
        return benchmark

    def read_asked(
        self,
        folder: Path,
        questions: Iterable[BenchQuestion],
        sample: QuestionSample,
        name: str = "",
    ) -> LoadedResults:
        """Return what a results folder has of these questions, whatever else was asked there.

        ``sample`` is what they say about all questions.
        """
        results = LoadedResults.read(folder, name)
        ids = {question.id for question in questions}
        rows = [row for id_, row in results.rows.items() if id_ in ids]
        config = sample.add_to_config(results.config, {})
        return replace(results.with_rows(rows), config=config)

    def locate_losses(
        self,
        setup: BenchSetup,
        questions: Sequence[BenchQuestion],
        folder: Path,
        *,
        workers: int = 1,
        on_row: Callable[[BenchRow], object] = lambda row: None,
    ) -> None:
        """Find the agent that lost each answer, in what was measured and in what was asked again.

        The results are written to the ladder's file of each folder. What was measured must be asked
        with the setup that it was measured with. Raises InputError if this cannot be made any more,
        or if the system has no gold decisions.
        """
        store = find_store(self.earlier_results.folder)
        measured = (self.earlier_results.folder, self._make_measured_setup())
        for where, its_setup in (measured, (folder, setup)):
            with lock_folder(where, "wait until it ends, or stop it, and ask again then"):
                config, _ = read_results(where)
                locate_losses(
                    its_setup,
                    Results(where, config),
                    questions,
                    workers=workers,
                    store=store,
                    on_row=on_row,
                )

    def _make_measured_setup(self) -> BenchSetup:
        """Return the setup that the earlier results were measured with, models included.

        Raises InputError if something of it is different now, such as a prompt whose text is not
        known.
        """
        earlier = self.earlier_results
        measured_setup = self._restore_setup(earlier, self._measured_models(), Prompts(), {})
        changes = "; ".join(describe_config_changes(earlier.config, measured_setup.to_config()))
        if changes:
            raise InputError(
                f"--repeats cannot ask the questions of {earlier.folder} again with the setup "
                f"of then, since this has changed: {single_line(changes)}",
                hint="undo the change, leave --repeats out (each question is then asked once), or measure "
                "anew with kgwb bench",
            )
        return measured_setup


def _list_right_ids(rows: Mapping[str, BenchRow]) -> list[str]:
    """Return the ids of the rows whose answers are right."""
    return [id_ for id_, row in rows.items() if get_verdict(row) == RIGHT]


def _find_base(folder: Path) -> Path:
    """Return a results folder; of a folder of kept prompts, the one that its prompts come from.

    Raises InputError if no results of these are known.
    """
    if not (folder / HISTORY_FILE).is_file():
        return folder
    kept = PromptHistory(folder).kept_results
    if not kept:
        raise InputError(
            f"the prompts in {folder} cannot be the base: no results of them were kept",
            hint="name the folder of a retry, DIR/retries/CHANGE",
        )
    return Path(kept)


def _read_stored_config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration of a results folder; empty without results."""
    with suppress(InputError):
        return read_results(folder)[0]
    return {}


def _is_independent_of_outcome(selector: str) -> bool:
    """Return whether a selector chooses questions by what they are, not by what came of them."""
    name, equals, _ = selector.partition("=")
    return selector == "all" or (bool(equals) and name in (*SLICE_FIELDS, "tag"))


def _make_silent_models(names: Mapping[str, str]) -> dict[str, ChatModel]:
    """Return models of these names, by agent, that have no replies, so that only recorded calls can be used."""
    return {agent: Replay((), name=name) for agent, name in names.items()}


def _list_stopped_agents(run: Run) -> set[str]:
    """Return the agents of the steps that failed, without those that only supervised them."""
    supervisor_keys = {step.parent for step in run.steps}
    agents = set()
    for step in run.steps:
        if step.error and step.key not in supervisor_keys:
            agents.add(step.agent)
    return agents


def _list_model_calls(steps: Iterable[Step], run: Run) -> list[Call]:
    """Return the model calls of steps, each with the name of the model that would be asked now.

    ``run`` knows the models. They are in the order of the steps; a call that several steps used is
    repeated.
    """
    calls = []
    for step in steps:
        model = run.model_name(step.agent)
        for call in step.model_calls:
            request = {**call.request, "model": model}
            calls.append(replace(call, request=request))
    return calls


NOTE_FILE = "note.txt"
"""The file in a retry's folder with what the person wrote about it."""


@frozen
class PastRetry:
    """A retry that was made."""

    results: LoadedResults
    began: datetime
    note: str
    """"" if the person wrote none."""
    counts: Counter[str]
    """The number of questions by outcome (``kgwb.bench.comparisons``)."""

    @property
    def folder(self) -> Path:
        """The folder of its results."""
        return self.results.folder

    @property
    def name(self) -> str:
        """What was changed, as the folder's name says it for people."""
        return self.results.name

    @property
    def date(self) -> str:
        """When it began, to the minute."""
        return self.began.isoformat(" ", "minutes")

    @property
    def effect(self) -> str:
        """How many questions were fixed and broken, of how many."""
        questions = pluralize(self.counts.total(), "question")
        return f"{self.counts['fixed']} fixed, {self.counts['broken']} broken of {questions}"

    def __str__(self) -> str:
        text = "; ".join([self.effect, *self.note.splitlines()])
        return single_line(f"{self.date}  {self.name}: {text}")


def list_retries(results: LoadedResults) -> list[PastRetry]:
    """Return the retries inside a results folder, the latest first.

    A retry began when its configuration was written. Folders that hold no results, or damaged ones,
    are left out.
    """
    retries = []
    for config_file in (results.folder / RETRIES_FOLDER).glob(f"*/{CONFIG_FILE}"):
        folder = config_file.parent
        if not (folder / RESULTS_FILE).is_file():
            continue
        with suppress(InputError):
            retried = LoadedResults.read(folder)
            counts = ResultsComparison(results, retried).counts
            began = datetime.fromtimestamp(config_file.stat().st_mtime)
            note = read_note(folder)
            retries.append(PastRetry(retried, began, note, counts))
    return sorted(retries, key=lambda retry: (retry.began, retry.name), reverse=True)


def read_note(folder: Path) -> str:
    """Return what was written about a retry, a note a line; "" if nothing was, or it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return disk.read_text(folder / NOTE_FILE).strip()
    return ""


def write_note(folder: Path, note: str) -> None:
    """Add what a person says about a retry to the notes in its folder; an empty or known note changes nothing.

    Raises InputError if it cannot be written.
    """
    notes = read_note(folder).splitlines()
    note = single_line(note.strip())
    if not note or note in notes:
        return
    with disk.os_errors_as_input_error(
        f"cannot write to {folder}", "free some space, and check that you may write there"
    ):
        disk.write_atomically(
            folder / NOTE_FILE, ["\n".join([*notes, note]), "\n"], disk.JSON_ENCODING_ERRORS
        )


# --- prompts that are kept

HISTORY_FILE = "history.jsonl"
PromptTexts = dict[str, str | None]
"""The texts of prompts by name; None for a prompt whose file is missing, so that kgwb's own is used."""


class KeptChange(BaseModel, frozen=True):
    """One change of a folder of prompts; a line of its history."""

    date: str
    """In ISO 8601, with the time zone."""
    note: str = ""
    source: str = ""
    """The results folder that the prompts come from; "" for a change that was undone."""
    models: dict[str, str] = {}
    """The models that the prompts were measured with, by agent; "" is the default."""
    effect: str = ""
    """What the prompts did, in words; "" if they were compared with nothing."""
    effect_on_kept: str = ""
    """What they did compared with the prompts that were kept before; "" if none were."""
    fixed: tuple[str, ...] = ()
    """The ids of the questions that the prompts fixed."""
    broken: tuple[str, ...] = ()
    """Both are those of ``effect_on_kept``, if it is known, else of ``effect``."""
    before: PromptTexts = {}
    """The texts that were replaced."""
    after: PromptTexts
    copies: tuple[str, ...] = ()
    """Copies of the files that were written by hand and are replaced. Their text is in ``before``, too."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Return the change. Raises ValueError if the name of a prompt may lead out of the folder."""
        for name in self.before | self.after:
            if not PROMPT_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a prompt")
        return self

    @property
    def remark(self) -> str:
        """Where files that were written by hand are kept now, as text; "" if none was replaced."""
        if not self.copies:
            return ""
        return f"what was written by hand is kept as {', '.join(self.copies)}"

    def cells(self) -> tuple[str, ...]:
        """Return date, names of the prompts, note and remark, effect, and each of the models once."""
        models = ", ".join(dict.fromkeys(self.models.values()))
        prompts = ", ".join(self.after)
        date = self.date[:16].replace("T", " ")
        note = "; ".join(filter(None, (self.note, self.remark)))
        effect = self.effect
        if self.effect_on_kept:
            effect = f"compared with what was kept before: {self.effect_on_kept}; with the first: {effect}"
        return date, prompts, note, effect, models

    def __str__(self) -> str:
        date, names, *others = self.cells()
        return single_line("; ".join(filter(None, (f"{date}: {names}", *others))))


class MeasuredPrompts(NamedTuple):
    """The prompts of a results folder, with what they did."""

    change: KeptChange
    """Keeps them. Its ``after`` has all prompts of the system whose text is known."""
    unknown_names: list[str]
    """Prompts that were changed, but that no saved run used: their text is not known."""
    losses: list[str]
    """A sentence for each of the results that they are worse than."""


def read_measured_prompts(
    folder: str | Path,
    base: str | Path | None,
    system: SystemSource | None,
    kept: str,
) -> MeasuredPrompts:
    """Read the prompts of a results folder, and compare its results with those of ``base``.

    ``base`` is by default the folder that a retry belongs to. A folder of ``kgwb bench`` without a
    ``base`` is compared with nothing. ``kept`` is the results folder of the prompts that are kept
    now, if there is one: it is compared with, too. Differences are adjusted for all retries of ``base``:
    the one that is kept was chosen among them. ``system`` must be given if what was measured is not a system
    by name. A prompt that is the system's present own one has the text None; the text of another one
    is that of the first saved run that used it, if it has the measured fingerprint. Nothing is
    written. Raises InputError if a folder holds no results.
    """
    results = LoadedResults.read(Path(folder))
    parent = results.folder.resolve().parent
    if base is None and parent.name == RETRIES_FOLDER:
        base = parent.parent
    comparisons: dict[str, ResultsComparison] = {}
    first = None
    compared = [results]
    if base is not None:
        first = LoadedResults.read(Path(base))
        for retry in list_retries(first):
            is_other = retry.folder.resolve() != results.folder.resolve()
            if is_other and retry.results.has_test_part == results.has_test_part:
                compared.append(retry.results)
        comparisons["effect"] = compare_with_each(first, compared)[0]
    kept_folder = Path(kept)
    has_kept = (kept_folder / CONFIG_FILE).is_file()
    if has_kept and kept_folder.resolve() != results.folder.resolve():
        kept_results = LoadedResults.read(kept_folder)
        together = compare_with_each(kept_results, compared, drawn_by=first)
        comparisons["effect_on_kept"] = together[0]
    effects: JsonObject = {}
    losses = []
    for name, comparison in comparisons.items():
        effects[name], ids = _describe_effect(comparison)
        effects |= ids
        if comparison.is_loss:
            losses.append(f"these prompts do worse than {comparison.before.name}: {effects[name]}")
    if system is None:
        system = systems.load_system(str(results.config.get("system")))
    system = systems.resolve_system(system)
    texts = _find_texts(results, system)
    measured = results.config.get("prompts") or {}
    unknown_names = sorted(system.prompt_names & measured.keys() - texts.keys())
    change = KeptChange(
        date=time_now(),
        source=str(results.folder),
        models=results.model_specs,
        after=texts,
        **effects,
    )
    return MeasuredPrompts(change, unknown_names, losses)


def _find_texts(results: LoadedResults, system: System) -> PromptTexts:
    """Return the texts of the prompts that results were measured with; None for the system's present own one.

    The text of another one is that of the first saved run that used it, if it has the measured
    fingerprint. Prompts that no saved run used are left out.
    """
    measured = results.config.get("prompts") or {}
    own = Prompts().for_system(system.prompts)
    texts: PromptTexts = {}
    changed = []
    for name in sorted(system.prompt_names & measured.keys()):
        if fingerprint(own.text(name)) == measured[name]:
            texts[name] = None
        else:
            changed.append(name)
    for name, text in load_prompt_texts(results, changed).items():
        if fingerprint(text) == measured[name]:
            texts[name] = text
    return texts


def _describe_effect(comparison: ResultsComparison) -> tuple[str, dict[str, list[str]]]:
    """Return what a change did as one text, and the ids of the questions that were fixed and broken.

    The text has the outcomes, F1 before and after, and the first of these questions.
    """
    ids: dict[str, list[str]] = {outcome: [] for outcome in UNFOLDED_OUTCOMES}
    for id_, outcome in comparison.outcomes.items():
        if outcome in ids and is_shown(comparison.after.rows[id_]):
            ids[outcome].append(id_)
    parts = [comparison.format_counts(), comparison.describe_f1()]
    for outcome, questions in ids.items():
        if questions:
            parts.append(f"{outcome} {list_first(questions)}")
    return "; ".join(parts), ids


class PromptHistory:
    """A folder of prompts with its history, in which the latest change can be taken back."""

    def __init__(self, folder: str | Path) -> None:
        """Read the history of a folder, which need not exist yet.

        A last line that was not written to its end is removed from the file. Raises InputError if
        the history cannot be read.
        """
        self.folder = Path(folder)
        self.changes: list[KeptChange] = []
        """The oldest first."""
        path = self.folder / HISTORY_FILE
        with disk.os_errors_as_input_error(
            f"{path} cannot be used", "name another folder for the kept prompts"
        ):
            disk.truncate_unfinished_line(path)
            if path.exists():
                hint = "correct this line of the file or remove it; the prompts themselves are in other files"
                problem = "is no change of prompts"
                self.changes += parse_json_lines(path, KeptChange.model_validate, problem, hint)

    @property
    def states(self) -> list[dict[str, str]]:
        """The texts of the folder's prompts, by name: before the first change, and after each one."""
        texts: PromptTexts = {}
        states: list[dict[str, str]] = [{}]
        for change in self.changes:
            texts = texts | change.after
            state = {name: text for name, text in texts.items() if text is not None}
            states.append(state)
        return states

    @property
    def kept_results(self) -> str:
        """The results folder of the change whose prompts the folder has now; "" if there is none."""
        _, *states = self.states
        for change, state in zip(reversed(self.changes), reversed(states), strict=True):
            if change.source and state == states[-1]:
                return change.source
        return ""

    def compare(self, first: int, second: int) -> Iterator[str]:
        """Yield the lines of a diff of the prompts after two changes, which are counted from 1.

        0 are kgwb's own prompts. Raises InputError for a change that there is not.
        """
        states = self.states
        if not 0 <= min(first, second) <= max(first, second) < len(states):
            raise InputError(
                f"{self.folder} has no such two states of its prompts: {first} and {second}",
                hint=f"name two of 0 (kgwb's own prompts) to {len(states) - 1}, its latest change",
            )
        for name in sorted(states[first] | states[second]):
            own = ""
            if name in shipped_names():
                own = Prompts().text(name)
            before = states[first].get(name, own).splitlines()
            after = states[second].get(name, own).splitlines()
            yield from unified_diff(
                before, after, f"{first}/{name}.md", f"{second}/{name}.md", lineterm=""
            )

    def keep(self, measured: MeasuredPrompts, note: str = "") -> KeptChange:
        """Write the prompts of results into the folder, and add a line to the history; return this change.

        With the folder, ``--prompts`` asks as the results did: a prompt that was kgwb's own there
        loses its file. Raises InputError if the folder has these prompts already, or cannot be
        written.
        """
        return self._change(measured.change.model_copy(update={"note": note}))

    def undo(self) -> KeptChange:
        """Restore the prompts as they were before the latest change, and return the new change.

        The history gets a line of its own for this, so that it can be undone as well. Raises
        InputError if there is no change, or if a file that would be replaced was edited by hand
        since.
        """
        if not self.changes:
            raise InputError(
                f"the folder of kept prompts {self.folder} has no change to undo",
                hint="name the folder that kgwb keep was given",
            )
        latest = self.changes[-1]
        for name, text in latest.after.items():
            if self._present_text(name) != text:
                raise InputError(
                    f"nothing was undone: {self._file(name)} was edited after it was kept, and the edit would "
                    "be lost",
                    hint=f"copy the edited file elsewhere, put the text that was kept (in {HISTORY_FILE}) "
                    "back into it, and undo again",
                )
        note = f"undo of {latest.note or latest.date}"
        return self._change(KeptChange(date=time_now(), note=note, after=latest.before))

    def _change(self, wanted: KeptChange) -> KeptChange:
        """Add a line to the history and write the prompts of ``wanted``, in this order, so that no text can be lost.

        Only prompts that differ from the present files, or from the latest state, are written and
        named; None deletes a file. A file that is not as the history has it was written by hand: a
        copy of it is kept. Returns the change. Raises InputError if none differs, or if the folder
        cannot be written.
        """
        known = self.states[-1]
        before: PromptTexts = {}
        edited = []
        for name, text in wanted.after.items():
            present = self._present_text(name)
            replaced = known.get(name) if present == text else present
            if replaced != text:
                before[name] = replaced
                if present not in (None, text, known.get(name)):
                    edited.append(name)
        if not before:
            raise InputError(
                f"nothing was kept: {self.folder} already has exactly these prompts",
                hint="name results that were measured with other prompts",
            )
        hint = "name another folder for the kept prompts, or free some space"
        with disk.os_errors_as_input_error(f"cannot write to {self.folder}", hint):
            copies = tuple(str(copy_beside(self._file(name))) for name in edited)
            after = {name: wanted.after[name] for name in before}
            changed = {"before": before, "after": after, "copies": copies}
            change = wanted.model_copy(update=changed)
            disk.append_json_line(self.folder / HISTORY_FILE, change.model_dump())
            for name, text in after.items():
                if text is None:
                    self._file(name).unlink(missing_ok=True)
                else:
                    disk.write_atomically(self._file(name), [text])
        self.changes.append(change)
        return change

    def _file(self, name: str) -> Path:
        """Return the file of a prompt."""
        return self.folder / f"{name}.md"

    def _present_text(self, name: str) -> str | None:
        """Return the text of a prompt's file; None without one. Raises PromptError if it is damaged."""
        prompts = Prompts(self.folder)
        return prompts.text(name) if prompts.has_own(name) else None

    def to_table(self) -> Table:
        """Return the history as a table with a row for each change, the latest first."""
        rows = [change.cells() for change in reversed(self.changes)]
        return Table(("date", "changed", "note", "effect", "model"), rows)

    def __repr__(self) -> str:
        lines = map(str, self.changes) if self.changes else ["nothing was kept yet"]
        return "\n".join([f"PromptHistory({str(self.folder)!r})", *lines])

    def _repr_html_(self) -> str:
        if self.changes:
            return self.to_table()._repr_html_()
        folder = tag("code", str(self.folder))
        note = div("note calm", "Nothing was kept in ", folder, " yet.")
        return static_page(note)
