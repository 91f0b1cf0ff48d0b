"""Choosing a graph and a model; nothing chosen is lost by a failure."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from small import FILMS

from kgwb.kg import Graph
from kgwb.llm import ModelStatus, available
from kgwb.ui import choosers
from kgwb.ui.choosers import MOST_LISTED, GraphChooser, ModelChooser
from ui.press import press, text_of, wait_for

NOWHERE = "http://127.0.0.1:9/sparql"


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(choosers, "available", lambda: ())


# --- graphs


def test_a_sample_is_open_at_once_and_says_what_it_holds() -> None:
    chooser = GraphChooser()
    assert chooser.kg is not None
    assert re.search(r"✓ films:\s+2,863 triples. It knows, for example,  \w", text_of(chooser))
    assert repr(chooser) == "GraphChooser(films)"
    assert chooser._listed.label == "choose ..."
    assert "films" in chooser.static()


def test_a_sample_is_chosen_from_the_list() -> None:
    chooser = GraphChooser(start="")
    assert chooser.kg is None
    chooser._listed.value = "cars"
    wait_for(lambda: chooser.name)
    assert chooser._text.value == chooser.name == "cars"
    assert chooser.kg is not None


def test_a_file_is_opened_by_the_button(tmp_path: Path) -> None:
    (tmp_path / "mine.ttl").write_text(FILMS)
    chooser = GraphChooser(start="")
    chooser._text.value = str(tmp_path / "mine.ttl")
    press(chooser, "Choose")
    wait_for(lambda: chooser.kg)
    assert "triples" in text_of(chooser)


@pytest.mark.parametrize(
    ("named", "said"), [("nowhere.ttl", "there is no file or folder nowhere.ttl"), (NOWHERE, "127.0.0.1:9")]
)
def test_a_graph_that_cannot_be_opened_leaves_the_one_before(named: str, said: str) -> None:
    chooser = GraphChooser()
    before = chooser.kg
    chooser._text.value = named
    chooser.choose().join()
    assert chooser.kg is before
    assert chooser._text.value == named
    for told in (said, "What to do:"):
        assert told in text_of(chooser.message)
    assert "✓ films" in text_of(chooser)


def test_a_failure_is_forgotten_with_the_next_success() -> None:
    chooser = GraphChooser()
    chooser.choose("nowhere.ttl").join()
    chooser.choose("cars").join()
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
    chooser.choose("cars").join()
    may_end.set()
    slow.join()
    assert chooser.name == "cars"


def test_a_failure_of_an_earlier_wish_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    chooser = GraphChooser(start="")
    made = chooser.make
    monkeypatch.setattr(chooser, "make", lambda name: made(name if may_end.wait(10) else ""))
    slow = chooser.choose("nowhere.ttl")
    monkeypatch.undo()
    chooser.choose("cars").join()
    may_end.set()
    slow.join()
    assert (chooser.name, text_of(chooser.message)) == ("cars", "")


@pytest.mark.parametrize(
    "address",
    ["http://me:word@host/sparql", "https://host/sparql?apikey=word", "sk-abcdefghijklmnopqrstuvwxyz"],
)
def test_a_secret_is_taken_out_of_the_widget(address: str) -> None:
    chooser = GraphChooser(start="")
    chooser._text.value = address
    press(chooser, "Choose")
    assert chooser._text.value == ""
    assert "in a cell" in text_of(chooser.message)
    assert "word" not in text_of(chooser.message).replace("password", "")


def test_a_label_full_of_markup_is_shown_as_text(tmp_path: Path) -> None:
    label = "<img src=x onerror=alert(1)>"
    (tmp_path / "evil.ttl").write_text(
        FILMS.replace('"Dune"', f'"{label}"').replace('"Arrival"', f'"{label}"')
    )
    chooser = GraphChooser(start="")
    chooser.choose(str(tmp_path)).join()
    assert "<img" not in chooser._told.value


# --- models


def test_rules_are_chosen_to_begin_with() -> None:
    chooser = ModelChooser()
    assert chooser.name == "rules"
    assert chooser.model is not None
    assert "rules:  ✓ ready" in text_of(chooser)


def test_a_missing_key_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosers, "available", available)
    chooser = ModelChooser()
    chooser.look().join()
    told = text_of(chooser)
    assert "set OPENAI_API_KEY" in told
    assert "never from a notebook" in told
    assert "✗ not now" in told


def test_the_models_of_a_server_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("<b>bold</b>", *(f"phi{number:03}" for number in range(MOST_LISTED + 2)))
    found = (ModelStatus("ollama", True, "http://localhost:11434 has many", names),)
    monkeypatch.setattr(choosers, "available", lambda: found)
    chooser = ModelChooser()
    press(chooser, "Look again")
    wait_for(lambda: "ollama:phi001" in dict(chooser._listed.options))
    assert "human" in dict(chooser._listed.options)
    assert "; 3 of them are not listed here" in text_of(chooser)


def test_a_model_is_chosen_from_the_list() -> None:
    chooser = ModelChooser(start="")
    chooser.look().join()
    chooser._listed.value = "human"
    wait_for(lambda: chooser.model)
    assert (chooser.name, chooser._text.value) == ("human", "human")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gpt-4o", "no model named 'gpt-4o'"),
        ("openai:gpt-4o", "set OPENAI_API_KEY"),
        ("replay:nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_a_model_that_cannot_be_made_leaves_the_one_before(spec: str, said: str) -> None:
    chooser = ModelChooser()
    before = chooser.model
    chooser._text.value = spec
    chooser.choose().join()
    assert chooser.model is before
    assert said in text_of(chooser.message)
    assert "✓ ready" in text_of(chooser)


def test_a_model_whose_server_is_away_is_chosen_and_that_is_said() -> None:
    chooser = ModelChooser()
    chooser.choose("ollama:phi4@http://127.0.0.1:9").join()
    assert chooser.name.startswith("ollama:phi4")
    assert "chosen, but: " in text_of(chooser._told)
