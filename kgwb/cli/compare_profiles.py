"""``kgwb compare-profiles``: what each difference of two profiles does by itself."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb.cli.arguments import name_assignment_folder, option
from kgwb.cli.bench import BenchCommand, MeasurementArguments, name_failed_folders
from kgwb.cli.terminal import print_tables

if TYPE_CHECKING:
    from kgwb.bench.results import BenchRow


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
