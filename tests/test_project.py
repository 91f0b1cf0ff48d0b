"""The project's files agree with each other, and the package keeps its shape."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]

# A module imports from its own rank and those before it; imports for the type checker alone are free.
RANKS = [
    {"aside", "disk", "display", "errors", "flow", "masking", "network", "settings", "version"},
    {"kg", "llm"},
    {"run", "show"},
    {"systems"},
    {"bench", "ui"},
    {"kgwb", "workbench"},  # the facade; takes from `ui` only inside functions
    {"__main__", "arguments", "cli", "doctor", "lab"},
]
RANK_OF = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
FACADE = {"kgwb", "workbench"}

HEAVY = {"IPython", "ipywidgets", "jupyter_core", "ollama", "openai", "sentence_transformers", "torch"}


# --- files


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md"])
def test_the_project_introduces_itself(name: str) -> None:
    assert (ROOT / name).read_text().strip()


@pytest.mark.parametrize("declared", DECLARED)
def test_the_lock_pins_every_dependency_within_its_range(declared: str) -> None:
    wanted = Requirement(declared)
    assert wanted.specifier.contains(pins()[canonicalize_name(wanted.name)])


def test_the_conda_environment_installs_what_the_package_declares() -> None:
    python, _, pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    listed = [line for line in pip["pip"] if not line.startswith("-")]
    assert {Requirement(line) for line in listed} == {Requirement(line) for line in PROJECT["dependencies"]}
    assert python.removeprefix("python=") in Requirement(f"python{PROJECT['requires-python']}").specifier


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pinned}


# --- imports


def test_importing_kgwb_loads_neither_torch_nor_jupyter_nor_a_client() -> None:
    code = "import sys, kgwb; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert HEAVY.isdisjoint(loaded.split())


def test_imports_point_one_way() -> None:
    assert len(list((ROOT / "kgwb").rglob("*.py"))) > 1
    assert list(wrong_imports(ROOT / "kgwb")) == []


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("flow.py", "from kgwb.run import Run"),
        ("run.py", "from .systems import chatty_kg"),
        ("run.py", "from kgwb import systems"),
        ("llm/rules.py", "from ..record import Step"),
        ("kg/local.py", "from kgwb import Workbench"),
        ("record.py", "def show(step):\n    import kgwb.ui.views"),
        ("systems/spinach/pipeline.py", "from kgwb.systems.chatty_kg import qir"),
        ("systems/spinach/pipeline.py", "from ..chatty_kg.qir import extract"),
        ("__init__.py", "from kgwb.ui import chat"),
        ("workbench.py", "def main():\n    import kgwb.cli"),
        ("helpers.py", ""),
    ],
)
def test_a_wrong_import_is_named(tmp_path: Path, module: str, code: str) -> None:
    [complaint] = wrong_imports(package(tmp_path, module, code))
    assert module in complaint


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("flow.py", "import rdflib\nfrom kgwb.errors import KgwbError"),
        ("systems/spinach/pipeline.py", "from .agent import act\nfrom . import agent"),
        ("systems/__init__.py", "from kgwb.systems.spinach import pipeline"),
        ("ui/debugger.py", "from kgwb.systems import chatty_kg"),
        ("systems/spinach/pipeline.py", "from kgwb.systems import Registry"),
        ("__init__.py", "from kgwb.workbench import Workbench\nfrom kgwb import flow"),
        ("errors.py", "if TYPE_CHECKING:\n    from kgwb.run.record import Attempt"),
        ("run.py", "from kgwb.version import __version__"),
        ("workbench.py", "def chat():\n    from kgwb.ui.chat import Chat"),
        ("cli.py", "import kgwb\nfrom kgwb import Workbench"),
    ],
)
def test_a_right_import_is_let_through(tmp_path: Path, module: str, code: str) -> None:
    assert list(wrong_imports(package(tmp_path, module, code))) == []


def package(folder: Path, module: str, code: str) -> Path:
    """A package of two systems and one module, which holds `code`."""
    root = folder / "kgwb"
    for system in ("chatty_kg", "spinach"):
        (root / "systems" / system).mkdir(parents=True)
    (root / module).parent.mkdir(exist_ok=True)
    (root / module).write_text(code)
    return root


def wrong_imports(package: Path) -> Iterator[str]:
    """What is wrong with the imports of a package, a sentence for each."""
    systems = {folder.name for folder in (package / "systems").iterdir() if folder.is_dir()}
    for path in sorted(package.rglob("*.py")):
        ours = dotted_name(package, path)
        if ours[:2][-1] not in RANK_OF:
            yield f"{path} is in no room: give it a rank in RANKS"
            continue
        for theirs, at_load in imports(path, ours):
            if objection := objection_to(ours, theirs, at_load, systems):
                yield f"{path} imports {'.'.join(theirs)}: {objection}"


def objection_to(ours: list[str], theirs: list[str], at_load: bool, systems: set[str]) -> str | None:
    if RANK_OF[room(theirs)] > RANK_OF[room(ours)]:
        return f"{room(theirs)} comes after {room(ours)}"
    if room(ours) in FACADE and room(theirs) == "ui" and at_load:
        return "the facade takes from ui only inside functions"
    if system(ours, systems) and system(theirs, systems) not in (None, system(ours, systems)):
        return "no system imports another"
    return None


def imports(path: Path, ours: list[str]) -> Iterator[tuple[list[str], bool]]:
    """What a file imports of kgwb, as dotted names taken apart, and whether it does so when it is loaded."""
    tree = ast.parse(path.read_text())
    for_types = {inner for node in ast.walk(tree) if is_for_types(node) for inner in ast.walk(node)}
    later = {inner for node in ast.walk(tree) if is_function(node) for inner in ast.walk(node)}
    folder = ours if path.name == "__init__.py" else ours[:-1]
    for node in ast.walk(tree):
        for imported in imported_by(node, folder):
            if imported[0] == "kgwb" and node not in for_types:
                yield imported, node not in later


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imported_by(node: ast.AST, folder: list[str]) -> list[list[str]]:
    if isinstance(node, ast.Import):
        return [alias.name.split(".") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    start = folder[: len(folder) + 1 - node.level] if node.level else []
    origin = [*start, *(node.module.split(".") if node.module else [])]
    return [[*origin, alias.name] for alias in node.names]


def dotted_name(package: Path, path: Path) -> list[str]:
    name = list(path.relative_to(package.parent).with_suffix("").parts)
    return name[:-1] if name[-1] == "__init__" else name


def room(name: list[str]) -> str:
    """`run` of kgwb.run.Run; `kgwb` of the package itself and of its facade (kgwb.Workbench)."""
    return name[1] if len(name) > 1 and name[1] in RANK_OF else "kgwb"


def system(name: list[str], systems: set[str]) -> str | None:
    """`chatty_kg` of kgwb.systems.chatty_kg.qir; None of what the systems share."""
    return name[2] if room(name) == "systems" and len(name) > 2 and name[2] in systems else None
