"""A package that announces a system, as a wheel in a fresh environment, is used by its name."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from kgwb.cli.new import new_system_files

ROOT = Path(__file__).parent.parent
QUESTION = "What is Arrival?"
METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: toy-of-kgwb\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "entry_points.txt": "[kgwb.systems]\ntoy = toy:SYSTEM\n"
    "broken = toy.missing:SYSTEM\nother = toy:SYSTEM\n",
}


def write_wheel(folder: Path) -> Path:
    """A wheel with the system of ``kgwb new toy``, which is announced under its name."""
    info = "toy_of_kgwb-1.0.dist-info"
    files = {
        path: text for path, text in new_system_files("toy").items() if path.startswith("toy/")
    }
    files |= {f"{info}/{name}": text for name, text in METADATA.items()}
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    wheel = folder / "toy_of_kgwb-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return wheel


@pytest.fixture(scope="module")
def python(only_long: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel, and with kgwb and what it needs."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*install, write_wheel(folder)], check=True)
    [site_packages] = folder.glob("lib/python*/site-packages")
    paths = f"{ROOT}\n{sysconfig.get_path('purelib')}\n"
    (site_packages / "kgwb_of_this_checkout.pth").write_text(paths)
    return python


def kgwb(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [python, "-m", "kgwb", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_the_system_is_asked_by_its_name_and_its_runs_open(python: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(new_system_files("toy")["toy/script.py"])
    given = ["--kg", "films", "--system", "toy", "--model", "scripted:script.py"]
    asked = kgwb(python, tmp_path, "ask", *given, "--save", "run.jsonl", QUESTION)
    assert asked.returncode == 0, asked.stderr
    code = "import kgwb; run = kgwb.load_run('run.jsonl'); print(run.read_only, run.answer.labels)"
    opened = subprocess.check_output([python, "-c", code], cwd=tmp_path, text=True)
    assert opened.split() == ["('film',)"]


@pytest.mark.long
def test_doctor_lists_the_system_and_says_which_cannot_be_used(
    python: Path, tmp_path: Path
) -> None:
    lines = kgwb(python, tmp_path, "doctor").stdout.splitlines()
    found = {
        line.split()[2].rstrip(":"): line.split()[0]
        for line in lines
        if line.split()[1:2] == ["system"]
    }
    assert found == {"toy": "ok", "broken": "absent", "other": "absent"}
