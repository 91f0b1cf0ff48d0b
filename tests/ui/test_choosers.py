"""Choosing a graph and seeing it at a glance; nothing chosen is lost by a failure."""

import re
from pathlib import Path

import pytest
from page import press, settle, text
from small import FILMS, films

from kgwb.errors import GraphTimeoutError
from kgwb.kg.survey import survey_graph
from kgwb.run.answers import Answer
from kgwb.show.survey import render_classes as shown_classes
from kgwb.show.terms import RenderContext
from kgwb.ui import choosers
from kgwb.ui.choosers import Glance, GraphChooser

NOWHERE = "http://127.0.0.1:9/sparql"
GLANCE = """2,863 triples|420 things|16 classes|40 predicates|Person fl:Person 178|director|English 420
birth date fl:birthDate 93% date: 1755-11-02 … 1996-09-01|birth place fl:birthPlace 56% City
Who directed Arrival? Denis Villeneuve"""


def choose(chooser: GraphChooser, name: str) -> str:
    """All that is read once a graph is chosen, and was looked at."""
    press(chooser, "Choose", name=name)
    settle(chooser.worker)
    return looked(chooser)


def looked(chooser: GraphChooser) -> str:
    if chooser.overview is not None:
        settle(chooser.overview)
    return text(chooser)


def test_a_sample_is_open_at_once_and_seen_at_a_glance() -> None:
    chooser = GraphChooser()
    assert chooser.kg is not None
    shown = looked(chooser)
    assert [part for part in re.split(r"\||\n", GLANCE) if part not in shown] == []
    chooser.update({"do": "find", "value": "birth DATE"})
    shown = text(chooser)
    assert "birth date" in shown and "director" not in shown and "film 79" not in shown
    chooser.update({"do": "find", "value": "no such words"})
    assert "birth date" not in text(chooser)
    assert "director" in chooser.static_html()  # it has no search, so it shows all
    chooser.update({"do": "find", "value": ""})
    assert repr(chooser) == "GraphChooser(films)"
    assert (
        "2,863" in GraphChooser().static_html()
    )  # of a graph that was looked at, also without a kernel
    before = chooser.kg
    for name, said in (
        ("nowhere.ttl", "there is no file or folder nowhere.ttl"),
        (NOWHERE, "127.0.0.1:9"),
    ):
        shown = choose(chooser, name)
        assert said in shown and "2,863" in shown
        assert chooser.worker.failure is not None
        assert chooser.kg is before
    choose(chooser, "cars")
    assert chooser.worker.failure is None


def test_a_graph_is_shown_by_its_name_and_not_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "huts.ttl"
    file.write_text(FILMS)
    chooser = GraphChooser(str(file))
    assert str(tmp_path) not in looked(chooser)
    assert "huts.ttl" in looked(chooser)
    assert repr(chooser) == "GraphChooser(huts.ttl)"


def test_a_graph_is_chosen_by_a_click_or_by_its_name(tmp_path: Path) -> None:
    chooser = GraphChooser(start="")
    assert chooser.kg is None
    press(chooser, "cars")
    settle(chooser.worker)
    assert chooser.name == "cars"
    label = "<img src=x onerror=alert(1)>"
    (tmp_path / "mine.ttl").write_text(
        FILMS.replace('"Dune"', f'"{label}"') + ":quiet :runtime 9 ."
    )
    shown = choose(chooser, str(tmp_path / "mine.ttl"))
    assert "without a class 9" in shown and "1 thing without a label" in shown
    assert chooser.overview is not None
    assert "Denis Villeneuve" in map(str, chooser.overview.example_answers.values())
    assert "<img" not in chooser.html
    chooser.close()
    chooser.redraw()  # as its work may do that ends later


@pytest.mark.parametrize(
    "address",
    [
        "http://me:word@host/sparql",
        "https://host/sparql?apikey=word",
        "sk-abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_a_secret_is_taken_out_of_the_widget(address: str) -> None:
    chooser = GraphChooser(start="")
    assert "in a cell" in choose(chooser, address)
    assert address not in chooser.html


def test_classes_of_one_name_are_told_apart_and_found_by_label_or_iri() -> None:
    seen = survey_graph(
        films(
            FILMS
            + ':Story rdfs:label "same" . :Film rdfs:label "same" . :basedOn rdfs:label "from" .'
        )
    )
    for words in ("same", "story", "from", "BasedOn", "same film", "author"):
        shown = shown_classes(seen, RenderContext(), words)
        assert shown.count("<details") == (2 if words == "same" else 1), words
    assert shown_classes(seen, RenderContext(), "from").count("hbar prop") == 1


def test_a_graph_that_fails_while_it_is_looked_at_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise GraphTimeoutError("gone", hint="wait")

    monkeypatch.setattr(choosers, "survey_graph", gone)
    glance = Glance(films())
    settle(glance)
    assert "gone" in glance.view()


def test_an_example_is_found_while_the_others_are_drawn() -> None:
    overview = Glance(films())
    settle(overview)

    class Drawn(Answer):
        """An answer, while whose drawing another thread answers one more question."""

        def __str__(self) -> str:
            overview.example_answers["Who directed Dune?"] = Answer("list")
            return "drawn"

    overview.example_answers = {"Who directed Arrival?": Drawn("list")}
    assert "Who directed Arrival?" in overview.view() and "Who directed Dune?" in overview.view()
