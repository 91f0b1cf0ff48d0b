"""``kgwb keep``: the prompts of results in a folder of one's own, with a history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb.cli.arguments import option, positional
from kgwb.cli.terminal import print_error
from kgwb.errors import InputError

if TYPE_CHECKING:
    from kgwb.bench.lab import PromptHistory


@dataclass(kw_only=True)
class KeepCommand:
    """keep the prompts of a retry in a folder of yours, list what was kept, or undo it"""

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
    undo: bool = option("", "take back the latest change", False)
    folder: Path = positional("FOLDER", "your folder of prompts, for --prompts FOLDER")

    def run(self) -> None:
        """Keep or undo what the arguments say; without any, print the history.

        Raises InputError if both are given, and what ``PromptHistory`` raises.
        """
        from kgwb.bench.lab import PromptHistory

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
