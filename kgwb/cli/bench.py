"""``kgwb bench``: every question of a file, asked and scored; ``compare-profiles``: so for each setting."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from urllib.parse import quote, unquote

from kgwb import bench
from kgwb.background import progress_bar
from kgwb.bench import exports, figures, load_questions
from kgwb.bench.assertions import list_failed
from kgwb.bench.cost import Budget, Prices
from kgwb.bench.exports import RESULT_FIGURES, Suite, make_results_suite
from kgwb.bench.figures import AllResults, LoadedResults, make_profile_table
from kgwb.bench.formats import locate_questions
from kgwb.bench.ladder import gold_decisions_of
from kgwb.bench.questions import (
    NAMED_GOLD_HINT,
    BenchQuestion,
    describe_named_gold,
    find_contradicted_gold,
    find_named_gold,
    make_standalone_questions,
    select_slices,
)
from kgwb.bench.report import name_values
from kgwb.bench.results import BenchRow, get_verdict, is_lost, is_shown, lock_folder, split_answers
from kgwb.bench.runner import BenchSetup, check_repeats
from kgwb.cli.arguments import (
    EACH_FIELDS,
    EACH_HELP,
    EACH_SYNTAX,
    EXIT_CONDITION_MET,
    EXIT_FAILED,
    PRICES_HELP,
    SLICE_HELP,
    BudgetSpentError,
    PositiveInt,
    color,
    commands_for_each,
    flag,
    name_assignment_folder,
    option,
    parse_assignments,
    print_error,
    print_tables,
    warn_about_rules,
)
from kgwb.cli.ask import (
    QuestionArguments,
    describe_missing_settings,
    find_missing_settings,
    parse_system_names,
)
from kgwb.cli.report import write_report
from kgwb.errors import InputError
from kgwb.kg.base import Graph
from kgwb.llm.base import ChatModel
from kgwb.run.store import find_store
from kgwb.run.systems import resolve_system
from kgwb.text import and_more, list_first, list_within, pluralize, shorten, single_line

MAX_LISTED_FAILURES = 10
"""Lost answers, and questions right by luck, that are printed. The report has all."""
MAX_LISTED_CHARS = 150
"""Characters of the answers, and of the gold, of a lost answer that is printed."""


EXIT_CODES = (
    "exit codes: 0 success; 2 an error, also if every question ended in one; 3 the budget is used up; "
    "4 a condition of --fail-if is met; 130 an interrupt"
)


@dataclass(kw_only=True)
class WorkArguments:
    """The arguments that say how fast questions are asked, and what that may cost."""

    workers: PositiveInt = option("N", "questions asked at the same time", 1)
    budget: list[str] = option(
        "NAME=NUMBER",
        "stop at this much money, tokens, model_calls or seconds of work, counting all that DIR holds",
        [],
    )
    prices: Path | None = option("FILE", PRICES_HELP)

    def make_budget(self) -> Budget:
        """Return the budget with the prices of the table, by default kgwb's.

        Raises InputError for a wrong limit or table.
        """
        numbers = parse_assignments(self.budget, "NAME=NUMBER")
        return bench.Budget(numbers, bench.load_prices(self.prices))

    def check_prices(
        self, budget: Budget, models: Iterable[ChatModel], questions: Iterable[BenchQuestion]
    ) -> None:
        """Print the first model without a price, if a table of prices was given; nothing was asked yet.

        Raises InputError for it if money is limited, by the budget or by an assertion on a question.
        """
        is_limited = "money" in budget.limits
        is_limited |= any(question.assertions.max_cost is not None for question in questions)
        for model in models:
            try:
                budget.prices.find_price(model.name)
            except InputError:
                if is_limited:
                    raise
                if self.prices is not None:
                    print_error(
                        f"money will be left out: {self.prices} has no price for {model.name!r}"
                    )
                return


@dataclass(kw_only=True)
class CheckArguments:
    """The arguments that say when the command fails, and where other programs find the results."""

    fail_if: list[str] = option(
        "CONDITION",
        "end with exit code 4 if a figure is so, as in 'f1<0.8', in bench 'errors>0', in retry "
        "'worse>0' (beyond chance), 'better<1' (not shown), 'f1_low<-0.05' (a loss of 5 points is possible)",
        [],
    )
    junit: Path | None = option("FILE", "also write each question as a test case of JUnit XML")
    json: Path | None = option("FILE", "also write the figures and each question as JSON")

    def check_conditions(self, figures: Sequence[str]) -> None:
        """Raise InputError if a condition of ``fail_if`` has another form, or is on a figure not among these."""
        for text in self.fail_if:
            exports.Condition.parse(text, figures)

    def finish(self, suites: Sequence[Suite], figures: Sequence[str]) -> int:
        """Write the files that are wanted, and print the conditions that are met.

        Returns EXIT_CONDITION_MET if there are such conditions, else 0.
        """
        conditions = [exports.Condition.parse(text, figures) for text in self.fail_if]
        if self.junit is not None:
            exports.write_junit(self.junit, suites, conditions)
        if self.json is not None:
            exports.write_json(self.json, suites, conditions)
        met = exports.find_met_conditions(suites, conditions)
        for sentence in met:
            print_error(f"--fail-if: {sentence}")
        return EXIT_CONDITION_MET if met else 0


@dataclass
class SharedQuestions:
    """Questions that one or several commands ask on one graph, which the first of them opens."""

    questions: list[BenchQuestion]
    """With the gold answers that the graph gives, once it is open."""
    graph: Graph | None = None
    is_rules_remarked: bool = False
    """Whether the person was told that ``rules`` is only a baseline."""


@dataclass(kw_only=True)
class MeasurementArguments(WorkArguments, QuestionArguments):
    """The arguments that say which questions are asked, and how their results are kept."""

    questions: Path = option("FILE", "QALD, LC-QuAD, MetaQA, JSON lines, ...", MISSING)
    language: str | None = option("TAG", "language of the questions, if the file has several")
    out: Path = option("DIR", "folder of the results; continues what is there", MISSING)
    every: PositiveInt = option("N", "only every Nth question, from the first one", 1)
    limit: PositiveInt | None = option("N", "only the first N questions (of those of --every)")
    slice: list[str] = option("tag=NAME", SLICE_HELP, [])
    save_runs: bool = flag("save every run in DIR/runs")
    reuse: Path | None = option(
        "DIR", "take calls from the store of this folder (default: of --out, or a folder above it)"
    )
    retry_errors: bool = flag("ask questions that ended in an error again")

    def load_questions(self) -> list[BenchQuestion]:
        """Read the question file, and return every ``every``-th question from the first, ``limit`` at most.

        Raises InputError if the file cannot be used, or if ``every`` is above 1 and the file has
        dialogues, whose turns need each other.
        """
        questions = select_slices(load_questions(self.questions, self.language), self.slice)
        if self.every > 1 and any(question.dialogue is not None for question in questions):
            raise InputError(
                f"--every cannot be used with {self.questions}: it has dialogues, whose turns cannot be asked "
                "without the others",
                hint="leave --every out",
            )
        return questions[:: self.every][: self.limit]


@dataclass(kw_only=True)
class BenchCommand(CheckArguments, MeasurementArguments):
    """The arguments of ``kgwb bench``, and its work."""

    EPILOG = EXIT_CODES

    systems: str | None = option(
        "NAME,NAME,... or all", "measure several systems, each in its own folder"
    )
    each: list[str] = option(EACH_SYNTAX, EACH_HELP, [])
    repeats: PositiveInt = option(
        "N", "ask each question N times, to see how often it comes out right", 1
    )
    ladder: bool = flag("name the agent that lost each answer; asks up to 5 times more")
    readings: bool = flag("also ask each question as the readings have it that its answer offers")
    retention: bool = flag("also ask the questions of dialogues alone, in DIR/standalone")

    def run(self) -> int:
        """Measure each system with each value of ``each``, print the results, and return the exit code.

        Each combination has a folder of its own below ``out``; they share one store of calls. With
        ``each`` a report is written, and with several systems but no ``each`` their tables are
        printed side by side. Folders in which every question ended in an error are named. Returns
        EXIT_FAILED if these are all folders, else EXIT_CONDITION_MET if a condition of ``fail_if``
        is met, else 0. Raises InputError for ``retention`` if no question is in a dialogue, and for
        a wrong condition, before anything is asked.
        """
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
        for command in commands:
            check_repeats(command.settings, command.repeats, command.given_settings)
        shared = SharedQuestions(questions)
        measured: dict[Path, list[BenchRow]] = {}
        for command in commands:
            if self.each or self.systems:
                print(unquote(str(command.out.relative_to(self.out))))
            measured[command.out] = command.run_benchmark(shared)
        if self.each:
            write_report(self._read_results(measured), self.out / "report.html", self.prices)
        elif self.systems:
            print("\nside by side:")
            _print_figures(self._read_results(measured), self.make_budget().prices)
        suites = [
            make_results_suite(unquote(folder.name), rows) for folder, rows in measured.items()
        ]
        condition_code = self.finish(suites, RESULT_FIGURES)
        return name_failed_folders(measured) or condition_code

    def _read_results(self, measured: Mapping[Path, Sequence[BenchRow]]) -> list[LoadedResults]:
        """Return the results of several folders, named by their paths in ``out``.

        ``measured`` has the rows of the questions that were asked for, by folder. Other rows of a
        folder do not count.
        """
        all_results = []
        for folder, rows in measured.items():
            name = str(folder.relative_to(self.out))
            results = LoadedResults.read(folder, name).with_rows(rows)
            all_results.append(replace(results, label_suffix=f", {results.name}"))
        return all_results

    def _commands_for_systems(self) -> list[BenchCommand]:
        """Return a copy of this command for each of ``systems``, with the folder ``out``/NAME; else this one.

        If several systems have one name, the folder's name also has what each is given by (path or
        import path). Raises InputError if a system lacks a setting that ``set`` or ``each`` gives,
        and SettingError for an unknown system. Nothing is asked yet.
        """
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

        Given are the names in ``set``, and those of ``each`` that are settings.
        """
        given = [*self.given_settings]
        if self.each:
            given += parse_assignments(self.each, EACH_SYNTAX)
        settings = [name for name in given if name not in EACH_FIELDS]
        missing = find_missing_settings(systems, settings)
        if missing:
            raise InputError(
                f"not all of these systems have the given settings: {describe_missing_settings(missing)}",
                hint="leave these settings out (--set, --each), or measure the systems that have them alone",
            )

    def _commands_for_each(self) -> list[BenchCommand]:
        """Return a copy of this command for each combination of values in ``each``, with a subfolder of ``out``.

        Without ``each`` it is this command alone. Raises InputError if two combinations mean the
        same settings, prompts and models. Two paths of one folder of prompts are the same.
        """
        commands: list[BenchCommand] = []
        known: list[object] = []
        for name, command in commands_for_each(self, self.each):
            prompts = None
            if command.prompts is not None:
                prompts = os.path.realpath(command.prompts)  # a folder may be written in two ways
            choices = (command.settings, prompts, command.model, command.agent_model)
            if choices in known:
                raise InputError(f"--each has {name} twice", hint="give each value once")
            known.append(choices)
            commands.append(replace(command, out=self.out / name))
        return commands

    def run_benchmark(
        self, shared: SharedQuestions, *, prints_metrics: bool = True
    ) -> list[BenchRow]:
        """Find the gold answers, ask all questions, print the results, and return a row for each question.

        The graph is opened, and gold looked for, unless an earlier command has done so for these
        questions. ``prints_metrics`` False leaves out the tables and counts. With ``retention``, the questions
        of dialogues are asked alone too. Before any question is asked, the budget, the models'
        prices if money is limited, and the system's gold for the ladder are checked. Raises
        InputError if one of them is missing, and what ``_ask_questions`` raises. The model
        ``rules`` is remarked on.
        """
        budget = self.make_budget()
        workbench = self.make_workbench(shared.graph)
        if self.ladder:
            gold_decisions_of(workbench.system)
        self.check_prices(budget, workbench.models.values(), shared.questions)
        if shared.graph is None:
            self._warn_about_gold(shared.questions, workbench.kg)
            shared.questions = _find_gold(shared.questions, workbench.kg)
            shared.graph = workbench.kg
        questions = shared.questions
        setup = bench.BenchSetup.from_workbench(workbench)
        rows = self._ask_questions(
            setup, budget, self.out, questions, prints_metrics=prints_metrics
        )
        if self.retention:
            self._measure_retention(setup, budget, questions, rows)
        if not shared.is_rules_remarked:
            shared.is_rules_remarked = warn_about_rules(workbench)
        return rows

    def _warn_about_gold(self, questions: Sequence[BenchQuestion], kg: Graph) -> None:
        """Print, on the error output, gold texts that are names of things, and gold that its query contradicts.

        The gold queries are executed if the graph is a file.
        """
        contradicted = find_contradicted_gold(questions, kg)
        if contradicted:
            print_error(
                f"the gold query of {pluralize(len(contradicted), 'question')} gives other answers than the "
                f"file has: {list_first(contradicted)}",
                "correct one of the two: answers are scored by those of the file",
            )

        found = find_named_gold(questions, kg)
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
        print("\nthe questions of dialogues, asked alone:")
        turns = [question for question in questions if question.dialogue is not None]
        standalone = make_standalone_questions(turns)
        folder = self.out / "standalone"
        standalone_rows = self._ask_questions(setup, budget, folder, standalone)
        standalone_rows = [row for row in standalone_rows if row["gold"] is not None]
        ids = {row["id"] for row in standalone_rows}
        dialogue_rows = [row for row in rows if row["id"] in ids]
        retention = bench.compute_retention(dialogue_rows, standalone_rows)
        kept = "F1 of the questions alone is 0"
        if retention is not None:
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
                print(benchmark.describe_calls())
        if benchmark.stop_reason:
            raise BudgetSpentError(
                f"the benchmark stopped with {len(rows)} of {len(questions)} questions asked: "
                f"the budget is used up ({benchmark.stop_reason})",
                hint="to continue, give the same command with a larger --budget",
            )
        return rows


