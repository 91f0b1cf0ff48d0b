"""Numbers as data writes them: with a unit, a thousands sign, or what they count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rdflib.util import from_n3
from small import answer_of
from tables import read_table

import kgwb
from kgwb.terms import is_amount, is_number

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
    assert answer_of(run).labels == (answer,)
    assert bool(answer_of(run).doubt) == is_doubted


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
    assert answer_of(run).labels == (label,)
    assert [str(value.term) for value in answer_of(run).values] == [text]


@pytest.mark.parametrize(
    ("term", "question", "has_amount", "has_number"), read_table(HERE / "amounts.jsonl")
)
def test_a_text_is_an_amount_of_what_is_asked_for_or_is_written_like_a_number(
    term: str, question: str, has_amount: bool, has_number: bool
) -> None:
    read: Any = from_n3(term)
    assert (is_amount(read, question), is_number(read)) == (has_amount, has_number)
