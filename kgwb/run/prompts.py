"""Prompt files: finding, checking and filling them.

A file ``prompts/<system>/<agent>.md`` begins with a header of ``name: value`` lines between two
lines of ``---``. Then come messages, each below a line ``[system]``, ``[user]`` or ``[assistant]``, and examples,
each below a line ``[example]`` after the message that it belongs to. A variable is written
``{{name}}``. Single braces mean themselves, so JSON and SPARQL need no escaping.

The messages of a call are one text of the same form where a person edits them
(``messages_to_text``).

A text that begins with a message has no header. It declares the variables that its messages use.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import field, replace
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from kgwb import disk
from kgwb.errors import PromptError
from kgwb.llm.base import Message
from kgwb.records import JsonObject, frozen
from kgwb.text import text_or_json

VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
HEADS = ("system", "user", "assistant", "example")
"""What a message or an example begins with, in brackets on a line."""
SECTION_LINE = re.compile(rf"^\[({'|'.join(HEADS)})\]\s*$", re.MULTILINE)
BRACKETED_LINE = re.compile(r"^\[(\w+)\]\s*$", re.MULTILINE)
"""A line that may be meant as the head of a message."""
HEADER_FENCE = re.compile(r"^---\s*$", re.MULTILINE)
PROMPT_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
HEADER_NAMES = ("purpose", "strategy", "variables", "reply", "source")


@frozen
class Prompt:
    """A prompt file, parsed."""

    name: str
    """System and agent: "chatty_kg/qir"."""
    header: Mapping[str, str]
    """Empty for a prompt without a header."""
    variables: tuple[str, ...]
    """The variables that the header declares; without a header, those that the messages use."""
    messages: tuple[Message, ...]
    """The messages with unfilled variables, and without their examples."""
    examples: tuple[tuple[int, str], ...] = ()
    """Each example with the position of the message that it belongs to."""

    def fill(self, variables: JsonObject, max_examples: int | None = None) -> tuple[Message, ...]:
        """Return the messages with every variable replaced by its value, and with examples.

        A value that is no text is written as JSON. Braces inside a value stay as they are. At most
        ``max_examples`` are added, each to the end of its message; None adds all. Variables in
        examples are not replaced. Examples are added in their order, below a line "Example".

        Raises PromptError, which names every missing and every unknown variable.
        """
        self._check_variables(variables)
        texts = {name: text_or_json(value) for name, value in variables.items()}
        filled = []
        for number, message in enumerate(self.messages):
            content = VARIABLE.sub(lambda match: texts[match[1]], message.content)
            for position, example in self.examples[:max_examples]:
                if position == number:
                    content += f"\n\nExample\n{example}"
            filled.append(Message(message.role, content))
        return tuple(filled)

    def measure_parts(
        self, messages: Iterable[Message], variables: Mapping[str, Any]
    ) -> dict[str, int]:
        """Return how many characters each part of filled messages has.

        The parts are "instructions", "examples", and each variable under its name, counted each
        time it is used. Parts without a character are left out. Only the examples that were sent
        count.
        """
        sent_text = "\n".join(message.content for message in messages)
        template = "\n".join(message.content for message in self.messages)
        # The messages without the line breaks that join them in the template
        instructions = sum(len(message.content) for message in self.messages)
        parts = {"instructions": instructions, "examples": 0}
        for _, example in self.examples:
            if f"Example\n{example}" in sent_text:
                parts["examples"] += len(example)
        for match in VARIABLE.finditer(template):
            parts["instructions"] -= len(match[0])
            name = match[1]
            value = text_or_json(variables.get(name, ""))
            parts[name] = parts.get(name, 0) + len(value)
        return {name: count for name, count in parts.items() if count}

    def _check_variables(self, variables: JsonObject) -> None:
        """Raise PromptError unless these are exactly the variables that the prompt declares.

        It names every missing and every unknown variable.
        """
        missing = sorted(set(self.variables) - set(variables))
        unknown = sorted(set(variables) - set(self.variables))
        problems = [f"gets no value for {name}" for name in missing]
        problems += [f"does not declare {name}, which its agent fills in" for name in unknown]
        if problems:
            raise PromptError(
                f"prompt {self.name}: {'; '.join(problems)}",
                hint=f"the line `variables:` of prompts/{self.name}.md, or its messages if it has no "
                "header, must name exactly the variables that its agent fills in",
            )


@lru_cache(maxsize=256)
def parse_prompt(name: str, text: str) -> Prompt:
    """Parse and check the text of a prompt file; the form is described at the top of this module.

    A header must have all HEADER_NAMES, and its variables must be exactly those in the messages.
    There must be a message, and no text or example before the first one.

    Raises PromptError: for a name that is no path below the folder, for a missing or wrong header,
    else for all problems at once.
    """
    if not PROMPT_NAME.fullmatch(name):  # it becomes a path, and must stay inside its folder
        raise PromptError(
            f"{name!r} is not the name of a prompt",
            hint="a prompt is named by its system and its agent, as in chatty_kg/qir",
        )
    header, body = _split_header(name, text)
    before_messages, *sections = SECTION_LINE.split(body)
    messages: list[Message] = []
    examples = []
    contents = [content.strip() for content in sections[1::2]]
    for kind, content in zip(sections[::2], contents, strict=True):
        if kind == "example":
            examples.append((len(messages) - 1, content))
        else:
            messages.append(Message(kind, content))  # type: ignore[arg-type]  # one of SECTION_LINE
    if header:
        declared = tuple(re.findall(r"\w+", header.get("variables", "")))
    else:
        declared = tuple(sorted(_used_variables(messages)))
    prompt = Prompt(name, header, declared, tuple(messages), tuple(examples))

    problems = _problems_of(prompt)
    if messages and before_messages.strip():
        problems.append("has text outside of [system] and [user]")
    if problems:
        raise PromptError(
            f"prompt {name} {'; '.join(problems)}",
            hint=f"correct the text in the editor, or the file prompts/{name}.md; CONTRIBUTING.md shows "
            "the form of a prompt file",
        )
    return prompt


def _split_header(name: str, text: str) -> tuple[dict[str, str], str]:
    """Return the values in the header of a prompt by name, and the text after it.

    Empty lines are skipped. The header of a text that begins with a message is empty. Raises
    PromptError if the text begins with something else, or if a line of the header is not "name: value".
    """
    if SECTION_LINE.match(text.lstrip()):
        return {}, text.lstrip()
    parts = HEADER_FENCE.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0].strip():
        raise PromptError(
            f"prompt {name} has no header",
            hint=f"begin prompts/{name}.md with header lines between two lines of `---`, or with the line "
            "[user]",
        )
    _, header_text, body = parts
    header = {}
    for line in header_text.splitlines():
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise PromptError(
                f"prompt {name}: header line {line!r} is not `name: value`",
                hint="write it as name: value, such as `variables: question`",
            )
        header[key.strip()] = value.strip()
    if not header:
        raise PromptError(
            f"prompt {name} has an empty header",
            hint=f"in prompts/{name}.md write a line such as `variables: question` into it, or remove "
            "both lines of `---`",
        )
    return header, body


def _problems_of(prompt: Prompt) -> list[str]:
    """Return what is wrong with a parsed prompt.

    It may lack a line of the header or have no message, use a variable that the header does not
    declare, declare one that it does not use, or begin with an example. Each text continues
    "prompt NAME ...". Without problems the list is empty.
    """
    declared = set(prompt.variables)
    used = _used_variables(prompt.messages)
    problems = []
    for header_name in HEADER_NAMES:
        if prompt.header and header_name not in prompt.header:
            problems.append(f"has no header line {header_name}")
    for variable in sorted(used - declared):
        problems.append(f"uses {_in_braces(variable)}, which its header does not declare")
    for variable in sorted(declared - used):
        problems.append(f"declares {_in_braces(variable)} and never uses it")
    if prompt.examples and prompt.examples[0][0] < 0:
        problems.append("begins with an [example], which belongs after a message")
    if not prompt.messages:
        problems.append("has no [system] or [user] message")
    return problems


def _in_braces(variable: str) -> str:
    """Return a variable as a prompt has it, so that its name is not read as a word: "{{none}}"."""
    return "{{" + variable + "}}"


def _used_variables(messages: Iterable[Message]) -> set[str]:
    """Return the names of the variables in some messages."""
    used = set()
    for message in messages:
        used.update(VARIABLE.findall(message.content))
    return used


@cache
def shipped_folder() -> Path:
    """Return the folder of kgwb's own prompts: the checkout's, else the installed package's copy."""
    return disk.shipped_folder("prompts")


