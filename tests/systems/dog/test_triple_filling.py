"""Triple filling: the tails of a relation, their triples, and what is said of them."""

import re
from typing import Any

import pytest
import rdflib
from debate import ARRIVAL
from rdflib import Literal
from small import DOG, FILMS, alone, films, iri

from kgwb import open_kg, profile
from kgwb.kg import Graph
from kgwb.run.answers import Value
from kgwb.systems.dog.hop import (
    fill_triples,
    find_answer_values,
    get_relations,
)
from kgwb.systems.dog.records import (
    FilledTriples,
    FilteredRelation,
    Head,
    Relation,
    TriedAnswer,
)


def head(*names: str) -> Head:
    terms = tuple(iri(name) for name in names)
    return Head("these", tuple(map(Value, terms, names)), terms)


def filled(
    name: str, way: Any, start: Head, turtle: str = "", kg: Graph | None = None, **settings: Any
) -> tuple[FilledTriples, list[str]]:
    """The triples of a head and a predicate, and the notes on the step."""
    chosen = FilteredRelation(start.name, "", Relation(name, way, (iri(name),)))
    kg, fast = kg or films(FILMS + turtle), profile("fast", **settings)
    result, run, _ = alone(
        lambda run: fill_triples(chosen, start, run), kg=kg, settings=fast, of=DOG
    )
    return result, run.steps[-1].notes


def labels(result: FilledTriples) -> list[str]:
    return [value.label for value in result.values]


def test_tails_come_with_the_triples_that_lead_to_them() -> None:
    result, notes = filled("director", "out", head("arrival", "lynchs_dune"))
    assert labels(result) == ["David Lynch", "Denis Villeneuve"]
    assert result.values[1].support == ((iri("arrival"), iri("director"), iri("denis")),)
    lynch, denis = (
        ("lynchs_dune", "director", "David Lynch"),
        ("arrival", "director", "Denis Villeneuve"),
    )
    assert (result.triples, result.found, notes) == ((lynch, denis), 2, [])


def test_an_inverse_relation_leads_to_subjects_but_not_back_to_the_start() -> None:
    start = Head("Denis Villeneuve", (Value(iri("denis"), "Denis Villeneuve"),), (iri("dune"),))
    result, _ = filled("director", "in", start)
    assert labels(result) == ["Arrival", "Sicario"]  # the question began at Dune
    assert result.triples[0] == ("Denis Villeneuve", "~director", "Arrival")


def test_fan_out_limits_tails_and_triples_with_a_note_and_shows_one_triple_of_each_tail() -> None:
    result, notes = filled("starring", "out", head("arrival", "dune"), fan_out=2)
    assert (labels(result), result.found) == (["Amy Adams", "Jeremy Renner"], 3)
    assert [re.findall(r"\d+", note) for note in notes] == [["3", "2"]]
    turtle = ":a :r :x, :y . :b :r :x, :y . :c :r :x, :y . :x rdfs:label 'X' . :y rdfs:label 'Y' ."
    result, notes = filled("r", "out", head("a", "b", "c"), turtle, fan_out=2)
    assert result.triples == (("a", "r", "X"), ("a", "r", "Y"))
    assert [re.findall(r"\d+", note) for note in notes] == [["2", "6"]]


@pytest.mark.parametrize(
    ("names", "relation", "fan_out", "row_limit", "note"),
    [
        (["arrival", "dune"], "director", 9, 9, "all triples"),
        (["arrival", "gentilly"], "director", 9, 9, "all triples; no triple for gentilly"),
        (["gentilly", "missoula"], "director", 9, 9, "no triple for gentilly, missoula"),
        (
            ["arrival", "dune", "gentilly"],
            "starring",
            2,
            9,
            "cut: 2 of 3 triples; no triple for gentilly",
        ),
        (["arrival", "dune", "gentilly"], "starring", 9, 2, "cut: 2 of more than 2 triples"),
    ],
)
def test_the_note_of_a_result_names_vertices_without_a_triple_and_says_if_it_was_cut(
    names: list[str], relation: str, fan_out: int, row_limit: int, note: str
) -> None:
    kg = open_kg(rdflib.Graph().parse(data=FILMS, format="turtle"), row_limit=row_limit)
    result, _ = filled(relation, "out", head(*names), kg=kg, fan_out=fan_out)
    assert result.note == note


def test_a_result_without_tails_has_a_reason() -> None:
    result, _ = filled("director", "in", head("gentilly"))
    assert result.values == ()
    assert "~director" in result.reason
    result, _ = filled("director", "out", Head("3", (Value(Literal(3), "3"),)))
    assert (result.values, result.queries) == ((), ())


@pytest.mark.parametrize("node", ["_:m", ":m1"])
def test_the_tails_behind_a_node_without_a_name_are_found(node: str) -> None:
    marriage = f":denis :marriage {node} . {node} :spouse :tanya ; :since 1990 . "
    turtle = f"{marriage} :tanya rdfs:label 'Tanya Lapointe' ."
    result, notes = filled("marriage", "out", head("denis"), turtle)
    assert labels(result) == ["1990", "Tanya Lapointe"]
    assert result.triples[1] == ("denis", "marriage", "…", "spouse", "Tanya Lapointe")
    assert len(result.values[1].support) == 2
    assert len(notes) == 1
    further, _, _ = alone(
        lambda run: get_relations(
            Head("they", result.values, result.values[1].support[0][:1]), run
        ),
        kg=films(FILMS + turtle),
        of=DOG,
    )
    assert "~spouse" in map(str, further.found)


@pytest.mark.parametrize(
    ("name", "way", "start", "turtle", "tails", "triple"),
    [
        ("actor", "in", "amy", "_:m :actor :amy ; :film :sicario . ", ["Sicario"],
         ("amy", "~actor", "…", "film", "Sicario")),
        ("homepage", "out", "denis", ":denis :homepage <http://example.org/denis.html> .", ["denis.html"],
         ("denis", "homepage", "denis.html")),  # a page on the web is a tail
    ],
)  # fmt: skip
def test_only_nodes_without_a_name_are_followed_further(
    name: str, way: Any, start: str, turtle: str, tails: list[str], triple: tuple[str, ...]
) -> None:
    result, _ = filled(name, way, head(start), turtle)
    assert (labels(result), result.triples) == (tails, (triple,))


def test_in_a_graph_without_labels_a_vertex_has_the_name_in_its_iri() -> None:
    kg = films("@prefix : <http://example.org/> . :a :r :bee . :bee :s :c .")
    result, _ = filled("r", "out", head("a"), kg=kg)
    assert labels(result) == ["bee"]


def test_literals_of_one_text_stay_different_tails_and_answers() -> None:
    turtle = ":arrival :r '5', 5, 'Same'@en, 'Same'@de . :r rdfs:label 'r' ."
    result, _ = filled("r", "out", ARRIVAL, turtle)
    terms = {value.term for value in result.values}
    assert terms == {
        Literal("5"),
        Literal(5),
        Literal("Same", lang="en"),
        Literal("Same", lang="de"),
    }
    values = find_answer_values(TriedAnswer("yes", "", ("5", "Same")), [result], ())
    assert {value.term for value in values} == terms
    assert len(values) == 4
    assert all(len(value.support) == 1 for value in values)
