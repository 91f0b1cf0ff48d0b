"""The commands about question sets: bench, compare-profiles, retry, report, serve."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from kgwb import disk
from kgwb.background import progress_bar
from kgwb.cli.arguments import (
    EACH_SYNTAX,
    EXIT_CODES,
    CheckArguments,
    GraphArguments,
    PositiveInt,
    QuestionArguments,
    commands_for_each,
    describe_missing_settings,
    find_missing_settings,
    name_assignment_folder,
    open_model_arguments,
    option,
    parse_assignments,
    parse_system_names,
    positional,
)
from kgwb.cli.terminal import (
    EXIT_BUDGET_SPENT,
    EXIT_FAILED,
    BudgetSpentError,
    color,
    print_error,
    print_tables,
    warn_about_rules,
)
from kgwb.errors import InputError
from kgwb.text import and_more, list_within, pluralize, shorten, single_line

if TYPE_CHECKING:
    from kgwb.bench.cost import Budget, Prices
    from kgwb.bench.figures import LoadedResults
    from kgwb.bench.lab import RetryExperiment
    from kgwb.bench.papers import Chart
    from kgwb.bench.questions import BenchQuestion
    from kgwb.bench.results import BenchRow
    from kgwb.bench.runner import Benchmark, BenchSetup
    from kgwb.workbench import Workbench

EACH_HELP = (
    "repeat with each value of a setting, of prompts (folders) or of model, each in its own folder; "
    "given several times, with each combination"
)
BUDGET_HELP = (
    "stop at this much money, tokens, model_calls or seconds of work, counting all that DIR holds"
)
PRICES_HELP = "TOML table of prices (default: kgwb's)"
MAX_LISTED_FAILURES = 10
"""Lost answers, and questions right by luck, that are printed. The report has all."""
MAX_LISTED_CHARS = 150
"""Characters of the answers, and of the gold, of a lost answer that is printed."""


@dataclass(kw_only=True)
class MeasurementArguments(QuestionArguments):
    """The arguments that say which questions are asked, and how their results are kept."""

    questions: Path = option("FILE", "QALD, LC-QuAD, MetaQA, JSON lines, ...", ...)
    language: str | None = option("TAG", "language of the questions, if the file has several")
    out: Path = option("DIR", "folder of the results; continues what is there", ...)
    every: PositiveInt = option("N", "only every Nth question, from the first one", 1)
    limit: PositiveInt | None = option("N", "only the first N questions (of those of --every)")
    workers: PositiveInt = option("N", "questions asked at the same time", 1)
    save_runs: bool = option("", "save every run in DIR/runs", False)
    reuse: Path | None = option(
        "DIR", "take calls from the store of this folder (default: of --out, or a folder above it)"
    )
    retry_errors: bool = option("", "ask questions that ended in an error again", False)
    budget: list[str] = option("NAME=NUMBER", BUDGET_HELP, [])
    prices: Path | None = option("FILE", PRICES_HELP)

    def load_questions(self) -> list[BenchQuestion]:
        """Read the question file, and return every ``every``-th question from the first, ``limit`` at most.

        Raises InputError if the file cannot be used, or if ``every`` is above 1 and the file has
        dialogues, whose turns need each other.
        """
        from kgwb.bench import load_questions

        questions = load_questions(self.questions, self.language)
        if self.every > 1 and any(question.dialogue is not None for question in questions):
            raise InputError(
                f"--every cannot be used with {self.questions}: it has dialogues, whose turns cannot be asked "
                "without the others",
                hint="leave --every out",
            )
        return questions[:: self.every][: self.limit]


# --- bench


@dataclass(kw_only=True)
class BenchCommand(CheckArguments, MeasurementArguments):
    """ask every question of a file and score the answers"""

    EPILOG = EXIT_CODES

    systems: str | None = option(
        "NAME,NAME,... or all", "measure several systems, each in its own folder"
    )
    each: list[str] = option(EACH_SYNTAX, EACH_HELP, [])
    repeats: PositiveInt = option(
        "N", "ask each question N times, to see how often it comes out right", 1
    )
    ladder: bool = option(
        "", "name the agent that lost each answer; asks up to 5 times more", False
    )
    readings: bool = option(
        "", "also ask each question as the readings have it that its answer offers", False
    )
    retention: bool = option(
        "", "also ask the questions of dialogues alone, in DIR/standalone", False
    )

    def run(self) -> int:
        """Measure each system with each value of ``each``, print the results, and return the exit code.

        Each combination has a folder of its own below ``out``; they share one store of calls. With
        ``each`` a report is written, and with several systems but no ``each`` their tables are
        printed side by side. Folders in which every question ended in an error are named. Returns
        EXIT_FAILED if these are all folders, else EXIT_CONDITION_MET if a condition of ``fail_if``
        is met, else 0. Raises InputError for ``retention`` if no question is in a dialogue, and for
        a wrong condition, before anything is asked.
        """
        from kgwb.bench.exports import RESULT_FIGURES, make_results_suite

        self.check_conditions(RESULT_FIGURES)
        questions = self.load_questions()
        if self.retention and all(question.dialogue is None for question in questions):
            raise InputError(
                f"--retention cannot be measured: no question of {self.questions} is in a dialogue",
                hint="leave --retention out, or raise --limit so that it includes dialogues",
            )
        self.reuse = self.reuse or self.out  # all folders have one store
        commands = []
        for command in self._commands_for_systems():
            commands += command._commands_for_each()
        measured: dict[Path, list[BenchRow]] = {}
        for command in commands:
            if self.each or self.systems:
                print(unquote(str(command.out.relative_to(self.out))))
            measured[command.out] = command.run_benchmark(questions)
        if self.each:
            write_report(list(measured), self.out / "report.html", self.prices)
        elif self.systems:
            _print_side_by_side(measured)
        suites = [
            make_results_suite(unquote(folder.name), rows) for folder, rows in measured.items()
        ]
        condition_code = self.finish(suites, RESULT_FIGURES)
        return _name_failed_folders(measured) or condition_code

    def _commands_for_systems(self) -> list[BenchCommand]:
        """Return a copy of this command for each of ``systems``, with the folder ``out``/NAME; else this one.

        If several systems have one name, the folder's name also has what each is given by (path or
        import path). Raises InputError if a system lacks a setting that ``set`` or ``each`` gives,
        and SettingError for an unknown system. Nothing is asked yet.
        """
        from kgwb.run.systems import resolve_system

        if not self.systems:
            return [self]
        sources = parse_system_names(self.systems)
        self._check_settings_of(sources)
        system_names = [resolve_system(source).name for source in sources]
        commands = []
        for source, name in zip(sources, system_names, strict=True):
            folder = name
            if system_names.count(name) > 1:
                folder = f"{name} {quote(source, safe='')}"
            command = replace(self, system=source, out=self.out / folder)
            commands.append(command)
        return commands

    def _check_settings_of(self, systems: Sequence[str]) -> None:
        """Raise InputError if one of the systems lacks a given setting; the message says which lacks what.

        Given are the names in ``set``, and those of ``each`` but "prompts" and "model".
        """
        given = [*parse_assignments(self.set, "NAME=VALUE")]
        if self.each:
            given += parse_assignments(self.each, EACH_SYNTAX)
        settings = [name for name in given if name not in ("prompts", "model")]
        missing = find_missing_settings(systems, settings)
        if missing:
            raise InputError(
                f"not all of these systems have the given settings: {describe_missing_settings(missing)}",
                hint="leave these settings out (--set, --each), or measure the systems that have them alone",
            )

    def _commands_for_each(self) -> list[BenchCommand]:
        """Return a copy of this command for each combination of values in ``each``, with a subfolder of ``out``.

        Without ``each`` it is this command alone. Raises InputError if two combinations mean the
        same settings, prompts and model. Two paths of one folder of prompts are the same.
        """
        commands: list[BenchCommand] = []
        known: list[object] = []
        for name, command in commands_for_each(self, self.each):
            prompts = None
            if command.prompts is not None:
                prompts = os.path.realpath(command.prompts)  # a folder may be written in two ways
            choices = (command.settings, prompts, command.model)
            if choices in known:
                raise InputError(f"--each has {name} twice", hint="give each value once")
            known.append(choices)
            commands.append(replace(command, out=self.out / name))
        return commands

    def run_benchmark(
        self, questions: list[BenchQuestion], *, prints_metrics: bool = True
    ) -> list[BenchRow]:
        """Find the gold answers, ask all questions, print the results, and return a row for each question.

        ``prints_metrics`` False leaves out the tables and counts. With ``retention``, the questions
        of dialogues are asked alone too. Before any question is asked, the budget, the models'
        prices if money is limited, and the system's gold for the ladder are checked. Raises
        InputError if one of them is missing, and what ``_ask_questions`` raises. The model
        ``rules`` is remarked on.
        """
        from kgwb import bench
        from kgwb.bench.ladder import gold_decisions_of

        budget = _make_budget(self.budget, self.prices)
        workbench = self.make_workbench()
        if self.ladder:
            gold_decisions_of(workbench.system)
        if "money" in budget.limits:
            for model in workbench.models.values():
                budget.prices.find_price(model.name)
        self._warn_about_named_gold(questions, workbench)
        questions = _find_gold(questions, workbench)
        setup = bench.BenchSetup.from_workbench(workbench)
        rows = self._ask_questions(
            setup, budget, self.out, questions, prints_metrics=prints_metrics
        )
        if self.retention:
            self._measure_retention(setup, budget, questions, rows)
        warn_about_rules(workbench)
        return rows

    def _warn_about_named_gold(
        self, questions: Sequence[BenchQuestion], workbench: Workbench
    ) -> None:
        """Print, on the error output, which gold texts are names of things in the graph, if any are."""
        from kgwb.bench.formats import locate_questions
        from kgwb.bench.questions import NAMED_GOLD_HINT, describe_named_gold, find_named_gold

        found = find_named_gold(questions, workbench.kg)
        if found:
            places = locate_questions(self.questions)
            print_error(describe_named_gold(found, places), NAMED_GOLD_HINT)

    def _measure_retention(
        self,
        setup: BenchSetup,
        budget: Budget,
        questions: Sequence[BenchQuestion],
        rows: list[BenchRow],
    ) -> None:
        """Ask the questions of dialogues without their dialogues, and print how much of F1 is kept in dialogues.

        ``rows`` are those of all questions, asked in their dialogues. Only questions with gold
        count. The results are written to the folder "standalone" in ``out``.
        """
        from kgwb import bench
        from kgwb.bench.questions import make_standalone_questions

        print("\nthe questions of dialogues, asked alone:")
        turns = [question for question in questions if question.dialogue is not None]
        standalone = make_standalone_questions(turns)
        folder = self.out / "standalone"
        standalone_rows = self._ask_questions(setup, budget, folder, standalone)
        standalone_rows = [row for row in standalone_rows if row["gold"] is not None]
        ids = {row["id"] for row in standalone_rows}
        dialogue_rows = [row for row in rows if row["id"] in ids]
        retention = bench.compute_retention(dialogue_rows, standalone_rows)
        if retention is None:
            kept = "F1 of the questions alone is 0"
        else:
            kept = f"{retention:.2f} % of F1 (as the paper computes it)"
        print(f"\nkept in dialogues, over {len(ids)} questions: {kept}")

    def _ask_questions(
        self,
        setup: BenchSetup,
        budget: Budget,
        folder: Path,
        questions: list[BenchQuestion],
        *,
        prints_metrics: bool = True,
    ) -> list[BenchRow]:
        """Ask the questions that the folder has no rows of yet, print the results, and return all their rows.

        The folder is locked meanwhile. With ``retry_errors``, rows that ended in an error are
        dropped first. With ``ladder``, agents are then blamed for lost answers. Runs are kept as
        ``save_runs`` says; with ``ladder`` alone, those of lost answers are. Raises
        BudgetSpentError after printing if the budget stopped it, and KeyboardInterrupt with a
        message and a hint.
        """
        from kgwb import bench
        from kgwb.bench.results import is_lost, lock_folder
        from kgwb.run.store import find_store

        with lock_folder(folder):
            results = bench.Results(folder, setup.to_config(questions))
            if self.retry_errors:
                results.drop_errors()
            store = find_store(self.reuse or self.out)
            benchmark = bench.Benchmark(
                setup,
                results,
                workers=self.workers,
                budget=budget,
                store=store,
                repeats=self.repeats,
                asks_readings=self.readings,
            )
            if self.save_runs:
                benchmark.save_runs = True
            elif self.ladder:
                benchmark.save_runs = "lost"
            try:
                done = len(results.rows_for(questions))
                with progress_bar(total=len(questions), initial=done, unit="question") as bar:
                    benchmark.on_row = lambda row: bar.update()
                    rows = benchmark.run(questions)
                if benchmark.rescored:
                    answers = pluralize(benchmark.rescored, "answer")
                    print(f"{answers} scored again, by changed gold; nothing was asked for that")
                if self.ladder and not benchmark.stop_reason:
                    lost_count = sum(map(is_lost, rows))
                    with progress_bar(total=lost_count, unit="lost answer") as bar:
                        bench.locate_losses(
                            setup,
                            results,
                            questions,
                            workers=self.workers,
                            store=store,
                            on_row=lambda row: bar.update(),
                        )
            except KeyboardInterrupt as exc:
                done = len(results.rows_for(questions))
                raise KeyboardInterrupt(
                    f"stopped with {done} of {len(questions)} questions asked",
                    "give the same command again to continue from there",
                ) from exc
            if prints_metrics:
                print_metrics(folder, rows, budget.prices)
                print(_describe_calls(benchmark, store))
        if benchmark.stop_reason:
            raise BudgetSpentError(
                f"the benchmark stopped with {len(rows)} of {len(questions)} questions asked: "
                f"the budget is used up ({benchmark.stop_reason})",
                hint="to continue, give the same command with a larger --budget",
            )
        return rows


def _describe_calls(benchmark: Benchmark, store: Path) -> str:
    """Return a sentence with the model calls made and, if there are any, those taken from the store."""
    text = f"{pluralize(benchmark.made_calls, 'model call')} made"
    if benchmark.reused_calls:
        text += f", {benchmark.reused_calls} taken from {store}"
    return text


def _make_budget(limits: Sequence[str], prices: Path | None) -> Budget:
    """Return the budget of NAME=NUMBER arguments, with the prices of a table, by default kgwb's.

    Raises InputError for a wrong limit or table.
    """
    from kgwb import bench

    numbers = parse_assignments(limits, "NAME=NUMBER")
    return bench.Budget(numbers, bench.load_prices(prices))


def _find_gold(questions: Sequence[BenchQuestion], workbench: Workbench) -> list[BenchQuestion]:
    """Return the questions, in their order, with gold answers from the graph added where they lack them.

    A gold query is added where it can be made, and executed. Questions that still have no gold stay
    in the list; their number and the first reason are printed on the error output.
    """
    from kgwb import bench

    with_queries = bench.add_gold_queries(questions, workbench.kg)
    with progress_bar(iterable=with_queries, unit="gold answer") as bar:
        answered = bench.add_gold_answers(bar, workbench.kg)
    missing = [question for question in answered if question.answers is None]
    if missing:
        first = missing[0]
        reason = single_line(first.gold_error or "")
        print_error(
            f"{len(missing)} of {len(answered)} questions have no gold: {first.id}: {reason}"
        )
    return answered


# --- compare-profiles


@dataclass(kw_only=True)
class CompareProfilesCommand(MeasurementArguments):
    """measure each difference of two profiles by itself: F1, calls and seconds of every setting"""

    other: str = option("", "profile to compare with: paper (default) or reference", "paper")

    def run(self) -> int:
        """Measure ``profile``, then it with one setting of ``other`` at a time, then ``other``; print a table.

        The table has a row for each measurement. Each has a folder of its own in ``out``, and
        continues what is there; they share one store of calls. Folders in which every question
        ended in an error are named. Returns EXIT_FAILED if these are all folders, else 0.
        """
        from kgwb.bench.figures import LoadedResults, make_profile_table

        questions = self.load_questions()
        self.reuse = self.reuse or self.out  # all folders have one store
        measured: dict[Path, list[BenchRow]] = {}
        all_results = []
        for name, command in self._commands_for_settings().items():
            print(name)
            rows = command.run_benchmark(questions, prints_metrics=False)
            measured[command.out] = rows
            results = LoadedResults.read(command.out, name)
            all_results.append(results.with_rows(rows))
        print()
        print_tables(make_profile_table(all_results))
        return _name_failed_folders(measured)

    def _commands_for_settings(self) -> dict[str, BenchCommand]:
        """Return the commands to measure, by the name of their row: a profile, or NAME=VALUE.

        First comes ``profile``, then it with each setting in which ``other`` differs, then
        ``other``. A setting with the same value in both has no row. Each command has a folder in
        ``out`` named after its row. Raises SettingError if the system does not have one of the
        profiles.
        """
        shared = {field.name: getattr(self, field.name) for field in fields(MeasurementArguments)}
        base = BenchCommand(**shared)
        other = replace(base, profile=self.other)
        base_settings = base.settings.to_data()
        commands = {self.profile: base}
        for name, value in other.settings.to_data().items():
            if name != "profile" and value != base_settings[name]:
                assignment = f"{name}={value}"
                commands[assignment] = replace(base, set=[*self.set, assignment])
        commands[self.other] = other
        for name, command in commands.items():
            command.out = self.out / name_assignment_folder(name)
        return commands


def _name_failed_folders(measured: Mapping[Path, Sequence[BenchRow]]) -> int:
    """Print the results folders in which every question ended in an error, and return the exit code.

    ``measured`` has the rows of the questions that were asked for, by folder. The code is
    EXIT_FAILED if all folders are such, else 0. A folder without rows is not one.
    """
    failed_folders = []
    for folder, rows in measured.items():
        if rows and all(row["error"] is not None for row in rows):
            failed_folders.append(str(folder))
    if failed_folders:
        print_error(f"every question ended in an error: {', '.join(failed_folders)}")
    if len(failed_folders) == len(measured):
        return EXIT_FAILED
    return 0


def _print_side_by_side(measured: Mapping[Path, Sequence[BenchRow]]) -> None:
    """Print tables of quality, stability, cost and lost answers that compare the results folders.

    ``measured`` has the rows of the questions that were asked for, by folder. Other rows of a
    folder do not count. A folder's name is its heading.
    """
    from kgwb.bench import figures

    all_results = []
    for folder, rows in measured.items():
        name = folder.name
        results = figures.LoadedResults.read(folder, name, f", {name}")
        all_results.append(results.with_rows(rows))
    print("\nside by side:")
    print_tables(
        figures.make_quality_table(all_results),
        figures.make_readings_table(all_results),
        figures.make_stability_table(all_results),
        figures.make_cost_table(all_results),
        figures.make_loss_table(all_results),
    )


def print_metrics(folder: Path, rows: Sequence[BenchRow], prices: Prices) -> None:
    """Print the main figures, the first lost answers, all tables, and the most frequent error.

    ``rows`` are those of the questions that were asked for; other rows of the folder do not count.
    At most MAX_LISTED_FAILURES lost answers are listed; a line says how many there are beyond, and
    how to see them. Money is left out, with the reason on the error output, if a model has no
    price.
    """
    from kgwb.bench import figures
    from kgwb.bench.results import is_lost

    asked = figures.LoadedResults.read(folder).with_rows(rows)
    all_results = [asked]
    headline = color(asked.headline, "key")
    print(f"{headline}\n")
    lost_rows = list(filter(is_lost, rows))
    for row in lost_rows[:MAX_LISTED_FAILURES]:
        _print_lost_answer(row)
    more = and_more(len(lost_rows) - MAX_LISTED_FAILURES)
    if more:
        print(f"{more}: kgwb report {folder}")
    print()
    for reason in [*asked.version_remarks, *figures.find_missing_prices(all_results, prices)]:
        print_error(reason)
    print_tables(
        figures.make_quality_table(all_results),
        figures.make_readings_table(all_results),
        figures.make_stability_table(all_results),
        figures.make_luck_table(all_results, MAX_LISTED_FAILURES),
        figures.make_cost_table(all_results, prices),
        figures.make_linking_table(all_results),
        figures.make_loss_table(all_results),
    )
    errors = Counter(row["error"] for row in rows if row["error"] is not None)
    for error, count in errors.most_common(1):
        print_error(
            f"the most frequent error, of {pluralize(count, 'question')}: {single_line(error)}",
            "remove its cause and give the same command with --retry-errors",
        )


def _print_lost_answer(row: BenchRow) -> None:
    """Print a lost answer in one line: verdict, id, question, answers or error, and gold.

    Answers and gold are shown by their names (``name_values``), each list cut at MAX_LISTED_CHARS
    with the number left out. Columns of a table that were not asked for are named as such.
    """
    from kgwb.bench.report_parts import name_values
    from kgwb.bench.results import get_verdict, split_answers

    names = name_values([row])
    answers, not_asked_for = split_answers(row)
    outcome = _list_names(names, answers) or "nothing"
    if row["error"]:
        outcome = shorten(row["error"])
    if not_asked_for:
        outcome += f"; columns not asked for: {_list_names(names, not_asked_for)}"
    gold = _list_names(names, row["gold"]) or "no answer"
    text = single_line(f"{row['id']}: {shorten(row['question'])} → {outcome}; right: {gold}")
    verdict = get_verdict(row)
    print(color(f"{verdict:<10}", "failure"), text)


def _list_names(names: Mapping[str, str], values: Sequence[str]) -> str:
    """Return the names of values as one text with commas, cut between values at MAX_LISTED_CHARS.

    It ends with the number of those that were left out.
    """
    return list_within([names[value] for value in values], MAX_LISTED_CHARS)


# --- retry


@dataclass(kw_only=True)
class RetryCommand(CheckArguments, GraphArguments):
    """ask questions of a benchmark again after a change, and show what it fixed and what it broke"""

    EPILOG = EXIT_CODES

    folder: Path = positional(
        "DIR", "folder of kgwb bench --out; what was asked there is not asked again"
    )
    kg: str = option("GRAPH", "default: the one that was measured", "")
    prompts: Path | None = option("DIR", "folder of prompts that are used in place of kgwb's own")
    model: str = option("SPEC", "default: the one that was measured", "")
    agent_model: list[str] = option("AGENT=SPEC", "model of one agent, or of all of a role", [])
    system: str = option(
        "SYSTEM", "an import path or a file, if what was measured is not a system by name", ""
    )
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    each: list[str] = option(EACH_SYNTAX, EACH_HELP, [])
    only: list[str] = option(
        "WHAT",
        "lost, wrong, errors, right, all, blamed=AGENT, type=NAME, an id "
        "(default: lost, and as many right)",
        [],
    )
    repeats: PositiveInt = option(
        "N", "ask what comes out otherwise N times before and after the change, as a test of it", 1
    )
    ladder: bool = option(
        "", "name the agent that lost each answer, before and after; asks several times more", False
    )
    note: str = option("TEXT", "what is remembered with the new results", "")
    retries: bool = option("", "ask nothing, and list the retries that were made", False)
    workers: PositiveInt = option("N", "questions asked at the same time", 1)
    budget: list[str] = option("NAME=NUMBER", BUDGET_HELP, [])
    prices: Path | None = option("FILE", PRICES_HELP)
    out: Path | None = option(
        "FILE", "HTML file to write (default: report.html in DIR/retries/CHANGE)"
    )

    def run(self) -> int:
        """Ask questions again with each value of ``each``, write the report, and return the exit code.

        With ``retries`` only list the earlier retries. A combination that is the measured setup is
        said to be that, and is skipped. If a budget is used up, no further combination is asked,
        the report has what was asked so far, and EXIT_BUDGET_SPENT is returned; else
        EXIT_CONDITION_MET if a condition is met, else 0. The report compares all new results with
        those of ``folder``, and is at ``out``, or beside the new results. Raises InputError if
        nothing differs from what was measured.
        """
        from kgwb.bench.exports import CHANGE_FIGURES, make_change_suite
        from kgwb.bench.figures import LoadedResults
        from kgwb.bench.lab import RetryExperiment
        from kgwb.bench.ladder import gold_decisions_of

        if self.retries:
            return self._list_retries()
        self.check_conditions(CHANGE_FIGURES)
        budget = _make_budget(self.budget, self.prices)
        graph = self.open_graph(self.kg) if self.kg else None
        folders = []
        stop_reason = ""
        for name, command in commands_for_each(self, self.each):
            models = open_model_arguments(command._given_models())
            experiment = RetryExperiment(
                self.folder, kg=graph, models=models, system=self.system or None
            )
            graph = experiment.kg  # opened once, for all values of --each
            if self.ladder:
                gold_decisions_of(experiment.system)
            setup = command._make_setup(experiment, must_differ=not self.each)
            if experiment.is_measured_setup(setup):
                print(f"{name}: this is what was measured, see {self.folder}")
                continue
            folder, stop_reason = command._ask_again(experiment, setup, name, budget)
            folders.append(folder)
            if stop_reason:
                print_error(
                    f"stopped: the budget is used up ({stop_reason})",
                    "to continue, give the same command with a larger --budget",
                )
                break
        if not folders:
            raise InputError(
                f"no question is asked again, since nothing was changed: this is the setup that {self.folder} "
                "was measured with",
                hint="give --each a value that differs from the measured one",
            )
        page_folder = folders[0]
        if len(folders) > 1:
            page_folder = page_folder.parent
        page = self.out or page_folder / "report.html"
        write_report([self.folder, *folders], page, self.prices)
        self._suggest_keeping(folders)
        before = LoadedResults.read(self.folder)
        suites = [make_change_suite(before, LoadedResults.read(folder)) for folder in folders]
        condition_code = self.finish(suites, CHANGE_FIGURES)
        if stop_reason:
            return EXIT_BUDGET_SPENT
        return condition_code

    def _list_retries(self) -> int:
        """Print a line for each earlier retry of the folder, the latest first; always return 0."""
        from kgwb.bench.figures import LoadedResults
        from kgwb.bench.lab import list_retries

        retries = list_retries(LoadedResults.read(self.folder))
        print("\n".join(map(str, retries)) or "nothing was asked again yet")
        return 0

    def _suggest_keeping(self, folders: Sequence[Path]) -> None:
        """Print on the error output, for each results folder, the ``kgwb keep`` command for its prompts.

        Nothing is printed if neither ``prompts`` nor ``each`` gave prompts.
        """
        gives_prompts = any(assignment.startswith("prompts=") for assignment in self.each)
        if self.prompts is None and not gives_prompts:
            return
        for folder in folders:
            command = shlex.join(["kgwb", "keep", "my_prompts", "--results", str(folder)])
            print_error(f"to keep these prompts: {command}")

    def _given_models(self) -> dict[str, str]:
        """Return the models that the arguments give, by agent; "" stands for all agents without one of their own.

        Raises InputError for an ``agent_model`` without "=".
        """
        models = parse_assignments(self.agent_model, "AGENT=SPEC")
        if self.model:
            models = {"": self.model, **models}
        return models

    def _make_setup(self, experiment: RetryExperiment, *, must_differ: bool) -> BenchSetup:
        """Return the measured setup changed by ``prompts`` and ``set``.

        Raises what ``RetryExperiment.make_setup`` raises, which is an InputError if ``must_differ``
        and nothing differs from what was measured.
        """
        from kgwb.run.prompts import Prompts

        prompts = Prompts.of(self.prompts)
        settings = parse_assignments(self.set, "NAME=VALUE")
        return experiment.make_setup(prompts, settings, must_differ=must_differ)

    def _ask_again(
        self, experiment: RetryExperiment, setup: BenchSetup, name: str, budget: Budget
    ) -> tuple[Path, str]:
        """Print the estimated cost and all that differs, ask the questions again, and write their results.

        ``name`` is for the folder of the results; "" names it by the prompts, models and settings
        that were given. The note is written to the folder. With ``ladder``, agents are blamed for
        lost answers, unless a budget stopped it. Returns the folder, and the limits of the budget
        that were reached, or "".
        """
        from kgwb.bench.figures import show_folder_name
        from kgwb.bench.lab import write_note

        changes = [*self._given_models().values(), *self.set]
        if self.prompts:
            changes.insert(0, self.prompts.resolve().name)
        folder_name = name or ", ".join(changes) or "prompts"
        folder = experiment.get_results_folder(setup, folder_name)
        questions = experiment.choose_questions(self.only)
        with progress_bar(iterable=questions, unit="question looked at") as bar:
            estimate = experiment.estimate_cost(
                setup, bar, prices=budget.prices, repeats=self.repeats
            )
        print(f"{show_folder_name(folder)}: {estimate}", flush=True)
        for change in experiment.describe_changes(setup):
            print(f"  {change}", flush=True)
        with progress_bar(total=len(questions), unit="question") as bar:
            stop_reason = experiment.ask_again(
                setup,
                questions,
                folder,
                sample=experiment.sample(self.only),
                repeats=self.repeats,
                workers=self.workers,
                budget=budget,
                on_row=lambda row: bar.update(),
            )
        write_note(folder, self.note)
        if self.ladder and not stop_reason:
            with progress_bar(unit="lost answer") as bar:
                experiment.locate_losses(
                    setup, questions, folder, workers=self.workers, on_row=lambda row: bar.update()
                )
        return folder, stop_reason


# --- report


@dataclass(kw_only=True)
class ReportCommand:
    """make one HTML file of one or several results folders"""

    folders: list[Path] = positional(
        "DIR", "folder of kgwb bench --out, or an archive of kgwb pack"
    )
    out: Path | None = option("FILE", "HTML file to write (default: report.html in the first DIR)")
    published: str | None = option(
        "SET", "also show the figures that papers print for this question set"
    )
    questions: Path | None = option(
        "FILE", "score the answers by the gold of this file (default: by that of the first DIR)"
    )
    prices: Path | None = option("FILE", PRICES_HELP)
    to: str | None = option(
        "FORMAT",
        "print a table for a paper instead: latex, markdown or csv (with --out: write it); "
        "with --figure: svg, pdf or latex",
    )
    table: str = option(
        "NAME", "the table for --to: quality (default), cost, losses, changes or errors", "quality"
    )
    figure: str | None = option(
        "NAME",
        "with --to and --out: draw a figure in place of a table: quality, losses, changes or errors",
    )
    measures: str = option(
        "NAME,NAME,...", "the measures of the table or figure quality", "precision,recall,f1"
    )
    baseline: str | None = option(
        "NAME", "with --to: mark what differs from this folder more than by chance"
    )

    def run(self) -> None:
        """Write the HTML report of the folders, or, with ``to``, a table or figure for a paper.

        The report is at ``out``, or report.html in the first folder. Raises InputError for folders
        without results, an unknown format, table, figure, measure or baseline, for ``figure``
        without ``to`` and ``out``, and for a file that cannot be written.
        """
        self.folders = self._unpack_archives()
        if self.figure is not None:
            self._write_figure(self.figure)
            return
        if self.to is not None:
            self._write_table(self.to)
            return
        page = self.out or self.folders[0] / "report.html"
        write_report(self.folders, page, self.prices, self.published, self.questions)

    def _unpack_archives(self) -> list[Path]:
        """Return the folders to report on; an archive of ``kgwb pack`` stands for the folders in it.

        "artifact.zip" is unpacked into the folder "artifact" beside it. Raises what
        ``unpack_results`` raises.
        """
        from kgwb.bench.exports import unpack_results

        folders = []
        for path in self.folders:
            if path.is_file():
                folders += unpack_results(path, path.with_suffix(""))
            else:
                folders.append(path)
        return folders

    def _write_figure(self, name: str) -> None:
        """Write the figure of this name to ``out`` in the format of ``to``, and print its caption and files.

        Raises InputError without ``to`` or ``out``, for an unknown figure, format or measure, and
        what ``write_chart`` raises.
        """
        from kgwb.bench.papers import check_chart_format, make_chart

        check_chart_format(self.to or "")
        if self.out is None:
            raise InputError(
                "the figure was not drawn: it needs a file", hint="name one with --out FILE"
            )
        chart = make_chart(name, self._read_results(), measures=self.measures.split(","))
        print_chart(chart, self.out, str(self.to))

    def _read_results(self) -> Sequence[LoadedResults]:
        """Read the folders, scored by the gold of ``questions`` if it is given."""
        from kgwb.bench import Report, load_questions

        questions = load_questions(self.questions) if self.questions else []
        return Report(*self.folders, questions=questions).results

    def _write_table(self, format_name: str) -> None:
        """Print the table that ``table`` names in a format for papers, or write it to ``out`` and print the path.

        Raises InputError for an unknown format, table, measure or baseline, and if the file cannot
        be written; it is replaced if it is there.
        """
        from kgwb.bench.papers import make_table

        table = make_table(
            self.table,
            self._read_results(),
            measures=self.measures.split(","),
            baseline=self.baseline,
        )
        text = table.to_format(format_name)
        if self.out is None:
            print(text, end="")
            return
        with disk.os_errors_as_input_error(
            f"cannot write {self.out}", "name another file with --out"
        ):
            disk.write_atomically(self.out, [text], "replace")
        print(self.out)


def print_chart(chart: Chart, path: Path, format_name: str) -> None:
    """Write a figure, and print its caption and its files. Raises what ``write_chart`` raises."""
    from kgwb.bench.papers import write_chart

    files = write_chart(chart, path, format_name)
    print(single_line(chart.caption), *files, sep="\n")


def write_report(
    folders: Sequence[Path],
    page: Path,
    prices: Path | None = None,
    published: str | None = None,
    questions: Path | None = None,
) -> None:
    """Write the report of results folders to ``page``, and print its main figures and its path.

    The first folder is compared with each of the others. ``prices`` is a table of prices (default:
    kgwb's), and ``published`` the question set whose figures in papers are shown. Answers are
    scored by the gold of the file ``questions`` if it is given. Raises InputError if a folder has
    no results, or the page cannot be written.
    """
    from kgwb.bench import Report, load_prices, load_questions

    with_gold = load_questions(questions) if questions else []
    with progress_bar(unit="run") as bar:
        report = Report(
            *folders,
            published=published,
            prices=load_prices(prices),
            finished=bar.update,
            questions=with_gold,
        )
        headline = list(report.headline())
        path = report.save(page)
    print(*headline, path, sep="\n")


# --- serve


@dataclass(kw_only=True)
class ServeCommand(QuestionArguments):
    """answer questions with SPARQL over HTTP, in the form of TEXT2SPARQL"""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", "")
    dataset: list[str] = option(
        "IRI=GRAPH",
        "answer questions on this dataset from this graph; --kg answers for all other datasets",
        [],
    )
    host: str = option("", "address to listen on (default: this machine)", "127.0.0.1")
    port: int = option("", "default: 8000; 0 takes a free one", 8000)
    workers: PositiveInt = option("N", "questions answered at the same time (default: 4)", 4)

    def run(self) -> None:
        """Open the graphs, print the address of each dataset, and answer HTTP requests until an interrupt.

        All datasets have the same system, model and settings. A graph that several datasets name is
        opened once. Raises InputError without a graph, or if the address cannot be used.
        """
        from kgwb.bench import BenchSetup
        from kgwb.bench.serve import Text2SparqlServer
        from kgwb.kg import is_endpoint_url

        graphs = self._graphs_by_dataset()
        # With a dialect, the graph that it is for is opened first: an endpoint, if there is one.
        self.kg = max(graphs.values(), key=is_endpoint_url)
        workbench = self.make_workbench()
        opened = {self.kg: workbench.kg}
        for source in graphs.values():
            if source not in opened:
                opened[source] = self.open_graph(source)
        setup = BenchSetup.from_workbench(workbench)
        setups = {iri: replace(setup, kg=opened[source]) for iri, source in graphs.items()}
        address = (self.host, self.port)
        with Text2SparqlServer(address, setups, workers=self.workers) as server:
            warn_about_rules(workbench)
            for iri, setup in setups.items():
                dataset = iri or "every other dataset"
                text = single_line(f"answers for {dataset} from {setup.kg.source}")
                print(f"{server.url} {text}", flush=True)
            print("Ctrl+C stops it.", flush=True)
            server.serve_forever()

    def _graphs_by_dataset(self) -> dict[str, str]:
        """Return, by the IRI of each dataset, the text by which ``open_kg`` opens its graph.

        The graph of ``kg``, if given, is under the key ANY_DATASET, for all other datasets. Raises
        InputError if there is no graph, or a dataset is named twice.
        """
        from kgwb.bench.serve import ANY_DATASET

        graphs = parse_assignments(self.dataset, "IRI=GRAPH")
        if len(graphs) < len(self.dataset):
            given = [argument.partition("=")[0] for argument in self.dataset]
            twice = next(iri for iri in given if given.count(iri) > 1)
            raise InputError(
                f"--dataset names the dataset {twice} twice",
                hint="give each --dataset IRI=GRAPH once",
            )
        if self.kg:
            graphs[ANY_DATASET] = self.kg
        if not graphs:
            raise InputError(
                "the server was not started: no graph was named",
                hint="give --kg GRAPH, or --dataset IRI=GRAPH",
            )
        return graphs
