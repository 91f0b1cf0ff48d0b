"""Lists, repeated values and blank nodes, as they are answered, counted and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdflib
from small import answer_of

import kgwb
from kgwb.kg import open_kg
from kgwb.kg.nodes import read_nodes
from kgwb.run import Run
from kgwb.show.answers import render_answer
from kgwb.show.subgraph import build_subgraph
from kgwb.show.terms import context_of
from kgwb.terms import local_part

PREFIXES = """@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a rdfs:label "Alpha" . :b rdfs:label "Beta" . :c rdfs:label "Gamma" . :d rdfs:label "Delta" .
:x rdfs:label "Xena" . :y rdfs:label "Yara" . :z rdfs:label "Zoe" . :author rdfs:label "author" .
"""
LISTS = """:a :author ( :x :y :x ) . :b :author [ a rdf:Seq ; rdf:_1 :y ; rdf:_10 :x ; rdf:_2 :z ] . :c :author () .
:d :author [ a rdf:Bag ; rdf:_1 :x ; rdf:_2 :x ] . :x :city "Oslo" . :y :city "Bergen" . :city rdfs:label "city" ."""
NESTED = """:a :grid ( ( 1 2 ) ( 3 4 ) ) ; :scores ( 3 1 2 ) . ( :x :y ) :venue :z . :venue rdfs:label "venue" .
:grid rdfs:label "grid" . :scores rdfs:label "scores" ."""
TEXTS = """:a :motto "Gift"@en , "Gift"@de , "Gift"@en-GB , "Gift" ; :colour "red"@en , "rot"@de ;
:population 100 , 100.0 , "100" , 1.0e2 , "0100"^^xsd:integer ;
:opened "2001-02-03"^^xsd:date , "2001-02-03T00:00:00"^^xsd:dateTime ;
:open "1"^^xsd:boolean , true ; :area "5"^^<http://example.org/km2> , "5"^^<http://example.org/mile2> .
:motto rdfs:label "motto" . :colour rdfs:label "colour" . :population rdfs:label "population" ."""
UNLIKE = """:a :code "7" , "7.0" , 7 , 7.0 , "007" ; :status "maybe"^^xsd:boolean , false ;
:sealed "2020-01-01T00:00:00+14:00"^^xsd:dateTime , "2020-01-01T00:00:00-14:00"^^xsd:dateTime ,
  "2020-01-01T14:00:00Z"^^xsd:dateTime , "2020-01-01T00:00:00Z"^^xsd:dateTime ."""
NODES = """:a :founder [ rdfs:label "Xena" ] , [ :name "Yara" ] , [ :age 5 ] ; :width [ :amount 60 ; :unit :m ] ;
  :contract [ :price 100 ; :seller [ :city "Oslo" ] ] ; :heir [ :fullName "Zoe" ; :age 7 ] .
