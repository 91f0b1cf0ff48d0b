"""Execution: one answer of all results, counts, booleans, and what is missing."""

from dataclasses import replace
from typing import Any

import pytest
from small import alone, films, iri

from kgwb.kg import Graph
from kgwb.kg.algebra import patterns_to_sparql
from kgwb.kg.base import AnswerKind
from kgwb.kg.queries import CandidateQuery
from kgwb.run.answers import Answer, Candidate, Link
from kgwb.systems.chatty_kg.query_planning import execute_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    LinkingResult,
    QuerySelection,
)


def query(*patterns: str) -> CandidateQuery:
    """A query of patterns written "dune director ?x"."""
    split: Any = [pattern.split() for pattern in patterns]
    full = tuple(
        tuple(end if end.startswith("?") else iri(end).n3() for end in pattern) for pattern in split
    )
    names = tuple(name for _, name, _ in split)
    return CandidateQuery(
        f"SELECT DISTINCT ?x WHERE {{ {patterns_to_sparql(full)} }}", full, names, 1.0
    )


def executed(*queries: CandidateQuery, kind: AnswerKind, kg: Graph) -> Answer:
    """The answer of selected queries to ⟨A, r, ?x⟩."""
    linked = LinkingResult((Link("A", Candidate(iri("a"), "A")),), ())
    qir = QIR((Fact("A", "r", "?x"),), "?x", kind)
    answer: Answer
    answer, _, _ = alone(
        lambda run: execute_queries(QuerySelection(queries, ()), qir, linked, run), kg=kg
    )
    return answer


DIRECTED = query("?x director denis")


APART = f"FILTER(?x != {iri('dune').n3()}) "


@pytest.mark.parametrize(
    "typed",
    [
        "SELECT DISTINCT ?x\nWHERE {{ {body} }}",
        "select distinct ?x where {{ {body} }}",
        "SELECT DISTINCT ?x WHERE {{ {body} }} LIMIT 200",
    ],
)
def test_a_cut_result_is_counted_however_its_query_is_written(typed: str) -> None:
    text = typed.format(body=f"{patterns_to_sparql(DIRECTED.patterns)} {APART}")
    query = replace(DIRECTED, sparql=text, filters=APART)
    answer = executed(query, kind="count", kg=films(row_limit=1))
    assert answer.labels == ("2",)


UNITS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a rdfs:label "A" ; :r [ :amount 12.5 ; :unit "km" ; :note "about" ] , [ :amount 12.5 ; :unit :mile ] , [ :amount 7 ] .
:mile rdfs:label "mile" .
:b rdfs:label "B" ; :r :named . :named :amount 4 ; :unit "kg" .
"""


def test_a_unit_that_is_a_value_itself_stands_alone() -> None:
    amounts = query("a r ?node", "?node amount ?x")
    units = query("a r ?node", "?node unit ?x")
    answer = executed(amounts, units, kind="list", kg=films(UNITS))
    assert set(answer.labels) == {"12.5", "7", "km", "mile"}
