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
import rdflib
from engines import Engine
from nasty_graphs import twins
from page import pictures, record_html
from ragonite import (
    FINISH,
    PREFIXES,
    QUESTION,
    RAGONITE,
    answered,
    ask_twins,
    cited,
    execute,
    induce,
    induce_turtle,
    passages,
    ragonite,
    rows_of,
    script,
    sql,
)
from rdflib import URIRef
from small import answer_of, films

import kgwb
from kgwb.cli import main
from kgwb.disk import cache_dir
from kgwb.errors import GraphError, SettingError
from kgwb.kg import Graph, sample_path
from kgwb.llm import Scripted
from kgwb.systems.ragonite.database import Database, use_decimal_sums
from kgwb.systems.ragonite.records import Column, Schema, Table
from kgwb.systems.ragonite.settings import RagoniteSettings
from kgwb.terms import term_from_data


def test_a_graph_that_is_too_large_stops_before_a_model_is_asked() -> None:
    model = Scripted(script())
    with pytest.raises(GraphError, match="max_triples"):
        ragonite(model, settings=RAGONITE.settings(max_triples=3)).go()
    assert model.call_count() == 0


@pytest.mark.long
def test_a_named_part_of_an_endpoint_gives_the_tables_of_that_part_of_the_file(
    virtuoso: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = virtuoso.load(sample_path("films"))
    there, here, model = kgwb.open_kg(url), kgwb.open_kg("films"), Scripted(script())
    part = {"part": "https://kgwb.example/films/Film", "max_triples": 1_500}
    with pytest.raises(GraphError, match=r"2,863 triples .*max_triples\) is 1,500") as error:
        ragonite(model, kg=there, settings=RAGONITE.settings(max_triples=1_500)).go()
    assert ("--set part=" in error.value.hint, model.call_count()) == (True, 0)
    query = sql("SELECT film, genre FROM film_genre ORDER BY film, genre")
    answer = cited(("Dune_2021_film", 1))
    options: Any = {"answer": answer, "settings": RAGONITE.settings(**part)}
    runs = [answered(query, passages(), FINISH, kg=kg, **options)[0] for kg in (there, here)]
    assert runs[0].output("ragonite") == runs[1].output("ragonite")
    assert runs[0].output("sql[turn 1]").rows == runs[1].output("sql[turn 1]").rows != ()
    [value], [other] = (answer_of(run).values for run in runs)
    assert (value.term, {*value.support}) == (other.term, {*other.support})
    runs[0].save(tmp_path / "run.jsonl")
    given = [
        *("--kg", url, "--system", "ragonite", "--model", f"replay:{tmp_path / 'run.jsonl'}"),
        QUESTION,
    ]
    assert main(["ask", *given, *(f"--set={name}={value}" for name, value in part.items())]) == 0
    assert answer["answer"] in capsys.readouterr().out
    assert main(["ask", *given, "--set=max_triples=1500"]) != 0
    assert "max_triples" in capsys.readouterr().err


def test_an_instance_that_is_a_class_or_a_predicate_too_is_a_row() -> None:
    database = induce_turtle(
        ":noir a :Genre ; :since 1940 . :western a :Genre ; :since 1903 . :laura a :noir ; :year 1944 ."
        " :director a :Role , rdfs:Class ; :since 1895 . :laura :director :otto ."
        " :Genre rdfs:label 'genre' ."
    )
    since = "SELECT id, since FROM {} ORDER BY id"
    assert rows_of(database, since.format("genre")) == (("noir", "1940"), ("western", "1903"))
    assert rows_of(database, since.format("role")) == (("director", "1895"),)
    noir = "SELECT id, year FROM noir"
    assert rows_of(database, noir) == (("laura", "1944"),)
    # What is only a class has no row.
    names = {table.name for table in database.schema.tables}
    assert "thing" not in names


def test_a_range_beside_a_column_of_the_name_of_its_end() -> None:
    database = induce_turtle(
        ':b a :B ; :depth "10-20 m" ; :depthLow 3 . :c a :B ; :depth "1-2 m" .'
    )
    [table] = database.schema.tables
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names) == 6
    by_predicate = sorted(table.columns[2:], key=lambda column: str(column.predicate))
    query = f"SELECT {', '.join(column.name for column in by_predicate)} FROM b ORDER BY id"
    assert rows_of(database, query) == (("10-20 m", "10", "20", "3"), ("1-2 m", "1", "2", ""))


