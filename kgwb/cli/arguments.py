"""Arguments of the command line: fields of dataclasses, which are added to argparse by their types."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote

from kgwb import disk
from kgwb.errors import InputError
from kgwb.text import mask_url, shortest_distinct_names, single_line

if TYPE_CHECKING:
    from kgwb.kg.base import Graph
    from kgwb.llm.base import ChatModel
    from kgwb.settings import Settings
    from kgwb.workbench import Workbench

T = TypeVar("T")
MAX_POSITIVE_INT = 1_000_000_000
EACH_HELP = (
    "repeat with each value of a setting, of prompts (folders), of model, or of agent-model (AGENT=SPEC), "
    "each in its own folder; given several times, with each combination"
)
EACH_FIELDS = ("prompts", "model", "agent-model")
"""What --each can repeat with, beside settings."""
PRICES_HELP = "TOML table of prices (default: kgwb's)"
HISTORY_FORM = 'a JSON list of questions, or of {"question": ..., "answers": [...]}'


SLICE_HELP = "only questions with this tag, or a field such as type=count or split=dev; of several, those with all"


def option(metavar: str, help: str, default: Any = None) -> Any:
    """Return a dataclass field for an option.

    A default of ``...`` means that it must be given, and ``[]`` that it can be repeated. Without a
    default it is None. ``metavar`` and ``help`` are shown by --help.
    """
    metadata = {"metavar": metavar or None, "help": help, "is_positional": False}
    if isinstance(default, list):
        return field(default_factory=list, metadata=metadata)
    if default is ...:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def flag(help: str) -> Any:
    """Return a dataclass field for an option that has no value, and is off by default."""
    return option("", help, False)


def positional(metavar: str, help: str | None = None, default: Any = ...) -> Any:
    """Return a dataclass field for an argument that is given by its position.

    With a default it may be left out.
    """
    metadata = {"metavar": metavar, "help": help, "is_positional": True}
    if default is ...:
        return field(metadata=metadata)
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
    if is_list and is_positional:
        details["nargs"] = "+"
    elif is_positional and argument.default is not MISSING:
        details["nargs"] = "?"
        details["default"] = argument.default
    elif is_list:
        details["action"] = "append"
        details["default"] = []
    elif not is_positional:
        is_required = argument.default is MISSING
        details["required"] = is_required
        if not is_required:
            details["default"] = argument.default
    value_type = next(iter(get_args(type_)), type_)
    parser.add_argument(name, type=value_type, **details)


@dataclass(kw_only=True)
class GraphArguments:
    """The arguments that say how a graph is opened."""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", ...)
    dialect: str | None = option(
        "NAME[:ARGUMENT]",
        "how the labels of an endpoint are searched (default: found out when it is opened); "
        "CONTRIBUTING.md lists them",
    )
    vocabulary: str | None = option(
        "NAME",
        "the predicates of labels and noise: dbpedia, wikidata, yago, dblp, mag, freebase, or a .json file "
        "(default: by the URL)",
    )
    query_timeout: float = option("SECONDS", "timeout of a query", 30.0)
    row_limit: PositiveInt = option("N", "rows of a result at most", 10_000)

    def open_graph(self, source: str) -> Graph:
        """Open a graph with the vocabulary, timeout and row limit of these arguments.

        The dialect is used only for ``kg`` itself and for endpoints. What was left out or changed
        when files were read is printed to standard error. Raises what ``open_kg`` raises.
        """
        from kgwb.kg import is_endpoint_url, open_kg

        dialect = None
        if source == self.kg or is_endpoint_url(source):
            dialect = self.dialect
        kg = open_kg(
            source,
            dialect=dialect,
            vocabulary=self.vocabulary,
            query_timeout_s=self.query_timeout,
            row_limit=self.row_limit,
        )
        for note in getattr(kg, "notes", ()):
            print(f"kgwb: {single_line(note)}", file=sys.stderr)
        return kg


@dataclass(kw_only=True)
class QuestionArguments(GraphArguments):
    """The arguments that say which system, with which models and settings, is asked on which graph."""

    model: str = option(
        "SPEC",
        "rules (default), openai:MODEL, ollama:MODEL, replay:FILE, scripted:FILE.py; human needs "
        "a notebook",
        "rules",
    )
    agent_model: list[str] = option("AGENT=SPEC", "model of one agent, or of all of a role", [])
    system: str = option(
        "SYSTEM",
        "a name, an import path (mytog.tog:SYSTEM) or a file (./tog.py); default: chatty_kg",
        "chatty_kg",
    )
    profile: str = option("", "fast (default), paper or reference", "fast")
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    prompts: Path | None = option("DIR", "folder of prompts that are used in place of kgwb's own")

    @property
    def given_settings(self) -> dict[str, str]:
        """The values of ``set``, by the names of the settings. Raises InputError for one without "="."""
        return parse_assignments(self.set, "NAME=VALUE")

    @property
    def settings(self) -> Settings:
        """The settings of ``profile`` for ``system``, with the changes of ``set``, whose values are parsed.

        Raises SettingError for an unknown setting or an impossible value, and InputError for a
        ``set`` without "=".
        """
        from kgwb.run.systems import profile

        changes: dict[str, Any] = {**self.given_settings}
        return profile(self.profile, system=self.system, are_strings=True, **changes)

    def for_systems(self, names: Sequence[str]) -> Self:
        """Return these arguments with ``system`` set to the first of several systems that has all given settings.

        Given are the names in ``set``. If no system has all of them, the first system is taken.
        Without names the arguments are returned unchanged. Raises InputError for a wrong ``set``,
        and SettingError for an unknown system.
        """
        if not names:
            return self
        lacking = find_missing_settings(names, self.given_settings)
        for name in names:
            if name not in lacking:
                return replace(self, system=name)
        return replace(self, system=names[0])

    def make_workbench(self, graph: Graph | None = None) -> Workbench:
        """Open the models and the graph, and return a workbench with the settings and prompts of the arguments.

        ``graph`` is the graph if it is open already. Settings, agents and prompts are checked before
        the graph is opened. Raises what opening the
        graph and the models raises, SettingError for an unknown setting, system or agent, and
        PromptError for prompts that the system cannot use.
        """
        from kgwb.run import systems
        from kgwb.run.prompts import Prompts
        from kgwb.workbench import Workbench

        settings = self.settings
        model_specs = parse_assignments(self.agent_model, "AGENT=SPEC")
        models = open_model_arguments({"": self.model, **model_specs})
        system = systems.resolve_system(self.system)
        for agent in model_specs:
            system.check_model_user(agent)
        prompts = Prompts.of(self.prompts)
        system.check_prompts(prompts)
        return Workbench(
            graph or self.open_graph(self.kg),
            system=system,
            models=models,
            settings=settings,
            prompts=prompts,
        )


def open_model_arguments(specs: Mapping[str, str]) -> dict[str, ChatModel | str]:
    """Return the model of each agent; a script is opened, and every other specification stays a text.

    "scripted:FILE.py" executes a file of Python. So it is opened only here, where a person has
    written it, and not by ``open_model``, which also opens the models that files name. Raises
    InputError if the file has no script.
    """
    models: dict[str, ChatModel | str] = {}
    for agent, spec in specs.items():
        kind, _, path = spec.partition(":")
        models[agent] = spec
        if kind == "scripted":
            models[agent] = _open_script(Path(path))
    return models


def _open_script(path: Path) -> ChatModel:
    """Execute a file of Python and return the scripted model of its value SCRIPT, see ``Scripted``.

    SCRIPT is a mapping of replies or a function. The model is named "scripted:" and the file's
    name. Raises InputError if the file has no such SCRIPT, and what ``load_file`` raises.
    """
    from kgwb.llm import Scripted
    from kgwb.run.systems import load_file

    module = load_file(path)
    script = getattr(module, "SCRIPT", None)
    if not callable(script) and not isinstance(script, Mapping):
        raise InputError(
            f"the file {path} does not define SCRIPT",
            hint='add a line such as SCRIPT = {"PROMPT": [{"field": "value"}, ...]}, '
            "or a function of the request",
        )
    return Scripted(script, name=f"scripted:{path.name}")


EACH_SYNTAX = "NAME=V1,V2,..."


MEASURED = "measured"
"""The value of ``each`` that stands for what was measured."""


def commands_for_each(
    arguments: T, each: Sequence[str], *, after_measurement: bool = False
) -> list[tuple[str, T]]:
    """Return a command for each combination of values, with a name for its results folder.

    ``each`` are texts NAME=V1,V2,..., where NAME is a setting or one of EACH_FIELDS; ``arguments``
    must have the field ``set`` and these fields. The first of ``each`` varies slowest. A
    name is "NAME=VALUE, NAME=VALUE", escaped for file names; a folder of prompts is written by its
    last parts, as few as tell it apart from the others. ``after_measurement`` allows the value
    MEASURED, which changes nothing. Without ``each`` the list has the command
    alone, under the name "". Raises InputError for another form, and for a NAME that is given
    twice.
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


