"""The survey of a graph: its numbers, its values, what is left out, and its cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import engines
import pytest
import rdflib
from rdflib import Literal, URIRef
from small import FILMS, films, iri

from kgwb import disk, open_kg
from kgwb.errors import GraphError, GraphTimeoutError, GraphUnreachableError, QueryError
from kgwb.kg import Graph, sample_path, survey_queries
from kgwb.kg import survey as survey_module
from kgwb.kg.base import ResultSet
from kgwb.kg.survey import SurveyBuilder, suggest_questions, survey_graph
from kgwb.kg.survey_records import ClassSurvey, PropertySurvey, Survey

ODD = f"""{FILMS}
:Film rdfs:label "film" . :director a <http://www.w3.org/1999/02/22-rdf-syntax-ns#Property> . [] a :Film .
:quiet :runtime 9 . :amy rdfs:label "Amy"@de .
"""
SHOP = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Machine a owl:Class . :Crane a owl:Class ; rdfs:subClassOf :Machine . :Tractor rdfs:subClassOf :Machine .
:Gantry rdfs:subClassOf :Crane , owl:Thing . :Boat a owl:Class .
:status a owl:DatatypeProperty ; rdfs:comment "whether it runs" . :colour a owl:DatatypeProperty .
:a a :Gantry ; rdfs:label "A"@en, "Ah"@de ; :status "running" ; :built "2001-02-03"^^xsd:date ; :nextTo :b ;
    :weight [ :value 9.5 ; :unit :kg ] ; :port <http://elsewhere.org/Rotterdam> ; :power 12 .
:b a :Gantry, :Crane ; rdfs:label "B"@en ; :status "running" ; :built "1999-01-01"^^xsd:date ; :nextTo :a ;
    :weight [ :value 120.0 ; :unit :kg ] ; :port <http://elsewhere.org/Rotterdam> ; :power 7 .
:c a :Tractor ; rdfs:label "C" ; :status "broken" ; :built "2020-01-01"^^xsd:date ; :nextTo :a ;
    :power "much" .
:kg a :Unit ; rdfs:label "kilogram" .
"""


def classes_by_name(seen: Survey) -> dict[str, ClassSurvey]:
    return {kind.name: kind for kind in seen.classes}


def uses_of(seen: Survey, class_name: str) -> dict[str, PropertySurvey]:
    """The predicates of a class, by their local parts."""
    uses = classes_by_name(seen)[class_name].properties
    return {str(use.predicate).rpartition("/")[2].rpartition("#")[2]: use for use in uses}


def test_a_graph_is_counted_without_its_schema() -> None:
    seen = survey_graph(films(ODD))
    assert {kind.name: kind.size for kind in seen.classes} == {
        "without a class": 9,
        "film": 5,
        "Story": 1,
    }
    assert seen.classes[-1].iri is None
    assert (seen.triples, seen.things, seen.unlabelled) == (
        len(rdflib.Graph().parse(data=ODD)),
        14,
        1,
    )
    assert seen.languages == (("", 13), ("de", 1))
    assert list(replace(seen, languages=(("", 3), ("no", 1))).label_texts())[1:] == [
        "no language 3",
        "@no 1",
    ]
    film = uses_of(seen, "film")
    assert (film["director"].things, film["starring"].things, film["starring"].triples) == (4, 2, 3)
    assert not seen.sampled


def test_what_has_only_a_blank_node_as_its_class_is_no_thing() -> None:
    plain = survey_graph(films())
    odd = survey_graph(films(f'{FILMS} :odd a [] ; rdfs:label "odd"@fr .'))
    assert (odd.things, odd.languages) == (plain.things, plain.languages)


