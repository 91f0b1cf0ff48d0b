"""What decided a superlative, beside its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import EX, FILMS, alone, films
from tables import read_table

from kgwb.kg.findings import Measure, SchemaFacts, find_measure, inspect_result
from kgwb.run import Run

HERE = Path(__file__).parent

PRICED = (
    f"{FILMS} :arrival :cost 47 . :dune :cost 165 . :sicario :cost 30 . :lynchs_dune :cost 165 ."
)
KG = films(PRICED)
GREATEST = "{ SELECT (MAX(?m) AS ?n) WHERE { ?x :cost ?m } }"


def measure_of(query: str) -> Measure | None:
    sparql = f"PREFIX : <{EX}> {query}"
    return find_measure(KG, sparql, KG.select(sparql))


@pytest.mark.parametrize(
    ("query", "name", "values"),
    read_table(HERE / "superlatives.jsonl"),
)
def test_the_measure_of_a_superlative_is_found(query: str, name: str, values: list[str]) -> None:
    measure = measure_of(query)
    assert measure is not None
    assert (measure.name, list(map(str, measure.values))) == (name, values)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?f { ?f :cost ?c }",
        "SELECT ?f { ?f :cost ?c } ORDER BY ?c",
        "SELECT ?f ?c { ?f :cost ?c } ORDER BY ?c LIMIT 2",
        f"SELECT ?f ?n {{ ?f :cost ?n {GREATEST} }}",
        f"SELECT ?f ?cost {{ ?f :cost ?cost {GREATEST} FILTER(?cost = ?n) }}",
        "SELECT (MAX(?c) AS ?n) { ?f :cost ?c }",
        "SELECT ?f { ?f :none ?c } ORDER BY ?c LIMIT 1",
        "SELECT DISTINCT ?d { ?f :director ?d ; :cost ?c } ORDER BY ?c LIMIT 2",
        "SELECT ?f { ?f :director ?d } ORDER BY ?gone LIMIT 1",
        f"SELECT DISTINCT ?d {{ ?f :director ?d ; :cost ?c . {GREATEST} FILTER(?c <= ?n) }}",
    ],
)
def test_there_is_no_measure_beside_columns_that_have_it(query: str) -> None:
    assert measure_of(query) is None


def test_ties_and_measure_of_a_ranking_take_one_query() -> None:
    sparql = f"PREFIX : <{EX}> SELECT ?f {{ ?f :cost ?c }} ORDER BY DESC(?c) LIMIT 1"

    def look(run: Run) -> Measure | None:
        result = run.kg.select(sparql)
        findings = list(inspect_result(run.kg, sparql, result, SchemaFacts()))
        assert any(finding.told for finding in findings)  # two films cost 165
        return find_measure(run.kg, sparql, result)

    measure, run, _ = alone(look, kg=KG)
    assert str(measure) == "?c"
    selects = [call for call in run.calls.values() if call.kind == "select"]
    assert len(selects) == 2  # the ranking, and the one with what it is ordered by
