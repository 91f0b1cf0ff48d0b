"""Old names of public things work for one release, and warn."""

import importlib
import pkgutil
from typing import Any

import pytest
from small import films

import kgwb
from kgwb.bench import BenchSetup
from kgwb.deprecated import RENAMED
from kgwb.labs.recorded import answers_of_system
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.workbench import Workbench


@pytest.mark.parametrize("module", RENAMED)
def test_every_old_name_gives_the_new_one_and_warns(module: str) -> None:
    for old_name, place in RENAMED[module].items():
        with pytest.warns(DeprecationWarning, match=f"{old_name} is now"):
            found = getattr(importlib.import_module(module), old_name)
        assert found is pkgutil.resolve_name(place)


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(ImportError, match="nothing_of_the_kind"):
        from kgwb.bench import nothing_of_the_kind  # noqa: F401


def asked() -> tuple[Workbench, Run]:
    workbench = kgwb.Workbench(films(), "rules")
    return workbench, workbench.ask("Who directed Arrival?")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("turns", "runs"),
        ("forget", "new_dialogue"),
        ("remember", "continue_dialogue"),
    ],
)
def test_old_names_of_a_workbench(old: str, new: str) -> None:
    workbench, _ = asked()
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(workbench, old) == getattr(workbench, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("back", "step_back"),
        ("by_key", "steps_by_key"),
        ("keep", "undo_refresh"),
        ("peek", "preview_request"),
        ("replace", "override"),
        ("restore", "remove_override"),
    ],
)
def test_old_names_of_a_run(old: str, new: str) -> None:
    _, run = asked()
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(run, old) == getattr(run, new)


def test_a_notebook_written_with_the_old_names() -> None:
    workbench, run = asked()
    with pytest.warns(DeprecationWarning):
        run.replace("classifier", {"label": "self-contained", "reason": ""}).go()
        run.restore("classifier").go()
        workbench.forget()
        settings = run.settings.changed(theta=2)
        config: dict[str, Any] = BenchSetup.of(workbench).config()
        calls = Scripted({"a": ["b"]}).calls("a")
        gold = answers_of_system("chatty_kg")[0].gold
    assert run.answer.labels == ("Denis Villeneuve",)
    assert (settings.theta, workbench.runs, calls) == (2, [], 0)
    assert config["system"] == "chatty_kg"
    assert gold
