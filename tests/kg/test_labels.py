"""The label index: which labels are found, in which order, and that no text breaks it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef
from small import films
from tables import read_table

from kgwb.errors import GraphFileError
from kgwb.kg.base import Vocabulary
from kgwb.kg.label_search import SAME_WORDS_SCORE, Label, LabelIndex, normalize, score_label
from kgwb.kg.local import LocalGraph
from kgwb.kg.queries import find_schema_terms

HERE = Path(__file__).parent

EX = "http://example.org/"
GREEK = ("alpha", "beta", "gamma", "delta", "epsilon")
FILMS = {
    "potter": ("Harry Potter", "The Boy Who Lived"),
    "goblet": ("Harry Potter and the Goblet of Fire",),
    "hanks": ("Tom Hanks",),
    "hanks2": ("Tom Hanks",),
    "ocean": ("Ocean's Eleven",),
    "lodz": ("Łódź",),
    "tokyo": ("東京都",),
    "hindi": ("हिन्दी",),
    "rock": ("!!!",),
    "the": ("The",),
}


def index(path: Path | None = None) -> LabelIndex:
    labels = [
        Label(EX + name, text, not n, True)
        for name, texts in FILMS.items()
        for n, text in enumerate(texts)
    ]
    return LabelIndex.build(
        [*labels, Label(EX + "directedBy", "was directed by", True, False)], path
    )


shared = index()


@pytest.mark.parametrize(("text", "how", "names"), read_table(HERE / "searches.jsonl"))
def test_search_goes_from_strict_to_loose(text: str, how: str, names: list[str]) -> None:
    found = shared.search(text, 10)
    assert (found.how, [hit.iri.removeprefix(EX) for hit in found.hits]) == (how, names)
    assert (found.query == '"har"* "pot"*') == (text == "har pot")


@pytest.mark.parametrize(
    ("text", "label", "score"),
    [
        ("Harry Potter", "harry potter", 1.0),
        ("harry-potter", "harry potter", SAME_WORDS_SCORE),
        ("potter", "harry potter", 0.698824),  # 0.99 * 2 * 6 / 17
        ("potter harry", "harry potter", 0.891),  # the words, but not as they stand
        ("pot", "harry potter", 0.381857),  # 0.9 of the letters, as a beginning
        ("dune", "harry potter", 0.01),
        ("", "harry potter", 0.0),
        ("Zoe\u0308", "Zoë", 1.0),
        (" ZOË ", "Zoë", 1.0),
        (" ZOË ", "Zoe", SAME_WORDS_SCORE),
    ],
)
def test_the_score_of_a_label_is_the_share_of_letters_in_common(
    text: str, label: str, score: float
) -> None:
    assert score_label(text, label) == score


def test_the_limit_keeps_exact_matches() -> None:
    labels = [
        Label(f"{EX}{n:03}", "war" if n > 90 else f"w{n} war", True, True) for n in range(100)
    ]
    hits = LabelIndex.build(labels).search("War", 5).hits
    assert [hit.iri for hit in hits] == [URIRef(f"{EX}{n:03}") for n in range(91, 96)]
    assert shared.search("the", 0).hits == ()


def test_a_vertex_is_found_once_by_its_best_label() -> None:
    labels = [
        Label(EX + "a", text, False, True) for text in ("Ada King", "Ada", "Ada Lovelace, Countess")
    ]
    (hit,) = LabelIndex.build(labels).search("ada", 10).hits
    assert (hit.label, hit.score) == ("Ada", 1)


def test_exact_compares_whole_labels() -> None:
    found = shared.exact(
        ["tom hanks", "Tom", "OCEANS ELEVEN", "ocean's eleven", "!!!", "the boy who lived"]
    )
    assert [*found] == ["tom hanks", "ocean's eleven", "!!!", "the boy who lived"]
    assert found["tom hanks"] == (URIRef(EX + "hanks"), URIRef(EX + "hanks2"))
    assert len(shared.exact([f"{n}" for n in range(2000)] + ["the"])) == 1


SIGNS = {"plus": "A+", "minus": "A-", "plain": "A", "accent": "Å"}


def test_only_a_label_with_the_same_signs_and_accents_is_exact() -> None:
    labels = [Label(EX + name, text, True, True) for name, text in SIGNS.items()]
    by_signs = LabelIndex.build(labels)
    for name, text in SIGNS.items():
        first, *others = by_signs.search(text.lower(), 1 + len(SIGNS)).hits
        assert (first.iri, first.score) == (URIRef(EX + name), 1)
        assert len(others) == len(SIGNS) - 1
        assert {hit.score for hit in others} == {SAME_WORDS_SCORE}
        assert by_signs.exact([text]) == {text: (URIRef(EX + name),)}
    assert by_signs.exact(["A#", "A++"]) == {}


@given(st.text(max_size=60) | st.text(alphabet="\"'*:^(){}+-. \x00NEARORND", max_size=40))
def test_no_text_breaks_the_search(text: str) -> None:
    found = shared.search(text, 5)
    assert len(found.hits) <= 5
    shared.exact([text])


def test_vertices_without_label_are_found_by_iri_but_schema_terms_are_not(
    people: LocalGraph,
) -> None:
    assert people.search("analytical engine", 5).hits[0].iri == URIRef(EX + "analyticalEngine")
    assert people.search("born in", 5).hits == people.search("person", 5).hits == ()
    born_in, person = URIRef(EX + "bornIn"), URIRef(EX + "Person")
    assert people.names([born_in, person]) == {born_in: "born in", person: "person"}


ONTOLOGY = """
    @prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    :Novel a owl:Class ; rdfs:label "novel" ; rdfs:subClassOf :MediaItem . :MediaItem a owl:Class .
    :Place a rdfs:Class ; rdfs:label "place" . :lodz a :Place ; :partOf :poland .
    :partOf a owl:ObjectProperty ; rdfs:subPropertyOf :overlaps . :overlaps a owl:ObjectProperty .
