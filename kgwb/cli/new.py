"""``kgwb new``: a small system with its prompt and its test, in a person's own project."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from kgwb import disk
from kgwb.cli.arguments import positional
from kgwb.errors import InputError

TEMPLATES = Path(__file__).parent / "new_system"
EXAMPLE_NAME = "describer"
"""The name of the system in the templates, which the given name takes the place of."""
FILES = {
    "__init__.py": "NAME/__init__.py",
    "records.py": "NAME/records.py",
    "prompts/mention.md": "NAME/prompts/NAME/mention.md",
    "mention.py": "NAME/mention.py",
    "script.py": "NAME/script.py",
    "test_mention.py": "tests/NAME/test_mention.py",
    "test_description.py": "tests/NAME/test_description.py",
}
"""Where each template is written to, below the current folder."""


@dataclass(kw_only=True)
class NewCommand:
    """The arguments of ``kgwb new``, and its work."""

    name: str = positional("NAME", "the name of the system: lower case letters, digits and _")

    def run(self) -> None:
        """Write the files of a new system below the current folder, and print how to try it.

        The paths and the map of its agents are printed too.

        If one of the files is there already, or Python has a module of this name, InputError is
        raised before anything is written. InputError is also raised for a name that
        ``new_system_files`` rejects, and for a folder that cannot be written to.
        """
        from kgwb.run.systems import resolve_system

        texts = new_system_files(self.name)
        for path in texts:
            if Path(path).exists():
                raise InputError(
                    f"the system was not made: {path} already exists",
                    hint="choose another name for the new system, or another folder",
                )
        module = importlib.util.find_spec(self.name)
        if module is not None and module.origin is not None:
            raise InputError(
                f"the system was not made: Python has a module named {self.name} already",
                hint="choose another name for the new system",
            )
        hint = "go to a folder of your own with some space left"
        with disk.os_errors_as_input_error(f"cannot write to {Path.cwd()}", hint):
            for path, text in texts.items():
                disk.write_atomically(Path(path), [text])
        print(*texts, sep="\n")
        print(f"\n{resolve_system(f'{self.name}:SYSTEM')!r}")
        print(
            "\nTry it:\n"
            f"  python -m pytest tests/{self.name}\n"
            f"  kgwb ask --kg films --system {self.name}:SYSTEM "
            f'--model scripted:{self.name}/script.py "What is Arrival?"'
        )


def new_system_files(name: str) -> dict[str, str]:
    """Return the texts of the files of a new system, by their paths relative to the current folder.

    They are those of FILES, made from the templates: NAME in a path and EXAMPLE_NAME in a text
    become the name, or the name as a title. Nothing is written. Raises InputError unless the name
    begins with a lower case letter and has only lower case letters, digits and "_", or if a known
    system has it.
    """
    from kgwb.run.systems import list_systems

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            f"{name!r} cannot be the name of a system",
            hint="write it with lower case letters, digits and _, for example: my_system",
        )
    if name in list_systems():
        raise InputError(
            f"the system was not made: kgwb has a system named {name} already",
            hint="choose another name for the new system",
        )
    texts = {}
    for template, place in FILES.items():
        text = disk.read_text(TEMPLATES / f"{template}.txt")
        path = place.replace("NAME", name)
        title = name.replace("_", " ").capitalize()
        text = text.replace(EXAMPLE_NAME.capitalize(), title)
        texts[path] = text.replace(EXAMPLE_NAME, name)
    return texts