def shipped_names() -> set[str]:
    """Return the names of kgwb's own prompts."""
    return _names_in_folder(shipped_folder())


def _names_in_folder(folder: Path) -> set[str]:
    """Return the names of all files *.md in a folder and its subfolders: "chatty_kg/qir"."""
    names = set()
    for path in folder.rglob("*.md"):
        name = path.relative_to(folder).with_suffix("")
        names.add(name.as_posix())
    return names


@frozen
class Prompts:
    """Where prompts are read from: texts first, then a folder, then the system's, then kgwb's own."""

    folder: Path | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts by the name of the prompt. They come from an edit, a saved run, or a system's code."""
    system_prompts: Prompts | None = None
    """The prompts that the system has of its own."""

    @classmethod
    def of(cls, folder: Prompts | Mapping[str, str] | str | Path | None) -> Prompts:
        """Return the prompts in a folder, or of texts by name, or these Prompts themselves.

        For None or "", only kgwb's own. Prompts are returned as they are. Raises PromptError if
        there is no such folder, or if a text is not a prompt.
        """
        if isinstance(folder, Prompts):
            return folder
        if isinstance(folder, Mapping):
            for name, text in folder.items():
                parse_prompt(name, text)
            return cls(texts=dict(folder))
        if not folder:
            return cls()
        if not os.path.isdir(folder):  # Path.is_dir raises if the name is too long
            raise PromptError(
                f"there is no folder {folder} for prompts",
                hint="make the folder, or leave `prompts` out to use kgwb's own",
            )
        return cls(Path(folder))

    def for_system(self, system_prompts: Prompts | None) -> Prompts:
        """Return a copy of these prompts for a system that has prompts of its own."""
        return replace(self, system_prompts=system_prompts)

    def own_names(self) -> set[str]:
        """Return the names of the prompts among the texts and in the folder, not kgwb's own.

        A name is the path of the file below the folder, without ".md".
        """
        names = set(self.texts)
        if self.folder is not None:
            names |= _names_in_folder(self.folder)
        return names

    def has_own(self, name: str) -> bool:
        """Return whether a prompt is one of ``own_names``, without reading the whole folder."""
        return name in self.texts or self._is_in_folder(name)

    def check(self, names: Collection[str]) -> None:
        """Check the person's prompts before a model is asked; raise PromptError with all problems.

        ``names`` are the prompts that the system may use. Each of the person's prompts among them
        must parse, and have exactly the variables of the prompt that it replaces. A file that no
        agent reads is a problem if it is in a subfolder, or if it is in none and has the name of an
        agent. Other files, such as a README.md, and prompts of other systems are ignored.
        """
        known_names = {*names, *shipped_names()}
        problems = []
        for name in sorted(self.own_names()):
            if name in names:
                problems += self._find_problems(name)
            elif name not in known_names:
                problems += _describe_unread_file(name, known_names)
        if problems:
            raise PromptError(
                "; ".join(problems),
                hint=f"nothing was asked: fix the files in {self.folder or 'the prompts'}",
            )

    def _find_problems(self, name: str) -> list[str]:
        """Return what keeps an agent from using one of the person's prompts; [] if nothing.

        It must parse, without a misspelt head such as "[usr]", and have the variables and the reply
        of the prompt that it replaces. A prompt that replaces none is only parsed. Another line in
        brackets, such as "[table]", is text.
        """
        replaced_prompts = Prompts(system_prompts=self.system_prompts)
        try:
            prompt = self.load(name)
        except PromptError as exc:
            return [exc.message]
        problems = []
        for word in BRACKETED_LINE.findall(self.text(name)):
            for head in difflib.get_close_matches(word.casefold(), HEADS, n=1):
                if word != head:
                    problems.append(f"prompt {name} has the line [{word}]: is [{head}] meant?")
        try:
            replaced = replaced_prompts.load(name)
        except PromptError:
            return problems
        reply = replaced.header.get("reply", "")
        named = prompt.header.get("reply", reply)
        if reply and named != reply:
            problems.append(f"prompt {name} says `reply: {named}`, but its agent asks for {reply}")
        filled_in = set(replaced.variables)
        used = set(prompt.variables)
        for variable in sorted(filled_in - used):
            problems.append(f"prompt {name} lacks {{{{{variable}}}}}, which its agent fills in")
        for variable in sorted(used - filled_in):
            problems.append(f"prompt {name} gets no value for {{{{{variable}}}}}")
        return problems

    def _is_in_folder(self, name: str) -> bool:
        """Return whether the person's folder has this prompt's file; False without a folder."""
        if self.folder is None:
            return False
        return _status_of_file(self.folder / f"{name}.md") is not None

    def path(self, name: str) -> Path:
        """Return the file that a prompt is read from: the person's, the system's, or kgwb's own.

        The first of these folders that has the file NAME.md counts. Raises PromptError, which names
        all of them, if none has.
        """
        path, _ = self._find_file(name)
        return path

    def _find_file(self, name: str) -> tuple[Path, os.stat_result]:
        """Return the ``path`` of a prompt, and its status, for which the file system is asked once."""
        folders = [self.folder]
        if self.system_prompts is not None:
            folders.append(self.system_prompts.folder)
        folders.append(shipped_folder())
        paths = []
        for folder in folders:
            if folder is None:
                continue
            path = folder / f"{name}.md"
            status = _status_of_file(path)
            if status is not None:
                return path, status
            paths.append(path)
        places = " or ".join(map(str, paths))
        raise PromptError(f"no prompt file for {name}", hint=f"write the prompt to {places}")

    def text(self, name: str) -> str:
        """Return the text of a prompt: one of ``texts``, else the system's in code, else a file's.

        The file is read as it is now. The person's folder goes before a text in the system's code.
        Raises PromptError if there is no such prompt, or its file cannot be read.
        """
        if name in self.texts:
            return self.texts[name]
        text = self._text_in_code(name)
        if text is not None:
            return text
        path, status = self._find_file(name)
        with _prompt_errors(path):
            return _read_version(str(path), status.st_ino, status.st_mtime_ns, status.st_size)

    def _text_in_code(self, name: str) -> str | None:
        """Return the text that the system has for a prompt in its code; None without one.

        None is also returned if the person's folder has the prompt.
        """
        if self.system_prompts is None or self._is_in_folder(name):
            return None
        return self.system_prompts.texts.get(name)

    def load(self, name: str) -> Prompt:
        """Return a parsed prompt. Raises PromptError if it is missing or wrong."""
        return parse_prompt(name, self.text(name))

    def needs_folder(self, name: str) -> bool:
        """Return whether a prompt cannot be saved before the person chooses a folder.

        That is so for kgwb's own prompts, which are never overwritten, and for those that stand in
        the code of a system. Raises PromptError if there is no such prompt.
        """
        if self.folder is not None:
            return False
        if self._text_in_code(name) is not None:
            return True
        return self.path(name).is_relative_to(shipped_folder())

    def save(self, name: str, text: str) -> Path:
        """Write a prompt to the person's folder, else to the system's file. Returns the file.

        The text that a file had is kept beside it as NAME.md.1, NAME.md.2, and so on. Raises
        PromptError if the text is not a prompt, if the file cannot be written, or if a folder is
        needed and there is none (``needs_folder``).
        """
        parse_prompt(name, text)
        if self.folder is not None:
            path = self.folder / f"{name}.md"
        elif self.needs_folder(name):
            raise PromptError(
                f"the prompt {name} is kgwb's own, or is written in the code of its system: it is not "
                "overwritten",
                hint="choose a folder for it: Workbench(..., prompts='my_prompts')",
            )
        else:
            path = self.path(name)
        with disk.os_errors_as_input_error(
            f"cannot write {path}",
            "free some space, or use a folder of your own: Workbench(..., prompts='my_prompts')",
            PromptError,
        ):
            _replace_file(path, text)
        return path

    def with_text(self, name: str, text: str) -> Prompts:
        """Return a copy of these prompts in which one prompt has this text. No file changes.

        Raises PromptError if the text is wrong.
        """
        parse_prompt(name, text)
        return replace(self, texts={**self.texts, name: text})