def test_instances_of_subclasses_count_once_for_their_superclasses() -> None:
    seen = classes_by_name(survey_graph(films(SHOP)))
    sizes = {name: (kind.size, kind.total) for name, kind in seen.items()}
    expected = {
        "Machine": (0, 3),
        "Crane": (1, 2),
        "Gantry": (2, 2),
        "Tractor": (1, 1),
        "Unit": (1, 1),
    }
    assert sizes == expected  # :b is typed as a crane too
    assert seen["Gantry"].parents == (iri("Crane"),)


def test_values_are_grouped_by_class_datatype_and_language() -> None:
    seen = survey_graph(films(SHOP))
    gantry, tractor = uses_of(seen, "Gantry"), uses_of(seen, "Tractor")
    [status], [built], [port] = (gantry[name].values for name in ("status", "built", "port"))
    assert (status.sort, status.examples, status.whole) == ("string", (Literal("running"),), True)
    assert (built.sort, [*map(str, built.examples)]) == ("date", ["1999-01-01", "2001-02-03"])
    assert (port.sort, port.of, gantry["port"].bare) == ("IRI", None, 2)
    assert {(v.sort, v.of, v.triples) for v in gantry["nextTo"].values} == {
        ("class", iri("Gantry"), 2),
        ("class", iri("Crane"), 1),
    }
    assert [v.sort for v in gantry["label"].values] == ["text@en", "text@de"]
    assert [v.sort for v in tractor["power"].values] == ["string"]
    assert [v.sort for v in gantry["power"].values] == ["integer"]


def test_the_predicates_of_nodes_that_only_hold_structure_are_collected() -> None:
    weight = uses_of(survey_graph(films(SHOP)), "Gantry")["weight"]
    assert [(v.sort, v.examples) for v in weight.values] == [("node", ())]
    unit, value = weight.inner
    assert (unit.predicate, unit.values[0].of, unit.triples) == (iri("unit"), iri("Unit"), 2)
    assert [float(term) for term in value.values[0].examples] == [9.5, 120]


def test_unused_declarations_descriptions_and_both_directions_are_found() -> None:
    seen = survey_graph(films(SHOP))
    assert seen.unused == (iri("colour"), iri("Boat"))
    assert seen.both_ways == ((iri("nextTo"), 3, 2),)
    assert seen.notes == ((iri("status"), "whether it runs"),)
    assert dict(seen.names)[iri("kg")] == "kilogram"


@pytest.mark.parametrize(
    "declaration",
    [
        ":p a owl:ObjectProperty",
        ":p rdfs:domain :Crane",
        ":p rdfs:range :Crane",
        ":p owl:inverseOf :nextTo",
        ":nextTo owl:inverseOf :p",
    ],
)
def test_a_predicate_without_triples_is_found_by_any_declaration(declaration: str) -> None:
    assert iri("p") in survey_graph(films(f"{SHOP} {declaration} .")).unused


def test_all_values_are_listed_if_they_are_few() -> None:
    many = "".join(
        f':n{n} a :Node ; :even {n % 2} ; :number {n} ; :third "{n % 3}" .' for n in range(30)
    )
    node = uses_of(survey_graph(films(f"@prefix : <http://example.org/> . {many}")), "Node")
    [even], [number], [third] = (node[name].values for name in ("even", "number", "third"))
    assert (even.whole, [str(term) for term in even.examples]) == (True, ["0", "1"])
    assert (third.whole, len(third.examples)) == (True, 3)
    assert (number.whole, [str(term) for term in number.examples[:2]]) == (False, ["0", "29"])


def test_a_graph_without_types_has_one_class_without_an_iri() -> None:
    seen = survey_graph(
        films('@prefix : <http://example.org/> . :a :knows :b . :b :age 3 . :c :knows "x" .')
    )
    [only] = seen.classes
    assert (only.iri, only.size, {*uses_of(seen, only.name)}) == (None, 3, {"knows", "age"})


