"""Local graphs: opening every kind of source, queries, limits, and the cache folder."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib import BNode, Literal, URIRef

from kgwb.errors import GraphError, GraphFileError, GraphTimeoutError
from kgwb.kg import cache_dir, files, open_kg, queries
from kgwb.kg.local import LocalGraph, read_triples
from kgwb.kg.parser_process import TOO_SLOW_MESSAGE

EX = "http://example.org/"
ADA, CHARLES, LONDON = URIRef(EX + "ada"), URIRef(EX + "charles"), URIRef(EX + "london")
TRIPLE = "<http://e/s> <http://e/p> <http://e/o> .\n"
XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description rdf:about="http://e/s"><e:p>o</e:p></rdf:Description></rdf:RDF>'
)


@pytest.mark.parametrize(
    ("name", "text", "prefixes"),
    [
        (
            "a.ttl",
            "@prefix e: <http://e/> . @prefix : <http://f/> . e:s e:p :o .",
            {"http://e/": "e"},
        ),
        ("a.ttl", "PREFIX e:<http://e#>\nprefix x: <http://e#> e:s e:p e:o .", {"http://e#": "e"}),
        ("a.rdf", XML, {"http://e/": "e", str(rdflib.RDF): "rdf"}),
    ],
)
def test_a_graph_keeps_the_prefixes_of_its_author(
    tmp_path: Path, name: str, text: str, prefixes: dict[str, str]
) -> None:
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert LocalGraph.open(tmp_path).prefixes == prefixes
    graph = rdflib.Graph().parse(data=text, format="xml" if name == "a.rdf" else "turtle")
    assert prefixes.items() <= {**LocalGraph.from_rdflib(graph).prefixes, "http://e#": "e"}.items()


def test_an_updated_graph_answers_from_the_named_graphs_that_it_got(people: LocalGraph) -> None:
    updated = people.updated(
        f"INSERT DATA {{ GRAPH <{EX}more> {{ <{EX}ada> <{EX}met> <{EX}may> }} }}"
    )
    assert updated.select(f"SELECT ?o {{ <{EX}ada> <{EX}met> ?o }}").rows == (
        (URIRef(EX + "may"),),
    )
    assert updated.search("may", 5).hits and not people.search("may", 5).hits


def test_a_folder_is_one_graph(tmp_path: Path, people_file: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "MORE.NT").write_text(f'<{EX}ada> <{EX}born> "1815" .\n')
    (tmp_path / "notes.txt").write_text("not RDF")
    kg = open_kg(tmp_path)
    assert kg.ask(f'ASK {{ <{EX}ada> <{EX}born> "1815" ; <{EX}bornIn> <{EX}london> }}')
    with pytest.raises(GraphFileError, match="empty"):
        open_kg((tmp_path / "empty").mkdir() or tmp_path / "empty")


def test_an_rdflib_graph_is_copied(people_file: Path) -> None:
    graph = rdflib.Graph().parse(people_file)
    kg = open_kg(graph)
    graph.remove((None, None, None))
    assert kg.names([ADA]) == {ADA: "Ada Lovelace"}
    with pytest.raises(GraphFileError, match="no triple"):
        open_kg(graph)


SEVERAL_GRAPHS = [
    ":a :p :b . :s :p :o . :g1 { :a :p :b, :c . } :g2 { :a :p :c, :d . :o :q 1 }",
    ":g1 { :a :p :b, :c . :s :p :o } :g2 { :a :p :c, :d . :o :q 1 }",
    ":a :p :d . :s :p :o . :g1 { :a :p :b, :c . :o :q 1 }",
]
"""Graphs that share triples with the default graph, with each other, and not at all."""
OF_A = "<http://e/a> <http://e/p> ?x"


@pytest.mark.parametrize("content", SEVERAL_GRAPHS)
@pytest.mark.parametrize("source", ["cached file", "dataset"])
def test_a_triple_of_several_graphs_is_there_once(
    source: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "several.trig"
    content = f"@prefix : <http://e/> . {content}"
    file.write_text(content)
    monkeypatch.setattr("kgwb.kg.files.MIN_CACHED_BYTES", 1)
    graphs = [LocalGraph.open(file), LocalGraph.open(file), LocalGraph.open(file, cache=False)]
    if source == "dataset":
        dataset = rdflib.Dataset().parse(data=content, format="trig")
        graphs = [LocalGraph.from_rdflib(dataset)]
    for each in graphs:
        counts = {
            query: len(each.select(query).rows)
            for query in (
                f"SELECT ?x {{ {OF_A} }}",
                f"SELECT ?x FROM <http://e/g1> {{ {OF_A} }}",
                f"SELECT ?x FROM NAMED <http://e/g1> {{ GRAPH ?g {{ {OF_A} }} }}",
            )
        }
        assert list(counts.values()) == [3, 2, 2]
        [[number]] = each.select(f"SELECT (COUNT(?x) AS ?n) {{ {OF_A} }}").rows
        assert str(number) == "3"
        assert each.ask("ASK { <http://e/s> <http://e/p>/<http://e/q> ?x }")


@pytest.mark.parametrize(
    ("name", "content", "keyword"),
    [
        ("cut.nt.gz", gzip.compress(TRIPLE.encode() * 99, mtime=0)[:-9], "gzip"),
        ("long.nt", b'<http://e/s> <http://e/p> "' + b"a" * 20_000_000, "maximal size"),
        ("utf16.ttl", "<http://e/s> <http://e/p> 1 .".encode("utf-16"), "UTF-16"),
    ],
)
def test_file_that_cannot_be_opened_is_an_error_with_a_hint(
    tmp_path: Path, name: str, content: bytes, keyword: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GraphFileError, match=keyword) as caught:
        open_kg(tmp_path / name)
    assert caught.value.hint


def test_parser_that_does_not_finish_is_an_error(
    tmp_path: Path, people_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.nt").write_text(TRIPLE * 9 + "broken")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # then every process seems to end with 0
    try:
        with pytest.raises(GraphFileError, match=r"broken\.nt"):
            open_kg(tmp_path / "broken.nt")
        assert open_kg(people_file)
    finally:
        signal.signal(signal.SIGCHLD, before)
    monkeypatch.setattr(
        files, "PARSER_COMMAND", (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    )
    with pytest.raises(GraphFileError, match=people_file.name):
        open_kg(people_file)
    monkeypatch.setattr(files, "PARSER_COMMAND", (str(tmp_path / "none"),))
    with pytest.raises(GraphError, match="started"):
        open_kg(people_file)


def test_a_file_that_is_nested_too_deeply_is_an_error_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser of XML takes time in proportion to the square of the depth."""
    monkeypatch.setattr(files, "PROCESSOR_S", 0.5)
    path = tmp_path / "deep.rdf"
    opening, closing = "<rdf:Description><e:p>", "</e:p></rdf:Description>"
    start, end = XML.partition("<rdf:Description")[0], "</rdf:RDF>"
    path.write_text(start + 30_000 * opening + 30_000 * closing + end)
    with pytest.raises(GraphFileError, match=TOO_SLOW_MESSAGE) as caught:
        open_kg(path)
    assert caught.value.hint


