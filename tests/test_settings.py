"""Settings of all systems and of one, and the profiles."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tables import read_table

from kgwb import profile
from kgwb.errors import SettingError
from kgwb.run.systems import list_systems, load_system


def test_fast_is_the_default_of_every_system() -> None:
    for name in list_systems():
        form = load_system(name).settings
        assert form() == profile("fast", system=name)
        assert form().profile == "fast"


def test_paper_has_the_published_values() -> None:
    published = {
        "theta": 3,
        "answers_in_context": 100,
        "v_limit": 600,
        "query_num": 40,
        "temperature": 0.0,
    }
    assert {name: getattr(profile("paper"), name) for name in published} == published
    assert not profile("paper").unasked_classification  # type: ignore[attr-defined]


def test_settings_are_first_made_where_literal_is_rdflibs() -> None:
    code = "from rdflib import Literal; from kgwb.settings import Settings; Settings(theta=2)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_settings_are_converted_to_those_of_another_system() -> None:
    hops = profile("paper", debate_rounds=2, theta=5)
    assert hops == profile("paper", system="dog").with_changes(debate_rounds=2, theta=5)
    assert hops.changes_from_profile() == {"debate_rounds": 2, "theta": 5}
    chatty = load_system("chatty_kg").settings
    assert chatty.of(profile("paper", system="dog", theta=5)) == profile("paper", theta=5)
    with pytest.raises(SettingError, match="debate_rounds"):
        chatty.of(hops)


def test_settings_are_converted_to_data_and_back() -> None:
    changed = profile("paper", reword_answer=True)
    assert type(changed)(**changed.to_data()) == changed


def test_texts_are_parsed_by_the_type_of_their_setting() -> None:
    typed = {"theta": "5", "spelling": "0.5", "reword_answer": "true", "repair": "ask_afresh"}
    read = profile("fast", are_strings=True, **typed)
    assert read == profile("fast", theta=5, spelling=0.5, reword_answer=True, repair="ask_afresh")
    with pytest.raises(SettingError, match="theta is 'three'"):
        profile("fast", are_strings=True, theta="three")
    none = profile("paper", system="dog", are_strings=True, filtering_exemplars="None")
    assert none == profile("paper", system="dog", filtering_exemplars=None)
    with pytest.raises(SettingError, match="theta is 'None'"):
        profile("fast", are_strings=True, theta="None")


@pytest.mark.parametrize(
    ("changes", "problem"), read_table(Path(__file__).with_name("impossible_settings.jsonl"))
)
def test_impossible_value_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingError, match=problem) as caught:
        profile("fast").with_changes(**changes)
    assert caught.value.hint
