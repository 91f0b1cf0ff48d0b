"""Execution: one answer of all results, counts, booleans, and what is missing."""

from dataclasses import replace
from typing import Any

import pytest
import rdflib
from rdflib import Literal
from small import FILMS, PAPER, REFERENCE, alone, answer_of, chatty, films, iri, qir

from kgwb import open_kg
from kgwb.kg.algebra import patterns_to_sparql
from kgwb.kg.base import AnswerKind
from kgwb.kg.queries import CandidateQuery
from kgwb.llm import Scripted
from kgwb.run.answers import NOT_IN_GRAPH, Answer, Candidate, Link
from kgwb.settings import Settings
from kgwb.systems.chatty_kg.query_planning import execute_queries
from kgwb.systems.chatty_kg.records import (
    QIR,
    Fact,
    LinkedRelation,
    LinkingResult,
    QuerySelection,
    RankedPredicate,
)

GRAPH = rdflib.Graph().parse(data=FILMS, format="turtle")


def query(*patterns: str, score: float = 1.0, ask: bool = False) -> CandidateQuery:
    """A query of patterns written "dune director ?x"."""
    split: Any = [pattern.split() for pattern in patterns]
    full = tuple(
        tuple(end if end.startswith("?") else iri(end).n3() for end in pattern) for pattern in split
    )
    head = "ASK" if ask else "SELECT DISTINCT ?x WHERE"
    names = tuple(name for _, name, _ in split)
    return CandidateQuery(f"{head} {{ {patterns_to_sparql(full)} }}", full, names, score)


A = Candidate(iri("a"), "A")


def executed(
    *queries: CandidateQuery,
    kind: AnswerKind = "list",
    vertex: Candidate | None = A,
    ranked: tuple[RankedPredicate, ...] = (RankedPredicate(iri("r"), "r", "out"),),
    **options: Any,
) -> Any:
    """The answer of selected queries to ⟨A, r, ?x⟩, and its run."""
    qir = QIR((Fact("A", "r", "?x"),), "" if kind == "boolean" else "?x", kind)
    linked = LinkingResult((Link("A", vertex),), (LinkedRelation(qir.facts[0], ranked),))
    selection = QuerySelection(queries, ())
    answer, run, _ = alone(lambda run: execute_queries(selection, qir, linked, run), **options)
    return answer, run


def is_supported_by_the_graph(answer: Answer) -> bool:
    return all(
        value.support and all(triple in GRAPH for triple in value.support)
        for value in answer.values
    )


HIS_FILMS = ("Arrival", "Dune", "Sicario")


DIRECTED = query("?x director denis")


APART = f"FILTER(?x != {iri('dune').n3()}) "


@pytest.mark.parametrize("settings", [Settings(), PAPER])
def test_the_values_of_all_queries_are_united(settings: Settings) -> None:
    twice = query("?x director ?someone", "?x starring amy", score=0.99)
    others = query("?y author ted", "?x basedOn ?y", "?x starring ?x2")
    answer, _ = executed(DIRECTED, others, twice, settings=settings)
    assert sorted(answer.labels) == [*HIS_FILMS]
    assert is_supported_by_the_graph(answer)
    expected_support = ("story author ted", "arrival starring amy", "arrival director denis")
    assert {tuple(map(iri, triple.split())) for triple in expected_support} <= {
        *answer.values[answer.labels.index("Arrival")].support
    }


def test_values_of_a_long_join_and_literals_have_support_in_the_graph() -> None:
    answer, _ = executed(query("?f starring amy", "?f director ?d", "?x director ?d"))
    assert answer.labels == HIS_FILMS
    assert is_supported_by_the_graph(answer)
    assert all(len(value.support) >= 2 for value in answer.values)
    answer, _ = executed(query("arrival runtime ?x"))
    assert [(value.term, value.label) for value in answer.values] == [(Literal(116), "116")]
    assert is_supported_by_the_graph(answer)


@pytest.mark.parametrize(
    ("pattern", "settings", "labels", "support"),
    [
        ("?x director denis", Settings(), ("3",), 3),
        ("?x director denis", REFERENCE, ("Arrival", "Dune", "Sicario"), 3),  # nothing is counted
        ("denis numberOfChildren ?x", Settings(), ("3",), 1),  # a stored number
        ("lynch starring ?x", Settings(), (), 0),
    ],
)
def test_a_count_without_a_stored_number_is_counted(
    pattern: str, settings: Settings, labels: tuple[str, ...], support: int
) -> None:
    answer, _ = executed(query(pattern), kind="count", settings=settings)
    assert (tuple(sorted(answer.labels)), len(answer.support)) == (labels, support)
    assert is_supported_by_the_graph(answer)
    assert bool(answer) != answer.reason.startswith(NOT_IN_GRAPH)