def test_terms_are_rdflib_terms(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    string = "http://www.w3.org/2001/XMLSchema#string"
    path.write_text(
        f'<http://e/s> <http://e/p> 7, "01"^^<http://e/t>, "x"@en-GB, "y"^^<{string}>, [] .'
    )
    terms = {row[0] for row in open_kg(path).select("SELECT ?o { ?s ?p ?o }").rows}
    typed = Literal("01", datatype=URIRef("http://e/t"))
    [_] = blank = {term for term in terms if isinstance(term, BNode)}
    assert terms - blank == {Literal(7), typed, Literal("x", lang="en-GB"), Literal("y")}
    rows = open_kg(path).select("SELECT ?a ?b { BIND(1 AS ?a) }")
    assert (rows.variables, rows.rows) == (("a", "b"), ((Literal(1), None),))


def test_rows_and_triples_are_cut_at_the_limit(people_file: Path) -> None:
    kg = open_kg(people_file, row_limit=3)
    cut, whole = kg.select("SELECT * { ?s ?p ?o }"), kg.select("SELECT * { ?s ?p ?o } LIMIT 3")
    assert (len(cut.rows), cut.cut) == (3, True)
    assert (len(whole.rows), whole.cut) == (3, False)
    assert len(kg.construct("CONSTRUCT WHERE { ?s ?p ?o }")) == 3


@pytest.mark.parametrize(("row_limit", "languages"), [(9, ("fr", "de")), (1, ("en", "", "fr"))])
def test_the_preferred_languages_come_first_if_a_cut_result_lacks_some(
    row_limit: int, languages: tuple[str, ...]
) -> None:
    graph = rdflib.Graph()
    for label in (Literal("un", "fr"), Literal("deux", "fr"), Literal("eins", "de"), ADA):
        graph.add((ADA, rdflib.RDFS.label, label))
    _, found = queries.find_label_usage(open_kg(graph, row_limit=row_limit))
    assert found == languages


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }",
        "SELECT * { ?a ?p ?b . ?c ?q ?d }",
    ],
)
def test_query_that_takes_too_long_is_abandoned(tmp_path: Path, query: str) -> None:
    path = tmp_path / "a.nt"
    path.write_text(
        "".join(f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> .\n" for n in range(200))
    )
    kg = open_kg(path, query_timeout_s=0.02, row_limit=10**9)
    with pytest.raises(GraphTimeoutError, match="longer than"):
        kg.select(query)
    assert LocalGraph.open(path).ask("ASK { ?s ?p ?o }")


@pytest.mark.parametrize("read", [LocalGraph._read_rows, None])
def test_reading_a_result_ends_at_the_deadline(read: Any, people: LocalGraph) -> None:
    with pytest.raises(TimeoutError):
        if read is None:
            read_triples(people.store, 0.0, max_triples=9)
        else:
            read(people, people.store.query("SELECT * { ?s ?p ?o }"), 0.0)


def test_identity_depends_on_content_and_not_on_place(tmp_path: Path, people_file: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(people_file, tmp_path / "elsewhere")
    assert open_kg(people_file).identity == open_kg(copy).identity
    people_file.write_bytes(people_file.read_bytes() + b"\n# changed")
    assert open_kg(people_file).identity != open_kg(copy).identity


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, people_file: Path) -> Path:
    monkeypatch.setattr(files, "MIN_CACHED_BYTES", 0)
    return people_file


def _folder() -> Path:
    (folder,) = (cache_dir() / "graphs").iterdir()
    return folder


def test_a_large_file_is_loaded_once(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LocalGraph.open(cached)
    monkeypatch.setattr(files, "_build_cache", None)
    again = LocalGraph.open(cached)
    assert again.identity == first.identity
    assert again.search("lovelace", 5) == first.search("lovelace", 5)
    assert again.ask(f"ASK {{ <{ADA}> <{EX}bornIn> <{LONDON}> }}")


def test_what_earlier_versions_kept_in_the_cache_is_removed(cached: Path) -> None:
    graphs = cache_dir() / "graphs"
    digest = "0a" * 32
    for old in (f"labels2-{digest}", f"labels3-{digest}"):
        (graphs / old / "store").mkdir(parents=True)
    kept = {f"labels99-{digest}", "labels3-notes", "my notes"}
    for name in kept:
        (graphs / name).mkdir()
    LocalGraph.open(cached)
    LocalGraph.open(cached)
    names = {folder.name for folder in graphs.iterdir()}
    assert len(names - kept) == 1
    assert kept < names


@pytest.mark.parametrize(
    ("name", "days", "is_kept"),
    [
        (".making-1", 0.9, True),
        (".making-1", 1.1, False),
        (".muted-1", 31, False),
        ("mine-1", 99, True),
    ],
)
def test_what_killed_processes_left_in_the_cache_is_removed_when_it_is_old(
    name: str, days: float, is_kept: bool, cached: Path
) -> None:
    left = cache_dir() / "graphs" / name
    left.mkdir(parents=True)
    then = time.time() - days * 86_400
    os.utime(left, (then, then))
    LocalGraph.open(cached)
    assert left.exists() == is_kept


@pytest.mark.parametrize(
    "damaged",
    ["labels.sqlite", "checksums.json", "store/*.sst", "store"],
)
def test_damaged_cache_is_built_again(
    cached: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    LocalGraph.open(cached)
    for victim in sorted(_folder().glob(damaged)):
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            data = bytearray(victim.read_bytes())
            data[len(data) // 2] ^= 1  # one bit, and the size stays
            victim.write_bytes(data)
    again = LocalGraph.open(cached)
    assert "is damaged" in caplog.text
    assert (len(again.store), len(again.search("lovelace", 5).hits)) == (20, 1)
    assert len(list((cache_dir() / "graphs").iterdir())) == 1


def test_a_file_that_changes_while_it_is_read_is_not_cached(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, build = cached.read_bytes(), files._build_cache

    def changed(*args: Any) -> None:
        build(*args)
        cached.write_bytes(before + b"<http://e/s> <http://e/p> 1 .")

    monkeypatch.setattr(files, "_build_cache", changed)
    with pytest.raises(GraphFileError, match="changed while it was read"):
        LocalGraph.open(cached)
    monkeypatch.setattr(files, "_build_cache", build)
    cached.write_bytes(before)
    assert len(LocalGraph.open(cached).store) == 20


def test_a_cache_damaged_while_it_is_open_is_an_error_until_it_is_opened_again(
    cached: Path,
) -> None:
    kg, labels = LocalGraph.open(cached), _folder() / "labels.sqlite"
    labels.write_bytes(bytes(labels.stat().st_size))
    with pytest.raises(GraphFileError, match="label index"):
        kg.search("lovelace", 5)
    assert LocalGraph.open(cached).search("lovelace", 5).hits


def test_unusable_cache_folder_is_not_needed(
    cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("KGWB_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "kgwb"):
        assert LocalGraph.open(cached).search("lovelace", 5).hits
    assert "cache" in caplog.text


def test_vertices_are_described_and_their_triples_counted_and_named(people: LocalGraph) -> None:
    found = queries.describe_vertices(people, [ADA, LONDON])
    assert (found[ADA], found[LONDON]) == ((("person",), "English mathematician"), (("City",), ""))
    odd = rdflib.Graph().add((ADA, rdflib.RDF.type, Literal("a lady")))
    odd.add((ADA, rdflib.RDFS.comment, LONDON))
    assert queries.describe_vertices(open_kg(odd), [ADA])[ADA] == ((), "")
    nobody = URIRef(EX + "nobody")
    assert queries.count_degrees(people, [ADA, CHARLES, nobody], 3) == {
        ADA: 3,
        CHARLES: 3,
        nobody: 0,
    }
    assert queries.count_degrees(people, [LONDON], 100) == {LONDON: 5}
    names, are_all = queries.find_triples(people, [ADA], [rdflib.RDFS.label], [], 9)
    assert are_all
    _, are_all = queries.find_triples(people, [ADA], [rdflib.RDFS.label], [], len(names))
    assert not are_all
    triples, _ = queries.find_triples(people, [ADA], [], [], 99, noise=True)
    assert names and set(names) < set(triples)
    assert queries.find_predicates(people, ADA) == (
        (URIRef(EX + "bornIn"), "out"),
        (URIRef(EX + "knows"), "in"),
    )
