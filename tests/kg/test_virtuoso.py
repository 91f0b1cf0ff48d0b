"""A real Virtuoso: asked for the same as a file."""

from __future__ import annotations

from pathlib import Path

import live
import pytest
from engines import MAX_ROWS, Engine

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.kg import SAMPLES, Limits, sample_path
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.local import LocalGraph

EX = "http://example.org/"
SEARCHED = [
    "Ada Lovelace",
    "lovelace ADA",
    "ada",
    "babb char",
    "Countess Lovelace",
    "LONDON",
    "Londres",
    "O'Brien",
    "Łukasz",
    "zzz",
    "",
    '"near" and or not * ? ( , ;',
    "ada } ; DROP ALL #",
    "a\\' OR 1",
]


@pytest.fixture(scope="session")
def people_url(virtuoso: Engine, people_text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("graph") / "people.ttl"
    file.write_text(people_text, encoding="utf-8")
    return virtuoso.load(file)


@pytest.fixture
def kg(people_url: str) -> Endpoint:
    return Endpoint(people_url)


def test_the_engine_is_recognised(kg: Endpoint) -> None:
    assert (kg.dialect.name, kg.dialect.known) == ("virtuoso", "probed")
    assert "bif:contains" in kg.search("ada", 5).query


@pytest.mark.parametrize("text", SEARCHED)
def test_labels_are_found_as_in_the_file(kg: Endpoint, people: LocalGraph, text: str) -> None:
    there, here = kg.search(text, 5), people.search(text, 5)
    assert (there.hits, there.how) == (here.hits, here.how)


def test_everything_else_is_as_in_the_file(kg: Endpoint, people: LocalGraph) -> None:
    assert list(live.differences(kg, people)) == []


@pytest.mark.parametrize("sample", [*SAMPLES, "metaqa"])
def test_a_graph_is_searched_and_read_as_its_file(
    virtuoso: Engine, sample: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue("metaqa") if sample == "metaqa" else sample_path(sample)
    kg, file = Endpoint(virtuoso.load(path)), live.opened(path)
    assert kg.dialect.name == "virtuoso"
    for kind, text, label in live.texts(file, 25):
        there, here = kg.search(text, 10), file.search(text, 10)
        plain = live.plain(here, label)  # else Virtuoso's index has other words: "Linköping", "D.C.", "2.0"
        if not plain or kind == "too many words":  # a limit of 40 cuts what has "of" or "the" elsewhere
            there, here = live.best(there), live.best(here)
        if plain or kind == "whole" or (kind == "other case" and "." not in label):
            assert (there.how, live.told(there.hits)) == (here.how, live.told(here.hits)), (kind, text)
    assert list(live.differences(kg, file)) == []


def test_words_with_accents_are_not_found_without_them(virtuoso: Engine) -> None:
    """If this fails Virtuoso has learnt to fold accents, and the test above can ask for more."""
    kg = Endpoint(virtuoso.load(sample_path("films")))
    assert [hit.label for hit in kg.search("Linköping", 5).hits] == ["Linköping"]
    assert kg.search("linkoping", 5).how == "nothing"


def test_the_sites_own_row_limit_is_told(virtuoso: Engine) -> None:
    everything = Endpoint(virtuoso.sparql, dialect="virtuoso", limits=Limits(row_limit=2 * MAX_ROWS))
    rows = everything.select("SELECT ?s ?o { ?s a ?o . ?p a ?q }")
    assert (len(rows.rows), rows.cut) == (MAX_ROWS, True)


def test_any_number_of_rows_is_sorted(virtuoso: Engine, metaqa: Path) -> None:
    """Virtuoso refuses to sort more than 10,000 rows for a query with a LIMIT, which Endpoint adds."""
    for file, most in (sample_path("films"), None), (metaqa, MAX_ROWS):
        rows = Endpoint(virtuoso.load(file)).select("SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o")
        subjects = [row[0] for row in rows.rows]
        assert subjects == sorted(subjects) and len(rows.rows) > 500
        assert (rows.cut, len(rows.rows)) == (most is not None, most or len(rows.rows))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o } ORDER BY ?s LIMIT 5 OFFSET 20000",
        "SELECT ?s { ?s ?p ?o FILTER(1/0 > 1) }",
        "SELECT ?s { ?s ?p ?o FILTER(REGEX(STR(?o), '(')) }",
    ],
)
def test_what_is_wrong_with_a_query_is_no_failure_of_the_server(virtuoso: Engine, query: str) -> None:
    with pytest.raises(QueryError, match="Virtuoso 22"):
        Endpoint(virtuoso.load(sample_path("films"))).select(query)


def test_many_values_in_one_query_lose_no_vertex(virtuoso: Engine) -> None:
    """Virtuoso 7.2.5 answers a VALUES of many literals with some of its rows missing, and does not say so."""
    kg = Endpoint(virtuoso.load(sample_path("scholars")))
    words = "Is Larry Page an author of The PageRank Citation Ranking: Bringing Order to the Web".split()
    spans = [" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    assert set(kg.exact(spans)) == {"Larry Page", " ".join(words[6:]), "the Web"}


def test_running_out_of_time_is_an_error(virtuoso: Engine) -> None:
    everything = Endpoint(virtuoso.sparql, dialect="virtuoso", limits=Limits(query_timeout_s=4))
    assert everything.dialect
    # Virtuoso counts with every core: three patterns over its own 2,500 triples take it 20 s on two of them.
    patterns = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(5))
    with pytest.raises(GraphTimeoutError):
        everything.select(f"SELECT (COUNT(*) AS ?n) {{ {patterns} }}")
