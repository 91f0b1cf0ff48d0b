"""Choosing a graph and a model; nothing chosen is lost by a failure."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from small import FILMS

from kgwb.kg import Graph
from kgwb.llm import ModelStatus
from kgwb.ui import choosers
from kgwb.ui.choosers import MOST_LISTED, GraphChooser, ModelChooser
from ui.press import press, text_of, wait_for

NOWHERE = "http://127.0.0.1:9/sparql"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)


# --- graphs


def test_a_sample_is_open_at_once_and_says_what_it_holds() -> None:
    chooser = GraphChooser()
    assert chooser.kg is not None
    assert re.search(r"✓ films:\s+2,863 triples. It knows, for example,  \w", text_of(chooser))
    assert repr(chooser) == "GraphChooser(films)"
    assert "films" in chooser.static()


def test_a_sample_is_chosen_from_the_list() -> None:
    chosen: list[Graph] = []
    chooser = GraphChooser(chosen.append, start="")
    assert chooser.kg is None
    chooser._sample("cars")
    wait_for(lambda: chosen)
    assert chooser._text.value == chooser.name == "cars"
    assert chooser.kg is chosen[0]


def test_a_file_is_opened_by_the_button(tmp_path: Path) -> None:
    (tmp_path / "mine.ttl").write_text(FILMS)
    chooser = GraphChooser(start="")
    chooser._text.value = str(tmp_path / "mine.ttl")
    press(chooser, "Open")
    wait_for(lambda: chooser.kg)
    assert "triples" in text_of(chooser)


@pytest.mark.parametrize(
    ("named", "said"), [("nowhere.ttl", "there is no file or folder nowhere.ttl"), (NOWHERE, "127.0.0.1:9")]
)
def test_a_graph_that_cannot_be_opened_leaves_the_one_before(named: str, said: str) -> None:
    chooser = GraphChooser()
    before = chooser.kg
    chooser._text.value = named
    chooser.choose().result()
    assert chooser.kg is before
    assert chooser._text.value == named
    for told in (said, "What to do:", "Still chosen: films"):
        assert told in text_of(chooser.message)


def test_a_failure_is_forgotten_with_the_next_success() -> None:
    chooser = GraphChooser()
    chooser.choose("nowhere.ttl").result()
    chooser.choose("cars").result()
    assert chooser.name == "cars"
    assert text_of(chooser.message) == ""


def test_the_latest_wish_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, may_end = choosers.open_kg, threading.Event()

    def slowly(name: str) -> Graph:
        if name == "films":
            may_end.wait(10)
        return opened(name)

    monkeypatch.setattr(choosers, "open_kg", slowly)
    chooser = GraphChooser(start="")
    slow = chooser.choose("films")
    chooser.choose("cars").result()
    may_end.set()
    slow.result()
    assert chooser.name == "cars"


@pytest.mark.parametrize(
    "address",
    ["http://me:word@host/sparql", "https://host/sparql?apikey=word", "sk-abcdefghijklmnopqrstuvwxyz"],
)
def test_a_secret_is_taken_out_of_the_widget(address: str) -> None:
    chooser = GraphChooser(start="")
    chooser._text.value = address
    press(chooser, "Open")
    assert chooser._text.value == ""
    assert "in a cell" in text_of(chooser.message)
    assert "word" not in text_of(chooser.message).replace("password", "")


def test_a_label_full_of_markup_is_shown_as_text(tmp_path: Path) -> None:
    label = "<img src=x onerror=alert(1)>"
    (tmp_path / "evil.ttl").write_text(
        FILMS.replace('"Dune"', f'"{label}"').replace('"Arrival"', f'"{label}"')
    )
    chooser = GraphChooser(start="")
    chooser.choose(str(tmp_path)).result()
    assert "<img" not in chooser._told.value


# --- models


def test_rules_are_chosen_to_begin_with() -> None:
    chooser = ModelChooser(look=False)
    assert chooser.spec == "rules"
    assert chooser.model is not None
    assert "a baseline" in text_of(chooser)


def test_what_there_is_is_listed_and_a_missing_key_is_told_by_its_variable() -> None:
    chooser = ModelChooser(look=False)
    chooser.look().result()
    told = text_of(chooser)
    assert "set OPENAI_API_KEY" in told
    assert "never from a notebook" in told
    assert "✗ not now" in told


def test_the_models_of_a_server_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("<b>bold</b>", *(f"phi{number:03}" for number in range(MOST_LISTED + 2)))
    found = (ModelStatus("ollama", True, "http://localhost:11434 has many", names),)
    monkeypatch.setattr(choosers, "available", lambda: found)
    chooser = ModelChooser(look=False)
    press(chooser, "Look again")
    wait_for(lambda: "ollama:phi001" in dict(chooser._listed.options))
    assert "human" in dict(chooser._listed.options)
    assert "; 3 of them are not listed here" in text_of(chooser)


def test_a_model_is_chosen_from_the_list() -> None:
    chooser = ModelChooser(look=False, start="")
    chooser._listed.value = "human"
    wait_for(lambda: chooser.model)
    assert (chooser.spec, chooser._text.value) == ("human", "human")


def test_a_kind_without_a_list_begins_the_specification() -> None:
    chooser = ModelChooser(look=False)
    chooser._listed.value = "replay:"
    assert (chooser.spec, chooser._text.value) == ("rules", "replay:")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gpt-4o", "no model named 'gpt-4o'"),
        ("openai:gpt-4o", "set OPENAI_API_KEY"),
        ("replay:nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_a_model_that_cannot_be_made_leaves_the_one_before(spec: str, said: str) -> None:
    chooser = ModelChooser(look=False)
    before = chooser.model
    chooser._text.value = spec
    chooser.choose().result()
    assert chooser.model is before
    assert said in text_of(chooser.message)
    assert "Still chosen: rules" in text_of(chooser.message)


def test_a_model_whose_server_is_away_is_chosen_and_that_is_said() -> None:
    chooser = ModelChooser(look=False)
    chooser.choose("ollama:phi4@http://127.0.0.1:9").result()
    assert chooser.spec.startswith("ollama:phi4")
    assert "chosen, but: " in text_of(chooser._told)