def watch_queries(
    kg: Graph, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str, Any], ResultSet]
) -> list[str]:
    """Let ``ask`` answer the graph's queries. Return a list to which every query is added."""
    select, asked = kg.select, list[str]()

    def answer(query: str) -> ResultSet:
        asked.append(query)
        return ask(query, select)

    monkeypatch.setattr(kg, "select", answer)
    return asked


LABELLED = """
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a a :Ship, :Wreck ; rdfs:label "A"@en, "Ah"@en . :b a :Ship ; rdfs:label "B"@en . [] a :Ship ; rdfs:label "C"@en .
"""


@pytest.mark.parametrize(
    ("more", "languages", "unlabelled", "is_asked"),
    [
        ("", {"en": 2}, 0, False),
        (":d a :Wreck .", {"en": 2}, 1, True),
        (':d a :Wreck ; rdfs:label "D" .', {"en": 2, "": 1}, 0, True),
        (":b rdfs:label :d . :d a [] .", {"en": 2, "": 1}, 0, True),
        (':d a :Wreck ; rdfs:label "D"^^<http://e/x@en> .', {"en": 2, "": 1}, 0, True),
    ],
)
def test_labels_are_counted_by_a_query_unless_each_thing_has_one_in_the_same_language(
    more: str,
    languages: dict[str, int],
    unlabelled: int,
    is_asked: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kg = films(LABELLED + more)
    asked = watch_queries(kg, monkeypatch, lambda query, select: select(query))
    seen = SurveyBuilder(kg).build()
    assert (dict(seen.languages), seen.unlabelled) == (languages, unlabelled)
    assert any("AS ?tag" in query and "?label" in query for query in asked) == is_asked


def test_values_with_a_class_are_told_apart_by_whether_they_are_blank_nodes() -> None:
    seen = SurveyBuilder(films(f"{LABELLED} :a :near :b , [ a :Ship ] .")).build()
    values = uses_of(seen, "Wreck")["near"].values
    assert {(each.triples, each.examples) for each in values} == {(1, ()), (1, (iri("b"),))}


def test_labels_of_classes_are_not_subtracted_from_those_of_some_instances() -> None:
    labelled_classes = ':Crane rdfs:label "crane"@en . :Machine rdfs:label "machine" .'
    seen = SurveyBuilder(films(SHOP + labelled_classes), [iri("Tractor")]).build()
    assert (dict(seen.languages), seen.unlabelled) == ({"": 1}, None)


def test_only_the_given_classes_are_surveyed() -> None:
    kg = films(SHOP)
    seen = survey_graph(kg, [iri("Tractor")])
    assert [kind.name for kind in seen.classes] == ["Machine", "Tractor"]
    assert uses_of(seen, "Tractor")["status"].things == 1


WHOLE_SCANS = {"values": "(SAMPLE(?o) AS ?some)", "predicates": "(COUNT(DISTINCT ?v) AS ?things)"}


@pytest.mark.parametrize(
    ("scan", "error", "reason"),
    [
        ("values", GraphTimeoutError, survey_queries.TOOK_TOO_LONG),
        ("predicates", QueryError, survey_queries.REFUSED),
    ],
)
def test_a_small_graph_that_refuses_to_look_at_all_instances_is_sampled(
    scan: str, error: type[GraphError], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(query: str, select: Callable[[str], ResultSet]) -> ResultSet:
        if WHOLE_SCANS[scan] in query and "VALUES (?v ?c)" not in query:
            raise error("too much", hint="")
        return select(query)

    kg = films(f'{SHOP} :alone :power 1 ; rdfs:label "Alone" .')
    whole = SurveyBuilder(kg).build()
    watch_queries(kg, monkeypatch, ask)
    seen = SurveyBuilder(kg).build()
    assert seen.sampled
    assert seen.lacks == ((survey_module.EXACT_NUMBERS_PART, reason),)
    assert (seen.triples, seen.things) == (whole.triples, whole.things)
    assert [(kind.name, kind.total) for kind in seen.classes] == [
        (kind.name, kind.total) for kind in whole.classes
    ]
    assert "power" in uses_of(seen, "without a class")


def test_things_without_a_label_are_not_known_if_those_with_one_cannot_be_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(query: str, select: Callable[[str], ResultSet]) -> ResultSet:
        if "COUNT(DISTINCT ?v)" in query and "?label" in query:
            raise GraphTimeoutError("too slow", hint="")
        return select(query)

    kg = films(SHOP)
    assert SurveyBuilder(kg).build().unlabelled is not None
    watch_queries(kg, monkeypatch, ask)
    assert SurveyBuilder(kg).build().unlabelled is None


def test_a_graph_that_answers_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (GraphTimeoutError, GraphUnreachableError):
        kg, select = films(), Mock(side_effect=error("gone", hint=""))
        monkeypatch.setattr(kg, "select", select)
        with pytest.raises(error, match="gone"):
            survey_graph(kg)
        assert select.call_count <= 2


def test_rows_without_a_valid_class_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some engines count nothing as a row with unbound keys."""

    def ask(query: str, select: Callable[[str], ResultSet]) -> ResultSet:
        rows = select(query)
        odd = [
            tuple(Literal(0) if name in ("n", "d", "things") else None for name in rows.variables)
        ]
        if query.startswith("SELECT ?c (COUNT"):
            odd.append((URIRef("http://e/a b>"), Literal(3)))
        return replace(rows, rows=(*rows.rows, *odd)) if "GROUP BY" in query else rows

    kg = films(ODD)
    expected = replace(SurveyBuilder(kg).build(), seconds=0)
    watch_queries(kg, monkeypatch, ask)
    assert replace(SurveyBuilder(kg).build(), seconds=0) == expected


def test_a_survey_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    kg: Any = films(SHOP)
    asked = watch_queries(kg, monkeypatch, lambda query, select: select(query))
    first = survey_graph(kg)
    assert asked
    asked.clear()
    assert (survey_graph(kg), asked) == (first, [])
    [file] = disk.cache_dir().glob("survey-*.json")
    for damage in ("", "{}", "[1", '{"triples": 3}', file.read_text()[:-9]):
        file.write_text(damage)
        asked.clear()
        assert replace(survey_graph(kg), seconds=0) == replace(first, seconds=0)
        assert asked
    asked.clear()
    os.utime(file, (0, 0))
    assert (replace(survey_graph(kg), seconds=0), asked) == (replace(first, seconds=0), [])
    kg.remote = True  # an endpoint may have changed, unlike a file
    survey_graph(kg)
    assert asked


def test_suggested_questions_use_unique_names_and_no_labels() -> None:
    kg = films()
    made = {one.question: one.answer for one in suggest_questions(kg, survey_graph(kg))}
    assert made["What is the director of Arrival?"] == iri("denis")
    assert made["What is the birth place of Denis Villeneuve?"] == iri("gentilly")
    assert not any("Dune?" in question or "label" in question for question in made)


# --- engines


def numbers(seen: Survey) -> list[object]:
    """What a survey says on any engine: examples and names of values differ."""
    return [
        (kind.iri, kind.size, kind.total, prop.predicate, prop.things, value.sort, value.triples)
        for kind in seen.classes
        for prop in kind.properties
        for value in prop.values
    ]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["oxigraph", "virtuoso"])
def test_an_endpoint_has_the_survey_of_its_file(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: engines.Engine = request.getfixturevalue(engine)
    (tmp_path / f"shop_{engine}.ttl").write_text(SHOP, encoding="utf-8")
    for file in (sample_path("films"), tmp_path / f"shop_{engine}.ttl"):
        kg = open_kg(server.load(file))
        there = survey_graph(kg)
        assert numbers(there) == numbers(survey_graph(open_kg(file)))
        assert there.queries < 30
        if file.stem == "films":
            assert len([*islice(suggest_questions(kg, there), 5)]) == 5
