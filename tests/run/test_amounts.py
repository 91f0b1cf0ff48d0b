"""Numbers as data writes them: with a unit, a thousands sign, or what they count."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdflib import XSD, Literal, URIRef
from tables import read_table

import kgwb
from kgwb.terms import Term, is_amount, is_number

HERE = Path(__file__).parent

GRAPH = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:house rdfs:label "Elm House" ; :rooms {} .
"""


@pytest.mark.parametrize(
    ("written", "answer", "is_doubted"),
    read_table(HERE / "counted_amounts.jsonl"),
)
@pytest.mark.parametrize("system", ["chatty_kg", "triad"])
def test_how_many_gives_the_number_that_the_graph_has(
    system: str, written: str, answer: str, is_doubted: bool, tmp_path: Path
) -> None:
    (tmp_path / "g.ttl").write_text(GRAPH.format(written))
    run = kgwb.Workbench(tmp_path / "g.ttl", system=system).ask("How many rooms has Elm House?")
    assert run.answer is not None
    assert run.answer.labels == (answer,)
    assert bool(run.answer.doubt) == is_doubted


@pytest.mark.parametrize(
    ("text", "datatype", "label"),
    read_table(HERE / "units.jsonl"),
)
@pytest.mark.parametrize("system", ["chatty_kg", "triad", "dog"])
def test_a_unit_that_the_datatype_says_is_shown(
    system: str, text: str, datatype: str, label: str, tmp_path: Path
) -> None:
    graph = GRAPH.replace(":rooms", ":area").format(f'"{text}"^^<{datatype}>')
    (tmp_path / "g.ttl").write_text(graph)
    run = kgwb.Workbench(tmp_path / "g.ttl", system=system).ask("What is the area of Elm House?")
    assert run.answer is not None
    assert run.answer.labels == (label,)
    assert [str(value.term) for value in run.answer.values] == [text]


@pytest.mark.parametrize(
    ("term", "question", "expected"),
    [
        (Literal("12 Monkeys"), "How many films did he direct?", False),
        (Literal("12 Monkeys"), "How many monkeys are there?", True),
        (Literal("12 of us"), "How many of us are there?", False),
        (Literal(True), "How many?", False),
        (Literal("1967-10-03", datatype=XSD.date), "How many?", False),
        (URIRef("http://e/12"), "How many?", False),
    ],
)
def test_a_text_is_an_amount_of_what_is_asked_for(
    term: Literal | URIRef, question: str, expected: bool
) -> None:
    assert is_amount(term, question) is expected
    assert not is_number(term)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Literal(30), True),
        (Literal("2.5", datatype=XSD.decimal), True),
        (Literal("38000"), True),
        (Literal("1,234,567"), True),
        (Literal("-0.5"), True),
        (Literal("1,2"), False),
        (Literal("20 kg"), False),
        (Literal(""), False),
        (Literal(True), False),
        (Literal("2001-07-20", datatype=XSD.date), False),
        (URIRef("http://example.org/30"), False),
    ],
)
def test_a_number_has_a_number_as_value_or_is_written_like_one(term: Term, expected: bool) -> None:
    assert is_number(term) is expected
