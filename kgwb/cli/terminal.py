"""What the commands print: errors, colours, and tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb import disk
from kgwb.errors import KgwbError

if TYPE_CHECKING:
    from kgwb.show.tables import Table
    from kgwb.workbench import Workbench

EXIT_FAILED = 2
EXIT_BUDGET_SPENT = 3
EXIT_CONDITION_MET = 4
EXIT_INTERRUPTED = 130


class BudgetSpentError(KgwbError):
    """A budget is used up."""


def print_error(problem: object, hint: str = "") -> None:
    """Print "kgwb: PROBLEM" on the error output, and the hint, if any, in a second line."""
    text = f"kgwb: {problem}"
    if hint:
        text += f"\n  What to do: {hint}"
    print(text, file=sys.stderr)


def use_color() -> bool:
    """Return whether the output is a terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def color(text: str, style: str) -> str:
    """Return the text in a style of ``kgwb.run.steps``, if colours are used."""
    from kgwb.run.steps import add_color

    return add_color(text, style, use_color())


def print_tables(*tables: Table) -> None:
    """Print the tables that have rows, with a blank line between them."""
    shown = [str(table) for table in tables if table.rows]
    print("\n\n".join(shown))


def write_and_print(path: Path, text: str, hint: str = "name another file with --out") -> None:
    """Write a file, or replace it, and print its path. Raises InputError with the hint if that fails."""
    with disk.os_errors_as_input_error(f"cannot write {path}", hint):
        disk.write_atomically(path, [text], "replace")
    print(path)


def warn_about_rules(workbench: Workbench) -> None:
    """Print on the error output that ``rules`` is only a baseline, if a model of the workbench is ``rules``.

    Nothing is printed for a system without rules, such as a pipeline that asks its own clients: it
    cannot use that model.
    """
    from kgwb.llm.rules import BASELINE_REMARK

    if not workbench.system.rules:
        return
    models = {model.name for model in workbench.models.values()}
    if "rules" in models:
        print_error(BASELINE_REMARK)
