"""``kgwb keep``: the prompts of results in a folder of one's own, with a history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb.cli.arguments import PositiveInt, option, positional
from kgwb.cli.terminal import print_error
from kgwb.errors import InputError

if TYPE_CHECKING:
    from kgwb.bench.lab import PromptHistory


@dataclass(kw_only=True)
class KeepCommand:
    """keep the prompts of a retry in a folder of yours, list what was kept, compare it, or undo it"""

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
    compare: str = option("M,N", "show what differs between two changes; 0 is before the first", "")
    undo: PositiveInt | None = option("N", "take back change N and all after it")
    folder: Path = positional("FOLDER", "your folder of prompts, for --prompts FOLDER")

    def run(self) -> None:
        """Keep, compare or undo what the arguments say; without any, print the history.

        Raises InputError if several of these are given, and what ``PromptHistory`` raises.
        """
        from kgwb.bench.lab import PromptHistory

        given = [self.results is not None, bool(self.compare), self.undo is not None]
        if sum(given) > 1:
            raise InputError(
                "--results, --compare and --undo cannot be given together",
                hint="use one of them in each command",
            )
        history = PromptHistory(self.folder)
        if self.results is not None:
            self._keep(history)
        elif self.compare:
            first, second = self._read_numbers()
            print(*history.compare(first, second), sep="\n")
        elif self.undo is not None:
            print(history.undo(self.undo))
        else:
            print("\n".join(map(str, history.changes)) or "nothing was kept yet")

    def _keep(self, history: PromptHistory) -> None:
        """Copy the prompts of the results to the folder as a new change, and print it and the option to use it.

        Prompts that no saved run used have no known text: they are named on the error output and
        not kept.
        """
        from kgwb.bench.lab import read_measured_prompts

        assert self.results is not None
        measured = read_measured_prompts(self.results, self.base, self.system or None)
        if measured.unknown_names:
            names = ", ".join(measured.unknown_names)
            print_error(
                f"not kept, since no saved run used them: {names}",
                "they changed no answer; copy their files yourself if you want them",
            )
        print(history.keep(measured, self.note))
        print(f"to use them: --prompts {self.folder}")

    def _read_numbers(self) -> tuple[int, int]:
        """Return the two whole numbers of ``compare``, "M,N". Raises InputError for another form.

        Whether there are such changes is not checked.
        """
        first, _, second = self.compare.partition(",")
        if not first.isdecimal() or not second.isdecimal():
            raise InputError(
                f"--compare {self.compare} does not have the form M,N",
                hint="give the numbers of two changes, such as --compare 0,1",
            )
        return int(first), int(second)
