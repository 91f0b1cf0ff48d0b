"""Arguments of the command line: the fields of a dataclass, added to argparse by their types."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import quote

from kgwb import disk
from kgwb.errors import InputError
from kgwb.masking import mask_url

if TYPE_CHECKING:
    from kgwb.kg.base import Graph
    from kgwb.settings import Settings
    from kgwb.workbench import Workbench


T = TypeVar("T")


def option(metavar: str, help: str, default: Any = None) -> Any:
    """A field that is an option; its default is ``...`` if it must be given, [] if it can be repeated."""
    about = {"metavar": metavar or None, "help": help, "positional": False}
    if isinstance(default, list):
        return field(default_factory=list, metadata=about)
    return field(default=MISSING if default is ... else default, metadata=about)


def positional(metavar: str, help: str | None = None) -> Any:
    """A field that is an argument without a name."""
    return field(metadata={"metavar": metavar, "help": help, "positional": True})


class PositiveInt(int):
    """A whole number from 1 to 1,000,000,000."""

    def __new__(cls, text: str | int) -> PositiveInt:
        number = super().__new__(cls, text)
        if not 1 <= number <= 1_000_000_000:
            raise argparse.ArgumentTypeError("must be from 1 to 1,000,000,000")
        return number


def add_arguments(parser: argparse.ArgumentParser, arguments_class: type[Any]) -> None:
    """The fields of a dataclass as arguments, read by their types."""
    types = get_type_hints(arguments_class)
    for each in fields(arguments_class):
        about = dict(each.metadata)
        flag = each.name if about.pop("positional") else f"--{each.name.replace('_', '-')}"
        kind, default = types[each.name], each.default
        if kind is bool:
            parser.add_argument(flag, action="store_true", help=about["help"])
            continue
        if get_origin(kind) is list:
            about |= (
                {"nargs": "+"} if not flag.startswith("-") else {"action": "append", "default": []}
            )
        elif flag.startswith("-"):
            about |= {
                "required": default is MISSING,
                "default": None if default is MISSING else default,
            }
        parser.add_argument(flag, type=next(iter(get_args(kind)), kind), **about)


@dataclass(kw_only=True)
class GraphArguments:
    """The arguments that say how a graph is opened."""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", ...)
    dialect: str | None = option(
        "NAME[:ARGUMENT]",
        "how an endpoint's labels are searched (default: probed once); CONTRIBUTING.md lists them",
    )
    vocabulary: str | None = option(
        "NAME",
        "labels and noise: dbpedia, wikidata, yago, dblp, mag, or a .json file (default: by the URL)",
    )
    query_timeout: float = option("SECONDS", "of one query", 30.0)
    row_limit: PositiveInt = option("N", "rows of one result", 10_000)

    def open_graph(self, source: str) -> Graph:
        """A graph, opened as the arguments ask. Raises what ``open_kg`` does.

        Files beside ``kg`` take no dialect: it is for the endpoints among the graphs.
        """
        from kgwb.kg import is_endpoint_url, open_kg

        return open_kg(
            source,
            dialect=self.dialect if source == self.kg or is_endpoint_url(source) else None,
            vocabulary=self.vocabulary,
            query_timeout_s=self.query_timeout,
            row_limit=self.row_limit,
        )


@dataclass(kw_only=True)
class QuestionArguments(GraphArguments):
    """The arguments of commands that ask questions: which system, with which models and settings, on what."""

    model: str = option(
        "SPEC",
        "rules (default), openai:MODEL, ollama:MODEL, replay:FILE; human needs a notebook",
        "rules",
    )
    agent_model: list[str] = option("AGENT=SPEC", "for one agent", [])
    system: str = option("", "default: chatty_kg", "chatty_kg")
    profile: str = option("", "fast (default) or paper", "fast")
    set: list[str] = option("NAME=VALUE", "change a setting", [])
    prompts: Path | None = option("DIR", "folder whose prompts go before kgwb's own")

    @property
    def settings(self) -> Settings:
        """The profile with the settings given; values are read by the type of their setting."""
        from kgwb.systems import profile

        changes: dict[str, Any] = parse_assignments(self.set, "NAME=VALUE")
        return profile(self.profile, system=self.system, are_strings=True, **changes)

    def for_systems(self, names: Sequence[str]) -> Self:
        """These arguments for the first of several systems that has all settings given."""
        from kgwb.systems import load_system

        given = {*parse_assignments(self.set, "NAME=VALUE")}
        fits = (name for name in names if given <= {*load_system(name).settings.setting_names()})
        return replace(self, system=next(fits, names[0])) if names else self

    def make_workbench(self) -> Workbench:
        """The workbench that the arguments describe. Raises what graph, model or setting do."""
        from kgwb import systems
        from kgwb.workbench import Workbench

        settings = self.settings
        models = parse_assignments(self.agent_model, "AGENT=SPEC")
        system = systems.load_system(self.system)
        for agent in models:
            system.agent_spec(agent)
        return Workbench(
            self.open_graph(self.kg),
            self.model,
            system=self.system,
            models=models,
            settings=settings,
            prompts=self.prompts,
        )


def commands_for_each(arguments: T, each: str | None) -> list[tuple[str, T]]:
    """Commands that take ``set``, ``prompts`` and ``model``, one for each value of NAME=V1,V2,... by name.

    NAME is a setting, "prompts" or "model"; without ``each`` it is the command alone. Raises InputError.
    """
    if not each:
        return [("", arguments)]
    [(name, values)] = parse_assignments([each], "NAME=V1,V2,...").items()
    commands = []
    for value in values.split(","):
        settings = arguments.set  # type: ignore[attr-defined]
        changes = {"prompts": {name: Path(value)}, "model": {name: value}}
        change: Any = changes.get(name, {"set": [*settings, f"{name}={value}"]})
        label = f"{name}={Path(value).name if name == 'prompts' else value}"
        commands.append((quote(label, safe="= "), replace(arguments, **change)))  # type: ignore[type-var]
    return commands


def parse_assignments(arguments: Sequence[str], syntax: str) -> dict[str, str]:
    """NAME=VALUE arguments by name. Raises InputError."""
    split = [text.partition("=") for text in arguments]
    for name, sign, value in split:
        if not (name.strip() and sign):
            raise InputError(
                f"{mask_url(name + sign + value)!r} is not {syntax}", hint=f"write it as {syntax}"
            )
    return {name: value for name, _, value in split}


def load_history(workbench: Workbench, path: Path) -> None:
    """Hold the dialogue of a history file: ask its questions, remember its turns. Raises InputError."""
    from kgwb.flow import Dialogue, Turn
    from kgwb.records import from_data

    form = 'a JSON list of questions, or of {"question": ..., "answers": [...]}'
    try:
        entries = from_data(json.loads(disk.read_text(path)), list[str | Turn])
    except (OSError, ValueError, RecursionError) as exc:
        raise InputError(
            f"cannot use the history {path}: {exc}", hint=f"write it as {form}"
        ) from exc
    for entry in entries:
        if isinstance(entry, str):
            workbench.ask(entry)
        else:
            workbench.continue_dialogue(Dialogue((*workbench.dialogue.turns, entry)))
