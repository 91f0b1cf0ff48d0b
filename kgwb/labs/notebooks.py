"""The notebooks of the labs, with their cells in a language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import kgwb
from kgwb.labs.texts import DEFAULT_LANGUAGE, Texts

LAB_CALL = re.compile(r"(kgwb\.lab\(\d)\)")
"""The call in a notebook that opens its lab."""


def list_lab_notebooks() -> list[Path]:
    """Return the notebooks of the labs, as they are installed or in the repository."""
    package = Path(kgwb.__file__).parent
    installed_folder = package / "_data" / "notebooks"
    folder = installed_folder if installed_folder.is_dir() else package.parent / "notebooks"
    return sorted((folder / "labs").glob("*.ipynb"))


def translate_notebook(path: Path, texts: Texts) -> str:
    """Return the JSON of a lab's notebook with its cells in the language of the texts.

    A cell whose id is a key of the texts has its text from there. The lab is opened in the language,
    so that its feedback is in it too.
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