def _find_gold(questions: Sequence[BenchQuestion], kg: Graph) -> list[BenchQuestion]:
    """Return the questions, in their order, with gold answers from the graph added where they lack them.

    A gold query is added where it can be made, and executed. Questions that still have no gold stay
    in the list; their number and the first reason are printed on the error output.
    """
    with_queries = bench.add_gold_queries(questions, kg)
    with progress_bar(iterable=with_queries, unit="gold answer") as bar:
        answered = bench.add_gold_answers(bar, kg)
    missing = [question for question in answered if question.answers is None]
    if missing:
        first = missing[0]
        reason = single_line(first.gold_error or "")
        print_error(
            f"{len(missing)} of {len(answered)} questions have no gold: {first.id}: {reason}"
        )
    return answered


def name_failed_folders(measured: Mapping[Path, Sequence[BenchRow]]) -> int:
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


def _print_figures(all_results: AllResults, prices: Prices) -> None:
    """Print all tables of results that have rows."""
    print_tables(
        figures.make_quality_table(all_results),
        figures.make_assertions_table(all_results),
        figures.make_readings_table(all_results),
        figures.make_stability_table(all_results),
        figures.make_luck_table(all_results, MAX_LISTED_FAILURES),
        figures.make_cost_table(all_results, prices),
        figures.make_linking_table(all_results),
        figures.make_loss_table(all_results),
    )


