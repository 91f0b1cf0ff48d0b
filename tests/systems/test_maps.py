"""Each system's map is true: an agent's code, prompt and test are found by the agent's name.

``python tests/systems/test_maps.py`` writes the maps into the docstrings of the systems' packages.
"""

import importlib
import re
from pathlib import Path

import pytest

from kgwb.run.prompts import shipped_names
from kgwb.run.systems import SYSTEM_NAMES, load_system

TESTS = Path(__file__).parent


def words(text: str) -> set[str]:
    """The words of a name, without their endings: "sele" of "selection" and of "select"."""
    return {word[:4] for word in re.findall("[a-z]+", text)}


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_the_package_of_a_system_has_its_map(name: str) -> None:
    assert repr(load_system(name)) in str(importlib.import_module(f"kgwb.systems.{name}").__doc__)


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_the_function_of_an_agent_is_found_by_its_name(name: str) -> None:
    other_names = {
        row.agent: row.function
        for row in load_system(name).map()
        # Without its module: "select_vertex", or "Sql.use" of a tool.
        if not words(row.agent) & words(re.sub(r"^[a-z_.]+\.", "", row.function).lower())
    }
    assert other_names == {}


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_each_prompt_belongs_to_an_agent_and_each_model_agent_has_one(name: str) -> None:
    rows = load_system(name).map()
    assert [row.agent for row in rows if bool(row.prompt) != (row.kind == "model")] == []
    globs = [row.prompt.replace("*", "") for row in rows if row.prompt]
    prompts = [prompt.removeprefix(f"{name}/") for prompt in shipped_names()]
    own = [prompt for prompt in prompts if "/" not in prompt]
    assert [prompt for prompt in own if not prompt.startswith(tuple(globs))] == []


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_each_agent_has_a_test_file_of_its_name(name: str) -> None:
    missing = [
        row.test for row in load_system(name).map() if not (TESTS / name / row.test).is_file()
    ]
    assert missing == []


def write_maps() -> None:
    for name in SYSTEM_NAMES:
        path = Path(str(importlib.import_module(f"kgwb.systems.{name}").__file__))
        text = path.read_text()
        before, _, rest = text.partition('"""')[2].partition('"""')
        begins = before.partition("\nSystem ")[0].strip()
        path.write_text(f'"""{begins}\n\n{load_system(name)!r}\n"""{rest}')


if __name__ == "__main__":
    write_maps()
