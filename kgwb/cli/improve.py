"""``kgwb improve``: search for a better prompt of the agent that lost answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from kgwb.bench.figures import LoadedResults
from kgwb.bench.improve import PromptSearch, find_best
from kgwb.cli.arguments import PositiveInt, open_model_arguments, option, positional
from kgwb.cli.bench import EXIT_CODES
from kgwb.cli.report import write_report
from kgwb.cli.retry import MeasuredArguments, RetryCommand, suggest_keeping
from kgwb.cli.terminal import EXIT_BUDGET_SPENT, print_error
from kgwb.run.models import open_models
from kgwb.text import pluralize


@dataclass(kw_only=True)
class ImproveCommand(MeasuredArguments):
    """The arguments of ``kgwb improve``, and its work."""

    EPILOG = EXIT_CODES

    agent: str = positional("AGENT", "an agent that the ladder blames for lost answers")
    folder: Path = positional("DIR", "folder of kgwb bench --ladder --out")
    proposer: str = option("SPEC", "model that proposes changed prompts, as for --model", ...)
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
