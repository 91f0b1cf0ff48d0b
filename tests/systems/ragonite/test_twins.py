"""RAGonite on a graph in which everything has a twin: cited texts are read by column and row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from nasty_graphs import A, a, b, twins
from page import pictures, record_html
from ragonite import (
    FINISH,
    RAGONITE,
    answered,
    cited,
    execute,
    induce,
    induce_turtle,
    passages,
    ragonite,
    rows_of,
    script,
    sql,
    use,
)
from rdflib import BNode, Literal, URIRef
from small import answer_of, films

from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.run import Run
from kgwb.systems.ragonite.answerer import Citation
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.records import Column, Schema, Source, Table
from kgwb.terms import Term, local_part


def ask_twins(query: str, *texts: str, **options: Any) -> Run:
    """A finished run whose answer cites texts of a query's rows."""
    values = [(text, 1) for text in texts]
    run, _ = answered(
        sql(query), passages("xyz"), FINISH, answer=cited(*values), kg=twins(), **options
    )
    assert not run.output("sql[turn 1]").error
    return run


def terms_of(run: Run) -> list[Term]:
    return [value.term for value in answer_of(run).values]


def notes_of(run: Run) -> list[str]:
    return run["answer"].notes


# Things that are also a class or a predicate


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


# Derived columns


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


# The sandbox


@pytest.mark.parametrize("label", ["Pragma option", "pragma_table_info", "Pragma", "sqlite master"])
def test_a_class_of_any_name_can_be_read(label: str) -> None:
    turtle = f':a a :C ; :option "x", "y" . :C rdfs:label "{label}" .'
    database = induce_turtle(turtle)
    for table in database.schema.tables:
        assert len(rows_of(database, f"SELECT * FROM {table.name}")) == table.rows
        assert rows_of(database, f"SELECT count(*) FROM {table.name.upper()}") == (
            (str(table.rows),),
        )


@pytest.mark.parametrize(
    "table",
    [
        *("sqlite_master", "SQLITE_MASTER", "_terms", "_TRIPLES", "_schema"),
        *(
            "pragma_table_info('x_pragma_option')",
            "PRAGMA_TABLE_INFO('film')",
            "pragma_database_list",
        ),
        *(
            "temp.pragma_database_list",
            "main.sqlite_master",
            '"sqlite_master"',
            "[pragma_compile_options]",
        ),
    ],
)
def test_no_query_reads_anything_but_the_induced_tables(table: str) -> None:
    database = induce(twins())
    for columns in ("*", "count(*)", "1"):
        assert execute(database, f"SELECT {columns} FROM {table}").error


# Citations


@pytest.mark.parametrize(
    ("query", "text", "terms"),
    [
        # The film "1984" of the year 1984, and its title
        ("SELECT id, name, year FROM film", "1984", [Literal(1984)]),
        ("SELECT id, name, year FROM film WHERE name = '1984'", "film1984", [a("film1984")]),
        ("SELECT year AS y FROM film WHERE name = '1984'", "1984", [Literal(1984)]),
        ("SELECT name FROM film WHERE year = 1984", "1984", [a("film1984")]),
        ("SELECT name AS x FROM film WHERE year = 1984", "1984", [a("film1984")]),
        # Names and values that differ in case
        ("SELECT id, name FROM film_2", "Orange", [a("picture")]),
        ("SELECT id, name FROM film_2", "orange", [b("picture")]),
        ("SELECT colour FROM film_2", "Orange", [Literal("Orange")]),
        ("SELECT colour FROM film_2", "orange", [Literal("orange")]),
        ("SELECT name FROM film_2 WHERE colour = 'Orange'", "orange", [b("picture")]),
        # Things of one name
        ("SELECT id, name FROM film WHERE id = 'dune'", "Dune", [a("dune")]),
        ("SELECT name, year FROM film WHERE year = 1984", "Dune", [a("dune")]),
        # Values of one text
        ("SELECT name_en FROM film", "Same", [Literal("Same", lang="en")]),
        ("SELECT id, name_de FROM film", "Same", [Literal("Same", lang="de")]),
        # Values that look like an id or an IRI
        ("SELECT kind FROM film", "x", [Literal("x", datatype=a("class"))]),
        ("SELECT pages FROM film_3", "412", [Literal(412)]),
        ("SELECT page FROM film_3", "dune", [Literal("dune")]),
        ("SELECT page FROM film_page", "http://example.org/a/dune", [Literal(f"{A}dune")]),
        ("SELECT page FROM film_page", "dune", [a("dune")]),
        # Lists, ranges and ends of ranges
        ("SELECT group_concat(id) AS ids FROM film WHERE id LIKE 'dune%'", "dune", [a("dune")]),
        ("SELECT depth FROM film_3", "10-20 m", [Literal("10-20 m")]),
        ("SELECT depth_low FROM film_3", "3", [Literal(3)]),
    ],
)
def test_a_cited_text_is_what_its_column_and_row_say(
    query: str, text: str, terms: list[Term]
) -> None:
    run = ask_twins(query, text)
    assert terms_of(run) == terms
    assert notes_of(run) == []


