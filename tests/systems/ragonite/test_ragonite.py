"""The induced database: tables, columns and passages of a graph, and its file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import engines
import pytest
from engines import Engine
from page import pictures, record_html
from ragonite import (
    FINISH,
    MESS,
    PREFIXES,
    RAGONITE,
    answered,
    ask_twins,
    cited,
    induce,
    induce_turtle,
    passages,
    rows_of,
    sql,
)
from rdflib import URIRef
from small import answer_of, films
from tables import read_table

import kgwb
from kgwb.disk import cache_dir
from kgwb.errors import GraphError, SettingError
from kgwb.kg import Graph, sample_path
from kgwb.systems.ragonite.database import use_decimal_sums
from kgwb.systems.ragonite.records import Column, Schema, Table
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.terms import term_from_data


@pytest.mark.long
def test_a_named_part_of_an_endpoint_gives_the_tables_of_that_part_of_the_file(
    virtuoso: Engine,
) -> None:
    url = virtuoso.load(sample_path("films"))
    there, here = kgwb.open_kg(url), kgwb.open_kg("films")
    part = {"part": "https://kgwb.example/films/Film", "max_triples": 1_500}
    query = sql("SELECT film, genre FROM film_genre ORDER BY film, genre")
    answer = cited(("Dune_2021_film", 1))
    options: Any = {"answer": answer, "settings": RAGONITE.settings(**part)}
    runs = [answered(query, passages(), FINISH, kg=kg, **options)[0] for kg in (there, here)]
    assert runs[0].output("ragonite") == runs[1].output("ragonite")
    assert runs[0].output("sql[turn 1]").rows == runs[1].output("sql[turn 1]").rows != ()
    [value], [other] = (answer_of(run).values for run in runs)
    assert (value.term, {*value.support}) == (other.term, {*other.support})


def test_a_class_named_id_is_drawn_without_the_tables_of_its_values() -> None:
    run = ask_twins("SELECT id FROM film", "dune")
    schema = run.output("ragonite")
    few = [table for table in schema.tables if table.name in ("film", "id", "id_alias")]
    drawn = pictures(record_html(replace(schema, tables=tuple(few)), of_system="ragonite"))
    assert "id (1)" in drawn
    assert "id_alias (" not in drawn


def test_the_links_of_many_tables_are_a_list() -> None:
    """Up to twelve tables of classes are drawn; more would be a tangle."""
    names = [f"class_{number}" for number in range(13)]
    tables = tuple(
        Table(name, 1, (Column("id", "TEXT"), Column("next", "TEXT", names[0]))) for name in names
    )
    drawn = record_html(Schema(tables[:12], 20, 12), of_system="ragonite")
    assert "class_3 (1)" in pictures(drawn)
    listed = record_html(Schema(tables, 20, 13), of_system="ragonite")
    assert pictures(listed) == ""
    assert "→ class_0" in listed


HARBOUR = engines.metaqa().parent.parent / "harbour"


STORED_TRIPLES_SQL = (
    "SELECT n, s.term, predicate, value, place, subject, cell, low, o.name,"
    " EXISTS (SELECT 1 FROM _triples t WHERE t.subject = o.id) FROM _triples"
    " JOIN _terms s ON s.id = subject LEFT JOIN _terms o ON o.id = object"
)


def find_misplaced_triples(kg: Graph, profile: str = "fast") -> list[Any]:
    """The triples that are in no passage, not in their row, or stored but not in the graph.

    The list of triples that are in no table must be right, too.
    """
    database = induce(kg, **RagoniteSettings.of_profile(profile).to_data())
    [path] = cache_dir().glob("ragonite-*.sqlite")
    file = sqlite3.connect(path)
    graph_triples = read_all_triples(kg, database.schema.triples)
    passage_texts = read_passage_texts(file)
    reasons = Counter[str]()
    misplaced: list[Any] = []
    stored = file.execute(STORED_TRIPLES_SQL).fetchall()
    for number, s, predicate, o, place, subject_id, cell, low, object_name, is_subject in stored:
        triple = (term_from_data(json.loads(s)), URIRef(predicate), term_from_data(json.loads(o)))
        text = passage_texts.get(number, "")
        # The parts of an object that is a subject itself may be in brackets in place of its name.
        is_in_passage = (object_name or cell) in text or (is_subject and "(" in text)
        if "." in place:
            is_in_row = is_in_its_row(file, place, subject_id, cell, low)
        else:
            is_in_row = True
            reasons[place] += 1
        if triple not in graph_triples or not is_in_passage or not is_in_row:
            misplaced.append((*triple, place, is_in_passage, is_in_row))
        graph_triples.discard(triple)
    assert tuple(sorted(reasons.items())) == database.schema.only_passages
    return [*misplaced, *graph_triples]


def read_all_triples(kg: Graph, count: int) -> set[Any]:
    triples: set[Any] = set()
    for start in range(0, count + 1, 10_000):
        query = f"SELECT ?s ?p ?o WHERE {{ ?s ?p ?o }} LIMIT 10000 OFFSET {start}"
        triples.update(kg.select(query).rows)
    return triples


def read_passage_texts(file: sqlite3.Connection) -> Mapping[int, str]:
    """The passages that each triple is in, as one text."""
    texts: dict[int, str] = {}
    query = "SELECT triple, title, text FROM _facts JOIN _passages ON n = passage"
    for number, title, text in file.execute(query):
        texts[number] = f"{texts.get(number, '')} {title} {text}"
    return texts


def is_in_its_row(
    file: sqlite3.Connection, place: str, subject_id: str, cell: str, low: float | None
) -> bool:
    """Whether the row of a subject has the value of a triple in its column."""
    table, column = place.split(".")
    names = [info[1] for info in file.execute(f"PRAGMA table_info({table})")]
    key = "id" if "id" in names else names[0]
    rows = file.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (subject_id,))
    values = {row[0] for row in rows}
    if column == "name":
        return cell.strip() in values
    expected = subject_id if column == "id" else cell
    return bool({expected, low} & values)


@pytest.mark.parametrize("profile", ["fast", "paper"])
@pytest.mark.parametrize(
    "name",
    [
        "films",
        "cars",
        pytest.param("scholars", marks=pytest.mark.long),
        pytest.param("wikidata_slice", marks=pytest.mark.long),
        pytest.param("harbour", marks=pytest.mark.long),
    ],
)
def test_every_triple_is_in_a_passage_and_in_a_row_or_on_the_list(name: str, profile: str) -> None:
    if name == "harbour" and not HARBOUR.exists():
        pytest.skip("harbour is not here")
    kg = kgwb.open_kg(HARBOUR if name == "harbour" else name)
    assert find_misplaced_triples(kg, profile) == []


@pytest.mark.parametrize("profile", ["fast", "paper"])
def test_every_messy_triple_has_its_place(profile: str) -> None:
    assert find_misplaced_triples(films(PREFIXES + MESS), profile) == []


@pytest.mark.parametrize(
    "word",
    [
        *("order", "group", "select", "Table", "sqlite_x", "1st", "é à", "%%", "id", "name"),
        *("Pragma option", "pragma_table_info", "Pragma", "sqlite master"),
    ],
)
def test_any_word_may_name_a_table_or_a_column(word: str) -> None:
    turtle = (
        ':a a :C ; :use "yes" ; :option "x", "y" . :C rdfs:label "{0}" . :use rdfs:label "{0}" .'
    )
    database = induce_turtle(turtle.replace("{0}", word))
    shown = set()
    for table in database.schema.tables:
        name = table.name.upper() if word.isascii() else table.name
        rows = rows_of(database, f"SELECT {table.columns[-1].name} FROM {name}")
        assert len(rows) == table.rows
        shown.update(rows)
    assert shown == {("yes",), ("x",), ("y",)}


@pytest.mark.parametrize("function", ["sum", "avg"])
@pytest.mark.parametrize(
    "values",
    [
        "(NULL)",
        "(1), (2), (NULL)",
        "(1), (2.5)",
        "('12 kW'), ('x'), ('7')",
        "(1e308), (-1e308)",
        "(9e999), (1)",
        "(x'3132')",
    ],
)
def test_sums_are_otherwise_those_of_sqlite(function: str, values: str) -> None:
    connection = sqlite3.connect(":memory:")
    queries = (
        f"WITH t(x) AS (VALUES {values}) SELECT {function}(x), typeof({function}(x)) FROM t",
        f"WITH t(x) AS (VALUES {values}) SELECT {function}(DISTINCT x) FROM t",
        f"WITH t(x) AS (VALUES {values}) SELECT {function}(x) OVER (ROWS 1 PRECEDING) FROM t",
        f"WITH t(x) AS (VALUES {values}) SELECT {function}(x) FROM t WHERE x > 9e999",
    )
    before = [connection.execute(query).fetchall() for query in queries]
    use_decimal_sums(connection)
    assert [connection.execute(query).fetchall() for query in queries] == before


def test_the_error_for_a_large_graph_says_what_induction_would_take_and_how_to_go_on() -> None:
    with pytest.raises(
        GraphError, match=r"31 triples would take about .* \(setting max_triples\) is 10"
    ) as error:
        induce(films(), max_triples=10)
    assert "part=" in error.value.hint
    assert induce(films(), max_triples=31).schema.triples == 31


def test_a_part_with_an_invalid_iri_or_without_triples_is_an_error() -> None:
    with pytest.raises(SettingError, match="part"):
        induce(films(), part='a"b')
    with pytest.raises(GraphError, match="no triples"):
        induce(films(), part="http://example.org/Nothing")


def test_the_file_of_a_database_is_used_and_a_damaged_one_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kgwb.systems.ragonite import database_file

    first = induce_turtle(":a a :B .")
    [path] = cache_dir().glob("ragonite-*.sqlite")
    monkeypatch.setattr(database_file, "_open_databases", {})
    monkeypatch.setattr(database_file, "DatabaseBuilder", None)
    assert induce_turtle(":a a :B .").schema == first.schema
    monkeypatch.undo()
    monkeypatch.setattr(database_file, "_open_databases", {})
    monkeypatch.setenv("KGWB_CACHE", str(path.parent))
    path.write_bytes(b"no database")
    assert induce_turtle(":a a :B .").schema == first.schema


@pytest.mark.parametrize("subjects", ["uvwxyz", "zyxwvu", "wzuyxv"])
def test_ids_of_blank_nodes_do_not_depend_on_their_labels(subjects: str) -> None:
    turtle = " ".join(f":{each} :has [ :p 1 ] ." for each in subjects)
    database = induce_turtle(turtle)
    found = rows_of(database, "SELECT id, has FROM thing WHERE has IS NOT NULL ORDER BY id")
    ids = [node for _, node in found]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("turtle", "expected"), read_table(Path(__file__).with_name("induced_tables.jsonl"))
)
def test_tables_have_columns_kinds_and_rows_of_the_graph(turtle: str, expected: Any) -> None:
    """With one table a class, and with one a combination of classes."""
    found = []
    for profile in ("fast", "paper"):
        settings = RagoniteSettings.of_profile(profile).to_data()
        database = induce_turtle(turtle, **settings)
        for table in database.schema.tables:
            columns = [f"{each.name} {each.type} {each.references}" for each in table.columns]
            rows = rows_of(database, f'SELECT * FROM "{table.name}"')
            found.append([profile, table.name, columns, sorted(map(list, rows))])
        found.append(list(map(list, database.schema.only_passages)))
    assert found == expected