def print_metrics(folder: Path, rows: Sequence[BenchRow], prices: Prices) -> None:
    """Print the main figures, the first answers that are lost or fail an assertion, all tables, and the main error.

    ``rows`` are those of the questions that were asked for; other rows of the folder do not count.
    At most MAX_LISTED_FAILURES lost answers are listed; a line says how many there are beyond, and
    how to see them. Money is left out, with the reason on the error output, if a model has no
    price.
    """
    asked = figures.LoadedResults.read(folder).with_rows(rows)
    all_results = [asked]
    headline = color(asked.headline, "key")
    print(f"{headline}\n")
    failed_rows = [row for row in rows if is_shown(row) and (is_lost(row) or list_failed(row))]
    for row in failed_rows[:MAX_LISTED_FAILURES]:
        _print_lost_answer(row)
    more = and_more(len(failed_rows) - MAX_LISTED_FAILURES)
    if more:
        print(f"{more}: kgwb report {folder}")
    print()
    for reason in [*asked.model_remarks, *figures.find_missing_prices(all_results, prices)]:
        print_error(reason)
    _print_figures(all_results, prices)
    errors = Counter(row["error"] for row in rows if row["error"] is not None)
    for error, count in errors.most_common(1):
        print_error(
            f"the most frequent error, of {pluralize(count, 'question')}: {single_line(error)}",
            "remove its cause and give the same command with --retry-errors",
        )