def test_of_things_of_one_name_none_is_cited_without_a_word() -> None:
    kg = films(
        "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
        ':one a :Film ; rdfs:label "Dune" ; :year 1984 . :two a :Film ; rdfs:label "Dune" ; :year 2021 .'
    )
    both = [URIRef("http://e/one"), URIRef("http://e/two")]
    by_query = {
        "SELECT id, name FROM film ORDER BY id": both,
        "SELECT name, year FROM film ORDER BY year": both,
        "SELECT DISTINCT name FROM film": [Literal("Dune")],
    }
    for query, terms in by_query.items():
        uses = (sql(query), passages("xyz"), FINISH)
        run, _ = answered(*uses, answer=cited(("Dune", 1)), kg=kg)
        assert terms_of(run) == terms
        [note] = notes_of(run)
        assert "Dune" in note
    uses = (sql("SELECT name, year FROM film WHERE year = 2021"), passages("xyz"), FINISH)
    run, _ = answered(*uses, answer=cited(("Dune", 1)), kg=kg)
    assert (terms_of(run), notes_of(run)) == (both[1:], [])


def test_a_text_that_is_a_name_and_a_value_of_one_row_is_both_and_is_noted() -> None:
    run = ask_twins("SELECT name, year FROM film WHERE name = '1984'", "1984")
    assert set(terms_of(run)) == {a("film1984"), Literal(1984)}
    assert len(notes_of(run)) == 1


def test_the_support_of_a_value_is_about_the_things_in_its_row() -> None:
    run = ask_twins("SELECT id, colour FROM film_2 WHERE name = 'Orange'", "orange")
    [value] = answer_of(run).values
    assert value.support == ((a("picture"), a("colour"), Literal("orange")),)


def test_sparql_rows_show_and_cite_terms_and_not_their_texts() -> None:
    query = f"SELECT ?x WHERE {{ <{a('film1984')}> <{a('page')}> ?x }} ORDER BY isLiteral(?x)"
    uses = [use("sparql", query=query), FINISH]
    settings = RAGONITE.settings(ablation="sparql_only")

    def answer_with(text: str) -> Run:
        replies = {**script(answer=cited((text, 1))), "ragonite/tool_selector_sparql": uses}
        return ragonite(Scripted(replies), kg=twins(), settings=settings).go()

    texts = [text for (text,) in answer_with("nothing").output("sparql[turn 1]").rows]
    assert len(set(texts)) == 2
    cited_terms = [terms_of(answer_with(text)) for text in texts]
    assert cited_terms == [[a("dune")], [Literal(f"{A}dune")]]


# Everything that is offered can be chosen


def test_each_id_in_each_table_can_be_cited() -> None:
    database = induce(twins())
    for table in database.schema.tables:
        source = execute(database, f"SELECT * FROM {table.name}")
        key = table.columns[0].name
        position = source.columns.index(key)
        for row in source.rows:
            citation = Citation(row[position], [source], [])
            assert len(citation.terms) == 1
            assert not citation.is_ambiguous


def cited_terms(source: Source) -> Iterator[tuple[str, Term]]:
    """Each text of a passage by which a term in its triples can be cited, and the term."""
    names = {term: text for text, term in source.terms}
    ids = {term: text for text, term in reversed(source.terms)}
    for subject, _, object_ in source.triples:
        for term in (subject, object_):
            if isinstance(term, BNode):
                continue
            if isinstance(term, Literal):
                datatype = term.datatype or URIRef("")
                endings = (term.language, datatype, local_part(datatype))
                forms = [f"{term} ({ending})" for ending in endings if ending]
                if str(term) == names.get(subject) and not term.datatype:
                    continue
                short = str(term)
            else:
                forms = [f"{names[term]} [{ids[term]}]"]
                short = names[term]
            shown = f"{source.title} {source.text}"
            yield next((form for form in forms if form in shown), short), term


def all_passages(database: Database) -> list[Source]:
    settings = RAGONITE.settings(passages=1_000)
    return list(database.search_passages("Dune", Embeddings("lexical"), settings))


@pytest.mark.parametrize("profile", ["fast", "paper"])
def test_each_term_in_each_passage_can_be_cited(profile: str) -> None:
    database = induce(twins(), **RAGONITE.settings.of_profile(profile).to_data())
    sources = all_passages(database)
    assert len(sources) > 20
    for source in sources:
        for text, term in cited_terms(source):
            citation = Citation(text, [source], [])
            assert citation.terms == (term,), (source.title, source.text, text)


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
