"""What students read: one catalogue for each language, in gettext's format.

``languages/en.po`` has every text of the labs by its key, and another file there has them in another
language. Babel reads the files. The cells of the labs' notebooks are translated with them too.
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from babel.messages.pofile import PoFileError, read_po

from kgwb import disk
from kgwb.errors import InputError
from kgwb.records import frozen

FOLDER = Path(__file__).with_name("languages")
DEFAULT_LANGUAGE = "en"
LANGUAGE_VARIABLE = "KGWB_LANGUAGE"
"""The environment variable that names the language of the labs."""
CATALOGUE_SUFFIX = ".po"
LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
FRAME_KEY = "badge.wrong"
"""A text that a catalogue has if it has what kgwb says around the tasks."""
PLACEHOLDER = re.compile(r"\{(\w+)\}")
CHOICE_KEY = re.compile(r"[^.]+\.\d+\.(unknown|wrong|missing|number)")
"""The key of what is wrong with a choice, as in "cinema.2.wrong"."""


@frozen
class Message:
    """What a check says: a text by its key, or the text itself, and values for its placeholders."""

    key: str
    values: Mapping[str, object]
    """By placeholder. A value may be a message too."""


Problem = str | Message
"""What is wrong with an answer; "" if it is right."""


def say(key: str, **values: object) -> Message:
    """Return the message with a key, and with values for "{name}" in its text."""
    return Message(key, values)


class Texts:
    """The texts of a lab in one language."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self.language = language
        """The code of the language, or the path of its catalogue."""
        self.texts = texts
        """By key."""

    def get(self, problem: Problem, /, **values: object) -> str:
        """Return the text of a key, or of a message, with each "{name}" replaced by the value of that name.

        A key without a text is itself the text, but a CHOICE_KEY has the text for choices. A value that is
        a message is rendered first. A placeholder without a value stays as it is.
        """
        if isinstance(problem, Message):
            return self.get(problem.key, **problem.values)

        def value_of(placeholder: re.Match[str]) -> str:
            """Return the text that replaces a matched placeholder."""
            value = values.get(placeholder[1], placeholder[0])
            if isinstance(value, Message):
                return self.get(value)
            return str(value)

        text = self.texts.get(problem, problem)
        choice = CHOICE_KEY.fullmatch(text)
        if choice:
            text = self.texts[f"choice.{choice[1]}"]
        return PLACEHOLDER.sub(value_of, text)

    def has(self, key: str) -> bool:
        """Return whether there is a text with this key."""
        return key in self.texts


def list_languages() -> list[str]:
    """Return the codes of the languages that kgwb's own labs have, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob(f"*{CATALOGUE_SUFFIX}"))


def load_texts(language: str = "", lab_file: Path | None = None) -> Texts:
    """Return the texts in a language, given by its code, such as "de", or by the path of a catalogue.

    Without a language, the environment variable KGWB_LANGUAGE names it; it is English by default. A
    text that the language lacks is in English. A lab of one's own has catalogues beside its file:
    those of my_lab.py are my_lab.de.po and so on; they count before kgwb's. A warning says if they
    and kgwb lack the words around the tasks. Raises InputError if there is no catalogue of the
    language, or if one cannot be read.
    """
    language = language or os.environ.get(LANGUAGE_VARIABLE, "") or DEFAULT_LANGUAGE
    paths = _list_catalogues(language, lab_file)
    found = _read_catalogues(paths)
    if not found:
        languages = ", ".join(list_languages())
        looked_for = " or ".join(path.name for path in paths) or "none"
        hint = f"choose one of {languages}, write such a file, or give the path of one that ends in .po"
        raise InputError(
            f"there is no catalogue for the language {language!r}: {looked_for} was looked for",
            hint=hint,
        )
    english = _read_catalogues(_list_catalogues(DEFAULT_LANGUAGE, lab_file))
    texts = Texts(language, ChainMap(*found, *english))
    if lab_file and not any(FRAME_KEY in catalogue for catalogue in found):
        warnings.warn(
            f"the words around the tasks, such as “{texts.get(FRAME_KEY)}”, are in English: "
            f"{paths[0].name} does not have them. Copy the entries from lab.heading to "
            f"again.hidden from {FOLDER / 'en.po'}, and translate them",
            stacklevel=4,  # where kgwb.lab is called
        )
    return texts


def _list_catalogues(language: str, lab_file: Path | None) -> list[Path]:
    """Return the paths at which a catalogue of a language can be; they need not exist.

    A path of a catalogue is the only one. Otherwise the lab's own, LAB.LANGUAGE.po beside its file,
    comes before kgwb's. Empty for a text that is no language code.
    """
    if language.endswith(CATALOGUE_SUFFIX):
        return [Path(language).expanduser()]
    if not LANGUAGE_CODE.fullmatch(language):
        return []
    paths = [FOLDER / f"{language}{CATALOGUE_SUFFIX}"]
    if lab_file:
        paths.insert(0, lab_file.with_name(f"{lab_file.stem}.{language}{CATALOGUE_SUFFIX}"))
    return paths


def _read_catalogues(paths: list[Path]) -> list[dict[str, str]]:
    """Return the texts of each catalogue that there is, by their keys."""
    catalogues = []
    for path in paths:
        if path.is_file():
            changed_at = path.stat().st_mtime_ns
            catalogues.append(_read_catalogue(path, changed_at))
    return catalogues


@cache
def _read_catalogue(path: Path, changed_at: int) -> dict[str, str]:
    """Parse a .po file, and return its texts by key; the result is kept until the file changes.

    ``changed_at`` is the file's time of change, which is only part of the cache's key. Entries
    without a text, and those that are marked as fuzzy, are left out. Raises InputError for a file
    that cannot be read or parsed.
    """
    with disk.os_errors_as_input_error(
        f"cannot read the catalogue of translations {path}", "check the path"
    ):
        data = path.read_bytes()
    try:
        catalogue = read_po(io.BytesIO(data), abort_invalid=True)
    except (PoFileError, ValueError) as exc:
        raise InputError(
            f"{path} is not a catalogue of translations: {exc}",
            hint="open it in an editor of .po files, such as Poedit: it shows what is wrong",
        ) from exc
    texts = {}
    for entry in catalogue:
        if entry.id and entry.string and not entry.fuzzy:
            texts[str(entry.id)] = str(entry.string)
    return texts


LAB_CALL = re.compile(r"(kgwb\.lab\(\d)\)")
"""The call in a notebook that opens its lab."""


def list_lab_notebooks() -> list[Path]:
    """Return the paths of the labs' notebooks, sorted: those of the checkout, else as installed with the package."""
    folder = disk.shipped_folder("notebooks") / "labs"
    return sorted(folder.glob("*.ipynb"))


def translate_notebook(path: Path, texts: Texts) -> str:
    """Read a lab's notebook, and return its JSON text with the cells in the language of the texts.

    A cell whose id is a key of the texts gets its text from there; others stay. If the language is
    not English, the call that opens the lab gets it as an argument, so that feedback is in it too.
    """
    text = path.read_text(encoding="utf-8")
    notebook: dict[str, Any] = json.loads(text)
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if texts.has(cell["id"]):
            source = texts.get(cell["id"])
        is_code = cell["cell_type"] == "code"
        if is_code and texts.language != DEFAULT_LANGUAGE:
            name = Path(texts.language).name  # a catalogue lies beside the notebook
            source = LAB_CALL.sub(rf'\1, language="{name}")', source)
        cell["source"] = source.splitlines(keepends=True)
    translated = json.dumps(notebook, indent=1, ensure_ascii=False)
    return f"{translated}\n"
