"""Arguments of the command line, which are fields of dataclasses and added to argparse by their types;
and what the commands print: errors, colours, and tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, Field, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote

from kgwb import disk
from kgwb.errors import InputError, KgwbError
from kgwb.text import mask_url, shortest_distinct_names

T = TypeVar("T")
MAX_POSITIVE_INT = 1_000_000_000
EACH_HELP = (
    "repeat with each value of a setting, of prompts (folders), of model, or of agent-model (AGENT=SPEC), "
    "each in its own folder; given several times, with each combination"
)
EACH_FIELDS = ("prompts", "model", "agent-model")
"""What --each can repeat with, beside settings."""
PRICES_HELP = "TOML table of prices (default: kgwb's)"
SLICE_HELP = "only questions with this tag, or a field such as type=count or split=dev; of several, those with all"


def option(metavar: str, help: str, default: Any = None) -> Any:
    """Return a dataclass field for an option.

    A default of MISSING means that it must be given, and ``[]`` that it can be repeated. Without a
    default it is None. ``metavar`` and ``help`` are shown by --help.
    """
    metadata = {"metavar": metavar or None, "help": help, "is_positional": False}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    return field(default=default, metadata=metadata)


def flag(help: str) -> Any:
    """Return a dataclass field for an option that has no value, and is off by default."""
    return option("", help, False)


def positional(metavar: str, help: str | None = None, default: Any = MISSING) -> Any:
    """Return a dataclass field for an argument that is given by its position.

    With a default it may be left out.
    """
    metadata = {"metavar": metavar, "help": help, "is_positional": True}
    return field(default=default, metadata=metadata)


class PositiveInt(int):
    """A whole number from 1 to MAX_POSITIVE_INT."""

    def __new__(cls, text: str | int) -> PositiveInt:
        """Return the number that a text of the command line writes.

        Raises ValueError for a text that is no whole number, and ArgumentTypeError for one that is
        not from 1 to MAX_POSITIVE_INT; argparse reports both to the user.
        """
        number = super().__new__(cls, text)
        if not 1 <= number <= MAX_POSITIVE_INT:
            raise argparse.ArgumentTypeError(f"must be from 1 to {MAX_POSITIVE_INT:,}")
        return number


def add_arguments(parser: argparse.ArgumentParser, arguments_class: type[Any]) -> None:
    """Add the fields of a dataclass to a parser as arguments."""
    types = get_type_hints(arguments_class)
    for argument in fields(arguments_class):
        _add_argument(parser, argument, types[argument.name])


def _add_argument(parser: argparse.ArgumentParser, argument: Field[Any], type_: Any) -> None:
    """Add a field of a dataclass to a parser as an argument whose type and form follow from the field's.

    A bool is a flag without a value. A list takes several values; an option is then repeated. Of a
    union the first type is used ("Path | None"). An option is named as the field, with "-" for "_";
    without a default it must be given. A positional argument with a default may be left out.
    """
    details = dict(argument.metadata)
    is_positional = details.pop("is_positional")
    name = argument.name
    if not is_positional:
        name = "--" + name.replace("_", "-")
    if type_ is bool:
        parser.add_argument(name, action="store_true", help=details["help"])
        return
    is_list = get_origin(type_) is list
    has_default = argument.default is not MISSING
    if has_default:
        details["default"] = argument.default
    if is_list and is_positional:
        details["nargs"] = "+"
    elif is_list:
        details["action"] = "append"
        details["default"] = []
    elif is_positional and has_default:
        details["nargs"] = "?"
    elif not is_positional:
        details["required"] = not has_default
    value_type = next(iter(get_args(type_)), type_)
    parser.add_argument(name, type=value_type, **details)


EACH_SYNTAX = "NAME=V1,V2,..."


MEASURED = "measured"
"""The value of ``each`` that stands for what was measured."""


def commands_for_each(
    arguments: T, each: Sequence[str], *, after_measurement: bool = False
) -> list[tuple[str, T]]:
    """Return a command for each combination of values, with a name for its results folder.

    ``each`` are texts NAME=V1,V2,..., where NAME is a setting or one of EACH_FIELDS; ``arguments``
    must have the field ``set`` and these fields. The first of ``each`` varies slowest. A name is
    "NAME=VALUE, NAME=VALUE", escaped for file names; a folder of prompts is written by its last
    parts, as few as tell it apart from the others. ``after_measurement`` allows the value MEASURED,
    which changes nothing. Without ``each`` the list has the command alone, under the name "".
    Raises InputError for another form, and for a NAME that is given twice.
    """
    if len(parse_assignments(each, EACH_SYNTAX)) < len(each):
        raise InputError(
            f"--each was given the same name twice: {' '.join(each)}",
            hint="give all values of a name at once, as --each theta=1,2",
        )
    commands = [("", arguments)]
    for assignment in each:
        combined = []
        for name, command in commands:
            for part, changed in _commands_for_values(command, assignment):
                if after_measurement and part.endswith(f"={MEASURED}"):
                    changed = command  # noqa: PLW2901
                combined.append((", ".join(filter(None, (name, part))), changed))
        commands = combined
    return commands


def _commands_for_values(arguments: T, assignment: str) -> list[tuple[str, T]]:
    """Return, for each value of NAME=V1,V2,..., the name of its folder and a changed copy of the arguments.

    "prompts" and "model" replace the field of that name. A value of "agent-model" is added at the
    end of ``agent_model``, and one of a setting, which any other NAME is, at the end of ``set``: so
    it counts before earlier ones.
    """
    [(name, text)] = parse_assignments([assignment], EACH_SYNTAX).items()
    values = text.split(",")
    shown_values = values
    if name == "prompts":
        shown_values = shortest_distinct_names([Path(value).absolute() for value in values])
    commands = []
    for value, shown_value in zip(values, shown_values, strict=True):
        changes: dict[str, Any] = {}
        if name == "prompts":
            changes["prompts"] = Path(value)
        elif name == "model":
            changes["model"] = value
        elif name == "agent-model":
            changes["agent_model"] = [*arguments.agent_model, value]  # type: ignore[attr-defined]
        else:
            changes["set"] = [*arguments.set, f"{name}={value}"]  # type: ignore[attr-defined]
        command = replace(arguments, **changes)  # type: ignore[type-var]
        commands.append((name_assignment_folder(f"{name}={shown_value}"), command))
    return commands


def name_assignment_folder(assignment: str) -> str:
    """Return NAME=VALUE as the name of a folder: what a name of a file cannot have is escaped."""
    return quote(assignment, safe="= ")


def parse_assignments(arguments: Sequence[str], syntax: str) -> dict[str, str]:
    """Return NAME=VALUE texts as a dictionary. If a name is given twice, the last value counts.

    A value may be empty or contain "=". Raises InputError for a text without "=" or without a name;
    its message shows ``syntax`` as the right form, and the text with secrets of URLs masked.
    """
    values = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name.strip() or not equals:
            shown = mask_url(argument)
            raise InputError(
                f"{shown!r} does not have the form {syntax}",
                hint=f"write it as {syntax}, without blanks around the =",
            )
        values[name] = value
    return values


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
    if shown:
        print("\n\n".join(shown))


def write_and_print(path: Path, text: str, hint: str = "name another file with --out") -> None:
    """Write a file, or replace it, and print its path. Raises InputError with the hint if that fails."""
    with disk.os_errors_as_input_error(f"cannot write {path}", hint):
        disk.write_atomically(path, [text], "replace")
    print(path)


def warn_about_rules(workbench: Workbench) -> bool:
    """Print on the error output that ``rules`` is only a baseline, if a model of the workbench is ``rules``.

    Returns whether it was printed. Nothing is printed for a system without rules, such as a pipeline
    that asks its own clients: it cannot use that model.
    """
    from kgwb.llm.rules import BASELINE_REMARK

    models = {model.name for model in workbench.models.values()}
    uses_rules = bool(workbench.system.rules) and "rules" in models
    if uses_rules:
        print_error(BASELINE_REMARK)
    return uses_rules
