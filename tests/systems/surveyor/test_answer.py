"""The answer of a query: lists, tables, counts and truth values with their support."""

from __future__ import annotations

from rdflib import Literal
from small import answer_of, iri
from surveying import (
    TABLE,
    answered,
    draft,
)

from kgwb.run.exports import to_cypher, to_graphml, to_json, to_networkx
from kgwb.show.answers import render_answer
from kgwb.show.subgraph import build_subgraph, subgraph_of_answer
from kgwb.show.subgraph_picture import render_tables
from kgwb.show.terms import RenderContext


def test_a_thing_in_a_table_bears_its_own_label_in_pictures_and_exports() -> None:
    run, _ = answered(draft(TABLE, "table", "film", "length"))
    answer = answer_of(run)
    for subgraph in (build_subgraph(run), subgraph_of_answer(answer)):
        labels = {node.term: node.label for node in subgraph.nodes}
        assert (labels[iri("arrival")], labels[Literal(116)]) == ("Arrival", "116")
        assert "Arrival · 116" in render_tables(subgraph, RenderContext())
    nodes = to_networkx(answer).nodes(data=True)
    exported = {data["id"]: data["label"] for _, data in nodes}
    assert exported[str(iri("arrival"))] == "Arrival"
    assert exported[str(iri("dune"))] == "Dune"
    for text in (to_json(answer), to_graphml(answer), to_cypher(answer)):
        assert "·" not in text


def test_the_measure_and_what_ties_are_told_beside_the_answer_and_one_click_away() -> None:
    longest = (
        "SELECT ?f { ?f org:runtime ?m { SELECT (MAX(?x) AS ?m) WHERE { ?y org:runtime ?x } } }"
    )
    run, _ = answered(draft(longest))
    answer = answer_of(run)
    assert (answer.measure, [str(value.measure) for value in answer.values]) == ("?m", ["116"])
    assert answer.labels == ("Arrival",)
    reading = run.readings[0]
    assert reading.rows == ("116 · Arrival",)
    assert "(measure: 116)" in answer.summary()
    first = "SELECT ?f { ?f org:director ?d } ORDER BY ?d LIMIT 1"
    tied = answer_of(answered(draft(first))[0])
    assert len(tied.remarks) == 1 and "2 more rows" in tied.remarks[0]
    assert [len(reading.rows) for reading in tied.readings[:2]] == [3, 1]
    assert tied.remarks[0] in tied.summary().splitlines()


def test_a_measure_is_rendered_behind_the_columns() -> None:
    table = "SELECT ?f ?d { ?f org:director ?d ; org:runtime ?m } ORDER BY ?m LIMIT 1"
    run, _ = answered(draft(table, "table", "film", "director"))
    html = str(render_answer(answer_of(run), RenderContext()))
    assert "measure ?m" in html and "116" in html
