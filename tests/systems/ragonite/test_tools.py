"""The tools SQL, passages and SPARQL: rows, errors and support."""

from __future__ import annotations

import pytest
from nasty_graphs import A, a, twins
from ragonite import (
    FINISH,
    RAGONITE,
    answered,
    cited,
    execute,
    induce,
    passages,
    ragonite,
    script,
    sql,
    terms_of,
    use,
)
from rdflib import Literal
from small import answer_of, iri

from kgwb.llm import Scripted
from kgwb.run import Run


def test_a_muted_triple_is_in_no_row_and_in_no_passage() -> None:
    run, _ = answered()
    muted = (iri("dune"), iri("director"), iri("denis"))
    run.models[""] = Scripted(script(answer=cited(("arrival", 1), ("sicario", 1))))
    without = run.mute(muted).go()
    assert [row[0] for row in without.output("sql[turn 1]").rows] == ["arrival", "sicario"]
    sources = [without.output("sql[turn 1]"), *without.output("passages[turn 2]")]
    assert all(muted not in source.triples for source in sources)
    assert run.output("ragonite").triples - without.output("ragonite").triples == 1


FAILED = {
    "not authorized": "DELETE FROM film",
    "prohibited": "SELECT value FROM _triples",
    "one statement": "SELECT 1; SELECT 2",
    "no SELECT": "-- SELECT",
    "interrupted after": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT max(x) FROM n",
}


@pytest.mark.parametrize("problem", FAILED)
def test_the_error_of_a_query_is_shown_to_the_model(problem: str) -> None:
    settings = RAGONITE.settings(sql_timeout_s=2)
    run, model = answered(sql(FAILED[problem]), sql(), passages(), settings=settings)
    assert problem in run.output("sql[turn 1]").error
    assert problem in model.requests[1].variables["so_far"]
    assert len(answer_of(run).values) == 3


def test_what_binary_numbers_add_is_not_shown() -> None:
    query = sql("SELECT 0.7 + 0.262 + 0.1 - 0.1 AS a, 0.1 + 0.2, 1.0, 1e300, 7")
    run, _ = answered(query, passages(), FINISH, answer=cited())
    [row] = run.output("sql[turn 1]").rows
    assert row == ("0.962", "0.3", "1.0", "1e+300", "7")


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