def test_several_ranges_in_a_table_of_the_name_of_their_end() -> None:
    database = induce_turtle(':b a :DepthLow ; :depth "10-20 m", "3-4 m" .')
    values = next(table for table in database.schema.tables if table.columns[0].references)
    names = [column.name for column in values.columns]
    query = f"SELECT {', '.join(names)} FROM {values.name} ORDER BY {names[-1]}"
    assert rows_of(database, query) == (("b", "3-4 m", "3", "4"), ("b", "10-20 m", "10", "20"))


@pytest.mark.parametrize("label", ["Pragma option", "pragma_table_info", "Pragma", "sqlite master"])
def test_a_class_of_any_name_can_be_read(label: str) -> None:
    turtle = f':a a :C ; :option "x", "y" . :C rdfs:label "{label}" .'
    database = induce_turtle(turtle)
    for table in database.schema.tables:
        assert len(rows_of(database, f"SELECT * FROM {table.name}")) == table.rows
        assert rows_of(database, f"SELECT count(*) FROM {table.name.upper()}") == (
            (str(table.rows),),
        )


def test_passages_tell_neighbours_and_predicates_of_one_name_apart() -> None:
    texts = dict(induce(twins()).passages)
    sequel = texts["Dune II [sequel]"]
    dunes = [part for part in sequel.split() if part.startswith("[dune")]
    assert len(set(dunes)) == 2
    first = texts["Dune [dune]"]
    assert "director (a:director) Ann" in first
    assert "director (b:director) Ann" in first


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


def columns_by_name(database: Database) -> Mapping[str, Column]:
    """All columns by "table.column"."""
    columns = {}
    for table in database.schema.tables:
        for column in table.columns:
            columns[f"{table.name}.{column.name}"] = column
    return columns


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


@pytest.mark.parametrize("profile", ["fast", "paper"])
def test_every_messy_triple_has_its_place(profile: str) -> None:
    assert find_misplaced_triples(films(PREFIXES + MESS), profile) == []


@pytest.mark.parametrize(
    ("name", "type_", "comment"),
    [
        ("ship.code", "TEXT", 'one of "007", "12"'),
        ("ship.size", "INTEGER", '4 … 12, in "m"'),
        ("ship.range", "TEXT", 'one of "80", "95-130"'),
        ("ship.range_low", "INTEGER", ""),
        ("ship.range_high", "INTEGER", ""),
        ("ship.big", "TEXT", 'one of "99999999999999999999"'),
        ("ship.n", "TEXT", 'one of "1.5", "NaN"'),
        ("ship.built", "INTEGER", "1990 … 2001"),
    ],
)
def test_a_column_has_the_type_that_fits_all_of_its_values(
    name: str, type_: str, comment: str
) -> None:
    column = columns_by_name(induce_turtle(MESS))[name]
    assert column.type.removesuffix(" NOT NULL") == type_
    assert column.comment == comment


def test_blank_nodes_are_rows_that_can_be_joined() -> None:
    query = "SELECT s.name, label_de, value, unit FROM ship s LEFT JOIN length l ON l.id = s.length"
    result = execute(induce_turtle(MESS), query)
    assert result.error == ""
    assert result.rows == (('Sea "Star"', "Seestern", "3", "unit_1"), ("T", "", "", ""))


def test_ranges_are_stored_as_numbers() -> None:
    query = "SELECT range_low, range_high FROM ship ORDER BY id"
    assert rows_of(induce_turtle(MESS), query) == (("95", "130"), ("80", "80"))


