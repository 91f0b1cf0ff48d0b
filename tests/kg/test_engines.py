"""Real engines, Virtuoso and Oxigraph's own server: asked for the same as the file with the same graph.

Oxigraph has no full-text index: its labels are searched with FILTER CONTAINS.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from engines import MAX_ROWS, Engine
from pyoxigraph import NamedNode
from rdflib import URIRef
from small import queries_with_strings

from kgwb.errors import GraphTimeoutError, QueryError
from kgwb.kg import SAMPLE_NAMES, Graph, Hit, QueryLimits, SearchResult, queries, sample_path
from kgwb.kg.endpoint import Endpoint
from kgwb.kg.label_search import normalized_words
from kgwb.kg.local import LocalGraph

PLAIN = re.compile(r"[A-Za-z]+(?:[ :,-]+[A-Za-z]+)*")
"""A label whose words are the same to every engine: no accents, nothing like "D.C." or "2.0"."""


def opened(path: Path) -> LocalGraph:
    """The graph of a file, without a limit that would hide a difference."""
    return LocalGraph.open(path, limits=QueryLimits(row_limit=1_000_000))


def served(url: str) -> Endpoint:
    """The graph at a URL, with time for every query: answers are compared here, not seconds."""
    return Endpoint(url, limits=QueryLimits(query_timeout_s=100))


def vertices(file: LocalGraph) -> list[URIRef]:
    """Some 2,000 of the IRIs that something is said of, or all."""
    iris = sorted(
        {quad.subject.value for quad in file.store if isinstance(quad.subject, NamedNode)}
    )
    return [URIRef(iri) for iri in iris[:: len(iris) // 2000 + 1]]


def plain_labels(file: LocalGraph) -> list[str]:
    """Some labels whose words are the same to every engine, always the same ones."""
    iris = vertices(file)
    schema = queries.find_schema_terms(file, iris)
    labels = set(file.names([iri for iri in iris if iri not in schema]).values())
    plain = sorted(filter(PLAIN.fullmatch, labels))
    return random.Random(4).sample(plain, min(20, len(plain)))


def plain(found: SearchResult, label: str) -> bool:
    """Whether the label that was asked for and those that were found are plain."""
    return all(map(PLAIN.fullmatch, (label, *(hit.label for hit in found.hits))))


def told(hits: Sequence[Hit]) -> set[tuple[URIRef, float]]:
    """What counts of a search; the label may be that of another language or spelling, of the same score."""
    return {(hit.iri, hit.score) for hit in hits}


def differences(kg: Endpoint, file: LocalGraph) -> Iterator[str]:
    """What the engine answers otherwise than the file, to everything but a search of labels."""
    every, labels = vertices(file), plain_labels(file)
    iris = random.Random(5).sample(every, min(40, len(every)))
    subjects = " ".join(f"<{iri}>" for iri in iris)
    pattern = f"<{iris[0]}> ?p ?o"
    asks: dict[str, Callable[[Graph], Any]] = {
        "names": lambda graph: dict(graph.names(every)),
        "exact": lambda graph: dict(graph.exact([*labels, *map(str.lower, labels), "nobody"])),
        "schema": lambda graph: queries.find_schema_terms(graph, iris),
        "describe": lambda graph: queries.describe_vertices(graph, iris),
        "degrees": lambda graph: queries.count_degrees(graph, iris, 5),
        "predicates": lambda graph: [queries.find_predicates(graph, iri) for iri in iris],
        "construct": lambda graph: set(graph.construct(f"CONSTRUCT WHERE {{ {pattern} }}")),
        # The literals in their own spelling, so that 1.0 is not 1
        "select": lambda graph: {
            repr(row)
            for row in graph.select(
                f"SELECT ?s ?p ?o {{ VALUES ?s {{ {subjects} }} ?s ?p ?o }}"
            ).rows
        },
    }
    for what, ask in asks.items():
        there, here = ask(kg), ask(file)
        if there != here:
            yield f"{what}: {there!r} instead of {here!r}"


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
@pytest.mark.parametrize("name", ["virtuoso", "oxigraph"])
def test_an_engine_searches_and_reads_a_graph_as_its_file(
    name: str, sample: str, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(name)
    path = sample_path(sample)
    kg, file = served(engine.load(path)), opened(path)
    is_generic = kg.dialect.name == "generic"
    assert is_generic == (name == "oxigraph")
    for label in plain_labels(file):
        words = normalized_words(label)
        texts = [label, label.upper(), f"{words[-1]} {words[0]}"]
        if len(words[0]) > 5:
            texts.append(words[0][:-1])
        for text in texts:
            there, here = kg.search(text, 1000), file.search(text, 1000)
            if is_generic:  # it finds "Japan" in "Japanese" too
                assert told(here.hits) <= told(there.hits) or here.how != "all words", text
            elif plain(here, label):
                assert (there.how, told(there.hits)) == (here.how, told(here.hits)), text
    assert list(differences(kg, file)) == []


# --- Virtuoso

SEARCHED = [
    *(
        "Ada Lovelace",
        "lovelace ADA",
        "ada",
        "babb char",
        "Countess Lovelace",
        "LONDON",
        "Londres",
        "zzz",
    ),
    *("O'Brien", "Łukasz", "", '"near" and or not * ? ( , ;', "ada } ; DROP ALL #", "a\\' OR 1"),
]


def test_odd_names_are_found_as_in_the_file(
    virtuoso: Engine, people: LocalGraph, people_file: Path
) -> None:
    kg = served(virtuoso.load(people_file))
    for text in SEARCHED:
        there, here = kg.search(text, 5), people.search(text, 5)
        assert (there.hits, there.how) == (here.hits, here.how), text


def test_the_sites_own_row_limit_is_told(virtuoso: Engine) -> None:
    everything = Endpoint(
        virtuoso.sparql, dialect="virtuoso", limits=QueryLimits(row_limit=2 * MAX_ROWS)
    )
    rows = everything.select("SELECT ?s ?o { ?s a ?o . ?p a ?q }")
    assert (len(rows.rows), rows.cut) == (MAX_ROWS, True)


def test_any_number_of_rows_is_sorted(virtuoso: Engine, metaqa: Path) -> None:
    """Virtuoso refuses to sort more than 10,000 rows for a query with a LIMIT, which Endpoint adds."""
    for file, most in (sample_path("films"), None), (metaqa, MAX_ROWS):
        rows = served(virtuoso.load(file)).select("SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o")
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
def test_what_is_wrong_with_a_query_is_no_failure_of_the_server(
    virtuoso: Engine, query: str
) -> None:
    with pytest.raises(QueryError, match="Virtuoso 22"):
        served(virtuoso.load(sample_path("films"))).select(query)


def test_many_values_in_one_query_lose_no_vertex(virtuoso: Engine) -> None:
    """Virtuoso 7.2.5 answers a VALUES of many literals with some of its rows missing, and does not say so."""
    kg = served(virtuoso.load(sample_path("scholars")))
    words = "Is Larry Page an author of The PageRank Citation Ranking: Bringing Order to the Web".split()
    spans = [" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
    assert set(kg.exact(spans)) == {"Larry Page", " ".join(words[6:]), "the Web"}


def test_running_out_of_time_is_an_error(virtuoso: Engine) -> None:
    everything = Endpoint(
        virtuoso.sparql, dialect="virtuoso", limits=QueryLimits(query_timeout_s=4)
    )
    assert everything.dialect
    # Three patterns over Virtuoso's own 2,500 triples take it 20 s.
    patterns = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(5))
    with pytest.raises(GraphTimeoutError):
        everything.select(f"SELECT (COUNT(*) AS ?n) {{ {patterns} }}")


# --- Oxigraph


def test_predicates_and_classes_have_names_but_are_not_found(oxigraph: Engine) -> None:
    kg = served(oxigraph.load(sample_path("cars")))
    predicate = URIRef("https://kgwb.example/cars/parentCompany")
    assert kg.names([predicate]) == {predicate: "parent company"}
    assert kg.exact(["parent company", "BMW i3"]).keys() == {"BMW i3"}
    assert predicate not in {hit.iri for hit in kg.search("parent company", 50).hits}


def test_whole_labels_are_found_in_every_language_of_the_graph(oxigraph: Engine) -> None:
    kg = served(oxigraph.load(sample_path("films")))
    assert "de" not in kg.vocabulary.languages
    assert len(kg.exact(["Der Pate"])["Der Pate"]) == 2


def test_a_graph_without_labels_is_asked_for_none(oxigraph: Engine, tmp_path: Path) -> None:
    (tmp_path / "bare.ttl").write_text(
        "<http://e.x/ada> <http://e.x/bornIn> <http://e.x/oldLondon> ."
    )
    kg = served(oxigraph.load(tmp_path / "bare.ttl"))
    assert (kg.exact(["london"]), kg.search("london", 5).how) == ({}, "nothing")
    assert set(kg.names([URIRef("http://e.x/oldLondon")]).values()) == {"old london"}


def test_a_text_without_words_can_be_a_whole_label(oxigraph: Engine, tmp_path: Path) -> None:
    text = '<http://e.x/film> <http://xmlns.com/foaf/0.1/name> "$" ; <http://e.x/by> <http://e.x/ada> .'
    (tmp_path / "signs.ttl").write_text(text)
    kg = served(oxigraph.load(tmp_path / "signs.ttl"))
    assert [hit.score for hit in kg.search("$", 5).hits] == [1]
    assert kg.search("!!!", 5).how == "nothing"


STRINGS = """
<http://e/a> <http://e/code> "D1"^^<http://www.w3.org/2001/XMLSchema#string> .
<http://e/b> <http://e/code> "D2" .
<http://e/c> <http://e/code> "D3"@en .
<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Alpha unit"^^<http://www.w3.org/2001/XMLSchema#string> .
<http://e/b> <http://www.w3.org/2000/01/rdf-schema#label> "Beta unit" .
<http://e/code> <http://www.w3.org/2000/01/rdf-schema#label> "code" .
"""


@pytest.fixture(scope="session")
def strings_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("strings") / "strings.nt"
    file.write_text(STRINGS.lstrip())
    return file


@pytest.mark.parametrize("query", queries_with_strings())
def test_virtuoso_finds_a_string_with_and_without_its_datatype(
    virtuoso: Engine, strings_file: Path, query: str
) -> None:
    rows = sorted(opened(strings_file).select(query).rows, key=str)
    assert sorted(served(virtuoso.load(strings_file)).select(query).rows, key=str) == rows
