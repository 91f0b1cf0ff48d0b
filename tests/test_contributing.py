"""``kgwb new`` writes what docs/how-to/my-system.md shows, and its steps into kgwb itself work."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_project import wrong_imports

from kgwb.cli import main
from kgwb.cli.new import new_system_files

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how-to" / "my-system.md").read_text()
FILE = re.compile(r"^`([\w/]+\.\w+)`\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ASKED = """ASKED: Mapping[str, tuple[str, Any]] = {
    "describer": ("What is Arrival?", {"describer/mention": {"reason": "", "name": "Arrival"}}),"""


def run(command: list[str], folder: Path) -> str:
    """Run a command of Python in a folder, with kgwb from there or from this checkout."""
    paths = f"{folder}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_shows_what_is_written() -> None:
    assert dict(FILE.findall(PAGE)) == new_system_files("describer")


@pytest.mark.long
def test_a_new_system_works_in_a_project_of_its_own(tmp_path: Path) -> None:
    printed = run(["kgwb", "new", "my_own"], tmp_path)
    assert "| mention | model | mention.find_mention | mention |" in printed
    run(["ruff", "check", "--isolated", "--select", "E,F,I", "--line-length", "100", "."], tmp_path)
    run(["pytest", "-q", "-p", "no:cacheprovider", "tests/my_own"], tmp_path)
    source = ["--system", "my_own:SYSTEM", "--model", "scripted:my_own/script.py"]
    assert "film" in run(["kgwb", "ask", "--kg", "films", *source, "What is Arrival?"], tmp_path)


@pytest.mark.parametrize("name", ["dog", "My", "1st", "a-b", "../x", "describer", "json"])
def test_a_name_that_is_taken_or_no_name_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("describer").mkdir()
    Path("describer/records.py").write_text("mine")
    assert main(["new", name]) == 2
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["records.py"]


@pytest.mark.long
def test_a_system_is_added_to_kgwb_by_following_the_steps(tmp_path: Path) -> None:
    for folder in ("kgwb", "prompts", "tests"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for folder in ("sample_kgs", "recordings"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    run(["kgwb", "new", "describer"], tmp_path)
    follow_steps(tmp_path)
    assert list(wrong_imports(tmp_path / "kgwb")) == []
    run(["ruff", "check", "--fix", "-q", "kgwb/systems", "tests/systems/describer"], tmp_path)
    tests = ["systems/describer", "systems/test_every_system.py", "test_frozen.py"]
    files = [f"tests/{name}" for name in tests]
    run(["pytest", "-q", "-p", "no:cacheprovider", "-k", "describer or frozen", *files], tmp_path)


def follow_steps(folder: Path) -> None:
    """Do what the page says about kgwb itself, in a copy of the checkout."""
    for command in re.findall(r"^[23]\. `(.*?)`", PAGE, re.MULTILINE):
        subprocess.run(command, shell=True, check=True, cwd=folder)
    for test in (folder / "tests" / "systems" / "describer").iterdir():
        test.write_text(test.read_text().replace("from describer", "from kgwb.systems.describer"))
    sources = folder / "kgwb" / "run" / "systems.py"
    sources.write_text(sources.read_text().replace('"triad")\n', '"triad", "describer")\n'))
    every = folder / "tests" / "asked.py"
    first_line = "ASKED: Mapping[str, tuple[str, Any]] = {"
    every.write_text(every.read_text().replace(first_line, ASKED))
    run_script(folder / "tests" / "test_frozen.py", folder)
    run_script(folder / "tests" / "systems" / "test_maps.py", folder)


def run_script(script: Path, folder: Path) -> None:
    subprocess.run(
        [sys.executable, script],
        cwd=folder,
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
