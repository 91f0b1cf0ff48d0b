"""Prompt files: found, checked and filled.

A file ``prompts/<system>/<agent>.md`` has a header of ``name: value`` lines between two lines of ``---``,
then messages, each under a line ``[system]`` or ``[user]``, and ``[example]``s after the message that they
belong to, of which as many are shown as a setting says. A variable is written ``{{name}}``; single braces
mean themselves, so JSON and SPARQL need no escaping.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from kgwb import disk
from kgwb.errors import PromptError
from kgwb.llm.base import Message

VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
ROLE = re.compile(r"^\[(system|user|example)\]\s*$", re.MULTILINE)
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
HEADER = ("purpose", "strategy", "variables", "reply", "source")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file, taken apart."""

    name: str
    header: Mapping[str, str]
    variables: tuple[str, ...]
    """As declared in the header."""
    messages: tuple[Message, ...]
    """With their ``{{variables}}`` still unfilled, and without the examples."""
    examples: tuple[tuple[int, str], ...] = ()
    """Each with the place of the message that it belongs to."""

    def fill(
        self, variables: Mapping[str, Any], exemplars: int | None = None
    ) -> tuple[Message, ...]:
        """The messages with every variable replaced, once: braces inside a value stay as they are.

        At most ``exemplars`` of the examples follow the message that they belong to; None shows all.
        Raises PromptError naming every variable that is missing or unknown.
        """
        missing = sorted(set(self.variables) - set(variables))
        unknown = sorted(set(variables) - set(self.variables))
        problems = [f"gets no value for {name}" for name in missing]
        problems += [f"does not declare {name}, which its agent fills in" for name in unknown]
        if problems:
            raise PromptError(
                f"prompt {self.name}: " + "; ".join(problems),
                hint=f"the line `variables:` of prompts/{self.name}.md must name exactly the variables its "
                "agent gives",
            )
        shown = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in variables.items()
        }
        texts = [
            VARIABLE.sub(lambda match: shown[match[1]], message.content)
            for message in self.messages
        ]
        for place, example in self.examples[:exemplars]:
            texts[place] += f"\n\nExample\n{example}"
        return tuple(
            Message(message.role, text) for message, text in zip(self.messages, texts, strict=True)
        )


@lru_cache(maxsize=256)
def parse(name: str, text: str) -> Prompt:
    """Take a prompt file apart. Raises PromptError listing everything wrong with it at once."""
    if not NAME.fullmatch(name):  # it becomes a path, and must not lead out of its folder
        raise PromptError(
            f"{name!r} is no name of a prompt", hint="prompts are named like chatty_kg/qir"
        )
    parts = re.split(r"^---\s*$", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0].strip():
        hint = "begin the file with header lines between two `---`"
        raise PromptError(f"prompt {name} has no header", hint=hint)
    header = {}
    for line in filter(str.strip, parts[1].strip().splitlines()):
        key, colon, value = line.partition(":")
        if not colon:
            hint = "write it as name: value"
            raise PromptError(
                f"prompt {name}: header line {line!r} is not `name: value`", hint=hint
            )
        header[key.strip()] = value.strip()
    pieces = ROLE.split(parts[2])
    messages: list[Message] = []
    examples: list[tuple[int, str]] = []
    for role, content in zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True):
        if role == "example":
            examples.append((len(messages) - 1, content))
        else:
            messages.append(Message("system" if role == "system" else "user", content))
    declared = tuple(re.findall(r"\w+", header.get("variables", "")))
    used = {variable for message in messages for variable in VARIABLE.findall(message.content)}
    problems = [f"has no header line {line}" for line in HEADER if line not in header]
    problems += [
        f"uses {word}, which its header does not declare" for word in sorted(used - set(declared))
    ]
    problems += [f"declares {word} and never uses it" for word in sorted(set(declared) - used)]
    if examples and examples[0][0] < 0:
        problems.append("begins with an [example], which belongs after a message")
    if not messages:
        problems.append("has no [system] or [user] message")
    elif pieces[0].strip():
        problems.append("has text outside of [system] and [user]")
    if problems:
        raise PromptError(
            f"prompt {name} " + "; ".join(problems),
            hint=f"fix prompts/{name}.md; CONTRIBUTING.md shows the form of a prompt file",
        )
    return Prompt(name, header, declared, tuple(messages), tuple(examples))


@cache  # every call of a model reads a prompt from it
def shipped_folder() -> Path:
    """The prompts that came with kgwb: the checkout's, else the installed package's copy."""
    here = Path(__file__).parent.parent
    checkout = here.parent / "prompts"
    is_checkout = checkout.is_dir() and (here.parent / "pyproject.toml").exists()
    return checkout if is_checkout else here / "_data" / "prompts"


@dataclass(frozen=True, slots=True)
class Prompts:
    """Where prompts come from: single texts first, then the person's folder, then kgwb's own."""

    folder: Path | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts by prompt name ("chatty_kg/qir") that go before any file.

    Tried once, or pinned by a saved run.
    """

    @classmethod
    def of(cls, folder: Prompts | str | Path | None) -> Prompts:
        """Those of a folder before kgwb's own. Raises PromptError if there is no such folder."""
        if isinstance(folder, Prompts):
            return folder
        if folder and not os.path.isdir(folder):  # which is False for a name that is too long
            hint = "make the folder, or leave `prompts` out to use kgwb's own"
            raise PromptError(f"there is no folder {folder} for prompts", hint=hint)
        return cls(Path(folder) if folder else None)

    def path(self, name: str) -> Path:
        """The file a prompt is read from. Raises PromptError if there is none."""
        folders = [folder for folder in (self.folder, shipped_folder()) if folder]
        for folder in folders:
            if (folder / f"{name}.md").is_file():
                return folder / f"{name}.md"
        places = " or ".join(str(folder / f"{name}.md") for folder in folders)
        raise PromptError(f"no prompt file for {name}", hint=f"write it to {places}")

    def text(self, name: str) -> str:
        """The text of a prompt file as it is now."""
        if name in self.texts:
            return self.texts[name]
        path = self.path(name)
        try:
            return disk.read_text(path, "utf-8-sig")  # some editors begin a file with a mark
        except (OSError, UnicodeDecodeError) as exc:
            raise PromptError(
                f"cannot read {path}: {exc}", hint="the file must be readable, in UTF-8"
            ) from exc

    def load(self, name: str) -> Prompt:
        """A prompt, checked."""
        return parse(name, self.text(name))

    def save(self, name: str, text: str) -> Path:
        """Write a prompt to the person's folder, or where there is none to the file it is read from.

        Returns the file. Raises PromptError if the text does not parse or the file cannot be written.
        """
        parse(name, text)
        path = self.folder / f"{name}.md" if self.folder else self.path(name)
        try:
            disk.replace(path, [text])
        except (OSError, UnicodeEncodeError) as exc:
            hint = "make room, or use a folder of your own: Workbench(..., prompts='my_prompts')"
            raise PromptError(f"cannot write {path}: {exc}", hint=hint) from exc
        return path

    def with_text(self, name: str, text: str) -> Prompts:
        """These prompts with one text changed; the file stays as it is."""
        parse(name, text)
        return Prompts(self.folder, {**self.texts, name: text})
