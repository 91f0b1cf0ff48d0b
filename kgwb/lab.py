"""How JupyterLab is started on kgwb's notebooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import kgwb
from kgwb import disk
from kgwb.errors import InputError

START = "notebooks/00_start.ipynb"
SETTINGS = Path(__file__).parent / "lab_settings"
"""No news and no updates: JupyterLab would ask over the first notebook whether to fetch them."""


def lab_command(home: Path, rest: Sequence[str]) -> list[str]:
    """The command that starts JupyterLab on the first notebook; ``rest`` goes before kgwb's defaults."""
    defaults = {
        "--ServerApp.root_dir": str(home),
        "--LabApp.default_url": f"/lab/tree/{START}",
        "--LabApp.app_settings_dir": str(SETTINGS),
        "--LabApp.extension_manager": "readonly",
    }
    given = {argument.partition("=")[0] for argument in rest}
    chosen = [f"{name}={value}" for name, value in defaults.items() if name not in given]
    root = ["--allow-root"] if os.geteuid() == 0 and "--allow-root" not in given else []
    return [sys.executable, "-m", "jupyterlab", *chosen, *root, *rest]


def notebooks_home() -> Path:
    """The folder that holds ``notebooks``: the checkout, else the current one, where copies are put."""
    package = Path(kgwb.__file__).parent
    if (package.parent / START).is_file() and (package.parent / "pyproject.toml").is_file():
        return package.parent
    shipped = package / "_data" / "notebooks"
    if not shipped.is_dir():
        raise InputError("this kgwb came without notebooks", hint="install it again, or use a checkout")
    try:
        for notebook in shipped.glob("*.ipynb"):
            if not (copy := Path("notebooks") / notebook.name).exists():
                disk.replace(copy, [notebook.read_text(encoding="utf-8")])
    except OSError as exc:
        hint = "go to a folder of your own with some space left"
        raise InputError(f"cannot copy the notebooks to {Path.cwd()}: {exc.strerror}", hint=hint) from exc
    return Path.cwd()