def test_cut_results_are_counted_together_by_the_graph() -> None:
    _, run = executed(DIRECTED, kind="count", kg=open_kg(GRAPH, row_limit=2))
    [note] = run["execution"].notes
    assert "cut" in note
    starring = query("?x starring amy")
    answer, _ = executed(DIRECTED, starring, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("3",)  # Arrival is in both


@pytest.mark.parametrize(
    "typed",
    [
        "SELECT DISTINCT ?x\nWHERE {{ {body} }}",
        "select distinct ?x where {{ {body} }}",
        "SELECT DISTINCT ?x {{ {body} }}",
        "SELECT DISTINCT ?x WHERE {{ {body} }} LIMIT 200",
    ],
)
def test_a_cut_result_is_counted_however_its_query_is_written(typed: str) -> None:
    text = typed.format(body=f"{patterns_to_sparql(DIRECTED.patterns)} {APART}")
    query = replace(DIRECTED, sparql=text, filters=APART)
    answer, _ = executed(query, kind="count", kg=open_kg(GRAPH, row_limit=1))
    assert answer.labels == ("2",)


@pytest.mark.parametrize("settings", [Settings(), PAPER])
@pytest.mark.parametrize(
    ("patterns", "truth", "support"),
    [
        (["arrival director denis"], "true", 1),
        (["arrival director ?p", "?p birthPlace gentilly"], "true", 2),
        (["arrival director lynch"], "false", 0),
    ],
)
def test_true_has_supporting_triples_and_false_is_an_answer_too(
    patterns: list[str], truth: str, support: int, settings: Settings
) -> None:
    answer, _ = executed(query(*patterns, ask=True), kind="boolean", settings=settings)
    assert (answer.labels, len(answer.support), bool(answer)) == ((truth,), support, True)
    assert all(triple in GRAPH for triple in answer.support)
    assert answer.values[0].term == Literal(truth == "true")


def test_one_true_query_is_enough() -> None:
    no, yes = query("arrival basedOn amy", ask=True), query("arrival starring amy", ask=True)
    answer, run = executed(no, yes, no, kind="boolean")
    assert (answer.labels, answer.queries) == (("true",), (no.sparql, yes.sparql))
    assert run.totals.queries == 2


@pytest.mark.parametrize(
    ("vertex", "missing"), [(None, "vertex for A"), (A, "predicate for ⟨A, r, ?x⟩")]
)
def test_the_reason_names_what_is_missing(vertex: Candidate | None, missing: str) -> None:
    answer, _ = executed(vertex=vertex, ranked=())
    assert answer.reason.startswith(NOT_IN_GRAPH) == bool(vertex)
    assert answer.reason.endswith(missing)


def test_a_stored_false_does_not_make_the_answer_true() -> None:
    kg = films(FILMS + ":arrival :subtitled false . :sicario :subtitled true .")
    for film, truth in (("Arrival", "false"), ("Sicario", "true")):
        script = {"chatty_kg/qir": qir(f"{film} | subtitled | ?x", target="?x")}
        run = chatty(f"Is {film} subtitled?", Scripted(script), kg).go()
        assert answer_of(run).labels == (truth,)


UNITS = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a rdfs:label "A" ; :r [ :amount 12.5 ; :unit "km" ; :note "about" ] , [ :amount 12.5 ; :unit :mile ] , [ :amount 7 ] .
:mile rdfs:label "mile" .
:b rdfs:label "B" ; :r :named . :named :amount 4 ; :unit "kg" .
"""


@pytest.mark.parametrize(
    ("vertex", "labels", "is_asked"),
    [("a", ["12.5 km / mile", "7"], True), ("b", ["4"], False)],
    ids=["blank nodes", "a vertex"],
)
def test_a_number_at_a_blank_node_has_its_units(
    vertex: str, labels: list[str], is_asked: bool
) -> None:
    graph = open_kg(rdflib.Graph().parse(data=UNITS, format="turtle"))
    answer, run = executed(query(f"{vertex} r ?node", "?node amount ?x"), kg=graph)
    assert sorted(answer.labels) == labels
    numbers = [label.split()[0] for label in labels]
    assert sorted(str(value.term) for value in answer.values) == numbers
    node_queries = [call for call in run.calls.values() if "isBlank" in str(call.request)]
    assert bool(node_queries) is is_asked


def test_a_unit_that_is_a_value_itself_stands_alone() -> None:
    graph = open_kg(rdflib.Graph().parse(data=UNITS, format="turtle"))
    amounts = query("a r ?node", "?node amount ?x")
    units = query("a r ?node", "?node unit ?x")
    answer, _ = executed(amounts, units, kg=graph)
    assert set(answer.labels) == {"12.5", "7", "km", "mile"}
