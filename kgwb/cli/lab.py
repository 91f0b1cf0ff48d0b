"""``kgwb lab``: JupyterLab on the notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kgwb import disk
from kgwb.errors import InputError

START_NOTEBOOK = "notebooks/00_start.ipynb"
NOTEBOOK_FILES = (".ipynb", ".py", ".jsonl")
"""The suffixes of the notebooks, and of the pipelines and recordings that one of them shows."""


@dataclass
class JupyterLabCommand:
    """The arguments of ``kgwb lab``, and its work."""

    EPILOG = "for example: kgwb lab --no-browser --port 8899"

    rest: list[str]

    def run(self) -> None:
        """Replace this process by JupyterLab, which opens START_NOTEBOOK; it does not return.

        Options of kgwb, such as the root folder, are added unless ``rest`` has them; the superuser
        also gets --allow-root. In a JupyterHub its single-user server is started in place of
        JupyterLab. Raises InputError if there are no notebooks.
        """
        defaults = {
            "--ServerApp.root_dir": str(_find_notebooks_root()),
            "--LabApp.default_url": f"/lab/tree/{START_NOTEBOOK}",
            # Otherwise JupyterLab asks, in front of the first notebook, whether to fetch news
            "--LabApp.app_settings_dir": str(Path(__file__).parent / "lab_settings"),
            "--LabApp.extension_manager": "readonly",
            # A notebook that is opened again shows what its widgets showed
            "--ServerApp.contents_manager_class": "kgwb.ui.saved.Notebooks",
        }
        given = {argument.partition("=")[0] for argument in self.rest}
        options = [f"{name}={value}" for name, value in defaults.items() if name not in given]
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        if is_root and "--allow-root" not in given:
            options.append("--allow-root")
        server = "jupyterlab"
        if "JUPYTERHUB_SERVICE_URL" in os.environ:
            # A JupyterHub passes the address to its server, which must ask the hub who may enter
            server = "jupyterhub.singleuser"
        sys.stdout.flush()
        _run_instead([sys.executable, "-m", server, *options, *self.rest])


def _run_instead(command: list[str]) -> NoReturn:
    """Replace this process by a command, and never return.

    Windows would start the command beside this process, and the shell would not wait for it. So
    there it is started as a child: this process waits for its end, ignores interrupts, which the
    command gets too, and exits with its code.
    """
    if hasattr(os, "fork"):
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while process.poll() is None:
        with suppress(KeyboardInterrupt):
            process.wait()
    sys.exit(process.returncode)


def _find_notebooks_root() -> Path:
    """Return the folder that holds ``notebooks``, and copy the notebooks there if kgwb is installed.

    In a checkout this is the checkout, and nothing is copied. Otherwise it is the current folder,
    to which the package's notebooks and their files (NOTEBOOK_FILES) are copied; files that are
    there stay as they are. Raises InputError if the package has no notebooks, or they cannot be
    copied.
    """
    shipped = disk.shipped_folder("notebooks")
    if shipped.parent.name != "_data":
        return shipped.parent
    if not shipped.is_dir():
        raise InputError(
            "the notebooks cannot be opened: this installation of kgwb has none",
            hint="install kgwb again, or run kgwb lab in a checkout of its repository",
        )
    with disk.os_errors_as_input_error(
        f"cannot copy the notebooks to {Path.cwd()}",
        "go to a folder of your own with some space left",
    ):
        for file in shipped.rglob("*"):
            copy = Path("notebooks") / file.relative_to(shipped)
            if file.suffix in NOTEBOOK_FILES and not copy.exists():
                disk.write_atomically(copy, [file.read_text(encoding="utf-8")])
    return Path.cwd()