def test_two_links_between_the_same_tables_stay_apart() -> None:
    database = induce_turtle(
        ":f a :Film ; :director :p ; :star :p, :q . :g a :Film ; :director :q . :p a :Person . :q a :Person ."
    )
    directors = "SELECT id, director FROM film ORDER BY id"
    stars = "SELECT star FROM film_star WHERE film = 'f' ORDER BY star"
    assert rows_of(database, directors) == (("f", "p"), ("g", "q"))
    assert rows_of(database, stars) == (("p",), ("q",))
    assert columns_by_name(database)["film.director"].references == "person"


def test_classes_and_predicates_are_in_no_table() -> None:
    database = induce_turtle(
        ':f a :Film . :Film a rdfs:Class ; rdfs:label "film" . :p a owl:ObjectProperty .'
    )
    assert [table.name for table in database.schema.tables] == ["film"]
    [(_, number)] = database.schema.only_passages
    assert number == 3


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
    database = induce(kgwb.open_kg(graph))
    [table] = database.schema.tables
    query = f"SELECT {table.columns[-1].name} FROM {table.name}"
    assert rows_of(database, query) == (("yes",),)


def test_comments_tell_numbered_columns_apart_and_say_where_a_link_leads() -> None:
    database = induce_turtle(
        ':f a :Film ; rdfs:label "F" ; :name "other" ; :id 7 ; :director :p ; :director_2 :q ;'
        " :star :p, :q . :p a :Person . :q a :Person ."
    )
    comments = {name: column.comment for name, column in columns_by_name(database).items()}
    assert comments["film.name"] == "the label"
    assert comments["film.id"] == "the key"
    assert comments["film.name_2"].startswith('values of "http://e/name"; ')
    assert comments["film.id_2"].startswith('values of "http://e/id"; ')
    assert comments["film.director"].endswith("from film to person")
    assert "http://e/director_2" in comments["film.director_2"]
    assert comments["film_star.star"] == "from film to person"
    assert comments["person.name"] == ""


def test_twins_in_several_tables_are_told_apart() -> None:
    database = induce_turtle(
        '<http://f/Agent> rdfs:label "Agent" . :Agent rdfs:label "Agent" .'
        ' :a a :Agent ; rdfs:label "A" ; :name "x", "y" . :c a :Agent .'
        ' :b a <http://f/Agent> ; rdfs:label "B" .'
    )
    comments = {name: column.comment for name, column in columns_by_name(database).items()}
    assert comments["agent.name"] == "the label"
    assert comments["agent_name_2.name_2"].startswith('values of "http://e/name"; ')
    assert (comments["agent_name_2.agent"], comments["agent_2.name"]) == ("", "")
    assert {table.name: table.comment for table in database.schema.tables} == {
        "agent": 'instances of "http://e/Agent"',
        "agent_2": 'instances of "http://f/Agent"',
        "agent_name_2": "",
    }
    assert 'instances of "http://f/Agent"' in database.schema.format_tables(6_000)


def test_averages_and_sums_that_are_level_in_the_graph_are_equal() -> None:
    """In binary, 0.1 + 0.2 is more than 0.3, and the average of 0.1, 0.2 and 0.3 is not 0.2."""
    database = induce_turtle(
        ":a a :Shop ; :share 0.1, 0.2, 0.3 . :b a :Shop ; :share 0.2, 0.4, 0.0 . :c a :Shop ; :share 0.6 ."
    )
    grouped = "SELECT shop, sum(share) AS x FROM shop_share GROUP BY shop"
    query = f"WITH g AS ({grouped}) SELECT shop FROM g WHERE x = (SELECT max(x) FROM g)"
    assert rows_of(database, query) == (("a",), ("b",), ("c",))
    averages = "SELECT avg(share) FROM shop_share GROUP BY shop"
    assert rows_of(database, averages) == (("0.2",), ("0.2",), ("0.6",))
    query = "SELECT count(*) FROM shop_share GROUP BY shop HAVING avg(share) = 0.2"
    assert rows_of(database, query) == (("3",), ("3",))


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


def test_a_part_is_the_instances_of_the_given_classes() -> None:
    database = induce(films(), part="http://example.org/Story", max_triples=10)
    assert [table.name for table in database.schema.tables] == ["story"]
    assert database.schema.triples == 3


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


