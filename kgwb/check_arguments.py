"""The options for a build server: conditions that fail the command, JUnit XML, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb.arguments import option
from kgwb.terminal import EXIT_CONDITION_MET, print_error

if TYPE_CHECKING:
    from kgwb.bench.checks import Suite

EXIT_CODES = (
    "exit codes: 0 success; 2 an error, also if every question ended in one; 3 the budget is used up; "
    "4 a condition of --fail-if is met; 130 an interrupt"
)


@dataclass(kw_only=True)
class CheckArguments:
    """The arguments that say when the command fails, and where other programs find the results."""

    fail_if: list[str] = option(
        "CONDITION",
        "end with exit code 4 if a figure is so, as in 'f1<0.8', 'errors>0', or after a change "
        "'broken>0'",
        [],
    )
    junit: Path | None = option("FILE", "also write each question as a test case of JUnit XML")
    json: Path | None = option("FILE", "also write the figures and each question as JSON")

    def check_conditions(self, figures: Sequence[str]) -> None:
        """Raise InputError if a condition of ``fail_if`` has another form, or is on a figure not among these."""
        from kgwb.bench.checks import Condition

        for text in self.fail_if:
            Condition.parse(text, figures)

    def finish(self, suites: Sequence[Suite], figures: Sequence[str]) -> int:
        """Write the files that are wanted, and print the conditions that are met.

        Returns EXIT_CONDITION_MET if there are such conditions, else 0.
        """
        from kgwb.bench import checks

        conditions = [checks.Condition.parse(text, figures) for text in self.fail_if]
        if self.junit is not None:
            checks.write_junit(self.junit, suites, conditions)
        if self.json is not None:
            checks.write_json(self.json, suites, conditions)
        met = checks.find_met_conditions(suites, conditions)
        for sentence in met:
            print_error(f"--fail-if: {sentence}")
        return EXIT_CONDITION_MET if met else 0
