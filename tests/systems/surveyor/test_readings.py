"""Other readings of a question: those that follow from the query, and those that are drafted anew."""

from __future__ import annotations

from typing import Any

import pytest
import rdflib
from small import EX, answer_of, films
from surveying import READ, UNREVIEWED, answered, draft, mention

from kgwb import open_kg
from kgwb.run import Run

YARD = f"""
@prefix : <{EX}> . @prefix rdfs: <{rdflib.RDFS}> .
:Tug rdfs:subClassOf :Ship .
:a a :Tug ; rdfs:label "Aurora" ; :built 1990 ; :port :oslo ; :portName "Oslo" .
:b a :Ship ; rdfs:label "Bella" ; :built 1990 ; :port :bergen ; :portName "Bergen" .
:c a :Ship ; rdfs:label "Cora" ; :built 2001 ; :port :oslo ; :portName "Oslo" .
:d a :Ship ; rdfs:label "Dora" ; :built 2010 ; :portName "Bodø" .
:oslo a :Port ; rdfs:label "Oslo" . :bergen a :Port ; rdfs:label "Bergen" .
"""
NOBODY = mention(classes=(), question="Which ships?")
ALL_SHIPS = "?s rdf:type/rdfs:subClassOf* org:Ship"
LEAST = "{ SELECT (MIN(?x) AS ?y) WHERE { ?z org:built ?x } } ?s org:built ?y"


def read(sparql: str, asked_for: str = "list", **options: Any) -> Run:
    run, _ = answered(
        draft(sparql, asked_for, **options), names=NOBODY, kg=films(YARD), settings=UNREVIEWED
    )
    return run


def rows_of(run: Run) -> set[tuple[str, ...]]:
    """The rows of an answer as texts; local names of IRIs."""
    rows = [value.row or (value.term,) for value in answer_of(run).values]
    return {tuple(str(cell).rpartition("/")[2] for cell in row) for row in rows}


@pytest.mark.parametrize(
    ("sparql", "taken", "other", "rows"),
    [
        ("ASK { ?s org:built 2001 }", "any", "which", {("c",)}),
        ("ASK { VALUES ?k { org:Tug } [] org:built 1990 . ?s a ?k }", "any", "which", {("a",)}),
        (
            "SELECT ?s ?p { ?s org:built ?y OPTIONAL { ?s org:port ?p } }",
            "things",
            "names",
            {("Aurora", "oslo"), ("Bella", "bergen"), ("Cora", "oslo"), ("Dora", "None")},
        ),
        ("SELECT ?s { ?s org:built ?y } ORDER BY ?y LIMIT 1", "exactly", "level", {("a",), ("b",)}),
        (f"SELECT ?s {{ {LEAST} }}", "without", "with", {("1990", "a"), ("1990", "b")}),
        ("SELECT ?s { ?s org:built ?y FILTER(?y > 2001) }", "without", "with", {("2010", "d")}),
        ("SELECT ?s ?y { ?s org:built ?y } ORDER BY DESC(?y) LIMIT 1", "with", "without", {("d",)}),
        (
            "SELECT ?p { ?s org:port ?p } GROUP BY ?p HAVING(COUNT(?s) > 1)",
            *("without", "with", {("2", "oslo")}),
        ),
        (
            "SELECT ?p (COUNT(?s) AS ?n) { ?s org:port ?p } GROUP BY ?p HAVING(COUNT(?s) > 1)",
            *("with", "without", {("oslo",)}),
        ),
        (
            "SELECT DISTINCT ?p { ?s org:port ?p }",
            *("org:port", "org:portName", {("Oslo",), ("Bergen",), ("Bodø",)}),
        ),
        ("SELECT DISTINCT ?p { ?s org:portName ?p }", "by", "org:port", {("oslo",), ("bergen",)}),
        (f"SELECT ?s {{ {ALL_SHIPS} }}", "with", "only", {("b",), ("c",), ("d",)}),
        ("SELECT ?s { ?s a org:Ship }", "only", "with", {("a",), ("b",), ("c",), ("d",)}),
        ("SELECT ?s { ?s org:built 2001 }", "things", "names", {("Cora",)}),
    ],
)
def test_a_reading_that_follows_from_the_query_is_shown_and_asks_no_model(
    sparql: str, taken: str, other: str, rows: set[tuple[str, ...]]
) -> None:
    run = read(sparql)
    offered = [r for r in run.readings if taken in r.taken and other in r.other]
    [reading] = offered
    assert len(run.readings) <= 3 and 0 < len(reading.rows) <= 4
    number = run.readings.index(reading) + 1
    chosen = run.read_as(number).go()
    assert rows_of(chosen) == rows
    assert chosen.totals.live_model_calls == 0
    assert "reviewer" not in {step.agent for step in chosen.steps}


@pytest.mark.parametrize("row_limit", [20, 100])
def test_rows_of_a_reading_that_the_graph_has_cut_are_not_counted_as_all(row_limit: int) -> None:
    more = " ".join(f":s{number} a :Ship ; :built {number} ." for number in range(30))
    kg = open_kg(rdflib.Graph().parse(data=YARD + more, format="turtle"), row_limit=row_limit)
    run, _ = answered(draft("ASK { ?s org:built ?y }"), names=NOBODY, kg=kg, settings=UNREVIEWED)
    [reading] = [reading for reading in run.readings if "which" in reading.other]
    assert ("at least" in reading.rows[-1]) == (row_limit == 20)


@pytest.mark.parametrize(
    "sparql",
    [
        "ASK { org:a org:built 1990 }",
        "ASK { ?s org:built 1800 }",
        "SELECT ?y { org:a org:built ?y }",
        "SELECT (COUNT(?s) AS ?n) { ?s org:built ?y }",
        "SELECT ?y { ?s a org:Port ; org:built ?y }",
        "SELECT nonsense",
    ],
)
def test_no_reading_is_offered_that_gives_nothing_else(sparql: str) -> None:
    assert read(sparql).readings == ()


def test_a_pair_of_text_and_link_that_several_classes_have_gives_one_reading() -> None:
    firms = ":x a :Firm ; :port :oslo, :bergen ; :portName 'Oslo' . :y a :Firm ; :port :oslo ."
    firms += " :y :portName 'Oslo' ."
    query = draft("SELECT DISTINCT ?p { ?s org:portName ?p }")
    run, _ = answered(query, names=NOBODY, kg=films(YARD + firms), settings=UNREVIEWED)
    assert [reading.other for reading in run.readings if reading.sparql] == ["by org:port"]


def test_two_readings_of_the_model_leave_room_for_one_of_the_query() -> None:
    both = [READ, {"taken": "sea-going", "others": ["on rivers, too"]}]
    run = read("SELECT ?s { ?s a org:Ship }", assumptions=both)
    assert [bool(reading.sparql) for reading in run.readings] == [False, False, True]
