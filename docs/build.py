"""Build the documentation site: `make docs`.

The pages in docs/ and the Markdown files of the repository are copied to build/docs. The notebooks,
the reference of the commands, the settings and the Python API become pages beside them. zensical
makes build/site of these pages, in strict mode. zensical.toml has the navigation.
"""

from __future__ import annotations

import html
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import griffe
import nbformat

from kgwb import cli
from kgwb.run.systems import list_systems, load_system
from kgwb.settings import Settings
from kgwb.show.static_form import load_style

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"

API_MODULES = (
    "kgwb",
    "run",
    "run.answers",
    "run.systems",
    "records",
    "kg",
    "llm",
    "bench",
    "errors",
)
WITH_INHERITED = {"Run"}
"""Classes whose public members come from a base class that has no page of its own."""
COMMAND_WIDTH = 90
"""Characters of a line in the help of a command."""
SHIM_URL = "https://unpkg.com/iframe-worker/shim"
"""What zensical's offline mode loads from the network; docs/assets has a copy."""
SHIM_FILE = "assets/iframe-worker.js"
LINK_TARGET = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
EXTERNAL_RESOURCE = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?https?:[^>]*>"
    r"|<link\b[^>]*\bhref=[\"']?https?:[^>]*>"
)
OUTPUT_PLACE = re.compile(r'<div class="notebook-output" id="([\w-]+)">')
OUTPUT_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
SHADOW_STYLE = ".kg.kg { color-scheme: inherit } table { font: inherit }"
"""Widgets take the theme of the site, not that of the browser."""


