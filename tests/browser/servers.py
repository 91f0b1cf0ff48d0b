"""JupyterLab, Notebook 7 and Voila, started on a copy of the project, apart from anybody's settings."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from engines import ROOT, free_port, running

CARRIED = ("kgwb", "notebooks", "prompts", "recordings", "sample_kgs", "pyproject.toml")
PERSONAL = ("JUPYTER", "KGWB", "OLLAMA", "OPENAI")
"""How variables of the person's own begin."""

COMMANDS = {
    "lab": (
        *("kgwb", "lab", "--no-browser", "--LabApp.expose_app_in_browser=True"),
        *("--IdentityProvider.token=", "--ServerApp.ip=127.0.0.1", "--ServerApp.port={port}"),
    ),
    "notebook": (
        *(
            "notebook",
            "--no-browser",
            "--allow-root",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ),
        *("--IdentityProvider.token=", "--ServerApp.ip=127.0.0.1", "--ServerApp.port={port}"),
    ),
    "voila": (
        *("voila", "notebooks", "--no-browser", "--Voila.ip=127.0.0.1", "--Voila.port={port}"),
        "--show_tracebacks=True",
        # Notebook 7's own page; inside Voila's, which has other versions of the same parts, it cannot load.
        "--VoilaConfiguration.extension_denylist=@jupyter-notebook/lab-extension",
    ),
}
PAGES = {"lab": "lab/tree/notebooks", "notebook": "notebooks/notebooks", "voila": "voila/render"}


@dataclass(frozen=True, slots=True)
class Server:
    """A server at work on a copy of the project."""

    kind: str
    """"lab", "notebook" or "voila"."""
    origin: str
    folder: Path
    """The copy: ``notebooks``, ``prompts`` and the rest; what a page saves is saved there."""
    root: Path = ROOT
    """The checkout that was copied."""

    def url(self, notebook: str, theme: str) -> str:
        """The page of a notebook; only Voila takes its theme from there."""
        rest = {"lab": "?reset", "voila": f"?theme={theme}"}.get(self.kind, "")
        return f"{self.origin}/{PAGES[self.kind]}/{notebook}{rest}"

    def renew(self, *, outputs: bool = False) -> None:
        """Bring notebooks and prompts back to how the project has them, with or without the outputs."""
        for name in ("notebooks", "prompts"):
            shutil.copytree(self.root / name, self.folder / name, dirs_exist_ok=True)
        for path in () if outputs else (self.folder / "notebooks").glob("*.ipynb"):
            notebook = nbformat.read(path, as_version=4)
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = []
            nbformat.write(notebook, path)

    def sources(self, notebook: str) -> tuple[str, ...]:
        """What stands in the code cells of a notebook."""
        cells = nbformat.read(self.folder / "notebooks" / notebook, as_version=4).cells
        return tuple(cell.source for cell in cells if cell.cell_type == "code")

    def write(self, notebook: str, *cells: str) -> str:
        """Write a notebook of code cells; its name."""
        made = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={
                "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
            },
        )
        nbformat.write(made, self.folder / "notebooks" / notebook)
        return notebook


@contextmanager
def serving(kind: str, folder: Path, root: Path = ROOT) -> Iterator[Server]:
    """A server in a new ``folder`` for as long as the block lasts, and none of its kernels after it.

    ``root`` is the checkout that it is a copy of.
    """
    copy_project(folder, root)
    port = free_port()
    command = [sys.executable, "-m", *(part.format(port=port) for part in COMMANDS[kind])]
    with running(command, port, folder, environment(folder)):
        yield Server(kind, f"http://127.0.0.1:{port}", folder, root)


def copy_project(folder: Path, root: Path = ROOT) -> None:
    """Copy what a notebook uses, so that a page that saves changes nothing here."""
    for name in CARRIED:
        if (root / name).is_dir():
            shutil.copytree(
                root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(root / name, folder / name)


def environment(folder: Path) -> dict[str, str]:
    """The variables for a server or kernel on such a copy: nothing of the person's own, no torch."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PERSONAL)}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return kept | {
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "KGWB_CACHE": str(home / "cache"),
        "KGWB_EMBEDDINGS": "lexical",
        "PYTHONPATH": str(folder),  # the copy of kgwb finds the copies of the prompts
    }
