"""The outputs that the notebooks carry, so that they can be read where no kernel is.

    python tests/notebook_outputs.py            execute every notebook and keep what it shows
    python tests/notebook_outputs.py 11 50      those whose names begin so
    python tests/notebook_outputs.py --digests  only write down again which notebooks are kgwb's own

Widgets are kept as their static HTML alone, without the view that a fresh kernel could not fill; the styles
are kept once a notebook. `kgwb lab` trusts the notebooks whose digests are written down.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from kgwb.show.html import Html, embed_style
from kgwb.ui.saved import SHIPPED_NOTEBOOKS, notebook_digest

FOLDER = Path(__file__).parent.parent / "notebooks"
VIEW = "application/vnd.jupyter.widget-view+json"
WIDGETS = """
import ipywidgets, time
from kgwb.ui.live import Live
time.sleep(2)  # what works in the background
_widgets = ipywidgets.widgets.widget._instances
_live = {name: one for name, one in _widgets.items() if isinstance(one, Live)}
_shown = {name: one.static_html() for name, one in _live.items()}
from IPython.display import display
display({"application/json": _shown}, raw=True)
"""
"""What every widget shows when the notebook has come to its end.

It is displayed, not printed: printed text is searched for backspaces, which takes minutes for megabytes.
"""
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/tmp\w+/")
PREFORMATTED = re.compile(r"(<(?:pre|textarea|style)\b.*?</(?:pre|textarea|style)>)", re.DOTALL)
INDENTATION = re.compile(r"\n\s+")
IDS = re.compile(r"kg-[0-9a-f]{6,}")


def executed(path: Path) -> Any:
    """The notebook as a fresh kernel makes it."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.cells.append(nbformat.v4.new_code_cell(WIDGETS))
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources, coalesce_streams=True
    ).execute()
    widgets = notebook.cells.pop().outputs[0].data["application/json"]
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if view := output.get("data", {}).get(VIEW):
            output.data["text/html"] = widgets.get(
                view["model_id"], output.data.get("text/html", "")
            )
    return notebook


def without_indentation(html: str) -> str:
    """The HTML without the spaces that begin its lines; texts that keep their spaces stay as they are."""
    parts = PREFORMATTED.split(html)
    parts[::2] = [INDENTATION.sub("\n", part) for part in parts[::2]]
    return "".join(parts)


def style_of(notebook: Any) -> str:
    """The style element with the rules that the HTML of all outputs needs; empty if none needs any."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    htmls = (output.get("data", {}).get("text/html", "") for output in outputs)
    unstyled = STYLE.sub("", "".join(html for html in htmls if STYLE.search(html)))
    found = STYLE.search(embed_style(Html(f"<section>{unstyled}</section>")))
    return found[0] if found else ""


def static(notebook: Any) -> Any:
    """The executed notebook with outputs that need no kernel, numbers and ids the same each time."""
    styled = False
    names: dict[str, str] = {}
    style = style_of(notebook)
    notebook.metadata.pop("widgets", None)
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.execution_count = None
        cell.metadata = {
            name: value for name, value in cell.metadata.items() if name != "execution"
        }
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = None
            data = output.get("data", {})
            data.pop(VIEW, None)
            for kind, text in data.items():
                data[kind] = TEMPORARY.sub("", text) if isinstance(text, str) else text
            if html := data.get("text/html"):
                unstyled, count = STYLE.subn("", html)
                html = unstyled if styled else STYLE.sub(lambda _: style, html)
                styled |= count > 0
                html = IDS.sub(lambda match: names.setdefault(match[0], f"kg-{len(names)}"), html)
                data["text/html"] = without_indentation(html)
    return notebook


def digests() -> dict[str, str]:
    """The digest of each notebook that is shipped, by its path below the folder of the notebooks."""
    found = {}
    for path in sorted(FOLDER.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            notebook = nbformat.read(path, as_version=4)
            found[path.relative_to(FOLDER).as_posix()] = notebook_digest(notebook)
    return found


def main(names: list[str]) -> None:
    """Execute the notebooks whose names begin with one of these, all without any; then the digests."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if path.name.startswith(tuple(names or [""])):
            nbformat.write(static(executed(path)), path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")
    text = json.dumps(digests(), indent=1)
    SHIPPED_NOTEBOOKS.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
