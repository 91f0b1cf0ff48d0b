"""``kgwb retry``: questions asked again after a change; ``keep``: its prompts in a folder of one's own;
``improve``: a search for a better prompt of the agent that lost answers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from kgwb.background import progress_bar
from kgwb.bench.cost import Budget
from kgwb.bench.exports import CHANGE_FIGURES, make_change_suite
from kgwb.bench.figures import LoadedResults, show_folder_name
from kgwb.bench.improve import PromptSearch, find_best
from kgwb.bench.lab import (
    TEST_SLICE,
    PromptHistory,
    RetryExperiment,
    list_retries,
    read_measured_prompts,
    write_note,
)
from kgwb.bench.ladder import gold_decisions_of
from kgwb.bench.runner import BenchSetup, check_repeats
from kgwb.cli.arguments import (
    EACH_HELP,
    EACH_SYNTAX,
    EXIT_BUDGET_SPENT,
    SLICE_HELP,
    PositiveInt,
    commands_for_each,
    flag,
    option,
    parse_assignments,
    positional,
    print_error,
)
from kgwb.cli.ask import GraphArguments, open_model_arguments
from kgwb.cli.bench import EXIT_CODES, CheckArguments, WorkArguments
from kgwb.cli.report import write_report
from kgwb.errors import InputError
from kgwb.kg.base import Graph
from kgwb.run.models import open_models
from kgwb.run.prompts import Prompts
from kgwb.text import pluralize


@dataclass(kw_only=True)
class MeasuredArguments(WorkArguments, GraphArguments):
    """The arguments that say which questions of measured results are asked again, and of which model."""

    kg: str = option("GRAPH", "default: the one that was measured", "")
    model: str = option("SPEC", "default: the one that was measured", "")
    agent_model: list[str] = option("AGENT=SPEC", "model of one agent, or of all of a role", [])
    system: str = option(
        "SYSTEM", "an import path or a file, if what was measured is not a system by name", ""
    )
    slice: list[str] = option("tag=NAME", SLICE_HELP, [])

    def open_experiment(
        self, folder: Path, graph: Graph | None = None, base: Path | None = None
    ) -> RetryExperiment:
        """Open results with the models and the system of these arguments.

        ``graph`` is opened anew if it is None. ``base`` is that of ``RetryExperiment``, which says
        what is raised.
        """
        if graph is None and self.kg:
            graph = self.open_graph(self.kg)
        models = open_model_arguments(self.given_models())
        return RetryExperiment(
            folder, kg=graph, models=models, system=self.system or None, base=base
        )

    def given_models(self) -> dict[str, str]:
        """Return the models that the arguments give, by agent; "" stands for all agents without one of their own.

        Raises InputError for an ``agent_model`` without "=".
        """
        models = parse_assignments(self.agent_model, "AGENT=SPEC")
        if self.model:
            models = {"": self.model, **models}
        return models


@dataclass(kw_only=True)
class RetryCommand(CheckArguments, MeasuredArguments):
    """The arguments of ``kgwb retry``, and its work."""

    EPILOG = EXIT_CODES

    folder: Path = positional(
        "DIR", "folder of kgwb bench --out; what was asked there is not asked again"
    )
    base: Path | None = option(
        "DIR",
        "a retry, or a folder of kgwb keep: the change is made to what was asked there, and compared "
        "with it (default: what was measured)",
    )
    prompts: Path | None = option("DIR", "folder of prompts that are used in place of kgwb's own")
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    each: list[str] = option(EACH_SYNTAX, EACH_HELP, [])
    only: list[str] = option(
        "WHAT",
        "lost, wrong, errors, right, all, failed (an assertion), blamed=AGENT, type=NAME, an id "
        "(default: lost, and as many right)",
        [],
    )
    repeats: PositiveInt = option(
        "N", "ask what comes out otherwise N times before and after the change, as a test of it", 1
    )
    ladder: bool = flag(
        "name the agent that lost each answer, before and after; asks several times more"
    )
    note: str = option("TEXT", "what is remembered with the new results", "")
    retries: bool = flag("ask nothing, and list the retries that were made")
    out: Path | None = option(
        "FILE", "HTML file to write (default: report.html in DIR/retries/CHANGE)"
    )

    def run(self, graph: Graph | None = None) -> int:
        """Ask questions again with each value of ``each``, write the report, and return the exit code.

        With ``retries`` only list the earlier retries. ``graph`` is the graph if it is open already.
        A combination that is the setup of ``base`` is said to be that, and is skipped. All are
        checked before the first is asked. If a budget is used up, no further combination is asked,
        the report has what was asked so far, and EXIT_BUDGET_SPENT is returned; else
        EXIT_CONDITION_MET if a condition is met, else 0. The report compares the questions that
        were asked for with those of ``base``, by default of ``folder``, and is at ``out``, or beside
        the new results. Raises InputError if nothing differs from what was measured.
        """
        if self.retries:
            return self._list_retries()
        if self.base and self.repeats > 1:
            raise InputError(
                "--repeats and --base cannot be given together: questions are repeated to compare them with "
                "the first measurement",
                hint="leave one of them out",
            )
        self.check_conditions(CHANGE_FIGURES)
        budget = self.make_budget()
        planned = []
        for name, command in commands_for_each(self, self.each, after_measurement=True):
            experiment = command.open_experiment(self.folder, graph, self.base)
            graph = experiment.kg  # opened once, for all values of --each
            if self.ladder:
                gold_decisions_of(experiment.system)
            settings = parse_assignments(command.set, "NAME=VALUE")
            prompts = Prompts.of(command.prompts)
            setup = experiment.make_setup(prompts, settings, must_differ=not self.each)
            check_repeats(setup.settings, self.repeats, settings)
            if not experiment.describe_changes(setup):
                print(f"{unquote(name)}: this is what was measured, see {experiment.base.folder}")
            else:
                planned.append((name, command, experiment, setup))
        if not planned:
            raise InputError(
                "no question is asked again, since nothing was changed: this is the setup that "
                f"{experiment.base.folder} was measured with",
                hint="give --each a value that differs from the measured one",
            )
        asked = []
        with_prompts = []
        stop_reason = ""
        for name, command, experiment, setup in planned:
            results, stop_reason = command._ask_again(experiment, setup, name, budget)
            asked.append(results)
            if command.prompts:
                with_prompts.append(results.folder)
            if stop_reason:
                print_error(
                    f"stopped: the budget is used up ({stop_reason})",
                    "to continue, give the same command with a larger --budget",
                )
                break
        page_folder = asked[0].folder
        if len(asked) > 1:
            page_folder = page_folder.parent
        page = self.out or page_folder / "report.html"
        drawn_by = experiment.earlier_results if self.base else None
        report = write_report(
            [experiment.base.folder, *asked], page, self.prices, drawn_by=drawn_by
        )
        suggest_keeping(with_prompts)
        suites = list(map(make_change_suite, report.comparisons))
        condition_code = self.finish(suites, CHANGE_FIGURES)
        if stop_reason:
            return EXIT_BUDGET_SPENT
        return condition_code

    def _list_retries(self) -> int:
        """Print a line for each earlier retry of the folder, the latest first; always return 0."""
        retries = list_retries(LoadedResults.read(self.folder))
        print("\n".join(map(str, retries)) or "nothing was asked again yet")
        return 0

    def _ask_again(
        self, experiment: RetryExperiment, setup: BenchSetup, name: str, budget: Budget
    ) -> tuple[LoadedResults, str]:
        """Print the estimated cost and all that differs, ask the questions again, and write their results.

        ``name`` is for the folder of the results; "" names it by the prompts, models and settings
        that were given. The note is written to the folder. With ``ladder``, agents are blamed for
        lost answers, unless a budget stopped it. Returns the results of these questions, and the
        limits of the budget that were reached, or "".
        """
        changes = [*self.given_models().values(), *self.set]
        if self.prompts:
            changes.insert(0, self.prompts.resolve().name)
        folder_name = name or ", ".join(changes) or "prompts"
        questions = experiment.choose_questions(self.only, self.slice)
        self.check_prices(budget, setup.models.values(), questions)
        is_test = TEST_SLICE in self.slice
        sample = experiment.sample(self.only, self.slice)
        folder = experiment.get_results_folder(setup, folder_name, is_test=is_test)
        if is_test:
            print_error(experiment.describe_test_look(folder))
        with progress_bar(iterable=questions, unit="question looked at") as bar:
            estimate = experiment.estimate_cost(
                setup, bar, prices=budget.prices, repeats=self.repeats
            )
        print(f"{show_folder_name(folder)}: {estimate}", flush=True)
        for change in experiment.describe_changes(setup):
            print(f"  {change}", flush=True)
        with progress_bar(total=len(questions), unit="question") as bar:
            benchmark = experiment.ask_again(
                setup,
                questions,
                folder,
                sample=sample,
                repeats=self.repeats,
                workers=self.workers,
                budget=budget,
                on_row=lambda row: bar.update(),
            )
        print(benchmark.describe_calls())
        write_note(folder, self.note)
        if self.ladder and not benchmark.stop_reason:
            with progress_bar(unit="lost answer") as bar:
                experiment.locate_losses(
                    setup, questions, folder, workers=self.workers, on_row=lambda row: bar.update()
                )
        results = experiment.read_asked(folder, questions, sample, unquote(name))
        return results, benchmark.stop_reason


def suggest_keeping(folders: Sequence[Path]) -> None:
    """Print, on the error output, for each results folder, the ``kgwb keep`` command for its prompts."""
    for folder in folders:
        command = shlex.join(["kgwb", "keep", "my_prompts", "--results", str(folder)])
        print_error(f"to keep these prompts: {command}")


@dataclass(kw_only=True)
class KeepCommand:
    """The arguments of ``kgwb keep``, and its work."""

    results: Path | None = option(
        "DIR", "keep the prompts of these results, such as DIR/retries/CHANGE"
    )
    note: str = option("TEXT", "what is remembered with it", "")
    base: Path | None = option(
        "DIR", "results that they are compared with (default: those that were asked again)"
    )
    system: str = option(
        "SYSTEM", "an import path or a file, if what was measured is not a system by name", ""
    )
    undo: bool = flag("take back the latest change")
    compare: str = option(
        "N,N", "show what differs after two changes, counted from 1; 0 are kgwb's own prompts", ""
    )
    folder: Path = positional("FOLDER", "your folder of prompts, for --prompts FOLDER")

    def run(self) -> None:
        """Keep or undo what the arguments say; without any, print the history.

        Raises InputError if both are given, and what ``PromptHistory`` raises.
        """
        if self.results is not None and self.undo:
            raise InputError(
                "--results and --undo cannot be given together",
                hint="use one of them in each command",
            )
        history = PromptHistory(self.folder)
        if self.results is not None:
            self._keep(history)
        elif self.undo:
            print(history.undo())
        elif self.compare:
            print(*history.compare(*self._read_numbers()), sep="\n")
        else:
            print("\n".join(map(str, history.changes)) or "nothing was kept yet")

    def _read_numbers(self) -> tuple[int, int]:
        """Return the two numbers of ``compare``. Raises InputError for anything else."""
        try:
            first, second = map(int, self.compare.split(","))
        except ValueError as exc:
            raise InputError(
                f"--compare needs two numbers, and not {self.compare!r}",
                hint="write them as in --compare 0,1",
            ) from exc
        return first, second

    def _keep(self, history: PromptHistory) -> None:
        """Copy the prompts of the results to the folder as a new change, and print it and the option to use it.

        Prompts that no saved run used have no known text: they are named on the error output and
        not kept.
        """
        assert self.results is not None
        measured = read_measured_prompts(
            self.results, self.base, self.system or None, history.kept_results
        )
        if measured.unknown_names:
            names = ", ".join(measured.unknown_names)
            print_error(
                f"not kept, since no saved run used them: {names}",
                "they changed no answer; copy their files yourself if you want them",
            )
        print(history.keep(measured, self.note))
        for loss in measured.losses:
            print_error(loss, f"to take them back: kgwb keep {self.folder} --undo")
        print(f"to use them: --prompts {self.folder}")


@dataclass(kw_only=True)
class ImproveCommand(MeasuredArguments):
    """The arguments of ``kgwb improve``, and its work."""

    EPILOG = EXIT_CODES

    agent: str = positional("AGENT", "an agent that the ladder blames for lost answers")
    folder: Path = positional("DIR", "folder of kgwb bench --ladder --out")
    proposer: str = option("SPEC", "model that proposes changed prompts, as for --model", MISSING)
    proposals: PositiveInt = option("N", "prompts that are proposed at most (default: 20)", 20)
    out: Path | None = option("FILE", "HTML file to write (default: improved.html in DIR)")

    def run(self) -> int:
        """Search, confirm the best prompt on the test part, write reports, and return the exit code.

        It is EXIT_BUDGET_SPENT if the budget stopped the search or the confirmation, else 0.
        Nothing is kept: the command that keeps the best prompt is printed. Raises what
        ``PromptSearch`` raises.
        """
        budget = self.make_budget()
        [proposer] = open_models(open_model_arguments({"": self.proposer})).values()
        experiment = self.open_experiment(self.folder)
        self.check_prices(
            budget,
            [*experiment.models.values(), proposer],
            experiment.earlier_results.questions(),
        )
        search = PromptSearch(
            experiment,
            self.agent,
            proposer,
            budget,
            self.slice,
            self.workers,
            partial(print, flush=True),
        )
        print(
            f"{self.agent} lost {pluralize(len(search.blamed), 'answer')}; prompts are judged by "
            f"{len(search.judged_ids)} questions, and the best by {len(search.test_ids)} of the test part"
        )
        search.run(self.proposals)
        best = None
        judged = [candidate.folder for candidate in search.candidates if candidate.is_judged]
        if judged:
            page = self.out or self.folder / "improved.html"
            report = write_report([self.folder, *judged], page, self.prices)
            best = find_best(report.comparisons)
        code = 0
        if budget.exhausted:
            code = EXIT_BUDGET_SPENT
            print_error(
                f"the search stopped: the budget is used up ({budget.exhausted})",
                "to continue, give the same command with a larger --budget",
            )
        if best is None:
            print("no prompt is better beyond chance")
            return code
        return self._confirm(search, best.after) or code

    def _confirm(self, search: PromptSearch, winner: LoadedResults) -> int:
        """Ask the test part with the best candidate, as ``kgwb retry`` does, and return its exit code.

        The command that keeps the prompts is printed. It may use what was kept of the budget for it, and what
        the search left.
        """
        if not search.test_ids:
            print_error(
                "not confirmed: there is no test part, so the best prompt was judged by those it was chosen by",
                'give some questions "split": "test" before they are measured',
            )
            suggest_keeping([winner.folder])
            return 0
        print(f"\n{winner.name}, on the test part")
        given = {field.name: getattr(self, field.name) for field in fields(MeasuredArguments)}
        budget = search.budget
        given["budget"] = []
        for name, reserved in search.reserved.items():
            left = reserved + max(0, budget.limits[name] - budget.used[name])
            if left:
                given["budget"].append(f"{name}={left}")
        given["slice"] = search.test_slices
        command = RetryCommand(**given, folder=self.folder, prompts=winner.folder, only=["all"])
        return command.run(search.experiment.kg)