"""


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("novel", True),
        ("media item", True),
        ("overlaps", True),
        ("place", False),
        ("part of", False),
    ],
)
def test_classes_and_properties_are_found_unless_triples_use_them(
    name: str, is_found: bool
) -> None:
    kg = films(ONTOLOGY)
    assert bool(kg.search(name, 5).hits) == is_found
    iris = [
        URIRef(f"http://e/{each}") for each in ("Novel", "MediaItem", "overlaps", "Place", "partOf")
    ]
    assert find_schema_terms(kg, iris) == set(iris[3:])


def test_the_preferred_language_names_a_vertex(people_file: Path) -> None:
    london = URIRef(EX + "london")
    assert LocalGraph.open(people_file).names([london])[london] == "London"
    french = LocalGraph.open(people_file, vocabulary=Vocabulary(languages=("fr", "en")))
    assert french.names([london])[london] == "Londres"
    assert french.search("london", 1).hits[0].iri == london


def test_names_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgwb.kg.label_search._MAX_CACHED_NAMES", 2)
    labels, iris = index(), [URIRef(f"{EX}{name}") for name in ("lodz", "tokyo", "rock")]
    for asked in (iris, iris[:2], iris[2:]):
        labels.names(asked)
    labels.close()
    assert labels.names(iris[2:]) == {iris[2]: "!!!"}
    with pytest.raises(GraphFileError):
        labels.names(iris[:1])


SHARED_WORDS = [
    Label(f"{EX}{n}", f"Thing number {n} {GREEK[n % 5]}", True, True) for n in range(3_000)
]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Thing number 78 alpha", r"\bthing.*\bnumber.*\b78.*\balpha"),
        ("thi number 2 bet", r"\bthi.*\bnumber.*\b2.*\bbet"),
        ("7 num", r"\bnum.*\b7"),
        ("thi 1", r"\bthi.*\b1"),
    ],
)
def test_beginnings_of_words_are_found_where_labels_share_their_words(
    text: str, words: str
) -> None:
    found = LabelIndex.build(SHARED_WORDS).search(text, 5)
    matching = [label.text for label in SHARED_WORDS if re.search(words, label.text.lower())]
    shortest = sorted(matching, key=lambda label: (len(label), normalize(label)))[:20]
    best = sorted(shortest, key=lambda label: -score_label(text, label))
    assert found.how == "prefix"
    assert [hit.score for hit in found.hits] == [score_label(text, label) for label in best[:5]]


def test_any_word_prefers_more_words_and_then_rare_ones() -> None:
    labels = [Label(f"{EX}{n:04}", f"common {n % 3} {n}", True, True) for n in range(900)]
    found = LabelIndex.build([*labels, Label(EX + "rare", "rare", True, True)]).search(
        "rare common 899 2", 2
    )
    assert found.how == "any word"
    assert found.hits[0].iri == URIRef(f"{EX}0899")


def test_normal_form() -> None:
    texts = {
        "  Ørsted &  Straße_1 ": "orsted strasse 1",
        "É\x00e": "e e",
        " ¿? ": "¿?",
        "ﬁve": "five",
    }
    assert {text: normalize(text) for text in texts} == texts


def test_a_slip_is_found_beside_many_numbers() -> None:
    numbered = LabelIndex.build(SHARED_WORDS)
    assert numbered.search("Thing nunber 78 delta", 1).hits[0].label == "Thing number 78 delta"
    assert numbered.search("2998x", 1).hits[0].label == "Thing number 2998 delta"
