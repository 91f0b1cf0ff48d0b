"""Induction: every triple is in a passage, and in a row or on the list of those that are in none."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Any

import engines
import pytest
import rdflib
from rdflib import URIRef
from small import films

import kgwb
from kgwb.disk import cache_dir
from kgwb.errors import GraphError, SettingError
from kgwb.kg import SAMPLE_NAMES, Graph
from kgwb.kg.embeddings import Embeddings
from kgwb.systems.ragonite.database import Database, open_database
from kgwb.systems.ragonite.records import Column, Source
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.terms import term_from_data

HARBOUR = engines.metaqa().parent.parent / "harbour"
SETTINGS = RagoniteSettings()
PREFIXES = (
    "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    " @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
)


def induced(kg: Graph, **settings: Any) -> Database:
    return open_database(kg, RagoniteSettings(**settings), Embeddings("lexical"))


def of(turtle: str, **settings: Any) -> Database:
    """The database of a few triples."""
    return induced(films(PREFIXES + turtle), **settings)


def sql(known: Database, query: str) -> Source:
    return known.execute_sql(query, SETTINGS)


def columns(known: Database) -> Mapping[str, Column]:
    return {
        f"{table.name}.{column.name}": column
        for table in known.schema.tables
        for column in table.columns
    }


def not_there(kg: Graph) -> list[Any]:
    """The triples that are in no passage, or not in their row; the list of the others must be right."""
    known = induced(kg)
    [path] = cache_dir().glob("ragonite-*.sqlite")
    file = sqlite3.connect(path)
    pages = range(0, known.schema.triples + 1, 10_000)
    asked = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 10000 OFFSET"
    triples = {triple for start in pages for triple in kg.select(f"{asked} {start}").rows}
    words: dict[int, str] = {}
    passages = "SELECT triple, title, text FROM _facts JOIN _passages ON n = passage"
    for n, title, text in file.execute(passages):
        words[n] = f"{words.get(n, '')} {title} {text}"
    reasons, wrong = Counter[str](), []
    for n, s, p, o, place, subject, cell, low, name, parts in file.execute(
        "SELECT n, s.term, predicate, value, place, subject, cell, low, o.name,"
        " EXISTS (SELECT 1 FROM _triples t WHERE t.subject = o.id) FROM _triples"
        " JOIN _terms s ON s.id = subject LEFT JOIN _terms o ON o.id = object"
    ).fetchall():
        triple = (term_from_data(json.loads(s)), URIRef(p), term_from_data(json.loads(o)))
        in_words = (name or cell) in words.get(n, "") or (parts and "(" in words.get(n, ""))
        table, dot, column = place.partition(".")
        reasons.update([] if dot else [place])
        in_row = not dot
        if dot:
            names = [column[1] for column in file.execute(f"PRAGMA table_info({table})")]
            key = "id" if "id" in names else names[0]
            rows = file.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (subject,))
            stored = {row[0] for row in rows}
            in_row = bool({subject if column == "id" else cell, low} & stored) or (
                column == "name" and cell.strip() in stored
            )
        if triple not in triples or not in_words or not in_row:
            wrong.append((*triple, place, in_words, in_row))
        triples.discard(triple)
    assert tuple(sorted(reasons.items())) == known.schema.only_passages
    return [*wrong, *triples]


@pytest.mark.parametrize("name", [*SAMPLE_NAMES, "harbour"])
def test_every_triple_is_in_a_passage_and_in_a_row_or_on_the_list(name: str) -> None:
    if name == "harbour" and not HARBOUR.exists():
        pytest.skip("harbour is not here")
    assert not_there(kgwb.open_kg(HARBOUR if name == "harbour" else name)) == []


# --- what breaks the reference code


MESS = """
:b1 :p "x" . :u1 :likes :nowhere, "text" ; :order 7 .
:s a :Ship, :Boat ; rdfs:label "Sea \\"Star\\""@en, "Seestern"@de ; :select "a", "b" ; :code "007" ;
    :size "4 m" ; :n "nan"^^xsd:double ; :range "95-130" ; :built 1990 ; :owner :f ;
    :length [ :value 3 ; :unit [ :name "m" ] ] ; :big "99999999999999999999"^^xsd:integer .
:t a :Ship ; rdfs:label "T" ; :code "12" ; :size "12 m" ; :range "80" ; :built 2001 ; :owner :p ;
    :n 1.5e0 ; :next :s .
