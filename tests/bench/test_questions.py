"""Questions parted into conversations, taken out of them, and given the gold that a graph holds."""

from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib import Literal, URIRef
from tables import read_table

from kgwb import bench
from kgwb.bench.questions import (
    BenchQuestion,
    group_by_dialogue,
    make_standalone_questions,
    term_to_string,
    to_standard_sparql,
)
from kgwb.kg import Graph, open_kg

EX = "http://example.org/"
GRAPH = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival rdfs:label "Arrival" ; :director :villeneuve ; :year 2016 .
:dune rdfs:label "Dune" ; :director :villeneuve . :dune2 rdfs:label "dune" .
:villeneuve rdfs:label "Denis Villeneuve" . :a rdfs:label "Twin" . :b rdfs:label "Twin" .
"""
DIALOGUE = [
    BenchQuestion(id="1", question="Who made Dune?"),
    BenchQuestion(id="d2", question="And he?", dialogue="d", turn=2, standalone="And Denis?"),
    BenchQuestion(id="d1", question="Who?", dialogue="d", turn=1),
]


@pytest.fixture
def kg() -> Graph:
    return open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"))


def test_conversations_are_dialogues_by_turn_and_standalone_forms_are_asked_one_by_one() -> None:
    forms = make_standalone_questions(DIALOGUE)
    assert [one.question for one in forms] == ["Who made Dune?", "And Denis?", "Who?"]
    for questions, ids in ((DIALOGUE, [["1"], ["d1", "d2"]]), (forms, [["1"], ["d2"], ["d1"]])):
        assert [[one.id for one in turns] for turns in group_by_dialogue(questions)] == ids


def test_terms_are_written_as_gold_is() -> None:
    zero = Literal("0", datatype=rdflib.XSD.boolean, normalize=False)
    terms = (URIRef(EX + "a"), Literal("Zürich", lang="de"), Literal(True), zero)
    assert [term_to_string(term) for term in terms] == [EX + "a", "Zürich", "true", "false"]


@pytest.mark.parametrize("row", read_table(Path(__file__).with_name("missing_gold.jsonl")), ids=str)
def test_missing_gold_is_found_in_the_graph_or_the_reason_is_kept(row: dict[str, Any]) -> None:
    kg = open_kg(rdflib.Graph().parse(data=GRAPH, format="turtle"), row_limit=3)
    asked = BenchQuestion(id="1", question="?", **row["given"])
    good = BenchQuestion(id="2", question="?", sparql="ASK { ?s ?p ?o }")
    question, other = bench.add_gold_answers([asked, good], kg)
    assert question.answers == (tuple(row["answers"]) if "answers" in row else None)
    assert row.get("error", "") in (question.gold_error or "")
    assert bool(question.gold_error) == ("error" in row)
    assert other.answers == ("true",)


def test_all_predicates_of_one_local_name_lead_to_the_gold_of_a_metaqa_path() -> None:
    triples = """
        <http://e/dune> <http://old.example/directed_by> <http://e/lynch> .
        <http://e/dune> <http://new.example/directed_by> <http://e/villeneuve> .
        <http://e/dune> <http://e/unlike_directed_by> <http://e/nobody> .
    """
    kg = open_kg(rdflib.Graph().parse(data=triples, format="turtle"))
    asked = BenchQuestion(
        id="1", question="?", topic_entity="http://e/dune", path="movie_to_director"
    )
    [question] = bench.add_gold_answers(bench.add_gold_queries([asked], kg), kg)
    assert set(question.answers or ()) == {"http://e/lynch", "http://e/villeneuve"}


@pytest.mark.parametrize("entity", ["http://e/a b", "Alien://{3}", "http://e/<\ud800>"])
def test_a_topic_entity_that_is_no_iri_has_no_gold_query(kg: Graph, entity: str) -> None:
    odd = BenchQuestion(
        id="1", question="?", answers=(), topic_entity=entity, path="movie_to_director"
    )
    good = odd.model_copy(update={"topic_entity": EX + "arrival"})
    named = open_kg(
        rdflib.Graph().parse(data=f"<{EX}arrival> <{EX}directed_by> <{EX}villeneuve> .")
    )
    assert [bool(one.sparql) for one in bench.add_gold_queries([odd, good], named)] == [False, True]


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (
            " SELECT DISTINCT COUNT(?uri) WHERE {}",
            " SELECT DISTINCT (COUNT(?uri) AS ?count) WHERE {}",
        ),
        (
            "SELECT COUNT(DISTINCT ?uri AS ?uri) WHERE {}",
            "SELECT (COUNT(DISTINCT ?uri) AS ?count) WHERE {}",
        ),
        ("select count(*) {}", "select (COUNT(*) AS ?count) {}"),
        ("SELECT (COUNT(?x) AS ?c) WHERE {}", "SELECT (COUNT(?x) AS ?c) WHERE {}"),
        ("SELECT ?x {} ORDER BY COUNT(?x)", "SELECT ?x {} ORDER BY COUNT(?x)"),
    ],
)
def test_counts_of_virtuoso_are_rewritten_in_standard_sparql(written: str, sent: str) -> None:
    assert to_standard_sparql(written) == sent
