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
    """Return the paths of the labs' notebooks, sorted: as installed with the package, else those of the checkout."""
    package = Path(kgwb.__file__).parent
    installed_folder = package / "_data" / "notebooks"
    folder = installed_folder if installed_folder.is_dir() else package.parent / "notebooks"
    return sorted((folder / "labs").glob("*.ipynb"))


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