:b :part [ :part _:b ] . _:b :part [ ] . :m rdfs:label "metre" ."""


def _ask(facts: str, question: str, folder: Path, system: str) -> Run:
    graph = folder / "graph.ttl"
    graph.write_text(f"{PREFIXES}{facts}", encoding="utf-8")
    return kgwb.Workbench(str(graph), system=system).ask(question)


@pytest.mark.parametrize("system", ["chatty_kg", "dog", "triad"])
@pytest.mark.parametrize(
    ("facts", "question", "answer"),
    [
        (LISTS, "Who is the author of Alpha?", ["Xena", "Yara"]),
        (LISTS, "Who is the author of Beta?", ["Yara", "Zoe", "Xena"]),
        (LISTS, "Who is the author of Delta?", ["Xena"]),
        (NESTED, "What are the scores of Alpha?", ["3", "1", "2"]),
        (TEXTS, "What is the motto of Alpha?", ["Gift"]),
        (TEXTS, "What is the population of Alpha?", ["100"]),
        (TEXTS, "When was Alpha opened?", ["2001-02-03"]),
    ],
)
def test_a_list_is_its_members_and_a_value_stands_once(
    facts: str, question: str, answer: list[str], system: str, tmp_path: Path
) -> None:
    found = answer_of(_ask(facts, question, tmp_path, system))
    assert list(found.labels) == answer
    assert all(value.support for value in found.values)


@pytest.mark.parametrize(
    ("facts", "question", "answer"),
    [
        (LISTS, "How many authors does Alpha have?", ["2"]),
        (LISTS, "How many authors does Gamma have?", ["0"]),
        (LISTS, "What is Yara the author of?", ["Alpha", "Beta"]),
        (LISTS, "What is Zoe the author of?", ["Beta"]),
        (LISTS, "What is the city of the author of Alpha?", ["Bergen", "Oslo"]),
        (NESTED, "What is the grid of Alpha?", ["(1, 2)", "(3, 4)"]),
        (NESTED, "How many scores does Alpha have?", ["3"]),
        (NESTED, "What is the venue of Xena?", ["Zoe"]),
        (TEXTS, "How many mottos does Alpha have?", ["1"]),
        (TEXTS, "What is the area of Alpha?", ["5 km2", "5 mile2"]),
        (UNLIKE, "What is the code of Alpha?", ["7", "7.0", "007"]),
        (UNLIKE, "What is the status of Alpha?", ["false", "maybe"]),
        (UNLIKE, "How many times was Alpha sealed?", ["3"]),
        (NODES, "Who is the founder of Alpha?", ["Xena", "Yara", "founder: age 5"]),
        (NODES, "Who is the heir of Alpha?", ["Zoe"]),
        (NODES, "How many founders does Alpha have?", ["3"]),
        (NODES, "What is the width of Alpha?", ["60 metre"]),
        (NODES, "What is the contract of Alpha?", ["contract: price 100; seller (city Oslo)"]),
    ],
)
def test_chatty_kg_counts_and_describes_what_is_there(
    facts: str, question: str, answer: list[str], tmp_path: Path
) -> None:
    found = answer_of(_ask(facts, question, tmp_path, "chatty_kg"))
    assert sorted(found.labels) == sorted(answer)


def test_a_node_with_two_numbers_stands_for_neither() -> None:
    graph = rdflib.Graph()
    graph.parse(
        data=f"{PREFIXES}:a :wide [ :amount 3 ; :unit :m ] ; :deep [ :amount 3 , 5 ; :unit :m ] ."
    )
    triples = [triple for triple in graph if isinstance(triple[2], rdflib.BNode)]
    nodes = read_nodes(open_kg(graph), triples, {})
    numbers = {local_part(predicate): nodes.number(node) for _, predicate, node in triples}
    assert numbers == {"wide": rdflib.Literal(3), "deep": None}


def test_what_is_not_plain_is_said_beside_the_values(tmp_path: Path) -> None:
    repeated = answer_of(_ask(LISTS, "Who is the author of Alpha?", tmp_path, "chatty_kg"))
    assert "(Xena, Yara, Xena)" in repeated.remarks[0]
    forms = answer_of(_ask(TEXTS, "What is the motto of Alpha?", tmp_path, "chatty_kg"))
    assert all(f"Gift ({form})" in forms.remarks[0] for form in ("en", "de", "en-gb", "text"))
    assert len(forms.values[0].support) == 4
    colours = answer_of(_ask(TEXTS, "What is the colour of Alpha?", tmp_path, "chatty_kg"))
    assert str(colours) == "red (en), rot (de)"
    number = _ask(TEXTS, "How many populations does Alpha have?", tmp_path, "chatty_kg")
    assert "double" in answer_of(number).doubt
    empty = answer_of(_ask(LISTS, "Who is the author of Gamma?", tmp_path, "chatty_kg"))
    assert not empty.values
    assert empty.text
    assert empty.evidence


@pytest.mark.parametrize("question", ["Who is the founder of Alpha?", "What is the part of Beta?"])
@pytest.mark.parametrize("system", ["chatty_kg", "dog", "triad"])
def test_no_text_has_the_id_of_a_blank_node(question: str, system: str, tmp_path: Path) -> None:
    run = _ask(NODES, question, tmp_path, system)
    answer = answer_of(run)
    nodes = [node.label for node in build_subgraph(run).nodes]
    html = str(render_answer(answer, context_of(run)))
    texts = [str(answer), answer.summary(limit=None), html, *nodes]
    assert not any("f1n" in text for text in texts)