:f a :Firm ; rdfs:label "F" . :p a :Person . :k a :Key . _:x :loop _:x . :self a :self .
:Ship rdfs:subClassOf :Vessel . :Vessel rdfs:subClassOf :Ship . :q a owl:Thing ; :group :q ; :Group :s .
"""


def test_messy_triples_have_their_places() -> None:
    kg = films(PREFIXES + MESS)
    assert not_there(kg) == []
    known, there = induced(kg), columns(induced(kg))
    kinds = {
        name: (each.type.removesuffix(" NOT NULL"), each.comment) for name, each in there.items()
    }
    assert kinds["ship.code"] == ("TEXT", 'one of "007", "12"')
    assert kinds["ship.size"] == ("INTEGER", '4 … 12, in "m"')
    assert kinds["ship.range_low"][0] == kinds["ship.range_high"][0] == "INTEGER"
    assert kinds["ship.big"][0] == kinds["ship.n"][0] == "TEXT"
    assert kinds["ship.built"] == ("INTEGER", "1990 … 2001")
    rows = sql(
        known,
        "SELECT s.name, label_de, value, unit FROM ship s LEFT JOIN length l ON l.id = s.length",
    )
    assert (rows.error, rows.rows) == (
        "",
        (('Sea "Star"', "Seestern", "3", "unit_1"), ("T", "", "", "")),
    )
    assert sql(known, "SELECT range_low, range_high FROM ship ORDER BY id").rows == (
        ("95", "130"),
        ("80", "80"),
    )


def test_two_links_between_the_same_tables_stay_apart() -> None:
    known = of(
        ":f a :Film ; :director :p ; :star :p, :q . :g a :Film ; :director :q . :p a :Person . :q a :Person ."
    )
    assert sql(known, "SELECT id, director FROM film ORDER BY id").rows == (("f", "p"), ("g", "q"))
    assert sql(known, "SELECT star FROM film_star WHERE film = 'f' ORDER BY star").rows == (
        ("p",),
        ("q",),
    )
    assert columns(known)["film.director"].references == "person"


@pytest.mark.parametrize(
    "word", ["order", "group", "select", "Table", "sqlite_x", "1st", "é à", "%%", "id", "name"]
)
def test_any_word_may_name_a_table_or_a_column(word: str) -> None:
    graph = rdflib.Graph()
    kind, use = URIRef("http://e/kind"), URIRef("http://e/use")
    for end in (kind, use):
        graph.add((end, rdflib.RDFS.label, rdflib.Literal(word)))
    graph.add((URIRef("http://e/a"), rdflib.RDF.type, kind))
    graph.add((URIRef("http://e/a"), use, rdflib.Literal("yes")))
    known = induced(kgwb.open_kg(graph))
    [table] = known.schema.tables
    assert sql(known, f"SELECT {table.columns[-1].name} FROM {table.name}").rows == (("yes",),)


# --- size, parts, keeping


def test_a_graph_that_is_too_large_says_what_it_would_take() -> None:
    with pytest.raises(
        GraphError, match=r"31 triples would take about .* at most max_triples, 10,"
    ) as error:
        induced(films(), max_triples=10)
    assert "part=" in error.value.hint


def test_a_part_is_the_instances_of_the_classes_named() -> None:
    known = induced(films(), part="http://example.org/Story", max_triples=10)
    assert [table.name for table in known.schema.tables] == ["story"]
    assert known.schema.triples == 3
    with pytest.raises(SettingError, match="no IRI"):
        induced(films(), part='a"b')
    with pytest.raises(GraphError, match="no triple"):
        induced(films(), part="http://example.org/Nothing")


def test_the_database_is_kept_and_made_anew_where_it_is_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kgwb.systems.ragonite import database as module

    first = of(":a a :B .")
    [path] = cache_dir().glob("ragonite-*.sqlite")
    monkeypatch.setattr(module, "_open_databases", {})
    monkeypatch.setattr(module, "DatabaseBuilder", None)
    assert of(":a a :B .").schema == first.schema
    monkeypatch.undo()
    monkeypatch.setattr(module, "_open_databases", {})
    monkeypatch.setenv("KGWB_CACHE", str(path.parent))
    path.write_bytes(b"no database")
    assert of(":a a :B .").schema == first.schema


def test_reverse_facts_can_be_left_out() -> None:
    turtle = ':f a :Film ; rdfs:label "F" ; :director :p . :p a :Person ; rdfs:label "P" .'
    texts = dict(of(turtle).passages)
    assert texts["P [p]"] == "P is a Person. It is director of F."
    assert dict(of(turtle, reverse_facts=False).passages)["P [p]"] == "P is a Person."