def _prompt_errors(path: Path) -> AbstractContextManager[None]:
    """Raise PromptError, which names the prompt file, in place of an OSError or UnicodeError."""
    return disk.os_errors_as_input_error(
        f"cannot read the prompt file {path}",
        "check that you may read it, and save it as UTF-8",
        PromptError,
    )


def _status_of_file(path: Path) -> os.stat_result | None:
    """Return the status of a file; None if there is none, or something else than a file.

    Raises PromptError if that cannot be found out. Taken as none, a prompt that a person wrote
    would be replaced by kgwb's own.
    """
    with _prompt_errors(path), suppress(FileNotFoundError, NotADirectoryError, ValueError):
        status = path.stat()
        if S_ISREG(status.st_mode):
            return status
    return None


@lru_cache(maxsize=256)
def _read_version(path: str, *version: int) -> str:
    """Return the text of a prompt file. ``version`` is its inode, the time of its change, and its size.

    The texts of 256 versions are kept: each question needs the same few files, and reading one
    takes as long as two steps. Raises OSError or UnicodeDecodeError.
    """
    return disk.read_text(Path(path), "utf-8-sig")  # some editors write a byte order mark


def _replace_file(path: Path, text: str) -> None:
    """Write a file, and keep the text that it had in a file with the first free number: qir.md.1.

    No copy is kept if the text is the same. If writing fails, no copy is left and the file is as
    before. Raises OSError and UnicodeEncodeError.
    """
    if not path.exists() or path.read_bytes() == text.encode():
        disk.write_atomically(path, [text])
        return
    copy = copy_beside(path)
    try:
        disk.write_atomically(path, [text])
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def copy_beside(path: Path) -> Path:
    """Copy a file to the first free number beside it, as in qir.md.1, and return the copy.

    If that fails, no copy is left. Raises OSError.
    """
    number = 1
    copy = path.with_name(f"{path.name}.1")
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.{number}")
    try:
        shutil.copy2(path, copy)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def _describe_unread_file(name: str, known_names: Collection[str]) -> list[str]:
    """Return a list of one text: no agent reads this prompt; it names the most similar known one.

    ``known_names`` are the names of all prompts. The list is empty for a file that may be something
    else: it is in no subfolder, and has not the name of an agent.
    """
    folder, _, agent = name.rpartition("/")
    same_agent = []
    for known in sorted(known_names):
        _, _, known_agent = known.rpartition("/")
        if known_agent == agent:
            same_agent.append(known)
    if not folder and not same_agent:
        return []
    similar = same_agent or difflib.get_close_matches(name, sorted(known_names), n=1)
    text = f"no agent reads {name}.md"
    if similar:
        text += f"; did you mean {similar[0]}.md?"
    return [text]


MESSAGE_LINE = re.compile(r"^\[(system|user|assistant|developer|tool)\]\s*$", re.MULTILINE)


def messages_to_text(messages: Iterable[Message]) -> str:
    """Return messages as text: each below a line with its role in brackets."""
    text = "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)
    return f"{text}\n"


def messages_from_text(text: str) -> tuple[Message, ...]:
    """Return the messages that ``messages_to_text`` wrote, or that a person changed.

    Empty lines around a message's content are removed. A message may be empty.

    Raises PromptError if the text does not begin with a role, or has no message.
    """
    before, *sections = MESSAGE_LINE.split(text.replace("\r\n", "\n"))
    if before.strip() or not sections:
        raise PromptError(
            "the edited messages do not begin with a role: each stands below a line with its role",
            hint="begin with a line [system], [user] or [assistant]",
        )
    messages = []
    for role, content in zip(sections[::2], sections[1::2], strict=True):
        messages.append(Message(role, content.strip("\n")))  # type: ignore[arg-type]
    return tuple(messages)