def test_reverse_facts_can_be_left_out() -> None:
    turtle = ':f a :Film ; rdfs:label "F" ; :director :p . :p a :Person ; rdfs:label "P" .'
    passages = dict(induce_turtle(turtle).passages)
    assert passages["P [p]"] == "P is a Person. It is director of F."
    passages = dict(induce_turtle(turtle, reverse_facts=False).passages)
    assert passages["P [p]"] == "P is a Person."


PAGE = "https://www.cars.example/en/all-models/ix3/" + "a" * 80 + "/index.html?x=1,2"


TURTLE = f"""
:ix3 a :Car ; rdfs:label "iX3" ; :url <{PAGE}> ; :fuel <http://e/fuel/electric> .
:x5 a :Car ; rdfs:label "X5" ; :url <https://www.cars.example/en/x5> ; :fuel <http://e/fuel/diesel> .
:x7 a :Car ; rdfs:label "X7" ; :url <https://other.example/named> .
<https://other.example/named> rdfs:label "The page of the X7" .
"""


def test_a_page_outside_of_the_graph_keeps_its_whole_iri() -> None:
    database = induce_turtle(TURTLE)
    rows = dict(rows_of(database, "SELECT id, url FROM car"))
    assert rows["x5"] == "https://www.cars.example/en/x5"
    assert rows["ix3"] == PAGE.replace(",", "%2C")
    assert rows["x7"] == "named"
    assert dict(rows_of(database, "SELECT id, fuel FROM car"))["x5"] == "diesel"


def test_the_cell_of_a_page_is_the_page() -> None:
    database = induce_turtle(TURTLE)
    source = execute(database, "SELECT id, url FROM car WHERE id = 'ix3'")
    terms = {meaning.text: str(meaning.term) for meaning in source.meanings}
    assert terms[PAGE.replace(",", "%2C")] == PAGE
    text = next(text for title, text in database.passages if title.startswith("iX3"))
    assert PAGE in text


def test_a_page_is_found_by_a_pattern() -> None:
    database = induce_turtle(TURTLE)
    rows = rows_of(database, "SELECT name FROM car WHERE url LIKE '%cars.example/en/x5'")
    assert rows == (("X5",),)


def test_only_tables_of_a_class_or_of_values_say_what_tells_them_apart() -> None:
    tables = induce_turtle(":a :p 1 . :b a :Thing ; :q 2, 3 .").schema.tables
    comments = {table.name: table.comment for table in tables}
    [untyped] = [table.name for table in tables if table.columns[-1].name == "p"]
    assert comments.pop(untyped) == ""
    assert "instances of" in comments.pop("thing_2" if untyped == "thing" else "thing")


@pytest.mark.parametrize("subjects", ["uvwxyz", "zyxwvu", "wzuyxv"])
def test_ids_of_blank_nodes_do_not_depend_on_their_labels(subjects: str) -> None:
    turtle = " ".join(f":{each} :has [ :p 1 ] ." for each in subjects)
    database = induce_turtle(turtle)
    found = rows_of(database, "SELECT id, has FROM thing WHERE has IS NOT NULL ORDER BY id")
    ids = [node for _, node in found]
    assert ids == sorted(ids)


@pytest.mark.parametrize(("number", "words"), [(8, "one of"), (9, "such as")])
def test_a_comment_lists_the_values_of_a_column_if_they_are_few(number: int, words: str) -> None:
    turtle = " ".join(f':a{each} a :C ; :colour "c{each}" .' for each in range(number))
    [table] = induce_turtle(turtle).schema.tables
    assert table.columns[-1].comment.startswith(words)


def test_things_of_one_highest_class_are_in_one_table() -> None:
    turtle = (
        ":Dog rdfs:subClassOf :Animal . :Cat rdfs:subClassOf :Animal ; :partOf :Zoo ."
        " :d a :Dog ; :likes :c . :c a :Cat ."
    )
    tables = induce_turtle(turtle).schema.tables
    assert [(table.name, table.rows) for table in tables] == [("animal", 2)]