def main() -> None:
    """Write all pages, and build the site. Exits with a message if anything is wrong."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    sources = collect_sources()
    outputs: dict[str, str] = {}
    for source, page in sources.items():
        if source.suffix == ".ipynb":
            write_page(page, convert_notebook(source, sources, outputs))
        elif source.suffix == ".md":
            write_page(page, move_links(source.read_text(encoding="utf-8"), source, sources))
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, page)
    write_page(PAGES / "assets" / "widgets.css", load_style())
    write_page(PAGES / "reference" / "commands.md", "\n".join(describe_commands()))
    write_page(PAGES / "reference" / "settings.md", "\n".join(describe_settings()))
    write_page(PAGES / "reference" / "agents.md", "\n\n".join(describe_agents()))
    for name in API_MODULES:
        write_page(PAGES / "reference" / "api" / f"{name}.md", "\n".join(describe_module(name)))
    check_navigation()
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, check=True)
    finish_site(outputs)


def write_page(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# Sources and links


def collect_sources() -> dict[Path, Path]:
    """Return the place of each file in build/docs, by its path in the repository."""
    sources = {}
    for path in (ROOT / "docs").rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            sources[path] = PAGES / path.relative_to(ROOT / "docs")
    for path in ROOT.glob("notebooks/**/*.ipynb"):
        if ".ipynb_checkpoints" not in path.parts:
            page = PAGES / "tutorials" / path.relative_to(ROOT / "notebooks")
            sources[path] = page.with_suffix(".md")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        sources[ROOT / name] = PAGES / name.lower()
    sources[ROOT / "LICENSE"] = PAGES / "license.txt"
    return sources


def move_links(text: str, source: Path, sources: dict[Path, Path]) -> str:
    """Return Markdown with its relative links changed to the pages of the site.

    A link to a folder leads to the page index.md in it. Raises ValueError for a link to a file that
    is not part of the site.
    """
    page = sources[source]

    def move(match: re.Match[str]) -> str:
        target = (source.parent / match[1]).resolve()
        if target.is_dir():
            target /= "index.md"
        if target == ROOT / "README.md":
            target = ROOT / "docs" / "index.md"
        if target not in sources:
            raise ValueError(f"{source.relative_to(ROOT)} links to {match[1]}, which has no page")
        return os.path.relpath(sources[target], page.parent)

    return LINK_TARGET.sub(move, text)


def check_navigation() -> None:
    """Raise ValueError if a page is missing in the navigation."""
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    for page in sorted(PAGES.rglob("*.md")):
        name = page.relative_to(PAGES).as_posix()
        if f'"{name}"' not in navigation:
            raise ValueError(f"the page {name} is not in the navigation: add it to zensical.toml")


# Notebooks


def convert_notebook(source: Path, sources: dict[Path, Path], outputs: dict[str, str]) -> str:
    """Return a notebook as Markdown.

    An HTML output becomes an empty element with an id. The HTML is added to ``outputs`` by this id,
    and put into the built page, because Markdown would change it.
    """
    notebook = nbformat.read(source, as_version=4)
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(move_links(cell.source, source, sources))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "text/html" in data:
                output_id = f"notebook-output-{len(outputs)}"
                outputs[output_id] = OUTPUT_STYLE.sub("", data["text/html"])
                parts.append(f'<div class="notebook-output" id="{output_id}"></div>')
            else:
                parts.append(
                    f"```text\n{output.get('text', data.get('text/plain', '')).rstrip()}\n```"
                )
    return "\n\n".join(parts)


# Reference


def describe_commands() -> Iterator[str]:
    """Yield the Markdown of the page about the commands: their help texts."""
    os.environ["COLUMNS"] = str(COMMAND_WIDTH)
    parser = cli._make_parser(*cli.COMMANDS)
    yield "# Commands\n"
    yield "`kgwb COMMAND --help` prints the same."
    yield "[Use the terminal](../how-to/terminal.md) has examples.\n"
    yield f"```text\n{parser.format_help()}```\n"
    [commands] = [action.choices for action in parser._actions if action.dest == "command"]
    assert isinstance(commands, dict)
    for name, command in commands.items():
        yield f"## kgwb {name}\n\n```text\n{command.format_help()}```\n"


def describe_agents() -> Iterator[str]:
    """Yield the Markdown of the page about agents: the map of each system."""
    yield (
        "# Agents\n\nThese maps say where each agent of a system is found: its function below "
        "`kgwb/systems/SYSTEM`, its prompt below `prompts/SYSTEM` (with `*` if there are variants), the "
        "function that renders its output, the stage that gold answers blame, and its test below "
        "`tests/systems/SYSTEM`. `print(kgwb.run.systems.load_system(NAME))` shows the same."
    )
    for name in list_systems():
        heading, _, table = repr(load_system(name)).partition("\n\n")
        yield f"## {heading.removeprefix('System ')}"
        yield table


def describe_settings() -> Iterator[str]:
    """Yield the Markdown of the page about settings: a table for each class of settings."""
    yield (
        '# Settings\n\nGive settings as `kgwb.profile("fast", theta=5)` in Python, or as `--set theta=5` in the '
        "terminal.\nA profile is a named set of values; [Profiles](../profiles.md) explains them.\n"
    )
    yield "## All systems\n"
    yield from _settings_table(Settings)
    for name in list_systems():
        settings_class = load_system(name).settings
        yield f"\n## {name}\n"
        for profile, changes in settings_class.profile_changes().items():
            for setting, value in changes.items():
                if setting in Settings.setting_names():
                    yield f"In profile `{profile}`, `{setting}` is `{value!r}`.\n"
        yield from _settings_table(settings_class)


def _settings_table(settings_class: type[Settings]) -> Iterator[str]:
    """Yield a table of the settings that a class adds to those of its base class."""
    names = settings_class.profile_changes()
    profiles = [settings_class.of_profile(name) for name in names]
    inherited = {name for base in settings_class.__mro__[1:] for name in vars(base)}
    documented = griffe.load(settings_class.__module__)[settings_class.__name__]
    headings = ("setting", "type", *(f"`{name}`" for name in names), "meaning")
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for field in fields(settings_class):
        if field.name in inherited:
            continue
        attribute = documented.attributes[field.name]
        docstring = attribute.docstring.value if attribute.docstring else ""
        cells = (
            f"`{field.name}`",
            f"`{_type_text(settings_class, field.name)}`".replace("|", "\\|"),
            *(f"`{getattr(profile, field.name)!r}`" for profile in profiles),
            " ".join(docstring.replace("``", "`").split()),
        )
        yield f"| {' | '.join(cells)} |"


def _type_text(settings_class: type[Settings], name: str) -> str:
    """Return the type of a setting as text, without its limits."""
    hint = get_type_hints(settings_class)[name]
    if isinstance(hint, type):
        return hint.__name__
    return " | ".join(repr(value) for value in hint.__args__)


def describe_module(name: str) -> Iterator[str]:
    """Yield the Markdown of the page about a public module.

    A module with ``__all__`` has an entry for each name, under the name by which it is imported. Of
    another module everything public is shown.
    """
    path = "kgwb" if name == "kgwb" else f"kgwb.{name}"
    module = importlib.import_module(path)
    yield f"# {path}\n"
    if not hasattr(module, "__all__"):
        yield f"::: {path}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        return
    yield f"{inspect.getdoc(module)}\n"
    for public_name in module.__all__:
        if public_name.startswith("__"):
            continue
        yield f"::: {_defining_path(module, public_name)}\n    options:"
        yield f"      heading: {path}.{public_name}\n      toc_label: {public_name}"
        yield f"      inherited_members: {str(public_name in WITH_INHERITED).lower()}\n"


def _defining_path(module: ModuleType, name: str) -> str:
    """Return the path of the class or function of a public name, where it is defined."""
    value: Any = getattr(module, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{module.__name__}.{name}"


# The built site


def finish_site(outputs: dict[str, str]) -> None:
    """Put the outputs of notebooks into the built pages, and make the search work without a network.

    Raises ValueError if a page would load anything from the network.
    """
    for page in SITE.rglob("*.html"):
        root = os.path.relpath(SITE, page.parent)
        text = page.read_text(encoding="utf-8").replace(SHIM_URL, f"{root}/{SHIM_FILE}")
        for output_id in OUTPUT_PLACE.findall(text):
            place = f'id="{output_id}">'
            text = text.replace(place, place + render_output(outputs[output_id], root))
        if resources := EXTERNAL_RESOURCE.findall(text):
            raise ValueError(f"{page} loads {', '.join(resources)}")
        page.write_text(text, encoding="utf-8")


def render_output(output: str, root: str) -> str:
    """Return the HTML of an output in a shadow root, where the rules of the site do not apply."""
    stylesheet = f'<link rel="stylesheet" href="{html.escape(root)}/assets/widgets.css">'
    style = f"<style>{SHADOW_STYLE}</style>"
    return f'<template shadowrootmode="open">{stylesheet}{style}{output}</template>'


if __name__ == "__main__":
    main()
