"""Lists, repeated values and blank nodes, as they are answered, counted and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdflib
from small import answer_of
from tables import read_table

import kgwb
from kgwb.kg import open_kg
from kgwb.kg.nodes import read_nodes
from kgwb.run import Run
from kgwb.show.answers import render_answer
from kgwb.show.subgraph import build_subgraph
from kgwb.show.terms import context_of
from kgwb.terms import local_part

HERE = Path(__file__).parent

PREFIXES = """@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a rdfs:label "Alpha" . :b rdfs:label "Beta" . :c rdfs:label "Gamma" . :d rdfs:label "Delta" .
:x rdfs:label "Xena" . :y rdfs:label "Yara" . :z rdfs:label "Zoe" . :author rdfs:label "author" .
"""
GRAPHS = {
    "lists": """:a :author ( :x :y :x ) . :b :author [ a rdf:Seq ; rdf:_1 :y ; rdf:_10 :x ; rdf:_2 :z ] .
:c :author () .
:d :author [ a rdf:Bag ; rdf:_1 :x ; rdf:_2 :x ] , () .
:x :city "Oslo" . :y :city "Bergen" . :city rdfs:label "city" .""",
    "nested": """:a :grid ( ( 1 2 ) ( 3 4 ) ) ; :scores ( 3 1 2 ) . ( :x :y ) :venue :z . :venue rdfs:label "venue" .
:b :performer [ a rdf:Seq ; rdf:_1 :z ; rdf:_2 :y ] .
:grid rdfs:label "grid" . :scores rdfs:label "scores" .""",
    "texts": """:a :motto "Gift"@en , "Gift"@de , "Gift"@en-GB , "Gift" ; :colour "red"@en , "rot"@de ;
:population 100 , 100.0 , "100" , 1.0e2 , "0100"^^xsd:integer ;
:opened "2001-02-03"^^xsd:date , "2001-02-03T00:00:00"^^xsd:dateTime ;
:open "1"^^xsd:boolean , true ; :area "5"^^<http://example.org/km2> , "5"^^<http://example.org/mile2> .
:motto rdfs:label "motto" . :colour rdfs:label "colour" . :population rdfs:label "population" .""",
    "unlike": """:a :code "7" , "7.0" , 7 , 7.0 , "007" ; :status "maybe"^^xsd:boolean , false ;
:sealed "2020-01-01T00:00:00+14:00"^^xsd:dateTime , "2020-01-01T00:00:00-14:00"^^xsd:dateTime ,
  "2020-01-01T14:00:00Z"^^xsd:dateTime , "2020-01-01T00:00:00Z"^^xsd:dateTime .""",
    "nodes": """:a :founder [ rdfs:label "Xena" ] , [ :name "Yara" ] , [ :age 5 ] ; :width [ :amount 60 ; :unit :m ] ;
  :contract [ :price 100 ; :seller [ :city "Oslo" ] ] ; :heir [ :fullName "Zoe" ; :age 7 ] .
:b :part [ :part _:b ] . _:b :part [ ] . :m rdfs:label "metre" .""",
}


def _ask(graph: str, question: str, folder: Path, system: str) -> Run:
    file = folder / "graph.ttl"
    file.write_text(PREFIXES + GRAPHS[graph], encoding="utf-8")
    return kgwb.Workbench(str(file), system=system).ask(question)


@pytest.mark.parametrize(
    ("graph", "question", "answer", "remarks", "systems"),
    read_table(HERE / "answered_values.jsonl"),
)
def test_a_list_is_its_members_and_a_value_stands_once(
    graph: str,
    question: str,
    answer: list[str],
    remarks: list[str],
    systems: list[str],
    tmp_path: Path,
) -> None:
    for system in systems:
        found = answer_of(_ask(graph, question, tmp_path, system))
        assert list(found.labels) == answer
        assert all(value.support for value in found.values)
        assert [remark.partition(" forms: ")[0] for remark in found.remarks] == remarks
        assert bool(found.text and found.evidence) != bool(answer)


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
    forms = answer_of(_ask("texts", "What is the motto of Alpha?", tmp_path, "chatty_kg"))
    assert all(f"Gift ({form})" in forms.remarks[0] for form in ("en", "de", "en-gb", "text"))
    assert len(forms.values[0].support) == 4
    colours = answer_of(_ask("texts", "What is the colour of Alpha?", tmp_path, "chatty_kg"))
    assert str(colours) == "red (en), rot (de)"
    number = _ask("texts", "How many populations does Alpha have?", tmp_path, "chatty_kg")
    assert "double" in answer_of(number).doubt


@pytest.mark.parametrize("question", ["Who is the founder of Alpha?", "What is the part of Beta?"])
@pytest.mark.parametrize("system", ["chatty_kg", "dog", "triad"])
def test_no_text_has_the_id_of_a_blank_node(question: str, system: str, tmp_path: Path) -> None:
    run = _ask("nodes", question, tmp_path, system)
    answer = answer_of(run)
    nodes = [node.label for node in build_subgraph(run).nodes]
    html = str(render_answer(answer, context_of(run)))
    texts = [str(answer), answer.summary(limit=None), html, *nodes]
    assert not any("f1n" in text for text in texts)
