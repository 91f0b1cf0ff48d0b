"""A system is found by name, as a value, by an import path, in a file, and in an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tables import read_table

import kgwb
from kgwb.errors import SettingError
from kgwb.llm import Scripted
from kgwb.run.systems import resolve_system

TOY = '''
"""A system that answers with what it was asked."""

from rdflib import Literal

from kgwb.run.answers import (Answer, Value)
from kgwb.run import System, agent


@agent
def copy(text):
    """The question itself."""
    return text + "{mark}"


def answer(question, dialogue, run):
    return Answer("list", (Value(Literal("x"), copy(question.text)),))


SYSTEM = System("toy", answer, (copy,))
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, the current one, with a package mytoy and a file beside it."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "mytoy"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "pipeline.py").write_text(TOY.replace("{mark}", "!"))
    (tmp_path / "toy_file.py").write_text(TOY.replace("{mark}", "?"))
    for name in ("mytoy", "mytoy.pipeline"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def answer_of(system: object) -> tuple[str, ...]:
    """The answer to "Who" of what is given as ``system=``."""
    workbench = kgwb.Workbench("films", Scripted({}), system=system)  # type: ignore[arg-type]
    run = workbench.ask("Who")
    assert run.answer
    return run.answer.labels


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("mytoy.pipeline:SYSTEM", "Who!"),
        ("mytoy.pipeline", "Who!"),
        ("./toy_file.py", "Who?"),
        ("toy_file.py:SYSTEM", "Who?"),
        (Path("toy_file.py"), "Who?"),
    ],
)
def test_a_module_or_a_file_is_a_system(toy: Path, source: str | Path, expected: str) -> None:
    assert answer_of(source) == (expected,)
    assert resolve_system(source).origin == str(source)


def test_a_file_that_has_changed_is_read_again(toy: Path) -> None:
    assert answer_of("toy_file.py") == ("Who?",)
    (toy / "toy_file.py").write_text(TOY.replace("{mark}", "again"))
    assert answer_of("toy_file.py") == ("Whoagain",)
    assert resolve_system("toy_file.py") is resolve_system("toy_file.py")


def test_a_file_imports_what_is_beside_it(toy: Path) -> None:
    (toy / "toy_helper.py").write_text("MARK = '...'")
    text = "from toy_helper import MARK\n" + TOY.replace('"{mark}"', "MARK")
    (toy / "toy_two.py").write_text(text)
    assert answer_of("toy_two.py") == ("Who...",)


@pytest.mark.parametrize(
    ("source", "said"), read_table(Path(__file__).with_name("no_systems.jsonl"))
)
def test_what_is_no_system_is_said(toy: Path, source: object, said: str) -> None:
    with pytest.raises(SettingError) as error:
        resolve_system(source)  # type: ignore[arg-type]
    assert said in str(error.value)
    assert error.value.hint


def test_a_mistake_in_a_module_is_told_with_its_line(toy: Path) -> None:
    (toy / "toy_wrong.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(SettingError, match="ZeroDivisionError") as error:
        resolve_system("toy_wrong.py")
    assert "toy_wrong.py, line 2" in error.value.hint
    assert "toy_wrong" not in sys.modules
