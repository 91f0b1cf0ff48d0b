"""Oxigraph's own server, which has no full-text index: its labels are searched with FILTER CONTAINS."""

from __future__ import annotations

from pathlib import Path

import live
import pytest
from engines import Engine
from rdflib import URIRef

from kgwb.kg import SAMPLES, Found, Hit, sample_path
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.text import words


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_graph_is_searched_and_read_as_its_file(oxigraph: Engine, sample: str) -> None:
    path = sample_path(sample)
    kg, file = Endpoint(oxigraph.load(path)), live.opened(path)
    assert kg.dialect.name == "generic"
    for kind, text, label in live.texts(file, 25):
        there, here = kg.search(text, 1000), file.search(text, 1000)
        if here.how == "all words" and (kind in ("whole", "other case") or live.plain(here, label)):
            assert live.told(whole_words(there, text)) == live.told(here.hits), (kind, text)
        elif kind == "prefix" and live.plain(here, label):  # a part of a word is found like a whole one
            assert live.told(here.hits) <= live.told(there.hits), text
        elif kind == "too many words" and live.PLAIN.fullmatch(label):
            assert live.told(live.best(there).hits) == live.told(live.best(here).hits), text
        # The others have accents in the graph that are not in the text.
    assert list(live.differences(kg, file)) == []


def whole_words(found: Found, text: str) -> list[Hit]:
    """The hits with all words of a text: CONTAINS finds "Japan" in "Japanese" too."""
    return [hit for hit in found.hits if {*words(text)} <= {*words(hit.label)}]


def test_predicates_and_classes_have_names_but_are_not_found(oxigraph: Engine) -> None:
    kg = Endpoint(oxigraph.load(sample_path("cars")))
    predicate = URIRef("https://kgwb.example/cars/parentCompany")
    assert kg.names([predicate]) == {predicate: "parent company"}
    assert kg.exact(["parent company", "BMW i3"]).keys() == {"BMW i3"}
    assert predicate not in {hit.iri for hit in kg.search("parent company", 50).hits}


def test_whole_labels_are_found_in_every_language_of_the_graph(oxigraph: Engine) -> None:
    kg = Endpoint(oxigraph.load(sample_path("films")))
    assert "de" not in kg.vocabulary.languages
    assert len(kg.exact(["Der Pate"])["Der Pate"]) == 2


def test_a_graph_without_labels_is_asked_for_none(oxigraph: Engine, tmp_path: Path) -> None:
    (tmp_path / "bare.ttl").write_text("<http://e.x/ada> <http://e.x/bornIn> <http://e.x/oldLondon> .")
    kg = Endpoint(oxigraph.load(tmp_path / "bare.ttl"))
    assert (kg.exact(["london"]), kg.search("london", 5).how) == ({}, "nothing")
    assert set(kg.names([URIRef("http://e.x/oldLondon")]).values()) == {"old london"}


def test_a_text_without_words_can_be_a_whole_label(oxigraph: Engine, tmp_path: Path) -> None:
    (tmp_path / "signs.ttl").write_text(
        '<http://e.x/film> <http://xmlns.com/foaf/0.1/name> "$" ; <http://e.x/by> <http://e.x/ada> .'
    )
    kg = Endpoint(oxigraph.load(tmp_path / "signs.ttl"))
    assert [hit.score for hit in kg.search("$", 5).hits] == [1]
    assert kg.search("!!!", 5).how == "nothing"
