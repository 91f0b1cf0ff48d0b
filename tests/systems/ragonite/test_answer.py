"""The terms that an answer's values stand for, with their support."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nasty_graphs import a, twins
from page import record_html
from ragonite import (
    FINISH,
    QUESTION,
    RAGONITE,
    answered,
    ask_twins,
    cited,
    execute,
    induce,
    passages,
    sql,
    terms_of,
)
from rdflib import BNode, Literal, URIRef
from small import answer_of, iri
from tables import read_table

from kgwb.kg.embeddings import Embeddings
from kgwb.run import Run
from kgwb.show.run_state import GIVEN, judge_answer
from kgwb.systems.ragonite.answerer import Citation
from kgwb.systems.ragonite.database import Database
from kgwb.systems.ragonite.records import Source
from kgwb.terms import Term, local_part


def test_a_count_is_supported_by_the_ids_that_were_counted() -> None:
    query = "SELECT count(*) AS n, group_concat(id) AS ids FROM film WHERE director = 'denis'"
    run, _ = answered(sql(query), passages(), FINISH, answer=cited(("3", 1), kind="count"))
    [value] = answer_of(run).values
    directed = [triple for triple in value.support if triple[1:] == (iri("director"), iri("denis"))]
    assert (value.term, len(directed)) == (Literal(3), 3)
    run, _ = answered(answer=cited(("true", 1), kind="boolean"))
    assert answer_of(run).values[0].term == Literal(True)


def test_that_nothing_fits_is_an_answer_with_its_evidence() -> None:
    text = "None of them is by David Lynch [1]."
    none = {**cited(("none", 1), text=text), "reason": "the directors of all films are known"}
    run, _ = answered(answer=none)
    answer = answer_of(run)
    assert (answer.values, answer.text, answer.reason) == ((), text, "")
    assert (iri("dune"), iri("director"), iri("denis")) in answer.support
    assert judge_answer(QUESTION, answer).name == GIVEN
    shown = record_html(answer, of_system="ragonite")
    assert "Denis Villeneuve" in shown
    assert "no answer" not in shown


def notes_of(run: Run) -> list[str]:
    return run["answer"].notes


@pytest.mark.parametrize(
    ("about", "query", "text", "term"), read_table(Path(__file__).parent / "cited_texts.jsonl")
)
def test_a_cited_text_is_what_its_column_and_row_say(
    about: str, query: str, text: str, term: str
) -> None:
    run = ask_twins(query, text)
    assert [each.n3() for each in terms_of(run)] == [term]
    assert notes_of(run) == []


def test_a_text_that_is_a_name_and_a_value_of_one_row_is_both_and_is_noted() -> None:
    run = ask_twins("SELECT name, year FROM film WHERE name = '1984'", "1984")
    assert set(terms_of(run)) == {a("film1984"), Literal(1984)}
    assert len(notes_of(run)) == 1


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
