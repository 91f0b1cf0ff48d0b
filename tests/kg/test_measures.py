"""What decided a superlative, beside its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import EX, FILMS, alone, films
from tables import read_table

from kgwb.kg.findings import Measure, SchemaFacts, find_measure, inspect_result
from kgwb.run import Run

PRICED = (
    f"{FILMS} :arrival :cost 47 . :dune :cost 165 . :sicario :cost 30 . :lynchs_dune :cost 165 ."
)
KG = films(PRICED)


def measure_of(query: str) -> Measure | None:
    sparql = f"PREFIX : <{EX}> {query}"
    return find_measure(KG, sparql, KG.select(sparql))


@pytest.mark.parametrize(
    ("query", "name", "values"),
    read_table(Path(__file__).with_name("superlatives.jsonl")),
)
def test_the_measure_of_a_superlative_is_found_unless_a_column_has_it(
    query: str, name: str, values: list[str]
) -> None:
    measure = measure_of(query) or Measure("")
    assert (measure.name, list(map(str, measure.values))) == (name, values)


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
