"""What commands that ask questions have in common: arguments, and the workbench these describe."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgwb import disk
from kgwb.errors import InputError, SettingError
from kgwb.masking import shown

if TYPE_CHECKING:
    from kgwb.kg.base import Graph
    from kgwb.settings import Settings
    from kgwb.workbench import Workbench

HISTORY_HELP = """JSON list of the dialogue so far, oldest first: a text is an earlier question, asked before;
an object {"question": ..., "answers": [labels]} is a turn as it went, with "standalone" (its self-contained
form) and "entities" (the names in it) where known"""


def add_setup(parser: argparse.ArgumentParser, *, kg_required: bool = True) -> None:
    """The arguments that say which system is asked, with which models and settings, on which graph."""
    parser.add_argument(
        "--kg",
        required=kg_required,
        metavar="GRAPH",
        help="RDF file or folder, endpoint URL, or the name of a sample",
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME[:ARGUMENT]",
        help="how an endpoint's labels are searched (default: probed once); CONTRIBUTING.md lists them",
    )
    parser.add_argument(
        "--vocabulary",
        metavar="NAME",
        help="labels and noise: dbpedia, wikidata, yago, dblp, mag, or a .json file (default: by the URL)",
    )
    parser.add_argument(
        "--model",
        default="rules",
        metavar="SPEC",
        help="rules (default), openai:MODEL, ollama:MODEL, replay:FILE; human needs a notebook",
    )
    parser.add_argument(
        "--agent-model", action="append", default=[], metavar="AGENT=SPEC", help="for one agent"
    )
    parser.add_argument("--system", default="chatty_kg", help="default: chatty_kg")
    parser.add_argument("--query-timeout", type=float, default=30.0, metavar="SECONDS", help="of one query")
    parser.add_argument("--row-limit", type=positive, default=10_000, metavar="N", help="rows of one result")
    parser.add_argument("--profile", default="fast", help="fast (default) or paper")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="change a setting")
    parser.add_argument(
        "--prompts", type=Path, metavar="DIR", help="folder whose prompts go before kgwb's own"
    )


def positive(text: str) -> int:
    """A whole number from 1 to 1,000,000,000, for argparse."""
    number = int(text)
    if not 1 <= number <= 1_000_000_000:
        raise argparse.ArgumentTypeError("must be from 1 to 1,000,000,000")
    return number


def pairs(given: Sequence[str], form: str) -> dict[str, str]:
    """NAME=VALUE arguments by name."""
    split = [text.partition("=") for text in given]
    wrong = [name + sign + value for name, sign, value in split if not (name.strip() and sign)]
    if wrong:
        raise InputError(f"{shown(wrong[0])!r} is not {form}", hint=f"write it as {form}")
    return {name: value for name, _, value in split}


def numbers(given: Sequence[str]) -> dict[str, float]:
    """NAME=NUMBER arguments by name. Raises InputError."""
    found = {}
    for name, text in pairs(given, "NAME=NUMBER").items():
        try:
            found[name] = float(text)
        except ValueError as exc:
            raise InputError(f"{name} cannot be {text!r}", hint="give a number") from exc
    return found


def settings_of(args: argparse.Namespace) -> Settings:
    """The profile with the settings given; values are read by the type of their setting."""
    from kgwb.systems import profile

    return profile(args.profile, system=args.system, texts=True, **pairs(args.set, "NAME=VALUE"))


def workbench_of(args: argparse.Namespace) -> Workbench:
    """The workbench that the arguments of ``add_setup`` describe. Raises what graph, model or setting do."""
    from kgwb import systems
    from kgwb.workbench import Workbench

    settings = settings_of(args)
    agents = [spec.name for spec in systems.system(args.system).agents]
    models = pairs(args.agent_model, "AGENT=SPEC")
    if unknown := sorted(set(models) - set(agents)):
        raise SettingError(
            f"{args.system} has no agent {unknown[0]!r}", hint=f"its agents are {', '.join(agents)}"
        )
    return Workbench(
        kg_of(args, args.kg),
        args.model,
        system=args.system,
        models=models,
        settings=settings,
        prompts=args.prompts,
    )


def kg_of(args: argparse.Namespace, source: str) -> Graph:
    """A graph, opened as the arguments say. Raises what ``open_kg`` does.

    Files beside ``args.kg`` take no dialect: it is for the endpoints among the graphs.
    """
    from kgwb.kg import is_endpoint, open_kg

    return open_kg(
        source,
        dialect=args.dialect if source == args.kg or is_endpoint(source) else None,
        vocabulary=args.vocabulary,
        query_timeout_s=args.query_timeout,
        row_limit=args.row_limit,
    )


def recall(workbench: Workbench, path: Path) -> None:
    """Hold the dialogue of a history file: ask its questions, remember its turns."""
    from kgwb.flow import Dialogue, Turn, from_data

    form = 'a JSON list of questions, or of {"question": ..., "answers": [...]}'
    try:
        entries = from_data(json.loads(disk.read_text(path)), list[str | Turn])
    except (OSError, ValueError, RecursionError) as exc:
        raise InputError(f"cannot use the history {path}: {exc}", hint=f"write it as {form}") from exc
    for entry in entries:
        if isinstance(entry, str):
            workbench.ask(entry)
        else:
            workbench.remember(Dialogue((*workbench.dialogue.turns, entry)))
