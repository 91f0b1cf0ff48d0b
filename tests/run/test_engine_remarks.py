"""What an engine does in another way than expected is said beside the answer that it touches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rdflib import Literal
from small import films
from tables import read_table

from kgwb.kg.findings import SchemaFacts, inspect_result
from kgwb.run.answers import Answer, Value
from kgwb.run.doubts import remark_on_changing_queries, remark_on_engine
from kgwb.run.steps import RecordedGraph

HERE = Path(__file__).parent

GRAPH = """
@prefix : <http://e/> .
:a :size 9300000000000000000 . :b :size 10000000000000000000 .
:c :p :x ; :q :x .
:d :group :one ; :age 30 . :e :group :one ; :age 40 . :f :group :one .
:g :group :two ; :age 5 .
"""
SUM = "SELECT (SUM(?n) AS ?sum) { ?s <http://e/size> ?n }"
BY_PATH = "SELECT (COUNT(?o) AS ?n) { <http://e/c> (<http://e/p>|<http://e/q>) ?o }"
GROUPED = "?s <http://e/group> ?g OPTIONAL { ?s <http://e/age> ?age }"
MEANS = f"SELECT ?g (AVG(?age) AS ?mean) {{ {GROUPED} }} GROUP BY ?g"
OLDEST = f"SELECT ?g {{ {GROUPED} }} GROUP BY ?g ORDER BY DESC(AVG(?age)) LIMIT 1"


@pytest.fixture(scope="module")
def kg() -> Any:
    return films(GRAPH)


def answered(kg: Any, query: str) -> Answer:
    [[term]] = kg.select(query).rows
    return Answer("list", (Value(term, str(term)),), (query,))


@pytest.mark.parametrize(
    ("query", "value", "is_remarked"),
    read_table(HERE / "remarks_on_oxigraph.jsonl"),
)
def test_oxigraph_and_results_that_change(
    kg: Any, query: str, value: str, is_remarked: bool
) -> None:
    answer = answered(kg, query)
    assert answer.labels == (value,)
    answer = remark_on_changing_queries(remark_on_engine(answer, kg))
    assert bool(answer.remarks) == is_remarked


@pytest.mark.parametrize(
    ("expression", "is_remarked"), read_table(HERE / "remarks_on_virtuoso.jsonl")
)
def test_virtuoso_divides_integers_and_takes_texts_for_greater_than_numbers(
    expression: str, is_remarked: bool
) -> None:
    paths = "?s <http://e/p>/<http://e/q> ?a ; (<http://e/p>)/(<http://e/q>) ?b"
    query = f"SELECT ?s {{ {paths} {expression} }}"
    answer = Answer("list", (Value(Literal(1), "1"),), (query,))
    common = {"identity": "http://e/sparql", "source": "", "vocabulary": None, "muted": ()}
    virtuoso: Any = SimpleNamespace(remote=True, is_virtuoso=True, **common)
    other: Any = SimpleNamespace(remote=True, is_virtuoso=False, **common)
    recorder: Any = None
    for graph in (virtuoso, RecordedGraph(virtuoso, recorder)):
        assert bool(remark_on_engine(answer, graph).remarks) == is_remarked
    assert remark_on_engine(answer, other) == answer


def test_of_an_endpoint_no_remark_on_oxigraph_is_made_in_a_replay() -> None:
    recorder: Any = None
    replayed = RecordedGraph(None, recorder)
    answer = Answer("list", (Value(Literal(1), "1"),), (BY_PATH,))
    for identity, is_remarked in (("sha256:1", True), ("http://e/sparql", False)):
        replayed.identity = identity
        kg: Any = replayed
        assert bool(remark_on_engine(answer, kg).remarks) == is_remarked


@pytest.mark.parametrize(
    ("query", "aggregate"),
    [(MEANS, "AVG(?age)"), (OLDEST, "AVG(?age)"), (SUM, "SUM(?n)")],
)
def test_an_aggregate_that_one_row_ends_is_likely_to_be_a_mistake(
    kg: Any, query: str, aggregate: str
) -> None:
    findings = list(inspect_result(kg, query, kg.select(query), SchemaFacts()))
    [finding] = [each for each in findings if f"{aggregate} is empty where" in each.text]
    assert finding.wrong


def test_other_empty_cells_are_no_mistake(kg: Any) -> None:
    query = f"SELECT ?s ?age {{ {GROUPED} }}"
    findings = inspect_result(kg, query, kg.select(query), SchemaFacts())
    assert not any(finding.wrong for finding in findings)