def _print_lost_answer(row: BenchRow) -> None:
    """Print an answer in one line: verdict, id, question, answers or error, gold, and what assertions fail.

    Answers and gold are shown by their names (``name_values``), each list cut at MAX_LISTED_CHARS
    with the number left out. Columns of a table that were not asked for are named as such.
    """
    names = name_values([row])

    def list_names(values: Sequence[str]) -> str:
        """Return names as one text with commas, cut between them, with the number of those left out."""
        return list_within([names[value] for value in values], MAX_LISTED_CHARS)

    answers, not_asked_for = split_answers(row)
    outcome = list_names(answers) or "nothing"
    if row["error"]:
        outcome = shorten(row["error"])
    if not_asked_for:
        outcome += f"; columns not asked for: {list_names(not_asked_for)}"
    if row["gold"] is not None:
        outcome += f"; right: {list_names(row['gold']) or 'no answer'}"
    details = "; ".join([outcome, *list_failed(row)])
    text = single_line(f"{row['id']}: {shorten(row['question'])} → {details}")
    verdict = get_verdict(row)
    print(color(f"{verdict:<10}", "failure"), text)


@dataclass(kw_only=True)
class CompareProfilesCommand(MeasurementArguments):
    """The arguments of ``kgwb compare-profiles``, and its work."""

    other: str = option("", "profile to compare with: paper (default) or reference", "paper")

    def run(self) -> int:
        """Measure ``profile``, then it with one setting of ``other`` at a time, then ``other``; print a table.

        The table has a row for each measurement. Each has a folder of its own in ``out``, and
        continues what is there; they share one store of calls. Folders in which every question
        ended in an error are named. Returns EXIT_FAILED if these are all folders, else 0.
        """
        shared = SharedQuestions(self.load_questions())
        self.reuse = self.reuse or self.out  # all folders have one store
        measured: dict[Path, list[BenchRow]] = {}
        all_results = []
        for name, command in self._commands_for_settings().items():
            print(name)
            rows = command.run_benchmark(shared, prints_metrics=False)
            measured[command.out] = rows
            results = LoadedResults.read(command.out, name)
            all_results.append(results.with_rows(rows))
        print()
        print_tables(make_profile_table(all_results))
        return name_failed_folders(measured)

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
