"""Choosing a graph and a model; nothing chosen is lost by a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from page import press, settle, text
from small import FILMS, films

from kgwb.errors import GraphTimeoutError
from kgwb.llm import ModelStatus, available
from kgwb.ui import choosers
from kgwb.ui.choosers import MOST_LISTED, GraphChooser, ModelChooser, Survey

NOWHERE = "http://127.0.0.1:9/sparql"


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(choosers, "available", lambda: ())


def choose(chooser: GraphChooser | ModelChooser, name: str) -> None:
    press(chooser, "Choose", name=name)
    settle(chooser.opening)
    looked(chooser)


def looked(chooser: GraphChooser | ModelChooser) -> None:
    """Wait until the graph was looked at, and questions were tried on it."""
    if isinstance(chooser, GraphChooser) and chooser.survey is not None:
        settle(chooser.survey)


# --- graphs


def test_a_sample_is_open_at_once_and_seen_at_a_glance() -> None:
    chooser = GraphChooser()
    assert chooser.kg is not None
    looked(chooser)
    for part in (
        *("2,863 triples", "420 things", "16 classes", "40 predicates", "Person 178", "birth date 93%"),
        *(
            "What is said of each Person",
            "English 420",
            "Who directed Arrival? Denis Villeneuve",
            "5 smaller classes",
        ),
    ):
        assert part in text(chooser)
    press(chooser, "film 79")
    looked(chooser)
    assert "What is said of each film" in text(chooser)
    assert repr(chooser) == "GraphChooser(films)"
    assert "2,863" in GraphChooser().static()  # of a graph that was looked at, also without a kernel


def test_a_graph_is_chosen_by_a_click_or_by_its_name(tmp_path: Path) -> None:
    chooser = GraphChooser(start="")
    assert chooser.kg is None
    press(chooser, "cars")
    settle(chooser.opening)
    assert chooser.name == "cars"
    (tmp_path / "mine.ttl").write_text(FILMS + ":quiet :runtime 9 .")
    choose(chooser, str(tmp_path / "mine.ttl"))
    assert chooser.name.endswith("mine.ttl")
    for part in ("without a class 9", "1 have none", "What is the director of Arrival? Denis Villeneuve"):
        assert part in text(chooser)


@pytest.mark.parametrize(
    ("named", "said"), [("nowhere.ttl", "there is no file or folder nowhere.ttl"), (NOWHERE, "127.0.0.1:9")]
)
def test_a_graph_that_cannot_be_opened_leaves_the_one_before(named: str, said: str) -> None:
    chooser = GraphChooser()
    before = chooser.kg
    looked(chooser)
    choose(chooser, named)
    assert chooser.kg is before
    assert said in text(chooser)
    assert "What to do:" in text(chooser)
    assert "2,863" in text(chooser)
    choose(chooser, "cars")
    assert "What to do:" not in text(chooser)


@pytest.mark.parametrize(
    "address",
    ["http://me:word@host/sparql", "https://host/sparql?apikey=word", "sk-abcdefghijklmnopqrstuvwxyz"],
)
def test_a_secret_is_taken_out_of_the_widget(address: str) -> None:
    chooser = GraphChooser(start="")
    choose(chooser, address)
    assert "in a cell" in text(chooser)
    assert address not in chooser.html


def test_a_label_full_of_markup_is_shown_as_text(tmp_path: Path) -> None:
    label = "<img src=x onerror=alert(1)>"
    (tmp_path / "evil.ttl").write_text(FILMS.replace('"Dune"', f'"{label}"').replace(":Film", ":Film%3Cimg"))
    chooser = GraphChooser(start="")
    choose(chooser, str(tmp_path))
    assert chooser.kg is not None
    assert "<img" not in chooser.html


def test_two_classes_of_one_name_are_looked_at_each() -> None:
    kg = films(FILMS + ':Story rdfs:label "same" . :Film rdfs:label "same" .')
    survey = Survey(kg)
    settle(survey)
    assert survey.seen is not None
    for kind in survey.seen.kinds[:2]:
        assert f'data-arg="{kind.iri}"' in survey.view()
        survey.choose(str(kind.iri))
        settle(survey)
        assert (survey.chosen, kind in survey.shares) == (kind, True)


def test_a_graph_that_fails_while_it_is_looked_at_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise GraphTimeoutError("the endpoint is gone", hint="wait")

    kg = films()
    monkeypatch.setattr(type(kg), "names", gone)
    survey = Survey(kg)
    settle(survey)
    assert "the endpoint is gone" in survey.view()


# --- models


def test_rules_are_chosen_to_begin_with() -> None:
    chooser = ModelChooser()
    assert chooser.name == "rules"
    assert chooser.model is not None
    assert "rules is ready" in text(chooser)


def test_a_missing_key_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosers, "available", available)
    chooser = ModelChooser()
    settle(chooser.looking)
    shown = text(chooser)
    for part in ("set OPENAI_API_KEY", "never from a notebook", "✗ not now"):
        assert part in shown


def test_the_models_of_a_server_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("<b>bold</b>", *(f"phi{number:03}" for number in range(MOST_LISTED + 2)))
    found = (ModelStatus("ollama", True, "http://localhost:11434 has many", names),)
    monkeypatch.setattr(choosers, "available", lambda: found)
    chooser = ModelChooser()
    settle(chooser.looking)
    press(chooser, "Look again")
    settle(chooser.looking)
    assert "ollama:phi001" in text(chooser)
    assert "; 3 of them are not listed here" in text(chooser)
    press(chooser, "human")
    settle(chooser.opening)
    assert chooser.name == "human"


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
    choose(chooser, spec)
    assert chooser.model is before
    assert said in text(chooser)
    assert "rules is ready" in text(chooser)


def test_a_model_whose_server_is_away_is_chosen_and_that_is_said() -> None:
    chooser = ModelChooser()
    choose(chooser, "ollama:phi4@http://127.0.0.1:9")
    assert chooser.name.startswith("ollama:phi4")
    assert "is chosen, but: " in text(chooser)


def test_a_closed_widget_can_still_be_drawn() -> None:
    chooser = GraphChooser("")
    chooser.close()
    chooser.redraw()  # as its work may do that ends later
    assert "Choose" in chooser.html