def parse_system_names(text: str) -> tuple[str, ...]:
    """Return the system names of a list with commas, each once, in their order; "all" stands for all systems.

    A name may also be an import path or a file, as ``resolve_system`` reads it. Raises SettingError
    for a system that there is not.
    """
    from kgwb.run import systems

    if text == "all":
        return systems.list_systems()
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        systems.resolve_system(name)
    return names


def find_missing_settings(names: Sequence[str], settings: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each system that lacks some of the given settings, the names that it lacks.

    Systems that have all of them are left out, so the result is empty if all is well. Raises
    SettingError for an unknown system.
    """
    from kgwb.run.systems import resolve_system

    missing: dict[str, list[str]] = {}
    for name in names:
        known = resolve_system(name).settings.setting_names()
        unknown = [setting for setting in settings if setting not in known]
        if unknown:
            missing[name] = unknown
    return missing


def describe_missing_settings(missing: Mapping[str, Sequence[str]]) -> str:
    """Return which system lacks which settings: "dog has no theta; triad has no theta, beta"."""
    parts = []
    for name, settings in missing.items():
        listed = ", ".join(settings)
        parts.append(f"{name} has no {listed}")
    return "; ".join(parts)


def load_history(workbench: Workbench, path: Path) -> None:
    """Read a history file, and add its questions and turns to the dialogue of a workbench in their order.

    The file has the form HISTORY_FORM. A text is a question, which is asked now; an object is a
    turn, which is remembered as it is. Raises InputError if the file cannot be read or has another
    form, and what asking raises.
    """
    from pydantic import ValidationError

    from kgwb.records import describe_validation_error, from_data
    from kgwb.run.answers import Dialogue, Turn

    try:
        data = json.loads(disk.read_text(path))
        entries = from_data(data, list[str | Turn])
    except (OSError, ValueError, RecursionError) as exc:
        problem = describe_validation_error(exc) if isinstance(exc, ValidationError) else exc
        raise InputError(
            f"cannot use the history {path}: {problem}", hint=f"write it as {HISTORY_FORM}"
        ) from exc
    for entry in entries:
        if isinstance(entry, str):
            run = workbench.begin(entry)
            run.go_explained()
            workbench.keep_turns()
        else:
            turns = (*workbench.dialogue.turns, entry)
            workbench.continue_dialogue(Dialogue(turns))
